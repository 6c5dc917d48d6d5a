"""Metrics whose feedback names the necessary change: retrieval, text similarity, classification, code pipelines, several objectives."""

from __future__ import annotations

from dicast import Metric, hookimpl

from .classification import Classification
from .code_pipeline import CodePipeline
from .multi_objective import MultiObjective
from .retrieval import Retrieval
from .string_similarity import StringSimilarity

__all__ = ["Classification", "CodePipeline", "MultiObjective", "Retrieval", "StringSimilarity"]


@hookimpl
def dicast_metrics() -> list[type[Metric]]:
    """Offer the five metrics."""
    return [Retrieval, StringSimilarity, Classification, MultiObjective, CodePipeline]
