"""Results of a run in CI: GitHub's job summary and annotations, GitLab's sections and test report."""

from __future__ import annotations

from dicast import hookimpl

from .summary import Summary

__all__ = ["Summary"]


@hookimpl
def dicast_sinks() -> list[type[Summary]]:
    """Return the sink of the job summary."""
    return [Summary]
