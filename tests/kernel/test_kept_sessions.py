"""The sessions of a first pass in a temporary file."""

from __future__ import annotations

from dicast import TraceEvent
from dicast.toolkit.call_matching import CallId, CallNames
from dicast.toolkit.kept_sessions import KeptSessions
from dicast.toolkit.session_reading import Totals


def _same(turn_id: str, call_id: str) -> str:
    return call_id


def test_items_come_back_in_their_order_with_the_counts_of_their_time() -> None:
    kept, counts = KeptSessions(), Totals()
    for number in range(3):
        counts.records += 1
        counts.models["m"] += 1
        counts.contents.parts += 2
        kept.add([number, "\ud83d", 2**70], counts)
    assert kept.is_usable
    read = [*kept.items(_same)]
    assert [item for item, _ in read] == [[number, "\ud83d", 2**70] for number in range(3)]
    assert [(at.records, at.models["m"], at.contents.parts) for _, at in read] == [(1, 1, 2), (2, 2, 4), (3, 3, 6)]
    assert read[-1][1] == counts
    assert len([*zip(kept.items(_same), kept.items(_same), strict=True)]) == 3


def test_events_that_are_the_same_object_stay_the_same_object() -> None:
    event = TraceEvent("tool.called", {"tool_name": "look"}, "2026-01-01T00:00:00Z", "s", "s/1", {"more": [1]})
    kept = KeptSessions()
    kept.add((event, [event]), Totals())
    ((first, (second,)), _) = next(kept.items(_same))
    assert first == event
    assert first is second
    assert type(first) is TraceEvent


def test_calls_get_their_names_when_items_are_read() -> None:
    first_pass = CallNames(lambda turn_id, file_id: CallId.of(file_id, turn_id, file_id))
    ids = [first_pass.take(turn, "c1") for turn in ("s/1", "s/1", "s/2")]
    assert ids == ["c1", "c1#2", "c1#3"]
    kept = KeptSessions()
    kept.add([*ids, *ids], Totals())
    ((read, _),) = kept.items(lambda turn_id, file_id: f"{turn_id}/{file_id}")
    assert read == ["s/1/c1", "s/1/c1#2", "s/2/c1"] * 2
    assert {type(id_) for id_ in read} == {str}
    ((same, _),) = kept.items(_same)
    assert same == [*ids, *ids]


def test_an_item_of_more_than_64_mib_is_not_kept() -> None:
    kept = KeptSessions()
    kept.add("a", Totals())
    kept.add("x" * (65 * 2**20), Totals())
    kept.add("b", Totals())
    assert not kept.is_usable


def test_an_item_without_a_copy_is_not_kept() -> None:
    kept = KeptSessions()
    kept.add(lambda: None, Totals())
    assert not kept.is_usable
