"""Whether a judge changes: labeled subjects that it judged again, in later runs."""

from __future__ import annotations

from collections.abc import Collection
from math import exp, inf, log
from typing import Any

from ..statistics.e_process import ln_above
from .recorded import Recorded, Subject

ALPHA = 0.05
"""How often a judge that does not change is said to."""


def drift(
    recorded: Recorded, anchors: Collection[Subject], pass_at: float, consistency: float | None
) -> tuple[dict[str, Any], dict[str, str]]:
    """How often *anchors*, judged again, got another verdict, and the evidence that this is more often than from one moment to the next.

    It is an e-process against a rate of changes of 1 less the lower bound of self-*consistency*, which may be looked at after every verdict; it is ``crossed`` where it
    once reached 1 over :data:`ALPHA`. ``at`` is that rate.
    """
    again = sorted(
        (one.seq, (one.score >= pass_at) != (first.score >= pass_at))
        for subject in anchors
        for first, *rest in [[one for one in recorded.said[subject] if not one.preview]]
        for one in rest
        if recorded.is_same_output(first, one)
    )
    changes = [changed for _, changed in again]
    found: dict[str, Any] = {
        "n": len(changes),
        "changed": sum(changes),
        "value": None,
        "e_value": None,
        "crossed": None,
    }
    found["at"] = None if consistency is None else 1 - consistency
    if not changes:
        return found | {"crossed": False}, {}
    found["value"] = sum(changes) / len(changes)
    if consistency is not None and consistency <= 0:
        return found, {"drift": "the lower bound of self-consistency is 0, so that any number of changes is usual"}
    if consistency is None:
        return found, {"drift": "without self-consistency it is not known how many changes are usual"}
    best, last, changed = -inf, 0.0, 0
    for n, change in enumerate(changes, 1):
        changed += change
        last = float(ln_above(changed, n, 1 - consistency))
        best = max(best, last)
    return found | {"e_value": exp(min(last, 700.0)), "crossed": best >= log(1 / ALPHA)}, {}
