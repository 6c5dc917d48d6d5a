"""The reply in the answer of an endpoint."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from dicast import Reply, Token, Usage, normalize_stop_reason
from dicast.toolkit.endpoint import Answer
from dicast.toolkit.endpoint.answers import complaint, json_bytes

from .streams import read_stream
from .usage import read_usage


class Unreadable(Exception):
    """An answer that is not a chat completion.

    :param usage: the tokens that it reports, if it does.
    :param is_free: whether the answer is an error that was not billed.
    """

    def __init__(self, message: str, usage: Usage | None = None, *, is_free: bool = False) -> None:
        super().__init__(message)
        self.usage, self.is_free = usage, is_free


class ErrorInside(Unreadable):
    """An error in an answer with status 200.

    :param answer: the error with its own status, for the rules of refused requests; None if it has none.
    """

    def __init__(self, message: str, usage: Usage | None, answer: Answer | None) -> None:
        super().__init__(message, usage, is_free=usage is None)
        self.answer = answer


def read_body(answer: Answer) -> Mapping[str, Any]:
    """Return the completion in *answer*.

    :raises Unreadable: if it is no chat completion.
    """
    content_type = answer.headers.get("Content-Type", "application/json")
    body: Any
    try:
        if "event-stream" in content_type:
            body = read_stream(answer.data)
        elif "json" in content_type:
            body = orjson.loads(answer.data)
        else:
            raise Unreadable(f"the reply is {content_type}, not JSON")
    except orjson.JSONDecodeError as error:
        raise Unreadable(f"the reply is not valid JSON: {error}") from error
    match body:
        case {"choices": [{"error": {} as error}, *_]} if error:
            raise _error_inside(answer, {"error": error}, read_usage(body))
        case {"choices": [{"message": {}}, *_]}:
            return body  # type: ignore[no-any-return]  # a mapping, by the pattern
        case {"error": error} if error:
            raise _error_inside(answer, body, read_usage(body))
    raise Unreadable("the reply has no choices", read_usage(body))


def _error_inside(answer: Answer, body: Mapping[str, Any], usage: Usage | None) -> ErrorInside:
    message = f"the reply has no choices but an error: {complaint(body).message}"
    error = body["error"]
    code = error.get("code") if isinstance(error, Mapping) else None
    status = int(code) if isinstance(code, int | str) and re.fullmatch(r"[0-9]{3}", str(code)) else 0
    has_status = 400 <= status < 600
    inside = Answer(status, answer.headers, json_bytes(body)) if has_status else None
    return ErrorInside(message, usage, inside)


def read_reply(body: Mapping[str, Any]) -> Reply:
    """Return the reply in the completion *body*, without its cost.

    :raises Unreadable: if its content is no text.
    """
    choice, usage = body["choices"][0], read_usage(body)
    message = choice["message"]
    text = _text(message.get("content") or _arguments(message))
    if text is None:
        raise Unreadable("the reply's content is not text", usage)
    reason, model, refused = choice.get("finish_reason"), body.get("model"), message.get("refusal")
    raw = reason if isinstance(reason, str) else None
    return Reply(
        text or (refused if isinstance(refused, str) else ""),
        model=model if isinstance(model, str) else None,
        stop_reason="refusal" if refused else normalize_stop_reason(raw),
        usage=usage,
        logprobs=_tokens(choice.get("logprobs")),
        finish_reason=raw,
    )


def shows_reasoning(body: Mapping[str, Any], usage: Usage | None) -> bool:
    """Return whether the model of the completion *body* reasons before it answers."""
    message = body["choices"][0]["message"]
    texts = (message.get("reasoning_content"), message.get("reasoning"))
    return bool(usage and usage.reasoning_tokens) or any(isinstance(text, str) and text for text in texts)


def _arguments(message: Mapping[str, Any]) -> str | None:
    """Return the arguments of the only call in a message without text; None without such a call. Gateways send a schema to some models as a tool."""
    match message.get("tool_calls"):
        case [{"function": {"arguments": str(arguments)}}]:
            return arguments
    return None


def _text(content: object) -> str | None:
    """Return the text of a message's content, which is text or a list of parts; None if it is neither."""
    if content is None or isinstance(content, str):
        return content or ""
    if not isinstance(content, list):
        return None
    parts = [part for part in content if isinstance(part, dict) and part.get("type") in ("text", "output_text")]
    return "".join(str(part.get("text") or "") for part in parts)


def _tokens(logprobs: Any) -> tuple[Token, ...] | None:
    try:
        match logprobs:
            case {"content": [*items]}:
                return tuple(
                    Token(str(item["token"]), float(item["logprob"]), _top(item.get("top_logprobs"))) for item in items
                )
            case {"tokens": [*tokens], "token_logprobs": [*values]}:  # the older form, of Together and Fireworks
                tops = logprobs.get("top_logprobs") or [None] * len(tokens)
                rows = zip(tokens, values, tops, strict=True)
                return tuple(Token(str(token), float(value), _top(top)) for token, value, top in rows)
    except (KeyError, TypeError, ValueError):
        return None
    return None


def _top(items: object) -> tuple[Token, ...]:
    if isinstance(items, Mapping):
        return tuple(Token(str(token), float(value)) for token, value in items.items())
    if not isinstance(items, Sequence):
        return ()
    return tuple(Token(str(item["token"]), float(item["logprob"])) for item in items)
