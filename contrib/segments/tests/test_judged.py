"""Judged subjects as one value: the same events as a reading of all rows, in one process and across ledgers."""

from __future__ import annotations

import orjson
from hypothesis import given
from hypothesis import strategies as st

from dicast import Event, Query
from dicast.toolkit.ledger_lines import Encoder
from dicast_segments.judged import records_of
from dicast_segments.lines import Row

RUN = "01M8EW283Y638B0N1FCM7GEK16"
TIME = "2026-11-27T16:00:00.000Z"
READ = "subject.read"
LEVELS = {True: "user_controlled", False: "pseudonymous"}
TEXTS = st.sampled_from(["", "because", 'a "text"\n', "\x01" + "5\x01", "Größe"])
SIGNALS = st.sampled_from([{}, {"found": [1, {"b": None}]}, {"rationale_redacted": "because"}, {"flag": True}])


@st.composite
def subjects(draw):
    """The events of one subject: most are judged at once by all metrics, others later, twice, with a trace, or not at all."""
    id, session, run = (
        draw(st.sampled_from("abc")),
        draw(st.sampled_from([None, "s"])),
        draw(st.sampled_from([RUN, "R2"])),
    )
    place = {"run_id": run, "session_id": session, "turn_id": None, "subject_kind": "row", "subject_id": id}
    about = {"eval_id": draw(st.text("01", min_size=1, max_size=3)), "subject_kind": "row", "subject_id": id}
    values = {metric: draw(st.sampled_from([0, 0.5, 1.0])) for metric in "ab"}
    scores = [
        {
            "metric": metric,
            "value": value,
            "tier": "truth",
            "weight": 1.0,
            "rollout": 0,
            "confidence": 1.0,
            "cost": None,
        }
        | {"details": draw(TEXTS), "signals": draw(SIGNALS)}
        for metric, value in values.items()
    ]
    verdict = {
        "score": draw(st.sampled_from([0.25, 1])),
        "confidence": 1.0,
        "judge_latency_ms": draw(st.integers(0, 3)),
    }
    verdict |= {"signals": {"metrics": values}, "skipped": [], "scores": scores, "judge_cost_usd": "0"}
    known = {"content": {"input": None, "output": "x"}}
    content = draw(st.sampled_from([known, known, known, {}, {"content": None}]))
    made = [
        (READ, {"digest": "0" * 64, **content, "place": "r:1"}),
        ("eval.started", {**about, "judge": "metrics"}),
        ("eval.completed", {**about, "judge": "metrics", **verdict}),
    ]
    if (fate := draw(st.integers(0, 9))) < 3:
        made[1:] = [made[1:], [made[2]], []][fate]
        made.insert(fate, ("run.paused", {}))
    return [
        Event("", type_, TIME, payload=payload, sensitivity=LEVELS[type_ == READ], **place) for type_, payload in made
    ]


def dumped(seq, event):
    """The number and all fields of an event, its payload with the order of its keys."""
    return (
        seq,
        event.type,
        event.id,
        event.run_id,
        event.session_id,
        event.subject_id,
        event.time,
        orjson.dumps(event.payload),
    )


def expanded(records):
    """The events of *records* with their numbers."""
    return [
        dumped(seq + n, event)
        for seq, item in records
        for n, event in enumerate(item.events() if item.type == "judged" else [item])
    ]


@given(st.lists(subjects(), max_size=8), st.booleans(), st.integers(0, 9))
def test_records_have_the_events_of_the_rows(parts, store, erased):
    encoder = Encoder(store_content=store)
    rows = [Row.of(event, encoder) for part in parts for event in part]
    if erased < len(rows):
        rows[erased].content = None
    numbered = [*enumerate(rows, 1)]
    assert expanded(records_of(numbered)) == [dumped(seq, row.event()) for seq, row in numbered]


def test_rows_of_one_run_that_lie_apart_are_read_as_events(make_subject):
    encoder = Encoder(store_content=True)
    rows = [Row.of(event, encoder) for number in range(2) for event in make_subject(number)]
    numbers = [1, 2, 4, 5, 6, 7]
    types = [(seq, record.type) for seq, record in records_of(zip(numbers, rows, strict=True))]
    assert types[:3] == [(1, READ), (2, "eval.started"), (4, "eval.completed")]


def judged(make_event, number):
    """The events of a free row of two metrics; every third has a text in its verdict."""
    about = {"eval_id": f"E{number}", "subject_kind": "row", "subject_id": str(number), "judge": "metrics"}
    score = {"metric": "a", "value": 0.5, "tier": "truth", "weight": 1.0, "rollout": 0, "confidence": 1.0, "cost": None}
    scores = [{**score, "details": "" if number % 3 else f"text {number}", "signals": {}}]
    verdict = {"score": 0.5, "confidence": 1.0, "judge_latency_ms": number, "signals": {"metrics": {"a": 0.5}}}
    payloads = {
        READ: {"digest": "0" * 64, "content": {"output": f"text {number}"}},
        "eval.started": about,
        "eval.completed": {**about, **verdict, "skipped": [], "scores": scores},
    }
    place = {"subject_kind": "row", "subject_id": str(number)}
    return [
        make_event(type_, payload, sensitivity=LEVELS[type_ == READ], **place) for type_, payload in payloads.items()
    ]


def test_a_run_is_read_as_judged_rows_from_segments_and_commits(folder, opened, make_event):
    with opened(folder) as live:
        live.append(
            [make_event("run.started"), *(event for number in range(40) for event in judged(make_event, number))]
        )
    with opened(folder) as live:
        live.append([make_event("run.started", run_id="R2"), *judged(make_event, 40), make_event("run.paused")])
        read = [*live.read_judged(RUN)]
        entries = [dumped(entry.seq, entry.event) for entry in live.read(Query(RUN))]
        assert expanded(read) == entries
        assert sum(record.type == "judged" for _, record in read) == 41
        assert [seq for seq, _ in live.read_judged(RUN, after=61)] == [seq for seq, _ in read if seq > 61]
        assert [*live.read_judged("no such run")] == []
