"""Converts samples into sessions, with model and tool calls, and with the agents that a tool started."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import attrs

from dicast import RecordedScore
from dicast.toolkit.conversations import Conversation
from dicast.toolkit.recorded_scores import ScoreScales
from dicast.toolkit.session_reading import Failed, SessionReading
from dicast.toolkit.sessions import Session

from .attachments import resolved
from .events import Events, call_error, call_time, failures
from .messages import add_message, start_turn
from .scores import sample_scores

Value = Mapping[str, Any]

_CONTEXT = ("choices", "metadata", "uuid", "model_usage", "total_time", "working_time", "started_at", "completed_at")
"""Fields of a sample that go into the context of its session."""


@attrs.frozen
class Evaluation:
    """Fields of a log that hold for all its samples, such as its *task* and *model*."""

    task: str | None = None
    model: str | None = None

    @classmethod
    def of(cls, value: object) -> Evaluation:
        """Return the fields of the member ``eval`` of a log."""
        fields = value if isinstance(value, dict) else {}
        task, model = fields.get("task"), fields.get("model")
        return cls(task if isinstance(task, str) else None, model if isinstance(model, str) else None)


@attrs.frozen
class Sample:
    """A sample of the log."""

    value: Value
    evaluation: Evaluation


@attrs.frozen
class Broken:
    """A sample without messages: the *id* of its session, the *reason*, and the *summary*, which may have scores."""

    id: str
    reason: str
    summary: Value
    evaluation: Evaluation

    def scores(self, scales: ScoreScales) -> Iterator[RecordedScore | None]:
        """Yield the scores of the summary."""
        yield from sample_scores(self.summary, scales, {})


def sample_id(id_: object, epoch: object) -> str:
    """Return the id of a sample's session: the sample's id, followed by the epoch unless it is the first."""
    return str(id_) if epoch in (None, 1) else f"{id_}_epoch_{epoch}"


def expand_refs(refs: object, pool: Sequence[Any]) -> list[Any]:
    """Return the items of *pool* in the ranges *refs*, which are ``[start, end]`` without the item at the end."""
    pairs = refs if isinstance(refs, list) else []
    return [item for pair in pairs if isinstance(pair, list) and len(pair) == 2 for item in pool[pair[0] : pair[1]]]


def sample_sessions(reading: SessionReading, sample: Sample) -> Iterator[Session | Failed]:
    """Yield the session of *sample* and the sessions of its agents, or a failed record if the model wrote nothing."""
    value = resolved(sample.value)
    id_ = sample_id(value.get("id", "sample"), value.get("epoch"))
    events = Events.of(value)
    scores = [*sample_scores(value, reading.scales, events.graders)]
    messages = _messages(value)
    if not any(message.get("role") == "assistant" for message in messages):
        yield reading.failed(id_, _why_failed(value), scores)
        return
    conversation = reading.conversation(id_)
    ids = {str(message.get("id")) for message in messages}
    is_failed = _add_all(conversation, reading, messages, events, events.main_calls(ids))
    if not is_failed and not _ends_with_answer(messages) and (stop := _stop(value, events)) is not None:
        conversation.interruption(stop)
    target = value.get("target")
    yield reading.end(
        conversation,
        _context(value, sample.evaluation),
        _disposition(value),
        events.end_time,
        reference=target if target not in ("", [], None) else None,
        scores=scores,
    )
    for number, agent in enumerate(events.agents(ids), 1):
        session = reading.conversation(f"{id_}/agent-{number}", id_, agent.call)
        _add_all(session, reading, agent.messages, events, agent.calls)
        yield reading.end(session, {"agent": agent.name, "task": sample.evaluation.task}, "completed", agent.time)


def _add_all(
    conversation: Conversation,
    reading: SessionReading,
    messages: Sequence[Value],
    events: Events,
    calls: Sequence[Value],
) -> bool:
    """Add *messages* and the failed calls among *calls*; return whether the last call failed."""
    failed = failures(calls, messages)
    for number, message in enumerate(messages):
        if message.get("role") == "assistant":
            _add_failures(conversation, failed.pop(str(message.get("id")), ()))
        add_message(conversation, reading, message, f"messages[{number}]", events)
    is_failed = None in failed
    _add_failures(conversation, failed.pop(None, ()))
    return is_failed


def _add_failures(conversation: Conversation, calls: Sequence[Value]) -> None:
    for call in calls:
        start_turn(conversation)
        model = call.get("model")
        name = model if isinstance(model, str) else None
        conversation.model_failure(call_error(call) or "", model=name, time=call_time(call))


def _ends_with_answer(messages: Sequence[Value]) -> bool:
    return messages[-1].get("role") == "assistant" and not messages[-1].get("tool_calls")


def _stop(value: Value, events: Events) -> str | None:
    """Return why a sample was stopped before its answer, None if it was not. An error of a scorer comes after the agent's work."""
    if value.get("error"):
        return None if events.is_scored else "error"
    limit = value.get("limit")
    kind = limit.get("type") if isinstance(limit, dict) else limit
    return f"{kind}_limit" if limit else None


def _messages(value: Value) -> list[Value]:
    """Return the messages of a sample, or its input and the message of its output if it has no messages."""
    messages: list[Value] = [message for message in value.get("messages") or () if isinstance(message, dict)]
    if messages:
        return messages
    start = value.get("input")
    first = [{"role": "user", "content": start}] if isinstance(start, str) else [*(start or ())]
    choices = _choices(value)
    last = [choice["message"] for choice in choices[:1] if isinstance(choice.get("message"), dict)]
    return [message for message in [*first, *last] if isinstance(message, dict)]


def _choices(value: Value) -> list[Value]:
    output = value.get("output")
    choices = output.get("choices") if isinstance(output, dict) else None
    return [choice for choice in choices or () if isinstance(choice, dict)]


def _context(value: Value, evaluation: Evaluation) -> dict[str, object]:
    """Return the context of a session: the fields of its sample and log that are not empty."""
    context: dict[str, object] = {"task": evaluation.task, "model": evaluation.model}
    context |= {"sample_id": value.get("id"), "epoch": value.get("epoch")}
    context |= {key: value.get(key) for key in _CONTEXT}
    context["limit"] = value.get("limit")
    context["error"] = _error(value)
    if len(choices := _choices(value)) > 1:
        context["output_choices"] = [choice.get("message", {}).get("content") for choice in choices]
    return {key: item for key, item in context.items() if item not in (None, {}, [])}


def _disposition(value: Value) -> str:
    if value.get("error"):
        return "error"
    return "abandoned" if value.get("limit") else "completed"


def _error(value: Value) -> object:
    error = value.get("error")
    return error.get("message", error) if isinstance(error, dict) else error


def _why_failed(value: Value) -> str:
    if error := _error(value):
        return f"the sample failed: {error}"
    if limit := value.get("limit"):
        kind = limit.get("type", limit) if isinstance(limit, dict) else limit
        return f"the sample reached its limit ({kind}) before the model wrote a message"
    return "the sample has no message of the model"
