from __future__ import annotations

import asyncio
import json
import math
import tracemalloc
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from dicast import ConfigError, Event, RunContext
from dicast.toolkit.atomic_file import AtomicFile
from dicast_tables.parquet import Rows

SUBJECT = ["subject_kind", "subject_id", "session_id", "score", "tier", "failure", "cost_usd"]


def event(type, payload, id=None) -> Event:
    return Event("01", type, "2026-01-02T03:04:05.678Z", "r1", payload, None, None, "row" if id else None, id)


def started(**payload) -> Event:
    return event(
        "run.started", {"metrics": [], "judges": [], "counted": ["metrics"], "fingerprints": {"data": "d1"}, **payload}
    )


def record(id, row=None, **payload) -> Event:
    return event("record.completed", {"row": {"id": id, **(row or {})}, **payload}, id)


def judged(id, score=0.5, cost="0.0001") -> Event:
    payload = {"judge": "metrics", "score": score, "tier": "proxy", "judge_cost_usd": cost, "signals": {"metrics": {}}}
    return event("eval.completed", payload, id)


def write(folder: Path, *batches, continued=False, **options) -> pa.Table:
    context = RunContext("r1", "nightly", folder, resumed=continued, continued=continued)

    async def run() -> int:
        async with Rows("rows.parquet", **options).open(context) as live:
            return sum(live.write(batch) for batch in batches) + live.close()

    written = asyncio.run(run())
    table = parquet.read_table(folder / "rows.parquet")
    assert table.num_rows == written
    return table


def column(folder, *values) -> pa.ChunkedArray:
    """The column that *values* make."""
    return write(folder, [started(), *(record(str(number), {"x": value}) for number, value in enumerate(values))])["x"]


def test_columns_are_those_of_a_table_with_their_types(tmp_path):
    metrics = {"score": 4, "scores": {"tone": 0.5}, "score_flags": {"tone": True}}
    table = write(tmp_path, [started(), record("q1", response={"content": "4"}, metrics=metrics), judged("q1")])
    assert table.column_names == [
        "id",
        "llm_content",
        "metric_score",
        "metric_scores_tone",
        "metric_score_flags_tone",
        *SUBJECT,
    ]
    assert [str(type_) for type_ in table.schema.types[:5]] == ["string", "string", "int64", "double", "bool"]
    assert table["score"].to_pylist() == [0.5]
    assert table["cost_usd"].to_pylist() == [Decimal("0.000100000000000000")]


@pytest.mark.parametrize(
    ("values", "type", "read"),
    [
        ([1, 2.5, None], "double", [1.0, 2.5, None]),
        ([True, None], "bool", [True, None]),
        ([1, "a"], "string", ["1", "a"]),
        ([True, 1], "string", ["True", "1"]),
        ([2**63], "string", [str(2**63)]),
        ([2**53 + 1, 0.5], "string", [str(2**53 + 1), "0.5"]),
        ([2**53 + 1], "int64", [2**53 + 1]),
        ([[1, {"a": "ö"}], {"b": 1}], "string", ['[1,{"a":"ö"}]', '{"b":1}']),
        ([None], "string", [None]),
        ([math.nan, 0.5], "double", [None, 0.5]),
        (["\ud800"], "string", ["\\ud800"]),
    ],
)
def test_a_column_has_the_type_that_holds_its_values(tmp_path, values, type, read):
    cells = column(tmp_path, *values)
    assert (str(cells.type), cells.to_pylist()) == (type, read)


def test_an_amount_with_more_digits_than_the_decimals_have_stays_whole_as_text(tmp_path):
    cost = "0.0000000000000000001"
    table = write(tmp_path, [started(), judged("1", cost=cost), judged("2")])
    assert table["cost_usd"].to_pylist() == [cost, "0.0001"]


def test_the_metadata_says_of_which_run_the_file_is(tmp_path):
    metadata = write(
        tmp_path, [started(security_level="official", determinism_level="high"), judged("1")]
    ).schema.metadata
    assert json.loads(metadata[b"fingerprints"]) == {"data": "d1"}
    assert (metadata[b"run_id"], metadata[b"name"]) == (b"r1", b"nightly")
    assert (metadata[b"security_level"], metadata[b"determinism_level"]) == (b"official", b"high")
    assert b"security_level" not in write(tmp_path, [started()]).schema.metadata


def test_a_run_without_rows_has_its_columns_with_their_types(tmp_path):
    table = write(tmp_path, [started()])
    assert table.column_names == SUBJECT
    assert [str(type_) for type_ in table.schema.types] == [
        *["string"] * 3,
        "double",
        "string",
        "string",
        "decimal128(38, 18)",
    ]


def test_duckdb_reads_it(tmp_path):
    import duckdb

    events = [record(str(number), {"n": number}, metrics={"scores": {"tone": number / 8}}) for number in range(8)]
    write(tmp_path, [started(security_level="official"), *events, *(judged(str(number)) for number in range(8))])
    file = str(tmp_path / "rows.parquet")
    with duckdb.connect() as base:
        rows = base.execute(
            "SELECT sum(n), avg(metric_scores_tone), sum(cost_usd) FROM read_parquet(?)", [file]
        ).fetchone()
        assert rows == (28, 0.4375, Decimal("0.0008"))
        pairs = base.execute("SELECT key, value FROM parquet_kv_metadata(?)", [file]).fetchall()
    assert (b"security_level", b"official") in pairs


def test_rows_are_written_in_groups_and_in_order(tmp_path):
    events = [record(str(number), {"n": number}) for number in range(25)]
    table = write(tmp_path, [started(), *events], row_group=10)
    assert table["n"].to_pylist() == list(range(25))
    assert parquet.ParquetFile(tmp_path / "rows.parquet").num_row_groups == 3


@pytest.mark.slow
def test_memory_does_not_grow_with_the_rows(tmp_path):
    def peak(count: int) -> int:
        async def run() -> None:
            async with Rows("rows.parquet", row_group=100).open(RunContext("r1", "nightly", tmp_path)) as live:
                live.write([started()])
                for number in range(count):
                    live.write([record(str(number), {"text": f"{number}" * 2000})])

        tracemalloc.start()
        asyncio.run(run())
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return most

    peak(10)
    assert peak(4000) < 1.5 * peak(1000)


def test_the_file_appears_when_the_run_ends_and_a_failed_close_may_be_repeated(tmp_path, monkeypatch):
    append, attempts = AtomicFile.write, []

    def fail_first(self, data) -> None:
        attempts.append(data)
        if len(attempts) == 2:
            raise OSError(28, "No space left on device")
        append(self, data)

    monkeypatch.setattr(AtomicFile, "write", fail_first)

    async def run() -> int:
        async with Rows("rows.parquet").open(RunContext("r1", "nightly", tmp_path)) as live:
            live.write([started(), judged("1"), judged("2")])
            with pytest.raises(OSError, match="No space"):
                live.close()
            assert list(tmp_path.iterdir()) == []
            return live.close()

    assert asyncio.run(run()) == 1
    assert parquet.read_table(tmp_path / "rows.parquet").num_rows == 2


def test_an_existing_file_may_be_kept_and_base_path_holds(tmp_path):
    write(tmp_path, [started()])
    with pytest.raises(ConfigError, match="overwrite is false"):
        write(tmp_path, [started()], overwrite=False)
    with pytest.raises(ConfigError, match="leads out of base_path"):
        write(tmp_path, [started()], base_path="out")


def test_a_resumed_run_goes_on_with_its_own_file_and_leaves_none_of_the_killed_process(tmp_path):
    write(tmp_path, [started()], overwrite=False)
    (tmp_path / ".rows.parquet.r1.tmp").touch()
    assert write(tmp_path, [started(), record("a")], overwrite=False, continued=True).num_rows == 1
    assert [path.name for path in tmp_path.iterdir()] == ["rows.parquet"]


CELLS = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.integers(), max_size=2)


@given(st.lists(CELLS, max_size=6))
def test_no_value_is_lost_whatever_they_are(tmp_path_factory, values):
    read = column(tmp_path_factory.mktemp("parquet"), *values).to_pylist() if values else []
    for value, cell in zip(values, read, strict=True):
        if value is None or (isinstance(value, float) and not math.isfinite(value)):
            assert cell is None
        elif isinstance(cell, str) and not isinstance(value, str):
            assert (str(value) if isinstance(value, bool) else value) == (
                cell if isinstance(value, bool) else json.loads(cell)
            )
        else:
            assert cell == (value.encode("utf-8", "backslashreplace").decode() if isinstance(value, str) else value)


def test_texts_that_csv_has_are_no_columns(tmp_path):
    read = event("subject.read", {"digest": "0", "content": {"input": "q", "output": "a", "reference": None}}, "1")
    assert write(tmp_path, [started(), read, judged("1")]).column_names == SUBJECT


def test_without_pyarrow_the_extra_is_named(monkeypatch):
    monkeypatch.setattr("dicast_tables.parquet.rows.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"parquet/rows needs pyarrow, which is not installed: .*parquet"):
        Rows("rows.parquet")
