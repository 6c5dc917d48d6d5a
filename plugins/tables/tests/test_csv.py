from __future__ import annotations

import asyncio
import csv
from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, DicastError, Event, RunContext
from dicast.toolkit.atomic_file import AtomicFile
from dicast_tables.csv import Rows

FIXED = ["subject_kind", "subject_id", "session_id", "score", "tier", "failure", "cost_usd"]
STARTERS = ("=", "+", "-", "@", "\t", "\r", "\n")


def event(type, payload, id=None, kind="row", session=None) -> Event:
    return Event("01", type, "2026-01-02T03:04:05.678Z", "r1", payload, session, None, kind if id else None, id)


def started(metrics=(), judges=(), counted=("metrics",)) -> Event:
    return event("run.started", {"metrics": list(metrics), "judges": list(judges), "counted": list(counted)})


def read(id, **fields) -> Event:
    return event("subject.read", {"digest": "0"}, id, **fields)


def completed(id, judge="metrics", score=0.5, cost="0", metrics=None, scores=None, reasons=None, **fields) -> Event:
    payload = {
        "judge": judge, "score": score, "confidence": 0.9, "tier": "truth", "judge_kind": "metrics",
        "judge_cost_usd": cost, "signals": {"metrics": metrics or {}},
        **({"scores": scores} if scores else {}), **(reasons or {}),
    }  # fmt: skip
    return event("eval.completed", payload, id, **fields)


def failed(id, judge="metrics", mode="timeout", cost="0") -> Event:
    payload = {
        "judge": judge,
        "failure_mode": mode,
        "error_message": "=1",
        "judge_latency_ms": 3,
        "judge_cost_usd": cost,
    }
    return event("eval.failed", payload, id)


def write(folder: Path, *batches, continued=False, keeps=False, **options) -> list[list[str]]:
    """Send *batches* of events to the sink, and return the rows that the standard library reads from its file.

    The ledger stores no content unless *keeps*.
    """

    context = RunContext("r1", "test", folder, resumed=continued, continued=continued, keeps_content=keeps)

    async def run() -> int:
        async with Rows("rows.csv", **options).open(context) as live:
            return sum(live.write(batch) for batch in batches) + live.close()

    written = asyncio.run(run())
    with (folder / "rows.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert written == len(rows) - 1
    return rows


def test_one_line_per_subject_in_the_order_of_reading(tmp_path):
    events = [started(), read("b"), read("a"), read("c"), completed("b"), completed("a"), completed("c")]
    header, *rows = write(tmp_path, events)
    assert header == FIXED
    assert [row[1] for row in rows] == ["b", "a", "c"]
    assert rows[0] == ["row", "b", "", "0.5", "truth", "", "0"]


def test_a_row_is_written_when_a_later_subject_ends(tmp_path):
    async def run() -> list[int]:
        async with Rows("rows.csv").open(RunContext("r1", "test", tmp_path)) as live:
            counts = [live.write([started(judges=["a", "b"]), *map(read, "xyz")])]
            counts += [live.write([completed("x", judge)]) for judge in "ab"]
            counts.append(live.write([completed("y", "a")]))
            return [*counts, live.close(), live.close()]

    assert asyncio.run(run()) == [0, 0, 0, 1, 2, 0]


def test_metric_and_judge_columns(tmp_path):
    labels = ["proxy/format", "diff/match"]
    events = [
        started(labels, ["llm/judge"]),
        read("q1", session="s1"),
        completed("q1", metrics={"proxy/format": 1.0, "diff/match": 0.25}, cost="0.10"),
        completed("q1", "llm/judge", score=0.75, cost=Decimal("0.05")),
    ]
    header, row = write(tmp_path, events)
    judge = [f"judge_llm_judge_{what}" for what in ("score", "confidence", "kind", "failure")]
    assert header == [*FIXED, "metric_proxy_format", "metric_diff_match", *judge]
    assert row == ["row", "q1", "s1", "0.5", "truth", "", "0.15", "1.0", "0.25", "0.75", "0.9", "metrics", ""]


def test_metric_columns_may_be_left_out(tmp_path):
    assert write(tmp_path, [started(["a"]), completed("q")], include_metrics=False)[0] == FIXED


def test_an_unscored_subject_has_an_empty_score_and_its_failure(tmp_path):
    _, row = write(tmp_path, [started(["a"]), read("q1"), failed("q1")])
    assert row == ["row", "q1", "", "", "", "timeout", "0", ""]


def test_a_judges_failure_stands_in_its_own_column(tmp_path):
    header, row = write(tmp_path, [started(judges=["j"]), read("q1"), completed("q1"), failed("q1", "j", "refused")])
    cells = dict(zip(header, row, strict=True))
    assert (cells["score"], cells["failure"]) == ("0.5", "")
    assert (cells["judge_j_score"], cells["judge_j_failure"]) == ("", "refused")


def test_an_unknown_cost_is_empty_and_not_0(tmp_path):
    _, row = write(
        tmp_path, [started(judges=["j"]), read("q"), completed("q", cost="1"), completed("q", "j", cost=None)]
    )
    assert row[6] == ""


def test_small_costs_are_plain_decimals(tmp_path):
    assert write(tmp_path, [started(), read("q"), completed("q", cost=Decimal("1E-7"))])[1][6] == "0.0000001"


def test_a_subject_nobody_judged_has_an_empty_row(tmp_path):
    _, first, _ = write(tmp_path, [started(), read("skipped"), read("q"), completed("q")])
    assert first == ["row", "skipped", "", "", "", "", ""]


def test_several_counted_judges_make_no_single_score(tmp_path):
    events = [
        started(judges=["a", "b"], counted=["a", "b"]),
        *map(read, "xyz"),
        completed("x", "a", 0.25), completed("x", "b"),
        completed("y", "b", 0.75),
        completed("z", "a"), failed("z", "b", "crashed"),
    ]  # fmt: skip
    _, both, single, broken = write(tmp_path, events)
    assert both[3:6] == ["", "", ""]
    assert single[3:6] == ["", "", ""]
    assert broken[3:6] == ["", "", "crashed"]


def test_subjects_of_two_kinds_may_share_an_id(tmp_path):
    events = [started(), read("x", kind="turn"), read("x", kind="session")]
    events += [completed("x", kind="turn"), completed("x", kind="session")]
    assert [row[0] for row in write(tmp_path, events)[1:]] == ["turn", "session"]


def test_labels_become_column_names_and_collisions_get_a_number(tmp_path):
    labels = ["llm/judge", "llm_judge", "llm-judge", "llm_judge_2", "größe"]
    names = ["llm_judge", "llm_judge_2", "llm_judge_3", "llm_judge_2_2", "gr__e"]
    header, row = write(tmp_path, [started(labels), completed("q", metrics=dict(zip(labels, range(5), strict=True)))])
    assert header[7:] == [f"metric_{name}" for name in names]
    assert row[7:] == ["0", "1", "2", "3", "4"]


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        ("=2+2", "'=2+2"),
        ("@SUM(A1:A10)", "'@SUM(A1:A10)"),
        ("\tx", "'\tx"),
        ("\rx", "'\rx"),
        ("\nx", "'\nx"),
        ("+1", "'+1"),
        ("-5", "'-5"),
        ("\uff1d1\uff0b1", "'\uff1d1\uff0b1"),
        ("\uff0b1", "'\uff0b1"),
        ("\uff0d1", "'\uff0d1"),
        ("\uff20A1", "'\uff20A1"),
        ("\ufeff=1", "\ufeff'=1"),
        ("'x", "'x"),
        ("a=b", "a=b"),
        (" =1", " =1"),
    ],
)
def test_text_that_starts_a_formula_is_guarded(tmp_path, text, cell):
    _, row = write(tmp_path, [started(), completed(text, session=text)])
    assert row[1:3] == [cell, cell]
    _, row = write(tmp_path, [started(), completed(text)], sanitize_formulas=False)
    assert row[1] == text


def test_numbers_are_never_guarded(tmp_path):
    assert write(tmp_path, [started(["a"]), completed("q", metrics={"a": -5})])[1][7] == "-5"


def test_the_guard_may_be_another_character(tmp_path):
    _, *rows = write(tmp_path, [started(), *map(completed, ["=1", "_=1", "'x"])], guard="_")
    assert [row[1] for row in rows] == ["_=1", "_=1", "_'x"]


@pytest.mark.parametrize("guard", ["", "''", "=", "\t", "\ufeff"])
def test_a_guard_is_one_character_that_starts_no_formula(guard):
    with pytest.raises(ConfigError, match="guard is"):
        Rows("rows.csv", guard=guard)


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1, unique=True), st.booleans())
def test_no_cell_starts_a_formula_and_everything_else_comes_back(tmp_path_factory, ids, sanitize):
    folder = tmp_path_factory.mktemp("csv")
    events = [started(), *(completed(id or "-", score=index / len(ids)) for index, id in enumerate(ids))]
    _, *rows = write(folder, events, sanitize_formulas=sanitize)
    cells = [row[1] for row in rows]
    if sanitize:
        assert not any(cell.lstrip("\ufeff").startswith(STARTERS) for cell in cells)
    assert [cell.replace("'", "") for cell in cells] == [
        key.replace("'", "") for key in dict.fromkeys(id or "-" for id in ids)
    ]


@given(st.floats(0, 1))
def test_scores_come_back_to_the_last_bit(tmp_path_factory, score):
    _, row = write(tmp_path_factory.mktemp("csv"), [started(), completed("q", score=score)])
    assert float(row[3]) == score


def test_lines_end_in_a_line_feed_and_text_is_utf8(tmp_path):
    write(tmp_path, [started(), completed("größe")])
    assert (tmp_path / "rows.csv").read_bytes().endswith("row,größe,,0.5,truth,,0\n".encode())


def test_a_lone_surrogate_loses_no_row(tmp_path):
    assert write(tmp_path, [started(), completed("\ud800")])[1][1] == "\\ud800"


def test_a_file_that_could_not_be_written_is_written_whole_when_closed_again(tmp_path, monkeypatch):
    attempts = []
    append = AtomicFile.write

    def fail_first(self, data) -> None:
        attempts.append(data)
        append(self, data)
        if len(attempts) == 1:
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(AtomicFile, "write", fail_first)

    async def run() -> int:
        async with Rows("rows.csv").open(RunContext("r1", "test", tmp_path)) as live:
            assert live.write([started(), read("x"), read("y"), completed("x"), completed("y")]) == 1
            with pytest.raises(OSError, match="No space"):
                live.close()
            return live.close()

    assert asyncio.run(run()) == 1
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 3
    assert len(list(tmp_path.iterdir())) == 1


def test_a_run_that_never_started_leaves_the_older_file(tmp_path):
    (tmp_path / "rows.csv").write_text("older\n")
    write(tmp_path)
    assert (tmp_path / "rows.csv").read_text() == "older\n"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_subject_before_the_columns_are_known_is_an_error(tmp_path):
    with pytest.raises(DicastError, match=r"run\.started"):
        write(tmp_path, [read("a"), completed("a"), completed("b")])


def test_an_existing_file_may_be_kept(tmp_path):
    write(tmp_path, [started()])
    write(tmp_path, [started(), completed("q")])
    with pytest.raises(ConfigError, match="overwrite is false"):
        write(tmp_path, [started()], overwrite=False)


def test_a_resumed_run_goes_on_with_its_own_file_and_leaves_none_of_the_killed_process(tmp_path):
    write(tmp_path, [started()], overwrite=False)
    (tmp_path / ".rows.csv.r1.tmp").touch()
    _, row = write(tmp_path, [started(), read("a"), completed("a")], overwrite=False, continued=True)
    assert row[1] == "a"
    assert [path.name for path in tmp_path.iterdir()] == ["rows.csv"]


def test_a_path_outside_base_path_is_refused(tmp_path):
    inside = tmp_path / "out"
    inside.mkdir()
    (inside / "link").symlink_to(tmp_path)
    for path in ("rows.csv", "out/../rows.csv", "out/link/rows.csv"):

        async def run(path=path) -> None:
            async with Rows(path, base_path="out").open(RunContext("r1", "test", tmp_path)):
                pass

        with pytest.raises(ConfigError, match="leads out of base_path"):
            asyncio.run(run())
    assert write(inside, [started()], base_path="../out") == [FIXED]


def completed_record(id, row=None, **payload) -> Event:
    return event("record.completed", {"row": {"id": id, **(row or {})}, **payload}, id)


def test_a_records_columns_come_first_and_lists_are_json(tmp_path):
    record = completed_record("q1", {"input": "=1"}, response={"content": "-4", "metrics": {"tags": ["a", "b"]}},
                              metrics={"score": -4, "scores": {"tone": None}, "score_flags": {"tone": True}})  # fmt: skip
    header, row = write(tmp_path, [started(), record, completed("q1")])
    assert header[:7] == ["id", "input", "llm_content", "llm_content_metric_tags", "metric_score", "metric_scores_tone",
                          "metric_score_flags_tone"]  # fmt: skip
    assert header[7:] == FIXED
    assert row[:7] == ["q1", "'=1", "'-4", '["a","b"]', "-4", "", "True"]


def test_column_names_are_guarded(tmp_path):
    assert write(tmp_path, [started(), completed_record("q1", {"=HYPERLINK()": 1})])[0][1] == "'=HYPERLINK()"


def test_json_that_starts_a_formula_after_a_guard_of_its_own_is_guarded(tmp_path):
    _, row = write(tmp_path, [started(), completed_record("q1", {"a": [1]})], guard="[")
    assert row[1] == "[1]"


def test_a_row_whose_columns_came_later_than_others_has_empty_cells(tmp_path):
    header, *rows = write(tmp_path, [started(), *(completed_record(str(n), {f"c{n}": n}) for n in range(3))])
    assert header[:4] == ["id", "c0", "c1", "c2"]
    assert [row[1:4] for row in rows] == [["0", "", ""], ["", "1", ""], ["", "", "2"]]


def test_pandas_reads_the_numbers_and_flags_of_records(tmp_path):
    pandas = pytest.importorskip("pandas")
    metrics = [{"score": 0.1, "score_flags": {"a": True}}, {"score": None, "score_flags": {"a": False}}]
    events = [completed_record(str(number), {"n": number}, metrics=values) for number, values in enumerate(metrics)]
    write(tmp_path, [started(), *events])
    frame = pandas.read_csv(tmp_path / "rows.csv")
    assert frame["metric_score_flags_a"].tolist() == [True, False]
    assert frame["n"].dtype.kind == "i"
    assert frame["metric_score"][0] == 0.1
    assert frame["metric_score"].isna().tolist() == [False, True]


# What was judged, and why


def judged(id, *, output="an answer", **fields) -> list[Event]:
    content = {"input": "=1+1", "output": output, "reference": {"gold": 2}, "context": {}}
    return [event("subject.read", {"digest": "0", "content": content}, id), completed(id, **fields)]


def by_name(rows) -> list[dict[str, str]]:
    header, *rest = rows
    return [dict(zip(header, row, strict=True)) for row in rest]


def score(metric, details="", **fields):
    return {"metric": metric, "details": details, "signals": {}} | fields


def test_what_was_judged_and_the_reason_of_each_metric_come_last(tmp_path):
    scores = [score("proxy/a", "@too long"), score("llm/b", feedback="be brief"), score("proxy/a", "@too long")]
    events = [started(["proxy/a", "llm/b"], ["turn"]), *judged("q1", scores=scores), completed("q1", "turn")]
    header, row = write(tmp_path, events, keeps=True)
    reasons = ["reason_proxy_a", "reason_llm_b", "reason_turn"]
    assert header[-6:] == ["input", "output", "reference", *reasons]
    assert row[-6:] == ["'=1+1", "an answer", '{"gold":2}', "'@too long", "be brief", ""]
    assert header[: len(FIXED)] == FIXED


def test_a_ledger_without_content_gets_none_of_it_unless_the_option_says_so(tmp_path):
    events = [started(), *judged("q1")]
    assert write(tmp_path, events)[0] == FIXED
    assert write(tmp_path, events, keeps=True, content=False)[0] == FIXED
    assert write(tmp_path, events, content=True)[0] == [*FIXED, "input", "output", "reference"]


def test_a_rationale_has_a_column_where_one_was_captured(tmp_path):
    scores = [score("llm/b", signals={"rationale_redacted": "it\nis so"})]
    events = [started(["llm/b"], ["jury"]), *judged("q1", scores=scores), *judged("q2")]
    opinion = completed("q1", "jury")
    opinion.payload["signals"] |= {"rationale_redacted": "they agree", "flags_negative": ["tool_failed", "refusal"]}
    rows = by_name(write(tmp_path, [*events[:3], opinion, *events[3:]], keeps=True))
    assert [name for name in rows[0] if name.startswith("rationale")] == ["rationale_llm_b", "rationale_jury"]
    assert [rows[0]["rationale_llm_b"], rows[0]["rationale_jury"]] == ["it\nis so", "they agree"]
    assert [row["reason_jury"] for row in rows] == ["tool_failed, refusal", ""]
    assert [rows[1]["rationale_llm_b"], rows[1]["rationale_jury"]] == ["", ""]


def test_a_failure_is_the_reason_of_the_metric_that_failed_or_else_of_all(tmp_path):
    def broken(id, message, judge="metrics"):
        failure = failed(id, judge)
        failure.payload["error_message"] = message
        return failure

    start = started(["a", "a: b"], ["turn"])
    rows = by_name(
        write(
            tmp_path,
            [start, broken("1", "a: b: no reference"), broken("2", "no room"), broken("3", "?", "turn")],
            keeps=True,
        )
    )
    assert [row["reason_a__b"] for row in rows] == ["no reference", "", ""]
    assert [row["reason_metrics"] for row in rows] == ["", "no room", ""]
    assert [row["reason_turn"] for row in rows] == ["", "", "?"]
    assert {row["reason_a"] for row in rows} == {""}


def test_a_metric_that_was_not_asked_says_why(tmp_path):
    signals = {"skipped": [{"metric": "b", "reason": "run_cap"}], "spared": [{"metric": "c", "runs": 1}]}
    (row,) = by_name(write(tmp_path, [started(["b", "c"]), *judged("1", reasons=signals)], keeps=True))
    assert (row["reason_b"], row["reason_c"]) == ("skipped: run_cap", "spared by the gate")
