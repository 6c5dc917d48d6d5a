"""The sessions of a first pass in a temporary file."""

from __future__ import annotations

from dicast import TraceEvent
from dicast.toolkit.kept_sessions import KeptSessions


def test_items_come_back_in_their_order_with_the_counts_of_their_time() -> None:
    kept, counts = KeptSessions(), {"records": 0}
    for number in range(3):
        counts["records"] += 1
        kept.add([number, "\ud83d", 2**70], counts)
    assert kept.is_usable
    assert [*kept] == [([number, "\ud83d", 2**70], {"records": number + 1}) for number in range(3)]
    assert len([*zip(kept, kept, strict=True)]) == 3


def test_events_that_are_the_same_object_stay_the_same_object() -> None:
    event = TraceEvent("tool.called", {"tool_name": "look"}, "2026-01-01T00:00:00Z", "s", "s/1", {"more": [1]})
    kept = KeptSessions()
    kept.add((event, [event]), None)
    ((first, (second,)), _) = next(iter(kept))
    assert first == event
    assert first is second
    assert type(first) is TraceEvent


def test_an_item_of_more_than_64_mib_is_not_kept() -> None:
    kept = KeptSessions()
    kept.add("a", None)
    kept.add("x" * (65 * 2**20), None)
    kept.add("b", None)
    assert not kept.is_usable


def test_an_item_without_a_copy_is_not_kept() -> None:
    kept = KeptSessions()
    kept.add(lambda: None, None)
    assert not kept.is_usable
