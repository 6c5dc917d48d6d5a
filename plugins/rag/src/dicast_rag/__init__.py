"""Judges of answers that were made from retrieved documents."""

from __future__ import annotations

from dicast import Judge, hookimpl

from .judges import answer_relevance, context_precision, context_recall, faithfulness, noise_sensitivity

__all__ = ["answer_relevance", "context_precision", "context_recall", "faithfulness", "noise_sensitivity"]


@hookimpl
def dicast_judges() -> list[type[Judge]]:
    """Offer the five."""
    return [answer_relevance, context_precision, context_recall, faithfulness, noise_sensitivity]
