"""Runs of benchmark workloads: a source for judging them, and a report of the results."""

from __future__ import annotations

from dicast import Source, hookimpl

from .runs import Runs

__all__ = ["Runs"]


@hookimpl
def dicast_sources() -> list[type[Source]]:
    """Offer ``workload/runs``."""
    return [Runs]
