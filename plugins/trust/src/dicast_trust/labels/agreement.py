"""Agreement between labelers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import attrs

from dicast.toolkit.gold import GoldLabel

from .gold import decides, outputs_of_labels

_HALF = 0.5
_NOBODY = "nobody named"
_DISJOINT = "no two labelers have labeled the same subject"


OutputKey = tuple[str, str, str | None]
"""A subject's kind and id, and the digest of the output that a label is about."""


@attrs.frozen
class LabelerAgreement:
    """Labels of each labeler, by subject and output; *decided* are the outputs with an adjudicated label.

    A label without an output counts for the subject itself and for every output that other labels of the subject name. *repeated* has the keys of
    these subjects without an output, so that such a label is not counted twice.
    """

    by_labeller: Mapping[str, Mapping[OutputKey, float]]
    decided: frozenset[OutputKey]
    counts: Mapping[str, int]
    decisions: int
    repeated: frozenset[OutputKey]

    @classmethod
    def of(cls, labels: Sequence[GoldLabel]) -> LabelerAgreement:
        """Group *labels* by their labelers."""
        scores: dict[str, dict[OutputKey, float]] = {}
        decided, repeated, counts, decisions = set(), set(), Counter[str](), 0
        for label, keys in outputs_of_labels(labels):
            outputs = [key[:3] for key in keys]
            repeated.update(outputs[: len(outputs) > 1])
            if decides(label):
                decided.update(outputs)
                decisions += 1
                continue
            labeler = label.labeller or _NOBODY
            counts[labeler] += 1
            scores.setdefault(labeler, {}).update(dict.fromkeys(outputs, label.score))
        return cls(scores, frozenset(decided), counts, decisions, frozenset(repeated))

    def differing(self) -> dict[OutputKey, dict[str, float]]:
        """Return the outputs with different labels and no decision, with the label of each labeler."""
        by_output: dict[OutputKey, dict[str, float]] = {}
        for labeler, labels in self.by_labeller.items():
            for key, score in labels.items():
                by_output.setdefault(key, {})[labeler] = score
        return {
            key: scores
            for key, scores in by_output.items()
            if len(set(scores.values())) > 1 and key not in self.decided
        }

    def document(self) -> dict[str, Any]:
        """Return the figures as JSON data; an undefined figure is null, and *reasons* explains it."""
        pairs = [self._pair(a, b) for a, b in combinations(self.by_labeller, 2)]
        pairs = [pair for pair in pairs if pair["n"]]
        alpha = self.alpha()
        several = "the labels of subjects with several labelers all pass, or all fail" if pairs else _DISJOINT
        reasons = [] if alpha is not None else [f"alpha is not defined: {several}"]
        return {
            "labellers": dict(self.counts),
            "pairs": pairs,
            "alpha": alpha,
            "adjudicated": self.decisions,
            "differ": [
                {"subject_kind": kind, "subject_id": id, "output_digest": digest, "labels": scores}
                for (kind, id, digest), scores in self.differing().items()
            ],
            "reasons": reasons,
        }

    def _pair(self, a: str, b: str) -> dict[str, Any]:
        first, second = self.by_labeller[a], self.by_labeller[b]
        pairs = [
            (first[key] >= _HALF, second[key] >= _HALF) for key in first if key in second and key not in self.repeated
        ]
        return {"a": a, "b": b, "n": len(pairs), "agree": _share([x == y for x, y in pairs]), "kappa": _kappa(pairs)}

    def alpha(self) -> float | None:
        """Return Krippendorff's alpha of pass and fail (nominal), over subjects with two labels or more; None if it is not defined."""
        units: dict[OutputKey, Counter[bool]] = {}
        for labels in self.by_labeller.values():
            for key, score in labels.items():
                if key not in self.repeated:
                    units.setdefault(key, Counter())[score >= _HALF] += 1
        several = [unit for unit in units.values() if unit.total() > 1]
        total = sum(several, Counter[bool]())
        n = total.total()
        expected = 2 * total[True] * total[False]
        if not expected:
            return None
        observed = sum(2 * unit[True] * unit[False] / (unit.total() - 1) for unit in several)
        return 1 - (n - 1) * observed / expected


def _share(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None


def _kappa(pairs: Sequence[tuple[bool, bool]]) -> float | None:
    """Return Cohen's kappa of pairs; None if chance alone makes all of them agree."""
    if not pairs:
        return None
    p, q = _share([x for x, _ in pairs]) or 0.0, _share([y for _, y in pairs]) or 0.0
    chance = p * q + (1 - p) * (1 - q)
    agree = _share([x == y for x, y in pairs]) or 0.0
    return None if chance == 1 else (agree - chance) / (1 - chance)
