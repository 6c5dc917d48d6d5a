"""Trajectories in the Agent Trajectory Interchange Format (ATIF), versions 1.0 to 1.7."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from dicast.toolkit.beginning import Beginning
from dicast.toolkit.conversations import Conversation
from dicast.toolkit.detection import Detection
from dicast.toolkit.parts import MediaPart, Part, ReasoningPart, TextPart, ToolCall, ToolResult
from dicast.toolkit.session_reading import Failed, SessionReading
from dicast.toolkit.session_source import SessionSource
from dicast.toolkit.sessions import Session

from .values import Record, list_of, mapping_of, objects_of, text_of

_ROLES = {"user": "user", "agent": "assistant", "system": "system"}
_FIELDS = ("agent", "final_metrics", "notes", "extra", "schema_version", "continued_trajectory_ref", "trajectory_id")
_USAGE = ("prompt_tokens", "completion_tokens", "cached_tokens")


@attrs.frozen
class Atif(SessionSource):
    """Trajectories in the Agent Trajectory Interchange Format (ATIF), as Harbor and other tools write them: one document, an array, or one per line.

    A step is a message with its calls; its observation has their results. Sub-agents in the document become separate sessions.
    """

    title = "an ATIF trajectory"

    @classmethod
    def detect(cls, beginning: Beginning) -> Detection | None:
        """Return the detection of a trajectory, by its ``schema_version``."""
        versions = (record.get("schema_version") for record in beginning.objects if "steps" in record)
        version = next((text for text in versions if isinstance(text, str) and text.startswith("ATIF")), None)
        return None if version is None else Detection(cls.title, version.removeprefix("ATIF-v"))

    def sessions(self, reading: SessionReading) -> Iterator[Session | Failed]:
        """Yield each trajectory, and the trajectories of its sub-agents."""
        for _, line, record in reading.records():
            if not isinstance(record.get("steps"), list):
                reading.refuse("a trajectory has 'steps', a list", line)
                continue
            yield from _trajectory(record, reading, None, 0)


def _trajectory(record: Record, reading: SessionReading, parent_id: str | None, number: int) -> Iterator[Session]:
    own_id = text_of(record, "session_id") if parent_id is None else text_of(record, "trajectory_id")
    default = reading.stem if parent_id is None else f"{parent_id}/subagent-{number}"
    id_ = own_id or text_of(record, "trajectory_id", "session_id") or default
    conversation = reading.conversation(id_, parent_id)
    agent = mapping_of(record, "agent")
    for index, step in enumerate(list_of(record, "steps")):
        if isinstance(step, dict):
            _add_step(step, f"steps[{index}]", text_of(agent, "model_name"), conversation, reading)
        else:
            conversation.add("system", [reading.unknown("step", type(step).__name__, f"steps[{index}]")])
    yield reading.end(conversation, {key: record[key] for key in _FIELDS if record.get(key) is not None})
    for index, child in enumerate(objects_of(record, "subagent_trajectories"), 1):
        yield from _trajectory(child, reading, id_, index)


def _add_step(step: Record, path: str, model: str | None, conversation: Conversation, reading: SessionReading) -> None:
    reading.totals.kinds[f"step of {step.get('source')}"] += 1
    time = text_of(step, "timestamp")
    source = step.get("source")
    role = _ROLES.get(source) if isinstance(source, str) else None
    parts: list[Part] = []
    if role is None:
        role = str(source)
        parts.append(reading.unknown("source", source, f"{path}.source", tuple(_ROLES)))
    if role == "assistant":
        _add_call(step, model, conversation, time)
        if not conversation.has_turns:
            conversation.start_turn()
    if reasoning := text_of(step, "reasoning_content"):
        parts.append(ReasoningPart(reasoning))
    parts += _content(step.get("message"), f"{path}.message", reading)
    for number, call in enumerate(list_of(step, "tool_calls")):
        if isinstance(call, dict) and (name := text_of(call, "function_name")):
            parts.append(ToolCall(text_of(call, "tool_call_id"), name, call.get("arguments")))
        else:
            parts.append(reading.unknown("tool call", type(call).__name__, f"{path}.tool_calls[{number}]"))
    results = list_of(mapping_of(step, "observation"), "results")
    for number, result in enumerate(results):
        parts.append(_result(result, f"{path}.observation.results[{number}]", reading))
    conversation.add(role, parts, time=time)


def _add_call(step: Record, model: str | None, conversation: Conversation, time: str | None) -> None:
    metrics = mapping_of(step, "metrics")
    usage = {key: metrics[key] for key in _USAGE if metrics.get(key) is not None}
    name = text_of(step, "model_name") or model
    conversation.model_call(model=name, usage=usage or None, cost_usd=metrics.get("cost_usd"), time=time)


def _result(result: object, path: str, reading: SessionReading) -> Part:
    if not isinstance(result, dict):
        return reading.unknown("result", type(result).__name__, path)
    content = result.get("content")
    parts: list[Part] = _content(content, f"{path}.content", reading) if isinstance(content, list) else []
    session_id = None
    for reference in objects_of(result, "subagent_trajectory_ref"):
        session_id = text_of(reference, "trajectory_id", "session_id") or session_id
        name = text_of(reference, "trajectory_id", "session_id", "trajectory_path") or "?"
        parts.append(TextPart(f"[sub-agent trajectory {name}]"))
    if parts and isinstance(content, str):
        parts.insert(0, TextPart(content))
    return ToolResult(text_of(result, "source_call_id"), parts or content, session_id=session_id)


def _content(content: object, path: str, reading: SessionReading) -> list[Part]:
    """Return the parts of a message, which is a text, or since 1.6 a list of texts and images."""
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [TextPart(content)]
    if not isinstance(content, list):
        return [reading.unknown("message", type(content).__name__, path)]
    parts: list[Part] = []
    for number, block in enumerate(content):
        type_ = block.get("type") if isinstance(block, dict) else type(block).__name__
        if type_ == "text" and isinstance(block.get("text"), str):
            parts.append(TextPart(block["text"]))
        elif type_ == "image":
            source = mapping_of(block, "source")
            parts.append(MediaPart("image", text_of(source, "media_type"), url=text_of(source, "path", "url")))
        else:
            parts.append(reading.unknown("part", type_, f"{path}[{number}]", ("text", "image")))
    return parts
