"""The spans of a small file, in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from .assembly import Parts
from .conversations import Conversations, Member, in_order
from .span import Span
from .threads import Trace

MOST_BYTES = 2 * 2**20
"""The largest file whose spans are in memory."""


class SmallStore(Conversations):
    """The spans of a file of at most :data:`MOST_BYTES`. *repeated* counts spans whose ids occurred before."""

    def __init__(self) -> None:
        self.repeated = 0
        self._spans: dict[str, dict[str, tuple[Span, int]]] = {}  # with their lines, by trace and id
        self._traces: dict[str, Trace] = {}
        self._members: dict[str, list[Member]] = {}  # by conversation

    def close(self) -> None:
        """Remove the spans from memory."""
        self._spans.clear()
        self._traces.clear()

    def add(self, span: Span, line: int) -> None:
        """Add a span of *line*."""
        spans = self._spans.setdefault(span.trace_id, {})
        if span.id in spans:
            self.repeated += 1
        else:
            spans[span.id] = span, line

    def trace(self, trace_id: str) -> Trace:
        """Return a trace with all its spans."""
        trace = self._traces.get(trace_id)
        if trace is None:
            spans = [span for span, _ in self._spans.get(trace_id, {}).values()]
            trace = self._traces[trace_id] = Trace(trace_id, sorted(spans, key=_start))
        return trace

    def line_of(self, trace_id: str) -> int:
        """Return the first line with a span of a trace."""
        return min((line for _, line in self._spans[trace_id].values()), default=1) or 1

    def place(self) -> Counter[str]:
        """Note which conversations all traces belong to; return the numbers of spans that belong to no conversation, by kind."""
        return self.join_all(self._spans)

    def join(self, trace: Trace) -> list[str]:
        """Note which conversations a trace belongs to; return the ids of the conversations."""
        members = self.members(trace)
        for member in members:
            self._members.setdefault(member[0], []).append(member)
        return [session for session, *_ in members]

    def sessions(self) -> Iterator[str]:
        """Yield the ids of the conversations in the order of their starts; a conversation follows the one with its parent id."""
        firsts = {session: min(begin for *_, begin in members) for session, members in self._members.items()}
        ordered = sorted(firsts, key=lambda session: (firsts[session], session))
        yield from in_order([(session, self._parent(session)) for session in ordered])

    def parts(self, session: str) -> Parts:
        """Return the threads of a conversation, with the conversation that started it."""
        members = sorted(self._members[session], key=lambda member: (member[3], member[1]))
        return self.joined(session, [(trace_id, parent) for _, trace_id, parent, _ in members])

    def _parent(self, session: str) -> str | None:
        return max((parent for _, _, parent, _ in self._members[session] if parent is not None), default=None)


def _start(span: Span) -> int:
    return span.start or 0
