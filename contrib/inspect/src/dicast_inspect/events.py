"""Events of a sample: model and tool calls, their times, and the agents that tools started."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

Value = Mapping[str, Any]

_SCORERS = ("scorer", "scorers")


@attrs.frozen
class Agent:
    """An agent that another agent or a tool started. *calls* are its calls of models, *call* is the id of the tool call, if it is known."""

    name: str
    messages: Sequence[Value]
    calls: Sequence[Value]
    call: str | None = None

    @property
    def time(self) -> str | None:
        """The time of the last call."""
        return call_time(self.calls[-1])


@attrs.define
class Events:
    """The model calls of a sample by the id of the returned message, and the events of tools by the id of the call.

    *graders* are the models that scorers called, by the name of the scorer. *groups* are the calls of models in each agent that another
    started. *around* has the ids of the spans around each of these agents, innermost first, *spawns* the tool calls by the id of their span.
    *order* has all these calls in their order, each with the id of its agent. *is_scored* is True once a scorer has started.
    """

    calls: dict[str, Value] = attrs.field(factory=dict)
    tools: dict[str, Value] = attrs.field(factory=dict)
    graders: dict[str, str] = attrs.field(factory=dict)
    groups: dict[str, tuple[str, list[Value]]] = attrs.field(factory=dict)
    around: dict[str, list[str]] = attrs.field(factory=dict)
    spawns: dict[str, str] = attrs.field(factory=dict)
    order: list[tuple[str | None, Value]] = attrs.field(factory=list)
    is_scored: bool = False
    pool: Sequence[Any] = ()
    final: Value = attrs.field(factory=dict)
    end_time: str | None = None

    @classmethod
    def of(cls, sample: Value) -> Events:
        """Read the events of *sample*."""
        data, output = sample.get("events_data"), sample.get("output")
        pool = data.get("messages") if isinstance(data, dict) else None
        events = cls(pool=pool if isinstance(pool, list) else (), final=output if isinstance(output, dict) else {})
        end = sample.get("completed_at")
        events.end_time = end if isinstance(end, str) else None
        events._read(sample.get("events"), _Spans.of(sample.get("events")), None)
        return events

    def model_call(self, message: Value) -> dict[str, Any]:
        """Return the recorded model, usage, cost, stop reason and time of the call that returned *message*."""
        call = self.calls.get(str(message.get("id")), {})
        output = call.get("output") if isinstance(call.get("output"), dict) else None
        if output is None and _message(self.final).get("id") == message.get("id") is not None:
            output = self.final
        output = output or {}
        usage = output.get("usage") if isinstance(output.get("usage"), dict) else None
        choices = output.get("choices") or [{}]
        stop = choices[0].get("stop_reason") if isinstance(choices[0], dict) else None
        model = message.get("model") or output.get("model") or call.get("model")
        return {
            "model": model if isinstance(model, str) else None,
            "usage": usage,
            "cost_usd": None if usage is None else usage.get("total_cost"),
            "stop_reason": stop if isinstance(stop, str) else None,
            "time": self.message_time(message),
        }

    def message_time(self, message: Value) -> str | None:
        """Return the time at which the model call that returned *message* ended."""
        return call_time(self.calls.get(str(message.get("id"))))

    def tool_time(self, message: Value) -> str | None:
        """Return the time at which the tool call whose result is *message* ended."""
        return call_time(self.tools.get(str(message.get("tool_call_id"))))

    def main_calls(self, ids: set[str]) -> Sequence[Value]:
        """Return the calls of models in the main conversation, whose messages have the ids *ids*."""
        return [call for agent, call in self.order if agent is None or not self._is_separate(agent, ids)]

    def _is_separate(self, agent: str, ids: set[str]) -> bool:
        """Return whether an answer of the agent is not in the main conversation."""
        answers = (_answer(call) for call in self.groups[agent][1] if call_error(call) is None)
        return any(str(answer.get("id")) not in ids for answer in answers)

    def agents(self, ids: set[str]) -> Iterator[Agent]:
        """Yield agents that others started, without agents whose messages are all in the main conversation, which has the ids *ids*."""
        for id_, (name, calls) in self.groups.items():
            if not self._is_separate(id_, ids):
                continue
            last = calls[-1]
            messages: list[Value] = [message for message in self._input(last) if isinstance(message, dict)]
            answer = _answer(last)
            messages += [*([answer] if answer else []), *self._results(answer)]
            spans = self.around.get(id_, [id_])
            spawn = next((self.spawns[span] for span in spans if span in self.spawns), None)
            yield Agent(name, messages, calls, spawn)

    def _results(self, answer: Value) -> Iterator[Value]:
        """Yield the results of the tool calls in an agent's last message; no later message has them."""
        for call in answer.get("tool_calls") or ():
            event = self.tools.get(str(call.get("id"))) if isinstance(call, dict) else None
            if event is not None:
                content = event.get("result")
                content = content if isinstance(content, str | list) else "" if content is None else str(content)
                names = {"tool_call_id": event.get("id"), "function": event.get("function")}
                yield {"role": "tool", "content": content, "error": event.get("error"), **names}

    def _input(self, call: Value) -> Sequence[Any]:
        refs = call.get("input_refs")
        if not isinstance(refs, list):
            messages = call.get("input")
            return messages if isinstance(messages, list) else []
        pairs = [pair for pair in refs if isinstance(pair, list) and len(pair) == 2]
        return [item for start, end in pairs for item in self.pool[start:end]]

    def _read(self, events: object, spans: _Spans, tool: Value | None) -> None:
        """Read *events*; in older logs, they may be inside the event *tool*."""
        for event in events if isinstance(events, list) else ():
            if not isinstance(event, dict):
                continue
            is_score = event.get("event") == "score" and not event.get("intermediate")
            self.is_scored = self.is_scored or is_score or event.get("type") in _SCORERS
            if event.get("event") == "model":
                self._read_call(event, spans, tool)
            elif event.get("event") == "tool":
                self._add_tool(event, spans)
                self._read(event.get("events"), spans, event)
            elif event.get("event") == "subtask":
                self._read(event.get("events"), spans, tool)

    def _add_tool(self, event: Value, spans: _Spans) -> None:
        id_ = str(event.get("id"))
        self.tools[id_], self.spawns[id_] = event, id_
        for span in (event.get("agent_span_id"), spans.tool(event.get("span_id"))):
            if isinstance(span, str):
                self.spawns[span] = id_

    def _read_call(self, event: Value, spans: _Spans, tool: Value | None) -> None:
        span = event.get("span_id")
        if (scorer := spans.scorer(span)) is not None:
            self.graders.setdefault(scorer, str(event.get("model", "")))
            return
        if call_error(event) is None:
            self.calls[str(_answer(event).get("id"))] = event
        agent = spans.agent(span)
        if agent is None and tool is not None:
            agent = str(tool.get("id")), str(tool.get("function", "agent"))
        elif agent is not None:
            self.around.setdefault(agent[0], spans.around(span))
        self.order.append((None if agent is None else agent[0], event))
        if agent is not None:
            self.groups.setdefault(agent[0], (agent[1], []))[1].append(event)


@attrs.frozen
class _Spans:
    """The spans of a sample, by id."""

    by_id: Mapping[str, Value]

    @classmethod
    def of(cls, events: object) -> _Spans:
        begins = [event for event in events if isinstance(event, dict)] if isinstance(events, list) else []
        return cls({str(event.get("id")): event for event in begins if event.get("event") == "span_begin"})

    def path(self, span: object) -> list[Value]:
        """Return the span with the id *span* and those around it, innermost first."""
        path: list[Value] = []
        seen: set[object] = set()
        while isinstance(span, str) and span in self.by_id and span not in seen:
            seen.add(span)
            path.append(self.by_id[span])
            span = self.by_id[span].get("parent_id")
        return path

    def scorer(self, span: object) -> str | None:
        """Return the name of the scorer around *span*."""
        path = self.path(span)
        name = next((begin.get("name") for begin in path if begin.get("type") == "scorer"), None)
        if name is None and any(begin.get("type") == "scorers" for begin in path):
            name = "scorer"
        return None if name is None else str(name)

    def tool(self, span: object) -> str | None:
        """Return *span* if it is the span of a tool."""
        return str(span) if isinstance(span, str) and self.by_id.get(span, {}).get("type") == "tool" else None

    def around(self, span: object) -> list[str]:
        """Return the ids of the span of the agent around *span*, and of the spans between it and the next agent, innermost first."""
        path = self.path(span)
        agents = [place for place, begin in enumerate(path) if begin.get("type") == "agent"]
        return [str(begin.get("id")) for begin in path[agents[0] : agents[1] if len(agents) > 1 else None]]

    def agent(self, span: object) -> tuple[str, str] | None:
        """Return the id and the name of the agent around *span*, if another agent or a tool started it."""
        path = self.path(span)
        places = [place for place, begin in enumerate(path) if begin.get("type") == "agent"]
        if not places:
            return None
        outer = path[places[0] + 1 :]
        if not any(begin.get("type") in ("agent", "tool") for begin in outer):
            return None
        begin = path[places[0]]
        return str(begin.get("id")), str(begin.get("name", "agent"))


def call_error(call: Value) -> str | None:
    """Return the error of a failed call of a model, None for another call."""
    error = call.get("error")
    text = error.get("message", error) if isinstance(error, dict) else error
    return str(text) if text else None


def failures(calls: Sequence[Value], messages: Sequence[Value]) -> dict[str | None, list[Value]]:
    """Return the failed calls among *calls* by the id of the message in *messages* that the next call returned; None for failed calls at the end."""
    ids = [str(message.get("id")) for message in messages if message.get("role") == "assistant"]
    failed: dict[str | None, list[Value]] = {}
    waiting: list[Value] = []
    for call in calls:
        if call_error(call) is not None:
            waiting.append(call)
        elif waiting and (id_ := str(_answer(call).get("id"))) in ids:
            failed[id_], waiting = waiting, []
    if waiting:
        answers = {str(_answer(call).get("id")) for call in calls}
        is_written = (
            bool(ids) and messages[-1].get("role") == "assistant" and ids[-1] not in answers
        )  # by the agent's program
        is_end = call_error(calls[-1]) is not None and not is_written
        failed.setdefault(None if is_end or not ids else ids[-1], []).extend(waiting)
    return failed


def _answer(call: Value) -> Value:
    return _message(call.get("output") or {})


def _message(output: Value) -> Value:
    choices = output.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    message = first.get("message") if isinstance(first, dict) else None
    return message if isinstance(message, dict) else {}


def call_time(event: Value | None) -> str | None:
    """Return the time at which the call of *event* ended, None if it is unknown."""
    if event is None:
        return None
    time = event.get("completed") or event.get("timestamp")
    return time if isinstance(time, str) else None
