from __future__ import annotations

import asyncio
import json
from decimal import Decimal
from pathlib import Path

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ConfigError, Event, RunContext
from dicast_tables.jsonl import Events

KEYS = ["id", "type", "time", "run_id", "session_id", "turn_id", "subject_kind", "subject_id", "sensitivity", "payload"]
STARTED = Event("01", "run.started", "2026-01-02T03:04:05.678Z", "r1", {"metrics": []})
READ = Event("02", "subject.read", STARTED.time, "r1", {"text": "größe\n"}, "s1", "t1", "turn", "t1", "user_controlled")


def write(folder: Path, *events: Event, **options) -> list[dict]:
    async def run() -> int:
        async with Events("out/events.jsonl", **options).open(RunContext("r1", "test", folder)) as live:
            written = live.write(events)
            live.close()
            live.close()
            return written

    written = asyncio.run(run())
    lines = (folder / "out" / "events.jsonl").read_text(encoding="utf-8").splitlines()
    assert written == len(lines)
    return [json.loads(line) for line in lines]


def test_one_event_a_line_with_every_field_in_order(tmp_path):
    first, second = write(tmp_path, STARTED, READ)
    assert list(first) == list(second) == KEYS
    assert second == attrs.asdict(READ)
    assert first["session_id"] is None


def test_only_the_types_asked_for(tmp_path):
    assert [line["type"] for line in write(tmp_path, STARTED, READ, types=["subject.read"])] == ["subject.read"]
    assert write(tmp_path, STARTED, types=["eval.failed"]) == []


def test_types_is_a_list():
    with pytest.raises(ConfigError, match=r"write \[eval\.failed\]"):
        Events("x", types="eval.failed")


def test_money_is_a_decimal_string_and_nan_is_null(tmp_path):
    payload = {"judge_cost_usd": Decimal("1E-7"), "score": float("nan")}
    assert write(tmp_path, attrs.evolve(STARTED, payload=payload))[0]["payload"] == {
        "judge_cost_usd": "0.0000001",
        "score": None,
    }


def test_an_event_that_is_no_json_is_an_error_and_writes_nothing_of_its_batch(tmp_path):
    async def run() -> None:
        async with Events("events.jsonl").open(RunContext("r1", "test", tmp_path)) as live:
            live.write([STARTED])
            with pytest.raises(TypeError):
                live.write([READ, attrs.evolve(READ, payload={"x": object()})])
            live.write([READ])

    asyncio.run(run())
    assert len((tmp_path / "events.jsonl").read_text().splitlines()) == 2


def test_a_run_of_which_nothing_was_told_leaves_the_older_file(tmp_path):
    write(tmp_path, STARTED)

    async def run() -> None:
        async with Events("out/events.jsonl").open(RunContext("r2", "test", tmp_path)):
            pass

    asyncio.run(run())
    assert len((tmp_path / "out" / "events.jsonl").read_text().splitlines()) == 1


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
    max_leaves=12,
)  # fmt: skip


@pytest.mark.slow
@given(st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), json_values))
def test_any_payload_comes_back(tmp_path_factory, payload):
    folder = tmp_path_factory.mktemp("jsonl")
    event = attrs.evolve(STARTED, payload=payload)

    async def run() -> None:
        async with Events("e").open(RunContext("r1", "test", folder)) as live:
            live.write([event])

    asyncio.run(run())
    text = (folder / "e").read_bytes()
    assert text.count(b"\n") == 1
    assert json.loads(text)["payload"] == payload


def test_what_a_killed_process_of_the_run_has_left_is_removed(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".events.jsonl.r1.tmp").touch()
    write(tmp_path, STARTED)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["events.jsonl"]
