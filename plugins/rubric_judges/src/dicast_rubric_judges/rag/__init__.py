"""The plugin ``rag``: judges of answers that a model based on retrieved documents."""

from __future__ import annotations

from dicast import Judge, hookimpl

from .judges import answer_relevance, context_precision, context_recall, faithfulness, noise_sensitivity

__all__ = ["answer_relevance", "context_precision", "context_recall", "faithfulness", "noise_sensitivity"]

former_distribution = "dicast-rag"
"""Keeps the fingerprints of the time before :mod:`dicast_rubric_judges`."""


@hookimpl
def dicast_judges() -> list[type[Judge]]:
    """Return the five judges."""
    return [answer_relevance, context_precision, context_recall, faithfulness, noise_sensitivity]
