"""Batches of a run that an endpoint has not returned yet."""

from __future__ import annotations

from dicast import Entry, Event
from dicast._kernel.report.batches import Batches, waiting_batches

UNTIL = "2026-03-01T12:00:00+00:00"


def event(type_, **payload):
    return Event("E1", f"batch.{type_}", "2026-03-01T00:00:00Z", "R1", payload)


def intended(key, until=UNTIL, calls=("1", "2")):
    return event("intended", key=key, model="m-1", endpoint="http://127.0.0.1:1", until=until, calls=calls)


def batches(*events):
    result = Batches()
    for item in events:
        result.observe(item)
    return result


def test_a_batch_is_open_from_its_intent_until_its_end_and_has_the_endpoint_s_id_between():
    details = {"key": "b", "model": "m-1", "endpoint": "http://127.0.0.1:1", "until": UNTIL, "calls": 2}
    created, end = event("created", key="b", batch_id="B-7"), event("ended", key="b", batch_id="B-7")
    assert batches(intended("b")).documents() == [{**details, "batch_id": None}]
    assert batches(intended("b"), created).figures() == {"batches": [{**details, "batch_id": "B-7"}]}
    ended = batches(intended("b"), intended("c"), created, end)
    assert [document["key"] for document in ended.documents()] == ["c"]
    assert ended.ended_count == 1
    assert batches(intended("b"), created, end).figures() == {}


def test_a_batch_that_was_never_created_or_not_intended_does_not_count_as_ended():
    assert batches(intended("b"), event("ended", key="b", batch_id=None)).ended_count == 0
    assert batches(event("created", key="b", batch_id="B-7")) == Batches()
    assert batches(event("ended", key="b", batch_id="B-7")) == Batches()


def test_a_run_waits_for_a_batch_until_the_endpoint_drops_it():
    events = [intended("b"), intended("late", "2026-03-02T00:00:00+00:00")]
    entries = [Entry(seq, item, "", "") for seq, item in enumerate(events, 1)]

    def waiting(now):
        return [batch["key"] for batch in waiting_batches(lambda query: iter(entries), "R1", now)]

    assert waiting(UNTIL) == ["b", "late"]
    assert waiting("2026-03-01T12:00:01+00:00") == ["late"]
