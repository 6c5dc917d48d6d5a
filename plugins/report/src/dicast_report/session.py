"""Conversation of one session, for viewers of a ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dicast import RESERVED_AREAS, Ledger, Query

from .conversation import Turn, conversations, sub_agents

MOST_LEVELS = 16
"""Largest number of sub-agents inside each other whose turns are returned."""


def read_conversation(ledger: Ledger, *, session_id: str, run_id: str | None = None) -> dict[str, Any]:
    """Return the conversation of *session_id* as *run_id* recorded it, else as the last run that recorded a part of it.

    ``turns`` is null if no run recorded it. A sub-agent in it has its own ``turns``, up to :data:`MOST_LEVELS` levels deep. ``parent_id`` is the
    session that started this one, or null.
    """
    for run in _recording(ledger, session_id, run_id):
        agents = sub_agents(ledger.read, run)
        by_session = conversations(ledger.read, run, {session_id}, agents)
        if (turns := by_session.get(session_id)) is not None:
            _nest(turns, by_session, MOST_LEVELS)
            parent_id = agents.parents.get(session_id)
            return {"session_id": session_id, "parent_id": parent_id, "run_id": run, "turns": turns}
    return {"session_id": session_id, "parent_id": None, "run_id": None, "turns": None}


def _nest(turns: list[Turn], by_session: Mapping[str, list[Turn]], levels: int) -> None:
    """Add to each sub-agent in *turns* its own turns, for that many *levels*."""
    for message in (message for turn in turns for message in turn["messages"]):
        agents = [message] if message["kind"] == "agent" else message.get("agents", ())
        for agent in agents if levels else ():
            agent["turns"] = by_session[agent["session"]]
            _nest(agent["turns"], by_session, levels - 1)


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
