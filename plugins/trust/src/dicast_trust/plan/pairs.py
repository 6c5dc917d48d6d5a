"""Paired differences of a run's scores from its baseline's, for the number of pairs that a comparison needs."""

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
    """Paired *differences* of scores; *discordant* is the share of pairs that differ, None unless all scores are 0 or 1."""

    differences: Moments
    discordant: float | None


def paired(ledger: Ledger, baseline: Mapping[str, Any] | None, rows: PlanRows, label: str | None) -> Pairs | None:
    """Return the pairs of *rows* with the run of *baseline*, or None without a baseline."""
    if not baseline or not baseline.get("run_id") or label is None:
        return None
    try:
        earlier = EarlierScores(label, results(ledger, str(baseline["run_id"])))
    except ConfigError:
        return None  # the run is no longer in the ledger
    differences, discordant, is_binary = Moments(), 0, True
    for kind, subject_id, score in rows.scores():
        earlier_score = earlier.score(kind, subject_id)
        if earlier_score is not None:
            differences.add(score - earlier_score)
            discordant += score != earlier_score
            is_binary = is_binary and {score, earlier_score} <= {0.0, 1.0}
    earlier.close()
    share = discordant / differences.count if is_binary and differences.count else None
    return Pairs(differences, share)
