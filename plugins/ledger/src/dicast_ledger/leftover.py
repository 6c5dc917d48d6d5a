"""Events that still have texts of an erased subject: their texts are in the chain."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from dicast import Event, Ledger, Query
from dicast.toolkit.ledger_lines.redaction import without_texts

_LABELS = "label."
"""Prefix of types of labels and retractions, whose payloads have scores and names, no judged text."""


def leftover(ledger: Ledger, subject_id: str | None, before: str | None) -> Mapping[str, int]:
    """Return the number of events by type that keep texts when the contents of a subject, or from before a time, are erased.

    Texts are the members that a ledger with ``content: digest`` would not store. Contents of ``subject.read`` count only
    for the turns of a session: the erasure removes the others.
    """
    counts = Counter(event.type for event in _events(ledger, subject_id, before) if _has_texts(event))
    return dict(sorted(counts.items()))


def _events(ledger: Ledger, subject_id: str | None, before: str | None) -> Iterator[Event]:
    if subject_id is None:
        entries = ledger.read(Query(until=before))
        yield from (
            event for entry in entries if (event := entry.event).type != "subject.read" and event.time < str(before)
        )
        return
    sessions = {entry.event.session_id for entry in ledger.read(Query(subject_id=subject_id))}
    yield from (
        entry.event for entry in ledger.read(Query(subject_id=subject_id)) if entry.event.type != "subject.read"
    )
    for session_id in sorted({subject_id, *(id_ for id_ in sessions if id_ is not None)}):
        for entry in ledger.read(Query(session_id=session_id)):
            event = entry.event
            if event.subject_id != subject_id and subject_id in (event.session_id, event.turn_id):
                yield event


def _has_texts(event: Event) -> bool:
    payload = event.payload
    if event.type == "subject.read":
        return payload.get("content") is not None
    if event.type.startswith(_LABELS) or payload.keys() <= {"digest"}:
        return False
    if event.type in ("record.completed", "record.failed"):
        return "digest" not in payload
    return without_texts(event) != payload


def leftover_line(counts: Mapping[str, int]) -> str:
    """Return the sentence about the *counts* of :func:`leftover`, which are not empty."""
    total = sum(counts.values())
    noun = "event still has" if total == 1 else "events still have"
    return (
        f"{total:,} {noun} texts of it: {', '.join(counts)}; the chain keeps them. "
        "Run with content: digest to record digests only"
    )
