"""The aggregates of ``dicast-stats`` over records that are in memory, each in a process of its own, and all of them in one."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

from processes import HERE, Figure, run

RECORDS = 1_000_000
NAMES = (
    *("score_stats", "recommendation", "variant_ranking", "cost_summary", "latency_summary", "agreement"),
    *("power", "distribution", "pass_rate", "rationale_analysis", "leaderboard"),
)


def measure(folder: Path, count: int | None) -> Iterator[Figure]:
    """CPU seconds and peak memory, imports of numpy included, of *count* records with five criteria."""
    records = str(count or RECORDS)
    for name in NAMES:
        taken = _own(folder, records, name)
        yield Figure(f"aggregates.{records}.{name}_cpu", taken["cpu"], "s", "<= 3")
        yield Figure(f"aggregates.{records}.{name}_peak", taken["peak"], "MB", "<= 300")
    together = _own(folder, records, *NAMES)
    yield Figure(f"aggregates.{records}.together_cpu", together["cpu"], "s")
    yield Figure(f"aggregates.{records}.together_peak", together["peak"], "MB")


def _own(folder: Path, *what: str) -> dict[str, float]:
    return dict(json.loads(run([sys.executable, HERE / "own_stats.py", *what], folder).output))
