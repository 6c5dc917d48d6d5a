"""The commands' figures from a ledger's columns equal figures from its rows, read here with sqlite3 and json alone."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tempfile
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from importlib.metadata import entry_points
from math import fsum
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicast import Entry, LedgerError
from dicast.reading import read_activity, read_open_judgments, read_verdicts, reader
from dicast.testing import MemoryLedger
from dicast_quality.reliability import Tally

ledger_plugin = entry_points(group="dicast")["ledger"].load()  # as a pipeline finds it
Sqlite, connect = ledger_plugin.Sqlite, ledger_plugin.connect
from_, to = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 3, tzinfo=UTC)
SUBJECTS, RUNS, JUDGES = ("T1", "T2", "T3"), ("R1", "R2"), ("a", "b")
TIMES = [f"2026-03-0{day}T12:00:00.000Z" for day in (1, 2, 3)]
SIGNALS = [
    {},
    {"escalated": True},
    {"flags_negative": ["explicit_thumbs_down"]},
    {"escalation_skipped": "budget_exhausted", "heuristic_flags_negative": ["explicit_thumbs_down", "x"]},
]
COSTS = ["0", None, "0.01", "0.0030", "0.00012345678901234567"]
about = {"id": st.sampled_from(SUBJECTS), "run_id": st.sampled_from(RUNS), "time": st.sampled_from(TIMES)}
verdict = st.fixed_dictionaries(
    {
        **about,
        "what": st.just("judged"),
        "judge": st.sampled_from(JUDGES),
        "score": st.sampled_from([0.0, 0.2, 0.5, 0.65, 0.8, 1.0]),
        "confidence": st.sampled_from([0.1, 0.7, 1.0]),
        "cost": st.sampled_from(COSTS),
        "msat": st.sampled_from(["0", "1500", None]),
        "signals": st.sampled_from(SIGNALS),
        "judge_kind": st.sampled_from(["llm", "heuristic"]),
        "kind": st.sampled_from(["turn", "turn", "row"]),
    }
)
other_events = st.one_of(
    st.fixed_dictionaries({**about, "what": st.sampled_from(["failed", "started"]), "judge": st.sampled_from(JUDGES)}),
    st.fixed_dictionaries({**about, "what": st.just("read"), "text": st.sampled_from(["x", "y"])}),
    st.fixed_dictionaries({**about, "what": st.sampled_from(["routed", "called"]), "model": st.sampled_from("mn")}),
    st.fixed_dictionaries(
        {**about, "what": st.just("thumbed"), "rating": st.sampled_from(["thumbs_up", "thumbs_down"])}
    ),
)
happenings = st.lists(st.one_of(verdict, other_events), min_size=1, max_size=25)


def tell(ledger, event):
    """Add an event to the ledger's builder."""
    fields = dict(event)
    what, id = fields.pop("what"), fields.pop("id")
    if what == "judged":
        ledger.judged(id, fields.pop("score"), fields.pop("judge"), **fields)
    elif what == "read":
        ledger.read(id, fields.pop("text"), **fields)
    elif what in ("failed", "started"):
        getattr(ledger, what)(id, fields.pop("judge"), **fields)
    elif what == "thumbed":
        ledger.thumbed(id, fields["rating"], fields["time"])
    else:
        getattr(ledger, what)(id, fields.pop("model"), **fields)


def written_to(component, events, size, ask):
    """Return the result of *ask* on the ledger of *component*, with *events* appended *size* at a time."""

    async def write():
        async with component.open() as live:
            for start in range(0, len(events), size):
                live.append(events[start : start + size])
            return ask(live)

    return asyncio.run(write())


class MemoryOf:
    """Live ledger without columns, with *events* in their order."""

    def __init__(self, events):
        self._events = events

    def read(self, query):
        types = query.types or {event.type for event in self._events}
        return (Entry(seq, event, "", "") for seq, event in enumerate(self._events, 1) if event.type in types)


def rows_of(path):
    """Return every row as a dict with its payload parsed."""
    names = "seq, type, time, run_id, session_id, turn_id, subject_kind, subject_id, payload"
    with closing(connect(path)) as connection:
        records = [
            dict(zip(names.split(", "), row, strict=True))
            for row in connection.execute(f"SELECT {names} FROM events ORDER BY seq")
        ]
    return [{**row, "payload": json.loads(row["payload"])} for row in records]


def expected_quality(rows, group_by, latest):
    """Return the figures of turns by group, computed from rows alone."""
    counted = [row for row in rows if row["type"] == "eval.completed" and row["subject_kind"] == "turn"]
    counted = [row for row in counted if "2026-03-01" <= row["time"] < "2026-03-03"]
    if latest:
        counted = list({(row["subject_id"], row["payload"]["judge"]): row for row in counted}.values())
    groups = {}
    for row in counted:
        groups.setdefault(key_of(rows, row, group_by), []).append(row)
    return {key: figures(rows, group) for key, group in groups.items()}


def key_of(rows, row, group_by):
    if group_by != "model":
        return row["payload"][group_by] if group_by != "none" else None
    all_records = [record for record in rows if record["type"] in ("route.decided", "llm.call_completed")]
    all_records = [record for record in all_records if record["turn_id"] == row["subject_id"]]
    own_records = [record for record in all_records if record["run_id"] == row["run_id"]]
    records = own_records or [record for record in all_records if record["run_id"] == all_records[-1]["run_id"]]
    decided = [record["payload"]["chosen_model"] for record in records if record["type"] == "route.decided"]
    called = {record["payload"]["model"] for record in records if record["type"] == "llm.call_completed"}
    return decided[-1] if decided else called.pop() if len(called) == 1 else None


def figures(rows, flag):
    payloads = [row["payload"] for row in flag]
    thumbs = {}
    for row in sorted(
        (payload for payload in rows if payload["type"] == "feedback.explicit"), key=lambda payload: payload["time"]
    ):
        thumbs[row["payload"]["subject_turn_id"]] = row["payload"]["rating"] == "thumbs_down"
    flagged = {
        payload["subject_id"] for payload in payloads if any("explicit_thumbs_down" in flag for flag in flags(payload))
    }
    ids = {payload["subject_id"] for payload in payloads}
    costs = [payload["judge_cost_usd"] for payload in payloads]
    msats = [payload["judge_cost_msat"] for payload in payloads]
    return {
        "verdict_count": len(payloads),
        "mean_score": pytest.approx(fsum(payload["score"] for payload in payloads) / len(payloads)),
        "mean_confidence": pytest.approx(fsum(payload["confidence"] for payload in payloads) / len(payloads)),
        "judge_cost_usd_total": None if None in costs else total(costs),
        "judge_cost_msat_total": total(msats) if total(msats) != "0" else None,
        "thumbs_down_count": sum(thumbs.get(id, id in flagged) for id in ids),
        "escalated_count": sum(payload["signals"].get("escalated") is True for payload in payloads),
        "budget_exhausted_count": sum("escalation_skipped" in payload["signals"] for payload in payloads),
    }


def flags(payload):
    return [payload["signals"].get(name, []) for name in ("flags_negative", "heuristic_flags_negative")]


def total(amounts):
    known_amounts = [Decimal(amount) for amount in amounts if amount is not None and Decimal(amount)]
    return f"{sum(known_amounts):f}" if known_amounts else "0"


@settings(max_examples=3 * settings.default.max_examples // 5, deadline=None)
@given(
    events=happenings,
    size=st.sampled_from([1, 3, 100]),
    group_by=st.sampled_from(["model", "judge_kind", "none"]),
    latest=st.booleans(),
)
def test_quality_of_columns_is_that_of_the_rows(make_ledger, events, size, group_by, latest):
    ledger = make_ledger()
    for event in events:
        tell(ledger, event)

    def ask(live):
        return reader("quality")(live, group_by=group_by, start=from_, end=to, latest=latest)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        result = written_to(Sqlite(path), ledger.events, size, lambda live: (ask(live), live.verify().ok))
        rows = rows_of(path)
    assert result[1], "the columns follow from the chain"
    assert result[0] == written_to(MemoryLedger(), ledger.events, size, ask), "a ledger without columns says the same"
    expected = expected_quality(rows, group_by, latest)
    name = {"model": "chosen_model"}.get(group_by, group_by)
    data = {row.get(name): row for row in result[0]["data"] if row["verdict_count"]}
    assert {key: {field: row.get(field) for field in expected[key]} for key, row in data.items()} == expected
    ended_evals = {row["payload"]["eval_id"] for row in rows if row["type"] in ("eval.completed", "eval.failed")}
    open_ = [row for row in rows if row["type"] == "eval.started" and row["payload"]["eval_id"] not in ended_evals]
    assert result[0]["backlog"] == sum("2026-03-01" <= row["time"] < "2026-03-03" for row in open_)


@settings(max_examples=3 * settings.default.max_examples // 5, deadline=None)
@given(events=happenings, size=st.sampled_from([1, 3, 100]))
def test_agreement_of_columns_is_that_of_the_rows(make_ledger, events, size):
    ledger = make_ledger()
    ledger.run("R1")
    ledger.run("R2")
    ledger.judged("T1", 0.5, "a")
    ledger.judged("T1", 0.75, "b")
    for event in events:
        tell(ledger, event)

    def ask(live):
        return reader("agreement")(live, judge=JUDGES)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.db"
        result = written_to(Sqlite(path), ledger.events, size, ask)
        rows = rows_of(path)
    assert result == written_to(MemoryLedger(), ledger.events, size, ask), "a ledger without columns says the same"
    tally = Tally(0.15)
    for subject in sorted(
        {(row["subject_id"], row["subject_kind"]) for row in rows if row["type"].startswith("eval.")}
    ):
        tally.add(scores_of([row for row in rows if (row["subject_id"], row["subject_kind"]) == subject]))
    assert (result["n"], result["within"], result["alpha"]) == (tally.n, tally.within, tally.alpha)


def scores_of(rows):
    """Return the newest score of each judge on the content that most judges scored; of equal contents the newest."""
    newest, read, contents = {}, {}, set()
    for row in rows:
        payload = row["payload"]
        if row["type"] == "subject.read":
            read[row["run_id"]] = payload["digest"]
            contents.add(payload["digest"])
        elif row["type"] == "eval.completed":
            newest[payload["judge"]] = (payload["score"], row["seq"], read.get(row["run_id"]))
        elif row["type"] == "eval.failed":
            newest.setdefault(payload["judge"], (None, row["seq"], read.get(row["run_id"])))
    if len(contents) > 1:
        scored = [item for item in newest.values() if item[0] is not None]
        count = [item[2] for item in scored]
        chosen = max(scored, key=lambda item: (count.count(item[2]), item[1]), default=(None, 0, None))[2]
        newest = {judge: item for judge, item in newest.items() if item[0] is None or item[2] == chosen}
    return {JUDGES.index(judge): item[0] for judge, item in sorted(newest.items())}


@settings(max_examples=2 * settings.default.max_examples // 5, deadline=None)
@given(
    events=happenings, size=st.sampled_from([1, 2, 100]), large=st.sampled_from([1, 2, 100]), sealed=st.integers(1, 9)
)
def test_columns_of_blocks_are_the_columns_of_the_rows(make_ledger, events, size, large, sealed):
    ledger = make_ledger()
    for event in events:
        tell(ledger, event)

    def ask(live):
        columns = read_verdicts(live), read_activity(live)
        return columns, [entry.seq for entry in read_open_judgments(live)]

    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch("dicast_ledger.format4.writer.LARGE", large),
        mock.patch("dicast_ledger.format4.writer.SEALED_APPENDS", sealed),
    ):
        path = Path(folder) / "ledger.db"
        columns = written_to(Sqlite(path), ledger.events, size, ask)
        again, is_valid = written_to(Sqlite(path), [], 1, lambda live: (ask(live), live.verify().ok))
    assert is_valid
    assert plain(columns) == plain(again) == plain(written_to(MemoryLedger(), ledger.events, size, ask))


def plain(result):
    """Return columns without the ledger's own numbers for shared values."""
    (verdicts, activity), open_ = result
    verdict_origins = [verdicts.origins[code] for code in verdicts.codes]
    activity_origins = [activity.origins[code] for code in activity.codes]
    of_verdicts = [
        list(column) for column in (verdicts.seqs, verdicts.times, verdicts.flags, verdicts.scores, verdicts.usd)
    ]
    return (
        of_verdicts,
        verdict_origins,
        verdicts.ids,
        verdicts.exact,
        list(activity.seqs),
        list(activity.content_hashes),
        activity.ids,
        activity_origins,
        open_,
    )


@pytest.fixture
def path(make_ledger, tmp_path):
    """Return the path of a ledger with one compressed block."""
    ledger = make_ledger()
    for number in range(120):
        ledger.read(f"T{number}", "x")
        ledger.judged(f"T{number}", number / 120, cost="0.01")
    ledger.started("T2")
    path = tmp_path / "ledger.db"
    written_to(Sqlite(path), ledger.events, len(ledger.events), lambda live: None)
    return path


def change(path, statement):
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute(statement).rowcount == 1
        connection.commit()


@pytest.mark.parametrize(
    "value",
    [
        "NULL",
        "7",
        "'text'",
        "x''",
        "substr(columns, 2)",
        "CAST(columns || x'00' AS BLOB)",
        "zeroblob(length(columns))",
        "substr(columns, 1, length(columns) - 16)",
        "CAST(substr(columns, 1, length(columns) - 16) || zeroblob(16) AS BLOB)",
        "CAST(substr(columns, 1, 60) || x'00' || substr(columns, 62) AS BLOB)",
    ],
)
def test_changed_columns_do_not_verify(path, value):
    change(path, f"UPDATE blocks SET columns = {value} WHERE columns IS NOT NULL")
    verification = written_to(Sqlite(path), [], 1, lambda live: live.verify())
    assert (verification.ok, verification.bad_seq) == (False, 1)
    assert "the columns of the block from event 1" in verification.reason


@pytest.mark.parametrize("value", ["7", "x''", "substr(columns, 2)", "zeroblob(length(columns))"])
def test_columns_that_cannot_be_read_are_refused(path, value):
    change(path, f"UPDATE blocks SET columns = {value} WHERE columns IS NOT NULL")
    with pytest.raises(LedgerError, match="the block from event 1:.*run dicast ledger verify"):
        written_to(Sqlite(path), [], 1, read_verdicts)
