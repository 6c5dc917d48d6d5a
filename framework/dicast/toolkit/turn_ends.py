"""The steps of a turn in a conversation, and how the turn ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from dicast import normalize_stop_reason

from .parts import RefusalPart, Spoken, ToolCall, ToolResult

MAX_TOKENS = "max_tokens"
CALL_FAILED = "llm.call_failed"
RETRIED = "retried"
"""The stop reason of a turn whose session ends while a failed call of the model is tried again."""


@attrs.define
class TurnStep:
    """One step of a turn: a text with its parts, a tool call, a result, or a recorded event."""

    role: str
    text: str | None = None
    parts: Sequence[Spoken] | None = None  # of a message that is more than one text
    action: ToolCall | ToolResult | None = None
    event: tuple[str, Mapping[str, object]] | None = None
    time: str | None = None


def refuses(step: TurnStep) -> bool:
    """Return whether the model refused in the step."""
    return step.parts is not None and any(type(part) is RefusalPart for part in step.parts)


def is_reply(step: TurnStep) -> bool:
    """Return whether a model or a tool made the step. A failed call of the model is such a step."""
    return step.role in ("assistant", "tool") or step.action is not None or _is_failure(step)


def _is_failure(step: TurnStep) -> bool:
    return step.event is not None and step.event[0] == CALL_FAILED


def ends_with_failure(steps: Sequence[TurnStep]) -> bool:
    """Return whether a failed call of the model is the last step, apart from other events and from texts of the tool."""
    spoken = [step for step in steps if is_reply(step) or step.role == "user"]
    return bool(spoken) and _is_failure(spoken[-1])


def is_cut_retry(steps: Sequence[TurnStep], place: int) -> bool:
    """Return whether the turn ends while a failed call of the model is tried again; the failure is before the step with the index *place*.

    A failure after an answer is not a call that the turn needs.
    """
    before = [step for step in steps[:place] if is_reply(step) or step.role == "user"]
    is_answered = bool(before) and before[-1].role == "assistant" and before[-1].action is None
    return not is_answered and not any(step.role == "assistant" or _is_failure(step) for step in steps[place:])


def completed_payload(steps: Sequence[TurnStep], called: int, stop: str | None) -> dict[str, object]:
    """Return the payload of ``turn.completed``: the texts of the user and of the assistant's last message that has a text."""
    texts: dict[str, object] = {}
    messages = [step for step in steps if step.event is None]
    if messages and messages[0].role == "user" and messages[0].text is not None:
        texts["user_prompt_text"] = messages[0].text
    final = next((step for step in reversed(messages) if step.role == "assistant" and step.text), None)
    if final is not None:
        texts["final_response_text"] = final.text
    is_end, fails = final is not None and final is messages[-1], ends_with_failure(steps)
    reason = stop or ("error" if fails else _turn_end(steps) if is_end else "tool_use")
    payload: dict[str, object] = {"stop_reason": reason, "tool_call_count": called, "signals_extra": texts}
    if fails or stop not in (None, MAX_TOKENS):
        payload["ended_by"] = "model_failure" if fails else "interruption"
    return {**payload, "refusal": True} if final is not None and refuses(final) else payload


def _turn_end(steps: Sequence[TurnStep]) -> str:
    """Return the stop reason of a turn that ends with a text: ``max_tokens`` if its model call says so."""
    calls = [step.event[1] for step in steps if step.event is not None and step.event[0] == "llm.call_completed"]
    return MAX_TOKENS if calls and calls[-1].get("stop_reason") == MAX_TOKENS else "end_turn"


def recorded_stop(reason: str) -> str:
    """Return ``max_tokens`` for each word that means it, else *reason* as the format has it."""
    return MAX_TOKENS if normalize_stop_reason(reason) == MAX_TOKENS else reason
