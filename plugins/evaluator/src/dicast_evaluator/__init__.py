"""Scoring with evaluators in any language, and serving of a pipeline as an evaluator."""

from __future__ import annotations

from dicast import Judge, Metric, hookimpl

from .command import Command
from .http import Http
from .judge import EvaluatorJudge
from .metric_lines import MetricLinesEvaluator
from .rubric import RubricJudge
from .worker import Worker

__all__ = ["Command", "EvaluatorJudge", "Http", "MetricLinesEvaluator", "RubricJudge", "Worker"]


@hookimpl
def dicast_metrics() -> list[type[Metric]]:
    """Offer the evaluators that are programs and services."""
    return [Command, Http, MetricLinesEvaluator, Worker]


@hookimpl
def dicast_judges() -> list[type[Judge]]:
    """Offer the evaluators that ask a model."""
    return [EvaluatorJudge, RubricJudge]
