"""Trajectories of SWE-agent and mini-SWE-agent."""

from __future__ import annotations

import re
from collections.abc import Iterator

import attrs

from dicast import DataError
from dicast.toolkit.beginning import Beginning
from dicast.toolkit.conversations import Conversation
from dicast.toolkit.detection import Detection
from dicast.toolkit.message_formats.blocks import ANY, read_content
from dicast.toolkit.message_formats.chat import read_calls
from dicast.toolkit.parts import Part, TextPart, ToolCall, ToolResult, visible_text
from dicast.toolkit.roles import role_of
from dicast.toolkit.session_reading import Failed, SessionReading
from dicast.toolkit.session_source import SessionSource
from dicast.toolkit.sessions import Session

from .values import Record, list_of, mapping_of, objects_of, text_of

_STEP = ("action", "observation")
_MINI = "mini-swe-agent"
_COMMAND = re.compile(r"```(?:bash|mswea_bash_command)\s*\n(.*?)\n```", re.DOTALL)
_RETURN_CODE = re.compile(r"<returncode>(-?\d+)</returncode>")
_FIELDS = ("info", "environment", "replay_config", "trajectory_format")


@attrs.frozen
class SweAgent(SessionSource):
    """Trajectories of SWE-agent (``.traj``), with a trajectory or only a history, and of mini-SWE-agent (``.traj.json``).

    A step is a thought with an action and its observation: the text of the assistant, a call of the tool that the action names, and its result.
    """

    title = "a SWE-agent trajectory"

    @classmethod
    def detect(cls, beginning: Beginning) -> Detection | None:
        """Return the detection of a trajectory."""
        for record in beginning.objects:
            if str(record.get("trajectory_format")).startswith(_MINI):
                return Detection(
                    "a mini-SWE-agent trajectory", str(record["trajectory_format"]).removeprefix(f"{_MINI}-")
                )
            steps = [*objects_of(record, "trajectory"), *objects_of(record, "history")]
            if any(set(_STEP) <= step.keys() or {"agent", "role"} <= step.keys() for step in steps):
                return Detection(cls.title)
        return None

    def sessions(self, reading: SessionReading) -> Iterator[Session | Failed]:
        """Yield each trajectory of the file."""
        for _, line, record in reading.records():
            if not any(isinstance(record.get(key), list) for key in ("trajectory", "history", "messages")):
                reading.refuse("a trajectory has a 'trajectory' or a 'history', a list", line)
                continue
            info = mapping_of(record, "info")
            conversation = reading.conversation(
                text_of(record, "instance_id") or text_of(info, "instance_id") or reading.stem
            )
            if "messages" in record and "trajectory" not in record:
                _add_mini(list_of(record, "messages"), conversation, reading)
            else:
                _add_steps(record, conversation, reading)
            _add_end(text_of(info, "exit_status"), conversation)
            yield reading.end(conversation, {key: record[key] for key in _FIELDS if record.get(key)})


_MODEL_ERRORS = ("APIError", "APIConnectionError", "AuthenticationError", "BadRequestError", "ContextWindowExceededError", "InternalServerError",
                 "NotFoundError", "PermissionDeniedError", "RateLimitError", "ServiceUnavailableError", "Timeout")  # fmt: skip
"""Exceptions of failed calls, whose names are exit statuses of mini-swe-agent."""


def _add_end(status: str | None, conversation: Conversation) -> None:
    """Add the end of a run that did not submit: a failed call of the model, or a stop by a limit or an error."""
    if status is None or not status.strip() or status.lower().startswith("submitted"):
        return
    if status == "exit_api" or status.rpartition(".")[2] in _MODEL_ERRORS:
        conversation.model_failure(status)
    else:
        conversation.interruption(status)


def _add_steps(record: Record, conversation: Conversation, reading: SessionReading) -> None:
    """Add the prompts of the history and the steps of the trajectory, or the whole history if there are no steps."""
    history = list_of(record, "history")
    steps = list_of(record, "trajectory")
    answers = [message for message in history if isinstance(message, dict) and message.get("role") == "assistant"]
    answers = [message for message in answers if not message.get("is_demo")]
    for number, message in enumerate(history):
        if steps and isinstance(message, dict) and message in answers:
            break
        _add_message(message, f"history[{number}]", conversation, reading)
    if steps and not conversation.has_turns:
        conversation.start_turn()
    for number, step in enumerate(steps):
        reading.totals.kinds["step"] += 1
        if not isinstance(step, dict):
            conversation.add("context", [reading.unknown("step", type(step).__name__, f"trajectory[{number}]")])
            continue
        answer = answers[number] if number < len(answers) else {}
        _add_step(step, answer if answer.get("action") == step.get("action") else {}, conversation, reading, number)


def _add_step(step: Record, answer: Record, conversation: Conversation, reading: SessionReading, number: int) -> None:
    path = f"trajectory[{number}]"
    thought, action = text_of(step, "thought", "response") or "", text_of(step, "action")
    calls: list[ToolCall] = []
    if action is not None and action.strip():
        try:
            calls = read_calls(answer, path, reading.shapes)
        except DataError as error:
            conversation.add("context", [reading.malformed(error, "step")])
        calls = calls or [ToolCall(None, action.split(None, 1)[0], {"command": action})]
    conversation.add("assistant", [TextPart(thought), *calls] if thought or not calls else calls)
    observation = step.get("observation")
    if (calls or observation not in (None, "")) and "observation" in step:
        id_ = calls[0].id if calls else None
        conversation.add("tool", [ToolResult(id_, observation)])


def _add_message(message: object, path: str, conversation: Conversation, reading: SessionReading) -> None:
    """Add a message of the history."""
    if not isinstance(message, dict) or not isinstance(message.get("role"), str):
        conversation.add("context", [reading.unknown("message", type(message).__name__, path)])
        return
    reading.totals.kinds[str(message.get("message_type") or "message")] += 1
    role = role_of(message["role"])
    parts = _content(message, path, reading)
    if message.get("is_demo"):
        conversation.add("context", parts)
    elif role == "assistant":
        action = text_of(message, "action")
        try:
            calls: list[ToolCall] = read_calls(message, path, reading.shapes)
        except DataError as error:
            calls, parts = [], [*parts, reading.malformed(error, "message")]
        if not calls and action is not None and action.strip():
            calls = [ToolCall(None, action.split(None, 1)[0], {"command": action})]
        if (thought := text_of(message, "thought")) is not None:
            parts = [TextPart(thought)]
        conversation.add(role, [*parts, *calls])
    elif role == "tool" or (role == "user" and _is_observation(message, conversation)):
        ids = [id_ for id_ in list_of(message, "tool_call_ids") if isinstance(id_, str)]
        content = [part for part in parts if not isinstance(part, ToolCall | ToolResult)]
        id_ = ids[0] if ids else text_of(message, "tool_call_id")
        conversation.add("tool", [ToolResult(id_, visible_text(content) or "")])
    else:
        shown = [reading.shapes.unknown_role(message["role"], path)] if role is None else []
        conversation.add(role or message["role"], [*shown, *parts])


def _is_observation(message: Record, conversation: Conversation) -> bool:
    """Return whether a user's message is the output of a command: every user message after the first turn has started is one."""
    return conversation.has_turns and message.get("message_type", "observation") == "observation"


def _content(message: Record, path: str, reading: SessionReading) -> list[Part]:
    try:
        return read_content(message.get("content"), f"{path}.content", reading.shapes, ANY)
    except DataError as error:
        return [reading.malformed(error, "message")]


def _add_mini(messages: list[object], conversation: Conversation, reading: SessionReading) -> None:
    """Add the messages of mini-SWE-agent. Commands are code blocks or calls; the next message of the user is their output."""
    for number, message in enumerate(messages):
        path = f"messages[{number}]"
        if not isinstance(message, dict):
            conversation.add("context", [reading.unknown("message", type(message).__name__, path)])
            continue
        reading.totals.kinds["message"] += 1
        role, parts = role_of(message.get("role")), _content(message, path, reading)
        text = visible_text([part for part in parts if not isinstance(part, ToolCall | ToolResult)]) or ""
        if role == "assistant":
            try:
                calls = read_calls(message, path, reading.shapes)
            except DataError as error:
                calls, parts = [], [*parts, reading.malformed(error, "message")]
            commands = [] if calls else _COMMAND.findall(text)
            conversation.add(role, [*parts, *calls, *(ToolCall(None, "bash", {"command": text}) for text in commands)])
        elif role == "tool" or (role == "user" and conversation.has_turns):
            code = _RETURN_CODE.search(text)
            result = ToolResult(text_of(message, "tool_call_id"), text, exit_code=int(code[1]) if code else None)
            conversation.add("tool", [result])
        else:
            conversation.add(role or str(message.get("role")), parts)
