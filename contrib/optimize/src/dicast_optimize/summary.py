"""Figures that summarize a search, and its test for a standstill."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_FAILURE_WORDS = ("error", "fail", "timeout", "invalid", "exception")
_ALMOST = 1e-12


def standstill(history: Sequence[float], window: int, threshold: float) -> bool:
    """Return whether the best score rose by at most *threshold* over the last *window* steps; *history* has the best score of each step."""
    if len(history) <= window:
        return False
    return max(history[-window:]) - history[-window - 1] <= threshold


def suggested_budget(text: str) -> int:
    """Return a number of evaluations that is reasonable for a text of this length."""
    steps = ((100, 50), (500, 100), (2000, 200))
    return next((budget for length, budget in steps if len(text) < length), 300)


def score_summary(scores: Sequence[float]) -> dict[str, Any]:
    """Return the first, latest and best of the candidates' *scores*, and the differences."""
    initial, latest, best = (scores[0], scores[-1], max(scores)) if scores else (None, None, None)
    return {
        "initial": initial,
        "latest": latest,
        "best": best,
        "delta_latest_vs_initial": _delta(latest, initial),
        "delta_best_vs_initial": _delta(best, initial),
        "num_candidates": len(scores),
    }


def top_diagnostics(subscores: Mapping[str, float], best: float | None) -> list[dict[str, Any]]:
    """Return the three highest subscores of the best candidate, or its score if it has no subscores."""
    highest = sorted(subscores.items(), key=lambda item: -item[1])[:3]
    if not highest and best is not None:
        highest = [("overall_score", best)]
    return [{"name": name, "value": value} for name, value in highest]


def flattened(scores: Sequence[float]) -> bool:
    """Return whether the candidates' *scores* have reached a plateau."""
    recent = scores[-5:]
    return len(scores) >= 3 and max(recent) - min(recent) < 0.01 and scores[-1] - scores[0] < 0.02


def failure_signal(
    subscores: Sequence[Mapping[str, float]], scores: Sequence[float], failures: Mapping[str, Any] | None = None
) -> dict[str, Any] | None:
    """Return a sign that the evaluator may be broken: failed evaluations, subscores with names such as ``error``, or only zeros.

    *failures* comes from :meth:`~.evaluation.Evaluations.document`.
    """
    if failures is not None and failures["failed"]:
        return {"kind": "failed_evaluations", **failures}
    active = _failing(subscores)
    if active:
        return {"kind": "failure_diagnostic_metrics", "metrics": active[:3]}
    if len(scores) >= 3 and all(abs(score) < _ALMOST for score in scores):
        return {"kind": "repeated_zero_scores", "num_candidates": len(scores)}
    return None


def _failing(subscores: Sequence[Mapping[str, float]]) -> list[dict[str, Any]]:
    last = subscores[-1] if subscores else {}
    names = {name for scores in subscores for name in scores if any(word in name.lower() for word in _FAILURE_WORDS)}
    highest = {name: max(scores[name] for scores in subscores if name in scores) for name in names}
    failing = [
        {"name": name, "latest": round(last.get(name, 0.0), 6), "max": round(value, 6)}
        for name, value in highest.items()
        if value > 0
    ]
    return sorted(failing, key=lambda item: (-item["max"], item["name"]))


def efficiency(candidates: int, calls: int) -> float:
    """Return the number of candidates per call."""
    return round(candidates / max(calls, 1), 4)


def _delta(new: float | None, old: float | None) -> float | None:
    return None if new is None or old is None else round(new - old, 6)
