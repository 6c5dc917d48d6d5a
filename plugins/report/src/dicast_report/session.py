"""Conversation of one session, for viewers of a ledger."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dicast import RESERVED_AREAS, Ledger, Query

from .conversation import conversations


def read_conversation(ledger: Ledger, *, session_id: str, run_id: str | None = None) -> dict[str, Any]:
    """Return the conversation of *session_id* as *run_id* recorded it, else as the last run that recorded a part of it.

    ``turns`` is null if no run recorded it.
    """
    for run in _recording(ledger, session_id, run_id):
        if (turns := conversations(ledger.read, run, {session_id}).get(session_id)) is not None:
            return {"session_id": session_id, "run_id": run, "turns": turns}
    return {"session_id": session_id, "run_id": None, "turns": None}


def _recording(ledger: Ledger, session_id: str, first: str | None) -> Iterator[str]:
    """Yield *first*, then the runs with events of the session, the newest first. The event of a label has no turns and does not count."""
    seen = set()
    if first is not None:
        seen.add(first)
        yield first
    for entry in ledger.read(Query(session_id=session_id, newest_first=True)):
        run = entry.event.run_id
        if run not in seen and not entry.event.type.startswith(RESERVED_AREAS):
            seen.add(run)
            yield run
