"""Scores of an agent's tool calls by their outcome, and training labels of these outcomes."""

from __future__ import annotations

from dicast import Metric, Source, hookimpl

from .examples import LabelFile
from .labels import Labels
from .score import StepScore

__all__ = ["LabelFile", "Labels", "StepScore"]


@hookimpl
def dicast_metrics() -> list[type[Metric]]:
    """Return the step score."""
    return [StepScore]


@hookimpl
def dicast_sources() -> list[type[Source]]:
    """Return the reader of labels."""
    return [LabelFile]


@hookimpl
def dicast_sinks() -> list[type[Labels]]:
    """Return the writer of labels."""
    return [Labels]
