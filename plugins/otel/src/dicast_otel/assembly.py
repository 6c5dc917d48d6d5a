"""A session put together from the spans of its conversation."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import attrs

from dicast.toolkit.conversations import Conversation
from dicast.toolkit.message_formats import Shapes
from dicast.toolkit.parts import ToolCall
from dicast.toolkit.session_notes import numbered

from .conventions.figures import Figures
from .conventions.kinds import Kind
from .conventions.reading import Exchange, error_text, exchange_of, figures, tool_of
from .history import History
from .span import Span, text_of_time
from .threads import Thread, Trace

Placed = tuple[Kind, Span]


@attrs.define
class Parts:
    """The threads of one conversation, of one or more traces. *parent_id* is the conversation that started it."""

    id: str
    threads: list[tuple[Trace, Thread]] = attrs.field(factory=list)
    parent_id: str | None = None


@attrs.define
class _Step:
    """An action that adds to the history, with its *time*; *order*, then *number*, decide between actions at the same time."""

    time: int
    order: int
    number: int
    act: Callable[[], None]


@attrs.define
class _Call:
    """A span of a model with its messages, whose unknown shapes are in *shapes*."""

    span: Span
    exchange: Exchange
    shapes: Shapes
    figures: Figures


class SessionAssembly:
    """The history of a conversation, with the spans that it came from.

    :param shapes: collects the unknown shapes of the messages.
    """

    def __init__(self, parts: Parts, shapes: Shapes) -> None:
        self.id, self.parent_id = parts.id, parts.parent_id
        calls = (thread.parent_call for _, thread in parts.threads)
        self.parent_call = next(filter(None, calls), None)
        self.history = History()
        self.unplaced: Counter[str] = Counter()
        self.failure: str | None = None
        self._shapes, self._parts = shapes, parts
        self._steps: list[_Step] = []
        self._origins: list[dict[str, str]] = []
        self._bare = 0
        self._is_stopped = False
        ordered = sorted(parts.threads, key=lambda item: min((_start(span) for _, span in item[1].spans), default=0))
        for trace, thread in ordered:
            self._plan(trace, thread)
        for step in sorted(self._steps, key=lambda step: (step.time, step.order, step.number)):
            step.act()
        self._steps.clear()  # its functions refer to this object, which would have to wait for the garbage collector
        self._settle()

    def add_to(self, conversation: Conversation) -> None:
        """Add the messages, calls and figures to *conversation*."""
        self.history.add_to(conversation)
        if self._is_stopped and not self.history.ends_with_answer and not self.history.ends_with_failure:
            conversation.interruption("error")

    @property
    def context(self) -> Mapping[str, object]:
        """The origin of the conversation: the span of each turn, so that verdicts can be attached to the span."""
        return {"otel": {"spans": self._origins}} if self._origins else {}

    @property
    def disposition(self) -> str:
        """``failed`` if the last call of a model failed, else ``completed``."""
        return "failed" if self.history.ends_with_failure else "completed"

    @property
    def end_time(self) -> str | None:
        """The end of the last span."""
        ends = [span.ends for _, thread in self._parts.threads for _, span in (*thread.spans, *thread.steps)]
        return text_of_time(max(ends, default=0) or None)

    def _plan(self, trace: Trace, thread: Thread) -> None:
        """Plan the additions of one trace to the history."""
        calls = [self._read(span) for kind, span in thread.spans if kind == "model"]
        chosen, bare = self._chosen(trace, calls)
        tools = [span for kind, span in thread.spans if kind == "tool"]
        if not chosen:
            chosen = self._fallback(trace, thread)
        for call in chosen:
            self._plan_call(call)
        models = {call.span.id for call in calls}
        self._plan_bare(trace, bare, chosen, models)
        self._is_stopped = _is_stopped(thread)
        announced = self._announced(chosen)
        for span in tools:
            self._plan_tool(span, announced)
        self._count_others(thread, chosen)

    def _plan_bare(self, trace: Trace, bare: Sequence[_Call], chosen: Sequence[_Call], models: set[str]) -> None:
        """Plan the calls without messages. Next to the calls that are read, only failures count that no later call has made good.

        Nested calls are one call: a failure inside one of *models*, the ids of all calls, is not its end. The failure of an agent that is read has the same cause.
        """
        broken = {call.span.id for call in chosen if _has_failed(call)}
        last = max((call.span.ends for call in bare if not _has_failed(call)), default=0)
        for call in bare:
            span = call.span
            around = {outer.id for outer in trace.ancestors(span)}
            if _has_failed(call) and not around & (models | broken) and (not chosen or span.ends >= last):
                error, end = error_text(span), text_of_time(span.end)
                self._step(
                    span, 2, span.ends, partial(self.history.add_failure, call.figures, error, end, span.trace_id)
                )
            elif not chosen and not _has_failed(call):
                self._bare += 1
                add = partial(self.history.add_call, call.figures, text_of_time(span.start), span.trace_id)
                self._step(span, 1, _start(span), add)

    def _read(self, span: Span, *, generic: bool = True) -> _Call:
        shapes = Shapes(self._shapes.is_marked)
        return _Call(span, exchange_of(span, shapes, generic=generic), shapes, figures(span))

    def _chosen(self, trace: Trace, calls: Sequence[_Call]) -> tuple[list[_Call], list[_Call]]:
        """Return the calls whose messages are read, and the calls without messages.

        Nested calls are one call, recorded by several layers of a program: the innermost call with messages is read.
        """
        by_id = {call.span.id: call for call in calls}
        outer: dict[str, set[str]] = defaultdict(set)  # the calls around each, with the calls with messages inside
        for call in calls:
            if call.exchange:
                for around in trace.ancestors(call.span):
                    if around.id in by_id:
                        outer[around.id].add(call.span.id)
        chosen = [call for call in calls if call.exchange and not outer.get(call.span.id)]
        for call in chosen:
            for around in trace.ancestors(call.span):
                if around.id in by_id and len(outer[around.id] & {item.span.id for item in chosen}) == 1:
                    call.figures = call.figures.or_else(by_id[around.id].figures)
        return chosen, [call for call in calls if not call.exchange and not outer.get(call.span.id)]

    def _fallback(self, trace: Trace, thread: Thread) -> list[_Call]:
        """Return the outermost spans with an input and an output, of agents or else of steps of a program, for a thread without messages of a model."""
        agents = [span for kind, span in thread.spans if kind == "agent"]
        chains = [span for kind, span in thread.steps if kind == "chain"]
        for spans in (agents, chains):
            calls = [call for span in spans if (call := self._read(span)).exchange]
            ids = {call.span.id for call in calls}
            outermost = [call for call in calls if not any(around.id in ids for around in trace.ancestors(call.span))]
            if outermost:
                return outermost
        return []

    def _plan_call(self, call: _Call) -> None:
        span, exchange = call.span, call.exchange
        start, end = text_of_time(span.start), text_of_time(span.end)
        self._take_shapes(call.shapes)

        def add_inputs() -> None:
            self.history.add_inputs(exchange.inputs, start, span.trace_id)
            self._note_origin(span)

        def add_outputs() -> None:
            if exchange.outputs:
                self.history.add_outputs(exchange.outputs, end, span.trace_id, call.figures)
            if _has_failed(call):
                self.history.add_failure(call.figures, error_text(span), end, span.trace_id)

        self._step(span, 1, _start(span), add_inputs)
        self._step(span, 2, span.ends, add_outputs)

    def _take_shapes(self, shapes: Shapes) -> None:
        self._shapes.marked.update(shapes.marked)
        self._shapes.problems += shapes.problems

    def _note_origin(self, span: Span) -> None:
        """Note *span* as the origin of the newest turn: the last call of a model that received the user's message."""
        origin = {"trace_id": span.trace_id, "span_id": span.id}
        response = span.attributes.get("gen_ai.response.id") or span.attributes.get("ai.response.id")
        if isinstance(response, str):
            origin["response_id"] = response
        while len(self._origins) < self.history.users:
            self._origins.append(origin)
        if self._origins:
            self._origins[-1] = origin

    @staticmethod
    def _announced(calls: Iterable[_Call]) -> dict[str, int]:
        """Return the ids of tool calls with the end of the call of the model that asked for them."""
        return {
            part.id: call.span.ends
            for call in calls
            for message in call.exchange.outputs
            for part in message.parts
            if isinstance(part, ToolCall) and part.id
        }

    def _plan_tool(self, span: Span, announced: Mapping[str, int]) -> None:
        use = tool_of(span)
        start = max(_start(span), announced.get(use.id or "", 0))
        called: list[ToolCall] = []

        def call() -> None:
            called.append(self.history.call_tool(use, text_of_time(span.start), span.trace_id, span.id))

        def end() -> None:
            failed = attrs.evolve(use, error=use.error or error_text(span)) if use.error is not None else use
            self.history.end_tool(called[0], failed, text_of_time(span.end), span.trace_id)

        self._step(span, 3, start, call)
        self._step(span, 4, max(span.ends, start), end)

    def _step(self, span: Span, order: int, time: int, act: Callable[[], None]) -> None:
        number = len(self._steps)
        self._steps.append(
            _Step(time if span.start is not None else number, order if span.start is not None else 0, number, act)
        )

    def _count_others(self, thread: Thread, chosen: Sequence[_Call]) -> None:
        used = {call.span.id for call in chosen}
        self.unplaced.update(kind for kind, span in thread.steps if span.id not in used)

    def _settle(self) -> None:
        """Set *failure* if the conversation cannot be judged."""
        if self.history.has_messages or self.history.ends_with_failure:
            return
        if self._bare:
            self.failure = (
                f"its {numbered(self._bare, 'spans')} of models record{'s' * (self._bare == 1)} no messages; let the instrumentation record"
                " them (OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT)"
            )
        else:
            self.failure = "its spans record no messages"


def _has_failed(call: _Call) -> bool:
    """Return whether a call of a model failed, maybe after a part of its answer."""
    reasons = {call.figures.stop_reason, *(message.stop_reason for message in call.exchange.outputs)}
    has_type = bool(call.span.attributes.get("error.type")) and not call.exchange.outputs
    return call.span.error is not None or "error" in reasons or has_type


def _is_stopped(thread: Thread) -> bool:
    """Return whether the last span of a thread is a failed agent."""
    ends = [span.ends for _, span in thread.spans]
    return any(kind == "agent" and span.error is not None and span.ends == max(ends) for kind, span in thread.spans)


def _start(span: Span) -> int:
    return span.start or 0
