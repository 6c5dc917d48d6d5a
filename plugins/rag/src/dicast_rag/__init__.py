"""Judges of answers that a model based on retrieved documents."""

from __future__ import annotations

from dicast import Judge, hookimpl

from .judges import answer_relevance, context_precision, context_recall, faithfulness, noise_sensitivity

__all__ = ["answer_relevance", "context_precision", "context_recall", "faithfulness", "noise_sensitivity"]


@hookimpl
def dicast_judges() -> list[type[Judge]]:
    """Return the five judges."""
    return [answer_relevance, context_precision, context_recall, faithfulness, noise_sensitivity]
