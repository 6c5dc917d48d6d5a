"""What a calibration is to reach, and when a verdict and a label disagree."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import attrs

Agree = Literal["pass", "within", "winner"]
Signals = Literal["auto", "confidence", "model"]

NOISE = 1e-9
"""What arithmetic adds to a difference of two scores."""

_HALF = 0.5


@attrs.frozen
class Rules:
    """What a calibration is to reach, and how: the options of the command."""

    target: float = 0.9
    alpha: float = 0.1
    agree: Agree = "pass"
    window: float = 0.15
    signals: Signals = "auto"
    sequential: bool = False
    seed: int = 0
    features: Sequence[str] = ()
    pass_at: float = _HALF

    @property
    def risk(self) -> float:
        """How often a kept verdict may be wrong."""
        return 1 - self.target

    def wrong(self, score: float, gold: float) -> bool:
        """Whether a verdict's *score* and a label disagree."""
        if self.agree == "within":
            return abs(score - gold) > self.window + NOISE
        if self.agree == "winner":
            return _winner(score) != _winner(gold)
        return (score >= self.pass_at) != (gold >= self.pass_at)


def _winner(score: float) -> float:
    return _HALF if score == _HALF else float(score > _HALF)
