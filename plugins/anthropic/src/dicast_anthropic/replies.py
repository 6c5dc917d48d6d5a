"""Replies of the Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import orjson

from dicast import Reply, Usage
from dicast.toolkit.endpoint import Answer
from dicast.toolkit.endpoint.answers import complaint, json_bytes

_STOP_REASONS: Mapping[str, str] = {"tool_use": "end_turn", "model_context_window_exceeded": "max_tokens"}
"""The words of the API that dicast has another word for; the only tool of a request is the form of its reply."""

_MOST_TOKENS = 10**12


class Unreadable(Exception):
    """A response that is no message.

    :ivar usage: the tokens that it reports, if it does.
    :ivar is_error: whether it is an error of the API, which bills nothing.
    """

    def __init__(self, message: str, usage: Usage | None = None, *, is_error: bool = False) -> None:
        super().__init__(message)
        self.usage, self.is_error = usage, is_error


def read_reply(answer: Answer) -> Reply:
    """Return the reply in *answer*, without its cost.

    :raises Unreadable: if it is no message.
    """
    body = _message(answer)
    usage = read_usage(body)
    reason, model = body.get("stop_reason"), body.get("model")
    reason = reason if isinstance(reason, str) else None
    text = _text(body["content"], usage)
    if usage is not None and not text and _has_thinking(body["content"]):  # no token was for the answer
        usage = attrs.evolve(usage, reasoning_tokens=usage.output_tokens)
    return Reply(
        text,
        model=model if isinstance(model, str) else None,
        stop_reason=_STOP_REASONS.get(reason, reason) if reason else None,
        finish_reason=reason,
        usage=usage,
    )


def _message(answer: Answer) -> Mapping[str, Any]:
    content_type = answer.headers.get("Content-Type", "application/json")
    if "json" not in content_type:
        raise Unreadable(f"the reply is {content_type}, not JSON")
    try:
        body = orjson.loads(answer.data)
    except orjson.JSONDecodeError as error:
        raise Unreadable(f"the reply is no valid JSON: {error}") from error
    match body:
        case {"content": [*_]}:
            return body  # type: ignore[no-any-return]  # a mapping, by the pattern
        case {"error": _}:
            message = f"the reply has no content but an error: {complaint(body).message}"
            raise Unreadable(message, read_usage(body), is_error=True)
    raise Unreadable("the reply has no content", read_usage(body))


def _text(content: list[Any], usage: Usage | None) -> str:
    """Return the text of the blocks, or the input of the tool that has the reply's form."""
    blocks = [block for block in content if isinstance(block, Mapping)]
    for block in blocks:
        if block.get("type") == "tool_use":
            return json_bytes(block.get("input")).decode()
    texts = [block.get("text") for block in blocks if block.get("type") == "text"]
    if not all(isinstance(text, str) for text in texts):
        raise Unreadable("a text block of the reply has no text", usage)
    return "".join(map(str, texts))


def _has_thinking(content: list[Any]) -> bool:
    blocks = (block for block in content if isinstance(block, Mapping))
    return any(block.get("type") in ("thinking", "redacted_thinking") for block in blocks)


def read_usage(body: object) -> Usage | None:
    """Return the tokens that *body* reports; None if it reports none, or no input, because no prompt is empty.

    The API counts cached input apart from ``input_tokens``; the input of :class:`dicast.Usage` is all of it.
    """
    if not isinstance(body, Mapping) or not isinstance(usage := body.get("usage"), Mapping):
        return None
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    fresh, written, cached, stored = (_count(usage.get(name)) for name in names)
    if fresh is None or written is None:
        return None
    details = usage.get("output_tokens_details")
    thought = _count(details.get("thinking_tokens")) if isinstance(details, Mapping) else None
    total = fresh + (cached or 0) + (stored or 0)
    return Usage(total, written, cached or 0, stored or 0, min(thought or 0, written)) if total else None


def _count(value: object) -> int | None:
    """Return a number of tokens; a truth value is an int to Python, and some gateways write 12.0. None for a number that no request takes."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST_TOKENS:
        return None
    return int(value) if value == int(value) else None
