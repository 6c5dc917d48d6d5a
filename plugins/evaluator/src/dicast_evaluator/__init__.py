"""Scores with evaluators in any language, and serves a pipeline as an evaluator."""

from __future__ import annotations

from dicast import Metric, hookimpl

from .command import Command
from .http import Http
from .metric_lines import MetricLinesEvaluator
from .worker import Worker

__all__ = ["Command", "Http", "MetricLinesEvaluator", "Worker"]


@hookimpl
def dicast_metrics() -> list[type[Metric]]:
    """Offer the evaluators that are programs and services."""
    return [Command, Http, MetricLinesEvaluator, Worker]
