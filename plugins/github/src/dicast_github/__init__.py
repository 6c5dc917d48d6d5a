"""Results of a run where CI runs it: GitHub's job summary and annotations, GitLab's sections and test report."""

from __future__ import annotations

from dicast import hookimpl

from .summary import Summary

__all__ = ["Summary"]


@hookimpl
def dicast_sinks() -> list[type[Summary]]:
    """Offer the job summary."""
    return [Summary]
