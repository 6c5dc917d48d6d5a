"""One session's conversation, for whoever shows a ledger elsewhere."""

from __future__ import annotations

from typing import Any

from dicast import RESERVED_AREAS, Ledger, Query

from .conversation import conversations


def read_conversation(ledger: Ledger, *, session_id: str) -> dict[str, Any]:
    """The conversation of *session_id*, as the run that recorded it last has it; ``turns`` is null where no run did."""
    run_id = _recorded_last(ledger, session_id)
    found = {} if run_id is None else conversations(ledger.read, run_id, {session_id})
    return {"session_id": session_id, "run_id": run_id, "turns": found.get(session_id)}


def _recorded_last(ledger: Ledger, session_id: str) -> str | None:
    for entry in ledger.read(Query(session_id=session_id, newest_first=True)):
        if not entry.event.type.startswith(RESERVED_AREAS):
            return entry.event.run_id
    return None
