"""The tokens and the cost that an endpoint reports."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from dicast import Usage

_COST_HEADER = "x-litellm-response-cost"
_MOST_TOKENS = 10**12


def read_usage(body: object) -> Usage | None:
    """Return the tokens that the completion *body* reports; None if it reports none.

    Some endpoints report zero for tokens that they did not count: as no prompt is empty, a prompt of 0 tokens is unknown. Some report reasoning
    outside of ``completion_tokens``: output is at least the total minus the prompt.
    """
    usage = body.get("usage") if isinstance(body, Mapping) else None
    if not isinstance(usage, Mapping):
        return None
    read, written = _count(usage.get("prompt_tokens")), _count(usage.get("completion_tokens"))
    if not read or written is None:
        return None
    total = _count(usage.get("total_tokens")) or 0
    inside, outside = _details(usage, "prompt_tokens_details"), _details(usage, "completion_tokens_details")
    cached = _first(
        inside.get("cached_tokens"),
        *map(usage.get, ("prompt_cache_hit_tokens", "cached_tokens", "cache_read_input_tokens")),
    )
    stored = _first(
        inside.get("cache_write_tokens"), inside.get("cache_creation_tokens"), usage.get("cache_creation_input_tokens")
    )
    if cached + stored > read:  # not part of the prompt, or wrong: the full price applies
        cached = stored = 0
    reasoning = _first(outside.get("reasoning_tokens"), usage.get("reasoning_tokens"))
    return Usage(read, max(written, total - read), cached, stored, reasoning)


def reported_cost(body: Mapping[str, Any], headers: Mapping[str, str]) -> Decimal:
    """Return the cost in usd that the completion *body* or a gateway's header reports; 0 if neither does."""
    usage = body.get("usage")
    amount = usage.get("cost") if isinstance(usage, Mapping) else None
    try:
        cost = Decimal(str(amount if isinstance(amount, int | float) else headers.get(_COST_HEADER, "0")))
    except InvalidOperation:
        return Decimal(0)
    return cost if cost.is_finite() and cost > 0 else Decimal(0)


def _count(value: object) -> int | None:
    """Return *value* as a count, which some endpoints write as ``1000.0``; None for any other value, or for an impossibly large count."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _MOST_TOKENS:
        return None
    return int(value) if float(value).is_integer() else None


def _first(*values: object) -> int:
    """Return the first of *values* that is a count above 0, else 0."""
    return next((count for count in map(_count, values) if count), 0)


def _details(usage: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    details = usage.get(name)
    return details if isinstance(details, Mapping) else {}
