"""The spans of a trace by conversation, and the conversations that started other conversations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import attrs

from .conventions.kinds import Kind, kind_of
from .conventions.reading import tool_of
from .span import Span

SESSION_KEYS = ("gen_ai.conversation.id", "session.id", "langfuse.session.id", "traceloop.association.properties.session_id",
                "traceloop.association.properties.thread_id", "gcp.vertex.agent.session_id", "mlflow.trace.session",
                "ai.telemetry.metadata.sessionId", "ai.telemetry.metadata.threadId", "thread_id")  # fmt: skip
"""The attributes with the id of a conversation; the first that a span has counts."""

_SESSION_KEYS = frozenset(SESSION_KEYS)

PLACED: frozenset[Kind] = frozenset(("model", "tool", "agent"))
"""The kinds of spans with the contents of conversations."""

UNPLACED = {
    "other": "spans of other work",
    "chain": "spans of program steps",
    "retriever": "spans of retrievers",
    "embedding": "spans of embeddings",
    "reranker": "spans of rerankers",
    "guardrail": "spans of guardrails",
    "evaluator": "spans of evaluators",
    "prompt": "spans of prompt templates",
}
"""The names of the spans that belong to no conversation, by their kind, as the counts have them."""


def session_of(attributes: Mapping[str, Any]) -> str | None:
    """Return the id of the conversation in *attributes*, None if they have none."""
    if _SESSION_KEYS.isdisjoint(attributes):  # as most spans
        return None
    for key in SESSION_KEYS:
        value = attributes.get(key)
        if isinstance(value, str | int) and not isinstance(value, bool) and value != "":
            return str(value)
    return None


@attrs.define
class Thread:
    """The spans of an agent in a session. *id* is its conversation, *parent_id* the conversation that started it, *parent_call* the id of the tool call.

    *spans* are spans of models, tools and agents, *steps* other spans with an input and an output.
    """

    id: str
    parent_id: str | None = None
    parent_call: str | None = None
    spans: list[tuple[Kind, Span]] = attrs.field(factory=list)
    steps: list[tuple[Kind, Span]] = attrs.field(factory=list)


@attrs.define(slots=False)
class Trace:
    """All spans of a trace. *unplaced* counts the spans that belong to no conversation, by their kind."""

    id: str
    spans: Sequence[Span]
    unplaced: Counter[str] = attrs.field(factory=Counter)
    kinds: dict[str, Kind | None] = attrs.field(factory=dict)
    _by_id: dict[str, Span] = attrs.field(factory=dict, init=False)
    _names: dict[str, str | None] = attrs.field(factory=dict, init=False)
    _has_names: bool = attrs.field(default=False, init=False)
    _inherited: dict[str | None, str | None] = attrs.field(factory=dict, init=False)
    _chains: dict[str | None, list[Span]] = attrs.field(factory=dict, init=False)

    def __attrs_post_init__(self) -> None:
        self._by_id = {span.id: span for span in self.spans}
        self.kinds = {span.id: kind_of(span) for span in self.spans}
        self._names = {span.id: session_of(span.attributes) for span in self.spans}
        self._has_names = any(self._names.values())

    @cached_property
    def threads(self) -> list[Thread]:
        """The threads of the trace in the order of their first spans."""
        only = self._only_session()
        acting = self._acting_agents()
        threads: dict[str, Thread] = {}
        for span in sorted(self.spans, key=_begin):
            kind = self.kinds[span.id]
            if kind is None:
                self.unplaced["other"] += 1
                continue
            base = self._session(span) or only or self.id
            id_, parent, call = self._thread(span, base, acting)
            thread = threads.get(id_)
            if thread is None:
                thread = threads[id_] = Thread(id_, parent, call)
            elif thread.parent_id is None and parent != id_:
                thread.parent_id, thread.parent_call = parent, call
            if kind in PLACED:
                thread.spans.append((kind, span))
            else:
                thread.steps.append((kind, span))
        return [thread for thread in threads.values() if self._is_conversation(thread)]

    def _is_conversation(self, thread: Thread) -> bool:
        """Return whether *thread* has a conversation; else its spans are counted as unplaced."""
        if thread.spans or any(kind == "chain" for kind, _ in thread.steps):
            return True
        self.unplaced.update(kind for kind, _ in thread.steps)
        return False

    def links(self) -> Iterator[str]:
        """Yield the ids of other traces to which the roots of this trace have links."""
        for span in self.spans:
            if span.parent_id is None or span.parent_id not in self._by_id:
                yield from (trace_id for trace_id, _ in span.links if trace_id != self.id)

    def sessions(self) -> list[str]:
        """Return the ids that the spans of the trace name."""
        return list(dict.fromkeys(id_ for span in self.spans if (id_ := self._names[span.id]) is not None))

    def ancestors(self, span: Span) -> Iterator[Span]:
        """Yield the spans around *span*, the nearest first."""
        seen = {span.id}
        parent = self._by_id.get(span.parent_id or "")
        while parent is not None and parent.id not in seen:
            yield parent
            seen.add(parent.id)
            parent = self._by_id.get(parent.parent_id or "")

    def _session(self, span: Span) -> str | None:
        name = self._names[span.id]
        if name is not None or not self._has_names:
            return name
        if span.parent_id not in self._inherited:
            names = (self._names[around.id] for around in self.ancestors(span))
            self._inherited[span.parent_id] = next((id_ for id_ in names if id_ is not None), None)
        return self._inherited[span.parent_id]

    def _only_session(self) -> str | None:
        sessions = self.sessions()
        return sessions[0] if len(sessions) == 1 else None

    def _acting_agents(self) -> set[str]:
        """Return the ids of agents that call models directly. Only inside of such an agent is an inner agent a separate conversation."""
        acting = set()
        for span in self.spans:
            if self.kinds[span.id] == "model":
                nearest = next((around for around in self.ancestors(span) if self.kinds[around.id] == "agent"), None)
                if nearest is not None:
                    acting.add(nearest.id)
        return acting

    def _thread(self, span: Span, base: str, acting: set[str]) -> tuple[str, str | None, str | None]:
        """Return the id of the span's conversation, and the ids of the conversation and of the tool call that started it; None without them."""
        if not acting:
            return base, None, None
        chain = self._chains.get(span.parent_id)
        if chain is None:
            chain = self._chains[span.parent_id] = [around for around in self.ancestors(span) if around.id in acting]
        if self.kinds[span.id] == "agent" and span.id in acting:
            chain = [span, *chain]
        if len(chain) <= 1:
            return base, None, None
        names = [self._name(agent, chain[place + 1 :], base) for place, agent in enumerate(chain)]
        return names[0], names[1], self._call(chain[0], chain[1])

    def _call(self, agent: Span, outer: Span) -> str | None:
        """Return the id of the tool call around *agent* and inside of *outer*, None if there is none or it has no id."""
        for around in self.ancestors(agent):
            if around.id == outer.id:
                return None
            if self.kinds[around.id] == "tool":
                return tool_of(around).id
        return None

    def _name(self, agent: Span, outer: Sequence[Span], base: str) -> str:
        """Return the id of an agent's conversation: its own session id, else the session id of the outermost agent joined with the agent's span id."""
        session = self._session(agent) or base
        if not outer:
            return session
        is_own = session != (self._session(outer[-1]) or base)
        return session if is_own else f"{session}/{agent.id}"


def _begin(span: Span) -> tuple[int, int]:
    return span.start or 0, -span.ends
