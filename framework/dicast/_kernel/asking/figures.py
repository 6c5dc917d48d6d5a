"""Figures of requests: tokens and cost, by the names in a record's metrics."""

from __future__ import annotations

from collections.abc import Mapping

from ..values import Reply

FIGURES = ("prompt_tokens", "completion_tokens", "cost")
"""Figures of a request that count for a failed row."""


def response_figures(response: object) -> Mapping[str, object]:
    """Return the figures in *response*; empty if it has no metrics."""
    metrics = response.get("metrics") if isinstance(response, Mapping) else None
    if not isinstance(metrics, Mapping):
        return {}
    return {name: value for name in FIGURES if (value := metrics.get(name)) is not None}


def reply_figures(reply: Reply) -> dict[str, float]:
    """Return the tokens and the cost in usd of *reply*, by the names in a record's metrics."""
    figures: dict[str, float] = {}
    if reply.usage is not None:
        figures = {"prompt_tokens": reply.usage.input_tokens, "completion_tokens": reply.usage.output_tokens}
    if reply.cost.unit == "usd" and reply.cost.amount is not None:
        figures["cost"] = float(reply.cost.amount)
    return figures
