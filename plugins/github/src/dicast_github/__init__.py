"""Results of a run in CI: GitHub's job summary and annotations, GitLab's sections and test report."""

from __future__ import annotations

from dicast import Sink, hookimpl

from .documents import Documents
from .summary import Summary

__all__ = ["Documents", "Summary"]


@hookimpl
def dicast_sinks() -> list[type[Sink]]:
    """Return the sinks of the job summary and of the runs' documents."""
    return [Summary, Documents]
