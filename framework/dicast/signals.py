"""For judges and commands that weigh verdicts: what a verdict says of how far it can be trusted, as numbers.

They are the same when a model is learnt from labels and when it is applied to a verdict that is being made.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import attrs
import orjson

from ._kernel.values.rationale import LEDGER, RATIONALE, SCOPE

__all__ = [
    "FEATURES",
    "TextLengths",
    "TrustModel",
    "feature_values",
    "known_features",
    "shared_signals",
    "signal_numbers",
]

CONFIDENCE, VOTES, ORDERS = "confidence", "vote_share", "order_consistency"
OUTPUT, INPUT, PAIR = "log_output_length", "log_input_length", "log_length_ratio"
FEATURES = (CONFIDENCE, VOTES, ORDERS, OUTPUT, INPUT, PAIR)
"""The features that verdicts have of themselves; the others are signals by name."""

_HALF = 0.5


def shared_signals(signals: Mapping[str, Any]) -> dict[str, Any]:
    """Return *signals* for a reader outside of the ledger: without a rationale that is for the ledger alone (``capture_rationale: auto``)."""
    left_out = (SCOPE, RATIONALE) if signals.get(SCOPE) == LEDGER else (SCOPE,)
    return {name: value for name, value in signals.items() if name not in left_out}


def signal_numbers(score: float, signals: Mapping[str, Any]) -> dict[str, float]:
    """The numbers among a verdict's *signals*, truth values as 0 and 1; of a jury also ``vote_share``, of a pair ``order_consistency``.

    ``vote_share`` is the share of the jurors who answered that are on the same side of 0.5 as the *score*.
    """
    found = {name: float(value) for name, value in signals.items() if isinstance(value, int | float)}
    votes = signals.get("votes")
    said = [one["score"] for one in votes if "score" in one] if isinstance(votes, list | tuple) else []
    if said:
        found[VOTES] = sum((vote >= _HALF) == (score >= _HALF) for vote in said) / len(said)
    if isinstance(flipped := signals.get("flipped"), bool):
        found[ORDERS] = float(not flipped)
    return {name: value for name, value in found.items() if math.isfinite(value)}


@attrs.frozen
class TextLengths:
    """How long, in characters, the texts are that were judged. *output* and *reference* are None where there is none."""

    output: int | None
    input: int
    reference: int | None

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> TextLengths:
        """Those of ``{input, output, reference}``."""
        return cls(
            _length(content.get("output")), _length(content.get("input")) or 0, _length(content.get("reference"))
        )


@attrs.frozen
class TrustModel:
    """How probable it is that a verdict agrees with people: a logistic regression on its *features*.

    *means* and *scales* standardise the features; *weights* and *intercept* are those of the standardised ones.
    """

    features: Sequence[str]
    means: Sequence[float]
    scales: Sequence[float]
    weights: Sequence[float]
    intercept: float

    def probability(self, values: Sequence[float]) -> float:
        """The probability for a verdict with these *values* of the features, in (0, 1)."""
        terms = zip(self.weights, values, self.means, self.scales, strict=True)
        z = self.intercept + math.fsum(weight * (value - mean) / scale for weight, value, mean, scale in terms)
        return 1 / (1 + math.exp(-z)) if z >= 0 else math.exp(z) / (1 + math.exp(z))


def known_features(
    score: float, confidence: float, numbers: Mapping[str, float], text: TextLengths | None
) -> dict[str, float]:
    """All features of a verdict, whose signals hold *numbers*, by name.

    Lengths are in characters, as the logarithm of one more; that of a pair is the winner's over the loser's, 0 for a tie.
    """
    known = {**numbers, CONFIDENCE: confidence}
    if text is None:
        return known
    known[INPUT] = math.log1p(text.input)
    if text.output is not None:
        known[OUTPUT] = math.log1p(text.output)
        if text.reference is not None and ORDERS in numbers:
            ratio = math.log1p(text.output) - math.log1p(text.reference)
            known[PAIR] = 0.0 if score == _HALF else ratio if score > _HALF else -ratio
    return known


def feature_values(
    names: Sequence[str], score: float, confidence: float, numbers: Mapping[str, float], text: TextLengths | None
) -> list[float] | None:
    """The values of the features *names* of a verdict, as :func:`known_features` has them; None where one of them is missing."""
    known = known_features(score, confidence, numbers, text)
    return [known[name] for name in names] if known.keys() >= set(names) else None


def _length(value: object) -> int | None:
    if isinstance(value, str):
        return len(value)
    return None if value is None else len(orjson.dumps(value).decode())
