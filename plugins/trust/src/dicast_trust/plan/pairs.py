"""Differences of a run's scores from those of its baseline, for how many pairs a comparison needs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs

from dicast import ConfigError, Ledger, results

from ..statistics.moments import Moments
from ..stopping.anytime import Earlier as EarlierScores
from .rows import PlanRows


@attrs.frozen
class Pairs:
    """*differences* of paired scores; *discordant* is the share of pairs that differ, None where scores are more than 0 and 1."""

    differences: Moments
    discordant: float | None


def paired(ledger: Ledger, baseline: Mapping[str, Any] | None, rows: PlanRows, label: str | None) -> Pairs | None:
    """The pairs of *rows* with the run of *baseline*; None where there is none."""
    if not baseline or not baseline.get("run_id") or label is None:
        return None
    try:
        before = EarlierScores(label, results(ledger, str(baseline["run_id"])))
    except ConfigError:
        return None  # it is no longer there
    differences, apart, is_binary = Moments(), 0, True
    for kind, subject_id, score in rows.scores():
        other = before.score(kind, subject_id)
        if other is not None:
            differences.add(score - other)
            apart += score != other
            is_binary = is_binary and {score, other} <= {0.0, 1.0}
    before.close()
    share = apart / differences.count if is_binary and differences.count else None
    return Pairs(differences, share)
