"""The conversations of stored spans."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from .assembly import Parts
from .threads import Trace

Member = tuple[str, str, str | None, int]
"""The ids of a conversation and of one of its traces, the conversation that started it, and the start of its first span there."""


class Conversations(ABC):
    """Base of stores, which return the traces of an input and the conversations that the traces belong to."""

    @abstractmethod
    def trace(self, trace_id: str) -> Trace:
        """Return a trace with all its spans."""

    @abstractmethod
    def join(self, trace: Trace) -> Sequence[str]:
        """Note which conversations a trace belongs to; return the ids of the conversations."""

    def join_all(self, trace_ids: Iterable[str]) -> Counter[str]:
        """Note which conversations the traces belong to; return the numbers of spans that belong to no conversation, by kind."""
        unplaced: Counter[str] = Counter()
        for trace_id in trace_ids:
            trace = self.trace(trace_id)
            self.join(trace)
            unplaced.update(trace.unplaced)
        return unplaced

    def members(self, trace: Trace) -> list[Member]:
        """Return a member for each conversation of a trace."""
        linked = next(iter(trace.links()), None)
        members = []
        for thread in trace.threads:
            parent = thread.parent_id
            if parent is None and linked is not None:
                parent = self._linked(linked, thread.id)
            spans = [span for _, span in (*thread.spans, *thread.steps)]
            members.append((thread.id, trace.id, parent, min((span.start or 0 for span in spans), default=0)))
        return members

    def joined(self, session: str, rows: Sequence[tuple[str, str | None]]) -> Parts:
        """Return the threads of a conversation in its traces; *rows* are the traces, each with the conversation that started it."""
        parts = Parts(session, parent_id=next((parent for _, parent in rows if parent), None))
        for trace_id, _ in rows:
            trace = self.trace(trace_id)
            parts.threads += [(trace, thread) for thread in trace.threads if thread.id == session]
        return parts

    def _linked(self, trace_id: str, session: str) -> str | None:
        """Return the conversation of the linked trace *trace_id*, None if it is *session* itself."""
        sessions = [thread.id for thread in self.trace(trace_id).threads if thread.parent_id is None]
        return sessions[0] if sessions and session not in sessions else None


def in_order(sessions: Iterable[tuple[str, str | None]]) -> Iterator[str]:
    """Yield the ids of *sessions*, pairs of an id and the id of a parent, in their order; a conversation follows the one with its parent id."""
    parents = dict(sessions)
    done: set[str] = set()
    for session in parents:
        yield from _with_parents(session, parents, done)


def _with_parents(session: str, parents: Mapping[str, str | None], done: set[str]) -> Iterable[str]:
    """Return *session* with the conversations that started it before it, without conversations in *done*."""
    chain: list[str] = []
    current: str | None = session
    while current is not None and current in parents and current not in done and current not in chain:
        chain.append(current)
        current = parents[current]
    done.update(chain)
    return reversed(chain)
