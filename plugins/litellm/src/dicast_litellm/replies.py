"""Reading litellm's objects for a provider's answer."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dicast import Reply, Token, Usage, normalize_stop_reason

_MOST_TOKENS = 10**12


def read_usage(completion: Any) -> Usage | None:
    """Return the tokens that the provider counted; None if it counted none, which litellm shows as zeros.

    Some providers report reasoning outside of ``completion_tokens``: output is at least the total without the prompt.

    :param completion: a ``ModelResponse``, or the JSON value of a response in the OpenAI chat format.
    """
    usage = _member(completion, "usage")
    tokens, written = (_count(_member(usage, name)) for name in ("prompt_tokens", "completion_tokens"))
    if not tokens:
        return None
    inside, outside = _member(usage, "prompt_tokens_details"), _member(usage, "completion_tokens_details")
    cached = _count(_member(inside, "cached_tokens")) or _count(_member(usage, "cache_read_input_tokens"))
    stored = _count(_member(inside, "cache_creation_tokens")) or _count(_member(usage, "cache_creation_input_tokens"))
    if cached + stored > tokens:  # counted apart from the prompt, or wrong: the full price
        cached = stored = 0
    total = _count(_member(usage, "total_tokens"))
    return Usage(tokens, max(written, total - tokens), cached, stored, _count(_member(outside, "reasoning_tokens")))


def _member(value: Any, name: str) -> Any:
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _count(value: object) -> int:
    """Return *value* as a number of tokens, 0 if it is none, or more than any request takes."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    is_count = is_number and 0 < value <= _MOST_TOKENS and value == int(value)  # type: ignore[operator,call-overload]
    return int(value) if is_count else 0  # type: ignore[call-overload]  # a number


def read(completion: Any) -> Reply | None:
    """Return the reply without its usage and cost, or None if there is none."""
    choices = getattr(completion, "choices", None)
    if not choices:
        return None
    choice, message = choices[0], choices[0].message
    text = message.content
    if text is not None and not isinstance(text, str):
        return None
    refused = (getattr(message, "provider_specific_fields", None) or {}).get("refusal")
    reason = _finish_reason(choice)
    return Reply(
        text or (refused if isinstance(refused, str) else ""),
        completion.model,
        "refusal" if refused else normalize_stop_reason(reason),
        finish_reason=reason,
        logprobs=_tokens(getattr(choice, "logprobs", None)),
    )


def _finish_reason(choice: Any) -> str:
    """Return the provider's word for the end of the reply; litellm reports ``stop`` for words that it does not know, errors included."""
    reason: str = choice.finish_reason
    if reason != "stop":
        return reason
    native = (getattr(choice, "provider_specific_fields", None) or {}).get("native_finish_reason") or reason
    return str(native).lower()


def _tokens(logprobs: Any) -> tuple[Token, ...] | None:
    content = getattr(logprobs, "content", None)
    if content is None:
        return None
    return tuple(
        Token(
            item.token,
            float(item.logprob),
            tuple(Token(top.token, float(top.logprob)) for top in item.top_logprobs or ()),
        )
        for item in content
    )
