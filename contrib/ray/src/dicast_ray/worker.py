"""Code that runs on the machines of the cluster."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from dicast import DicastError, build

REPORT_SECONDS = 1.0
"""Seconds between two reports of a task."""


class Board:
    """Numbers of judged subjects, by shard."""

    def __init__(self) -> None:
        self._judged: dict[int, int] = {}

    def note(self, shard: int, subjects: int) -> None:
        """Note the number of judged *subjects* of *shard*."""
        self._judged[shard] = subjects

    def counts(self) -> dict[int, int]:
        """Return the numbers of all shards."""
        return self._judged


def judge(spec: Mapping[str, Any], reference: Mapping[str, Any], board: Any, workers: int) -> dict[str, Any]:
    """Judge the shard of *reference*, and return its segment, or ``{"error": TEXT}`` for a fault that a second try would repeat.

    :param board: the handle of the :class:`Board`.
    :param workers: the largest number of tasks at the same time.
    """
    next_report = time.monotonic() + REPORT_SECONDS

    def report(subjects: int) -> None:
        nonlocal next_report
        if time.monotonic() >= next_report:
            next_report = time.monotonic() + REPORT_SECONDS
            board.note.remote(reference["number"], subjects)

    try:
        return build(spec).judge(reference, report, workers)
    except DicastError as error:
        return {"error": str(error)}
