"""Scores an agent's steps by what came of them, and keeps that as labels to train on."""

from __future__ import annotations

from dicast import Metric, Source, hookimpl

from .examples import LabelFile
from .labels import Labels
from .score import StepScore

__all__ = ["LabelFile", "Labels", "StepScore"]


@hookimpl
def dicast_metrics() -> list[type[Metric]]:
    """Offer the step score."""
    return [StepScore]


@hookimpl
def dicast_sources() -> list[type[Source]]:
    """Offer the reader of labels."""
    return [LabelFile]


@hookimpl
def dicast_sinks() -> list[type[Labels]]:
    """Offer the writer of labels."""
    return [Labels]
