"""Reading what litellm made of a provider's answer."""

from __future__ import annotations

from typing import Any

import attrs

from dicast import Reply, Token, Usage, normalize_stop_reason


@attrs.frozen
class Counted:
    """The tokens of a completion: *cache_read* and *cache_written* of the input came from a prompt cache or went there."""

    usage: Usage
    cache_read: int
    cache_written: int


def counted(completion: Any) -> Counted | None:
    """What the provider counted; None where it did not, which litellm shows as zeros."""
    usage: Any = getattr(completion, "usage", None)
    tokens = getattr(usage, "prompt_tokens", None)
    if not tokens or isinstance(tokens, bool):
        return None
    details = getattr(usage, "prompt_tokens_details", None)
    return Counted(
        Usage(tokens, usage.completion_tokens or 0),
        getattr(details, "cached_tokens", None) or 0,
        getattr(details, "cache_creation_tokens", None) or 0,
    )


def read(completion: Any) -> Reply | None:
    """The reply without its usage and cost; None where there is none."""
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
    return None if content is None else tuple(Token(one.token, float(one.logprob)) for one in content)
