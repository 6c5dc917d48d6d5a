"""A builder that turns the messages of any tool's format into a session of trace events.

A reader adds messages with their parts in the order of its file, and asks for the session at the end::

    builder = Conversation("s-1", Rules())
    builder.add("user", [TextPart("Weather in Rome?")])
    builder.add("assistant", [ToolCall("c1", "weather", {"city": "Rome"})])
    builder.add("tool", [ToolResult("c1", "22C")])
    builder.add("assistant", [TextPart("It is 22C.")])
    session = builder.session({})

A user message starts a turn; a tool result never does. Model calls, feedback and sub-agents are optional.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal

import attrs

from dicast import TraceEvent

from .assembly import Assembly
from .call_matching import CallMatching, NameCall, content_output, count_known, has_parts
from .expressions import Expression
from .parts import Part, Spoken, TextPart, ToolCall, ToolResult, part_fields, visible_text
from .sessions import MESSAGE, Session, Turn
from .sub_agents import STARTED
from .turn_ends import (
    CALL_FAILED,
    MAX_TOKENS,
    RETRIED,
    TurnStep,
    completed_payload,
    ends_with_failure,
    is_cut_retry,
    is_reply,
    recorded_stop,
    refuses,
)

_ACTIONS = (ToolCall, ToolResult)


def _same_name(turn_id: str, call_id: str) -> str:
    return call_id


@attrs.frozen
class Rules:
    """Rules for reading a conversation in any format.

    :param tool_error: an expression; a result whose text it matches is a failure of the tool.
    :param keep_trailing: whether a last turn without a reply is kept.
    :param name_call: returns the id of a tool call in the trace, from the ids of its turn and of the call in the file.
    """

    tool_error: Expression | None = None
    keep_trailing: bool = False
    name_call: NameCall = _same_name


@attrs.define
class Counts:
    """Counts of the contents of conversations. *parts* counts texts, media, reasoning and refusals, in results of tools too.

    *unmatched_results* belong to no call, *unmatched_calls* have no result. *dropped* counts the messages of last turns without a reply,
    *marked* the parts, roles and items that a marker replaced, by kind and name. *repeated* has the numbers of ``calls`` and ``results`` whose
    id an earlier one of the conversation has. *failed_model_calls* counts the recorded failures of models.
    """

    messages: int = 0
    parts: int = 0
    calls: int = 0
    results: int = 0
    failed_results: int = 0
    unmatched_results: int = 0
    unmatched_calls: int = 0
    dropped: int = 0
    marked: Counter[str] = attrs.field(factory=Counter)
    repeated: Counter[str] = attrs.field(factory=Counter)
    failed_model_calls: int = 0

    def add(self, other: Counts) -> None:
        """Add the counts of another conversation."""
        for field in _NUMBERS:
            setattr(self, field, getattr(self, field) + getattr(other, field))
        self.marked.update(other.marked)
        self.repeated.update(other.repeated)

    def contents(self) -> dict[str, int]:
        """Return the numbers as ``read.contents`` of a run's document has them; numbers of repeated ids and failed model calls only if there are any."""
        numbers: dict[str, int] = {name: getattr(self, name) for name in _NUMBERS}
        numbers["trailing_messages"] = numbers.pop("dropped")
        if not numbers["failed_model_calls"]:
            del numbers["failed_model_calls"]
        return numbers | {f"repeated_{name}": number for name, number in self.repeated.items()}


_NUMBERS = tuple(name for name, value in attrs.asdict(Counts()).items() if type(value) is int)


class Conversation:
    """A conversation while it is read. *id* names its session; *parent_id* and *parent_call* are the session and its call that started a sub-agent.

    *counts* has the counts of its contents, *models* the number of recorded calls by model.
    """

    def __init__(self, id: str, rules: Rules | None = None, *, parent_id: str | None = None,
                 parent_call: str | None = None) -> None:  # fmt: skip
        self.id, self.parent_id, self.parent_call = id, parent_id, parent_call
        self.counts = Counts()
        self._rules = Rules() if rules is None else rules
        self._calls = CallMatching(self._rules.name_call)
        self._before = self._steps = list[TurnStep]()
        self._turns: list[list[TurnStep]] = []
        self._system: str | None = None
        self._ids: dict[int, str] = {}
        self._stops: dict[int, tuple[str, int]] = {}
        self._retries: dict[int, int] = {}
        self.models: Counter[str] = Counter()
        self._has_feedback = False
        self._action_ids: dict[str, set[str]] = {"calls": set(), "results": set()}

    @property
    def has_turns(self) -> bool:
        """True once a turn has started."""
        return bool(self._turns)

    @property
    def turns(self) -> int:
        """The number of turns that have started."""
        return len(self._turns)

    def add(self, role: str, parts: Sequence[Part], *, time: str | None = None, turn_id: str | None = None) -> None:
        """Add a message of *role*: ``user``, ``assistant``, ``system``, ``tool``, or a name that the evidence shows as it is.

        Tool calls and results may be in a message of any role. Without *parts* the message is empty. *turn_id* names the turn that a user
        message starts, by default ``SESSION/N``.
        """
        if len(parts) == 1 and type(parts[0]) is TextPart:  # as most messages are
            self.add_text(role, parts[0].text, time=time, turn_id=turn_id)
            return
        self.counts.messages += 1
        spoken: list[Spoken] = []
        actions: list[ToolCall | ToolResult] = []
        for part in parts:
            if not isinstance(part, _ACTIONS):
                spoken.append(part)
            elif role == "user":
                actions.append(part)
            else:
                if spoken:
                    self._say(role, spoken, time, turn_id)
                    spoken = []
                self._act(role, part, time)
        for action in actions:
            self._act("tool", action, time)
        if spoken or not parts:
            self._say(role, spoken, time, turn_id, is_turn=not actions or bool((visible_text(spoken) or "").strip()))

    def add_text(self, role: str, text: str, *, time: str | None = None, turn_id: str | None = None) -> None:
        """Add a message that is one text."""
        counts = self.counts
        counts.messages += 1
        counts.parts += 1
        self._step(TurnStep(role, text, None, time=time), turn_id)

    def model_call(self, *, model: str | None = None, usage: Mapping[str, object] | None = None, cost_usd: object = None,
                   stop_reason: str | None = None, time: str | None = None, is_unread: bool = False) -> None:  # fmt: skip
        """Record a call of the model that wrote the next message, or with *is_unread* a message that the format does not have.

        Without model, usage and cost, the call is recorded only if its reply was cut by the token limit.
        """
        if model is not None:
            self.models[model] += 1
        values = {"model": model, "usage": usage, "cost_usd": cost_usd}
        payload = {key: value for key, value in values.items() if value is not None}
        stop = {} if stop_reason is None else {"stop_reason": recorded_stop(stop_reason)}
        if payload or is_unread or stop.get("stop_reason") == MAX_TOKENS:
            role = "assistant" if is_unread else ""
            self._steps.append(TurnStep(role, event=("llm.call_completed", {**payload, **stop}), time=time))

    def model_failure(self, error: str, *, model: str | None = None, time: str | None = None) -> None:
        """Record a call of the model that failed with the text *error*. A turn that ends with it has ``ended_by: model_failure``."""
        self.counts.failed_model_calls += 1
        event = (CALL_FAILED, {"error": error} if model is None else {"model": model, "error": error})
        self._steps.append(TurnStep("", event=event, time=time))

    def interruption(self, reason: str) -> None:
        """Record that the turn was stopped, with its stop *reason*. Unless an answer follows, it has ``ended_by: interruption``."""
        self._stops[len(self._turns) - 1] = reason, len(self._steps)

    def retry(self) -> None:
        """Record that a call of the model failed and is tried again. If the turn has no further step of the model, it has ``ended_by: interruption``."""
        self._retries[len(self._turns) - 1] = len(self._steps)

    def feedback(
        self, kind: Literal["explicit", "implicit"], payload: Mapping[str, object], time: str | None = None
    ) -> None:
        """Record feedback of the user; the payload is that of ``feedback.explicit`` or ``feedback.implicit``."""
        self._has_feedback = True
        self._steps.append(TurnStep("", event=(f"feedback.{kind}", payload), time=time))

    def start_turn(self, turn_id: str | None = None) -> None:
        """Start a turn whose user message is unknown. *turn_id* is its id in the trace, by default made of the session's id."""
        if turn_id is not None:
            self._ids[len(self._turns)] = turn_id
        self._steps = []
        self._turns.append(self._steps)

    def session(self, context: Mapping[str, object], disposition: str = "completed",
                time: str | None = None) -> Session:  # fmt: skip
        """Return the session; *context* has the other fields of the record, *disposition* is that of ``session.ended``.

        It is ``error`` instead of ``completed`` if the session ends with a failed call of the model.
        """
        log, turns, events = [*self._start(), *self._outside()], list[Turn](), list[TraceEvent]()
        events += [event for event in log if event.type != MESSAGE]
        if self._turns and not self._rules.keep_trailing and not any(map(is_reply, self._turns[-1])):
            self._drop(self._turns.pop())
        for number, steps in enumerate(self._turns):
            turn_id = self._ids.get(number) or f"{self.id}/{number + 1}"
            begins = len(log)
            log += self._turn_events(turn_id, steps, self._stop(number))
            turn_events = tuple(event for event in log[begins:] if event.type != MESSAGE)
            turns.append(Turn(turn_id, turn_events, (), begins, len(log)))
            events += turn_events
        self.counts.unmatched_calls = self._calls.open
        if disposition == "completed" and self._turns and ends_with_failure(self._turns[-1]):
            disposition = "error"
        end = TraceEvent("session.ended", {"disposition": disposition}, time, self.id)
        if self._has_feedback:  # it may be about another turn
            return attrs.evolve(Assembly(self.id, [*log, end]).session(), context=context)
        return Session(self.id, turns, (*events, end), context, (*log, end), self.parent_id)

    def _stop(self, number: int) -> str | None:
        """Return the reason why the turn of this number was stopped; None if it was not, or went on."""
        steps = self._turns[number]
        reason, place = self._stops.get(number, (None, 0))
        if reason is not None and not any(step.role == "assistant" and step.text for step in steps[place:]):
            return reason
        return RETRIED if number in self._retries and is_cut_retry(steps, self._retries[number]) else None

    def _say(self, role: str, parts: Sequence[Spoken], time: str | None, turn_id: str | None, *,
             is_turn: bool = True) -> None:  # fmt: skip
        text = visible_text(parts)
        self.counts.parts += count_known(parts)
        step = TurnStep(role, text, None if all(type(part) is TextPart for part in parts) else parts, time=time)
        self._step(step, turn_id, is_turn=is_turn)

    def _step(self, step: TurnStep, turn_id: str | None, *, is_turn: bool = True) -> None:
        """Add the step of a text; a user's starts a turn, and a system prompt that has not changed is left out."""
        if step.role == "user":
            if is_turn:
                self.start_turn(turn_id)
        elif step.role == "system":
            if step.text == self._system:
                return
            self._system = step.text
        self._steps.append(step)

    def _act(self, role: str, action: ToolCall | ToolResult, time: str | None) -> None:
        if isinstance(action, ToolCall):
            self.counts.calls += 1
            self._note_id("calls", action.id)
        else:
            self.counts.results += 1
            self._note_id("results", action.id)
            self.counts.parts += count_known(action.content) if has_parts(action.content) else 0
        self._steps.append(TurnStep(role, action=action, time=time))

    def _note_id(self, kind: str, id_: str | None) -> None:
        if id_ is None:
            return
        ids = self._action_ids[kind]
        if id_ in ids:
            self.counts.repeated[kind] += 1
        ids.add(id_)

    def _drop(self, steps: list[TurnStep]) -> None:
        self.counts.dropped += sum(step.event is None for step in steps)

    def _start(self) -> Iterator[TraceEvent]:
        """Yield the event with the session that started this one, at the time of the first step with a time."""
        if self.parent_id is not None:
            call = {} if self.parent_call is None else {"parent_tool_use_id": self.parent_call}
            times = (step.time for steps in (self._before, *self._turns) for step in steps if step.time is not None)
            yield TraceEvent(STARTED, {"parent_id": self.parent_id, **call}, next(times, None), self.id)

    def _outside(self) -> list[TraceEvent]:
        """Return the events of the steps before the first turn."""
        self._calls.start(self.id)
        events = ((step.time, *event) for step in self._before for event in self._events_of(step))
        return [TraceEvent.of(type_, payload, time, self.id, None, {}) for time, type_, payload in events]

    def _turn_events(self, turn_id: str, steps: Sequence[TurnStep], stop: str | None) -> list[TraceEvent]:
        """Return the events of a turn.

        The first text of the user and the last of the assistant are in ``turn.completed``. They are also events of their own if their
        place among other events would be lost.
        """
        self._calls.start(turn_id)
        first, last = (steps[0], steps[-1]) if steps else (None, None)
        events: list[TraceEvent] = []
        for step in steps:
            ends = step is last and step.role == "assistant" and not (step.action or step.event or step.parts)
            if (step is first and step.role == "user") or ends:
                continue
            for type_, payload in self._events_of(step):
                events.append(TraceEvent.of(type_, payload, step.time, self.id, turn_id, {}))
        if first is not None and first.role == "user" and (events or first.parts):
            prompt = [TraceEvent.of(*item, first.time, self.id, turn_id, {}) for item in self._events_of(first)]
            events[:0] = prompt
        called = sum(event.type == "tool.called" for event in events)
        time = None if last is None else last.time
        events.append(
            TraceEvent.of("turn.completed", completed_payload(steps, called, stop), time, self.id, turn_id, {})
        )
        return events

    def _events_of(self, step: TurnStep) -> Sequence[tuple[str, Mapping[str, object]]]:
        if step.event is not None:
            return (step.event,)
        action = step.action
        if type(action) is ToolCall:
            return (("tool.called", self._calls.call(action)),)
        if type(action) is ToolResult:
            return (self._result(action),)
        return () if not step.text and step.parts is None else ((MESSAGE, _message(step)),)

    def _result(self, result: ToolResult) -> tuple[str, Mapping[str, object]]:
        """Return the event of a result."""
        payload, is_matched = self._calls.result(result)
        self.counts.unmatched_results += not is_matched
        text, output, fields = content_output(result.content)
        tool_error = self._rules.tool_error
        if result.is_error or (tool_error is not None and tool_error.search(text)):
            self.counts.failed_results += 1
            return "tool.failed", {**payload, "error": text, **fields}
        success = not result.exit_code
        self.counts.failed_results += not success
        code = {} if success else {"exit_code": result.exit_code}
        size = len(text.encode(errors="replace"))
        return "tool.completed", {
            **payload,
            "success": success,
            "output_size": size,
            "output": output,
            **fields,
            **code,
        }


def _message(step: TurnStep) -> dict[str, object]:
    payload: dict[str, object] = {"role": step.role, "text": step.text or ""}
    if step.parts is not None:
        payload["parts"] = [part_fields(part) for part in step.parts]
        if refuses(step):
            payload["refusal"] = True
    return payload
