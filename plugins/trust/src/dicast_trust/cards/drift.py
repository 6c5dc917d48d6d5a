"""Drift of a judge: changed verdicts on labeled subjects that later runs judged again."""

from __future__ import annotations

from collections.abc import Collection
from math import exp, inf, log
from typing import Any

from ..statistics.e_process import ln_above
from .history import JudgeHistory, Subject

ALPHA = 0.05
"""Accepted probability of reporting a drift of a judge that does not change."""


def drift(
    history: JudgeHistory, anchors: Collection[Subject], pass_at: float, consistency: float | None
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return how often *anchors*, judged again, got another verdict, and the evidence that this exceeds the judge's inconsistency.

    The expected rate of changes, ``at``, is 1 minus the lower bound of self-*consistency*. The evidence against this rate is an e-process, valid after every
    verdict. ``crossed`` is true once the evidence has reached ``1 / ALPHA``.
    """
    repeats = sorted(
        (verdict.seq, (verdict.score >= pass_at) != (first.score >= pass_at))
        for subject in anchors
        for first, *rest in [[verdict for verdict in history.verdicts[subject] if not verdict.is_preview]]
        for verdict in rest
        if history.is_same_output(first, verdict)
    )
    changes = [changed for _, changed in repeats]
    figures: dict[str, Any] = {
        "n": len(changes),
        "changed": sum(changes),
        "value": None,
        "e_value": None,
        "crossed": None,
    }
    figures["at"] = None if consistency is None else 1 - consistency
    if not changes:
        return figures | {"crossed": False}, {}
    figures["value"] = sum(changes) / len(changes)
    if consistency is not None and consistency <= 0:
        return figures, {"drift": "the lower bound of self-consistency is 0, so any number of changes is expected"}
    if consistency is None:
        return figures, {"drift": "without self-consistency the expected number of changes is not known"}
    best, last, changed = -inf, 0.0, 0
    for n, change in enumerate(changes, 1):
        changed += change
        last = float(ln_above(changed, n, 1 - consistency))
        best = max(best, last)
    return figures | {"e_value": exp(min(last, 700.0)), "crossed": best >= log(1 / ALPHA)}, {}
