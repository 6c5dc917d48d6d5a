"""Conversations of the sub-agents that a subject started, for a labeler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from dicast import RESERVED_AREAS, Event, Ledger, Query, Subject, TraceEvent
from dicast.reading import reader
from dicast.toolkit.assembly import Assembly
from dicast.toolkit.sessions import session_subject
from dicast.toolkit.sub_agents import STARTED, SubAgents

_KINDS = ("tool_cycle", "turn", "session")
_INDENT = "    "
MOST_LEVELS = 6
"""Largest number of sub-agents inside each other that are shown."""


@attrs.frozen
class AgentEvidence:
    """The evidence in the session of one sub-agent, as *sections*; *level* is 1 for an agent that the subject started."""

    session_id: str
    level: int
    sections: Sequence[Mapping[str, Any]]

    def lines(self) -> Iterator[str]:
        """Yield the evidence as text, indented by its level."""
        indent = _INDENT * (self.level - 1)
        yield from ("", f"{indent}SUB-AGENT {self.session_id}")
        for section in self.sections:
            yield f"{indent}{_INDENT}{section['title']}"
            yield from (f"{indent}{_INDENT}{line}".rstrip() for line in str(section["text"]).split("\n"))


def agent_evidence(ledger: Ledger, subject: Subject, run_id: str) -> Iterator[AgentEvidence]:
    """Yield the evidence of each sub-agent that *subject* started in the run, in the order of their starts; an agent precedes the agents that it started."""
    if subject.session_id is None or subject.kind not in _KINDS:
        return
    query = Query(run_id, ("subject.read",), subject_id=subject.id, newest_first=True)
    reads = (entry.event for entry in ledger.read(query) if entry.event.subject_kind == subject.kind)
    recorded_by = next((str(event.payload.get("from_run") or run_id) for event in reads), run_id)
    agents = SubAgents.of(entry.event for entry in ledger.read(Query(recorded_by, (STARTED,))))
    events = _events(ledger, recorded_by, subject.session_id) if subject.session_id in agents.parents.values() else []
    for place in agents.places_in(subject.kind, subject.id, subject.session_id, events):
        yield from _inside(ledger, recorded_by, place.session_id, agents, 1)


def _inside(ledger: Ledger, run_id: str, session_id: str, agents: SubAgents, level: int) -> Iterator[AgentEvidence]:
    events = _events(ledger, run_id, session_id)
    traces = [
        TraceEvent(event.type, event.payload, event.time, event.session_id, event.turn_id)
        for event in events
        if event.payload.keys() != {"digest"}
    ]
    subject = session_subject(Assembly(session_id, traces).session())
    yield AgentEvidence(session_id, level, _sections(ledger, subject))
    for place in agents.places(session_id, events) if level < MOST_LEVELS else ():
        yield from _inside(ledger, run_id, place.session_id, agents, level + 1)


def _sections(ledger: Ledger, subject: Subject) -> Sequence[Mapping[str, Any]]:
    sections: Sequence[Mapping[str, Any]] = reader("evidence")(ledger, subject=subject)["sections"]
    return sections


def _events(ledger: Ledger, run_id: str, session_id: str) -> list[Event]:
    entries = ledger.read(Query(run_id, session_id=session_id))
    return [entry.event for entry in entries if not entry.event.type.startswith(RESERVED_AREAS)]
