"""Reading what an endpoint answered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from dicast import Reply, Token, Usage, normalize_stop_reason
from dicast.toolkit.endpoint import Answer
from dicast.toolkit.endpoint.answers import complaint


class Unreadable(Exception):
    """The answer is no chat completion; *usage* is what it says of the tokens, if it does."""

    def __init__(self, message: str, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.usage = usage


def read_reply(answer: Answer) -> Reply:
    """Return the reply in *answer*, without its cost.

    :raises Unreadable: if it is no chat completion.
    """
    body = _completion(answer)
    choice, usage = body["choices"][0], _usage(body)
    text, refused = _text(choice["message"].get("content")), choice["message"].get("refusal")
    if text is None:
        raise Unreadable("the reply's content is no text", usage)
    reason, model = choice.get("finish_reason"), body.get("model")
    reason = reason if isinstance(reason, str) else None
    return Reply(
        text or (refused if isinstance(refused, str) else ""),
        model=model if isinstance(model, str) else None,
        stop_reason="refusal" if refused else normalize_stop_reason(reason),
        finish_reason=reason,
        usage=usage,
        logprobs=_tokens(choice.get("logprobs")),
    )


def _completion(answer: Answer) -> Mapping[str, Any]:
    content_type = answer.headers.get("Content-Type", "application/json")
    if "json" not in content_type:
        raise Unreadable(f"the reply is {content_type}, not JSON")
    try:
        body = orjson.loads(answer.data)
    except orjson.JSONDecodeError as error:
        raise Unreadable(f"the reply is no valid JSON: {error}") from error
    match body:
        case {"choices": [{"message": {}}, *_]}:
            return body  # type: ignore[no-any-return]  # a mapping, by the pattern
        case {"error": _}:
            raise Unreadable(f"the reply has no choices but an error: {complaint(body).message}", _usage(body))
    raise Unreadable("the reply has no choices", _usage(body))


def _text(content: object) -> str | None:
    """The text of a message's content, which is text or a list of parts; None when it is neither."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        return None
    parts = [part for part in content if isinstance(part, dict) and part.get("type") == "text"]
    return "".join(str(part.get("text") or "") for part in parts)


def _usage(body: object) -> Usage | None:
    """The tokens that were counted; None where they were not, which some endpoints say by a zero: no prompt is empty."""
    match body:
        case {"usage": {"prompt_tokens": int(read), "completion_tokens": int(written)}}:
            counted = type(read) is int is type(written)  # and no truth value, which is an int to Python
            return Usage(read, written) if counted and read > 0 and written >= 0 else None
    return None


def _tokens(logprobs: object) -> tuple[Token, ...] | None:
    if not isinstance(logprobs, Mapping) or not isinstance(content := logprobs.get("content"), Sequence):
        return None
    try:
        return tuple(Token(str(one["token"]), float(one["logprob"])) for one in content)
    except (KeyError, TypeError, ValueError):
        return None
