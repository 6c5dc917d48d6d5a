"""Numbers in verdicts that show how far a verdict can be trusted, for judges and commands that weigh verdicts.

The same numbers are used to train a model from labels and to apply it to a new verdict.
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
"""The features that every kind of verdict may have; other features are signals by name."""

_HALF = 0.5


def shared_signals(signals: Mapping[str, Any]) -> dict[str, Any]:
    """Return *signals* for a reader outside of the ledger: without a rationale meant for the ledger alone (``capture_rationale: auto``)."""
    hidden = (SCOPE, RATIONALE) if signals.get(SCOPE) == LEDGER else (SCOPE,)
    return {name: value for name, value in signals.items() if name not in hidden}


def signal_numbers(score: float, signals: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers among a verdict's *signals*, with booleans as 0 and 1; for a jury also ``vote_share``, for a pair ``order_consistency``.

    ``vote_share`` is the share of jurors with an answer whose score is on the same side of 0.5 as *score*.
    """
    numbers = {name: float(value) for name, value in signals.items() if isinstance(value, int | float)}
    votes = signals.get("votes")
    scores = [vote["score"] for vote in votes if "score" in vote] if isinstance(votes, list | tuple) else []
    if scores:
        numbers[VOTES] = sum((vote >= _HALF) == (score >= _HALF) for vote in scores) / len(scores)
    if isinstance(flipped := signals.get("flipped"), bool):
        numbers[ORDERS] = float(not flipped)
    return {name: value for name, value in numbers.items() if math.isfinite(value)}


@attrs.frozen
class TextLengths:
    """Lengths of the judged texts in characters. *output* and *reference* are None if there is no such text."""

    output: int | None
    input: int
    reference: int | None

    @classmethod
    def of(cls, content: Mapping[str, Any]) -> TextLengths:
        """Return the lengths of the texts in ``{input, output, reference}``."""
        return cls(
            _length(content.get("output")), _length(content.get("input")) or 0, _length(content.get("reference"))
        )


@attrs.frozen
class TrustModel:
    """Probability that a verdict agrees with people: a logistic regression on its *features*.

    *means* and *scales* standardize the features; *weights* and *intercept* apply to the standardized features.
    """

    features: Sequence[str]
    means: Sequence[float]
    scales: Sequence[float]
    weights: Sequence[float]
    intercept: float

    def probability(self, values: Sequence[float]) -> float:
        """Return the probability for a verdict with these *values* of the features, in (0, 1)."""
        terms = zip(self.weights, values, self.means, self.scales, strict=True)
        z = self.intercept + math.fsum(weight * (value - mean) / scale for weight, value, mean, scale in terms)
        return 1 / (1 + math.exp(-z)) if z >= 0 else math.exp(z) / (1 + math.exp(z))


def known_features(
    score: float, confidence: float, numbers: Mapping[str, float], text: TextLengths | None
) -> dict[str, float]:
    """Return all features of a verdict with these signal *numbers*, by name.

    Lengths are log(1 + characters). The length ratio of a pair is the winner's over the loser's, and 0 for a tie.
    """
    features = {**numbers, CONFIDENCE: confidence}
    if text is None:
        return features
    features[INPUT] = math.log1p(text.input)
    if text.output is not None:
        features[OUTPUT] = math.log1p(text.output)
        if text.reference is not None and ORDERS in numbers:
            ratio = math.log1p(text.output) - math.log1p(text.reference)
            features[PAIR] = 0.0 if score == _HALF else ratio if score > _HALF else -ratio
    return features


def feature_values(
    names: Sequence[str], score: float, confidence: float, numbers: Mapping[str, float], text: TextLengths | None
) -> list[float] | None:
    """Return the values of the features *names* of a verdict, from :func:`known_features`; None if a feature is missing."""
    features = known_features(score, confidence, numbers, text)
    return [features[name] for name in names] if features.keys() >= set(names) else None


def _length(value: object) -> int | None:
    if isinstance(value, str):
        return len(value)
    return None if value is None else len(orjson.dumps(value).decode())
