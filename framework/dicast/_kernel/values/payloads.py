"""Values in the payload of ``eval.completed``, in [0, 1] or on a scale of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def value_of(verdict: Mapping[str, Any]) -> float | None:
    """Return the score of the verdict, or its raw value; None if the proxies held a raw label's subject back."""
    score: float | None = verdict["score"]
    return verdict.get("raw") if score is None else score


def metric_values(verdict: Mapping[str, Any]) -> dict[str, float]:
    """Return the value of each metric in the combined verdict, by label, raw values among them."""
    signals = verdict.get("signals") or {}
    return {**(signals.get("metrics") or {}), **(signals.get("raw") or {})}
