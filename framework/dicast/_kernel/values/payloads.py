"""Values in the payload of ``eval.completed``, in [0, 1] or on a scale of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_LISTS = (list, tuple)


def value_of(verdict: Mapping[str, Any]) -> float | None:
    """Return the score of the verdict, or its raw value; None if the proxies held a raw label's subject back."""
    score: float | None = verdict["score"]
    return verdict.get("raw") if score is None else score


def metric_values(verdict: Mapping[str, Any]) -> dict[str, float]:
    """Return the value of each metric in the combined verdict, by label, raw values among them."""
    signals = verdict.get("signals") or {}
    return {**(signals.get("metrics") or {}), **(signals.get("raw") or {})}


def evidence_of(signals: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the evidence of a verdict; if its own signals have none, the evidence of each judge that the signals list."""
    evidence = signals.get("evidence")
    if evidence is not None and isinstance(evidence, Mapping):
        return [evidence]
    listed = [value for value in signals.values() if isinstance(value, _LISTS)]
    items = [item for value in listed for item in value if isinstance(item, Mapping)]
    return [item["evidence"] for item in items if isinstance(item.get("evidence"), Mapping)]
