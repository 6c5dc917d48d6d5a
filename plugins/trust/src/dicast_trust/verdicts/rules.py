"""Goal of a calibration, and the rule by which a verdict and a label disagree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import attrs

Agree = Literal["pass", "within", "winner"]
Signals = Literal["auto", "confidence", "model"]

NOISE = 1e-9
"""Rounding error in a difference of two scores."""

_HALF = 0.5


@attrs.frozen
class Rules:
    """Options of a calibration.

    *assume_random* accepts the labels as a random draw even if the check rejects them.
    """

    target: float = 0.9
    alpha: float = 0.1
    agree: Agree = "pass"
    window: float = 0.15
    signals: Signals = "auto"
    sequential: bool = False
    seed: int = 0
    features: Sequence[str] = ()
    pass_at: float = _HALF
    assume_random: bool = False

    @property
    def risk(self) -> float:
        """Greatest allowed error rate of kept verdicts."""
        return 1 - self.target

    def is_wrong(self, score: float, gold: float) -> bool:
        """Return whether a verdict's *score* and a label disagree."""
        if self.agree == "within":
            return abs(score - gold) > self.window + NOISE
        return self.label_class(score) != self.label_class(gold)

    def label_class(self, score: float) -> float:
        """Return the class of a score: the winner, the score itself under ``within``, else 1 for a pass and 0 for a failure."""
        if self.agree == "within":
            return score
        return _winner(score) if self.agree == "winner" else float(score >= self.pass_at)


def _winner(score: float) -> float:
    return _HALF if score == _HALF else float(score > _HALF)
