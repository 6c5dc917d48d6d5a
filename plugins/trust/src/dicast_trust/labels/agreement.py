"""How far labellers agree with each other."""

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
_APART = "no two labellers have labeled the same subject"


OutputKey = tuple[str, str, str | None]
"""A subject's kind and id, and the digest of the output that a label is about."""


@attrs.frozen
class Labellers:
    """The labels of each labeller, by subject and output; *decided* are the outputs on which somebody has decided.

    A label that names no output counts for the outputs that other labels of the subject name; *repeated* are the keys without an output of such subjects.
    """

    by_labeller: Mapping[str, Mapping[OutputKey, float]]
    decided: frozenset[OutputKey]
    counts: Mapping[str, int]
    decisions: int
    repeated: frozenset[OutputKey]

    @classmethod
    def of(cls, labels: Sequence[GoldLabel]) -> Labellers:
        """Sort *labels* by their labellers."""
        found: dict[str, dict[OutputKey, float]] = {}
        decided, repeated, counts, decisions = set(), set(), Counter[str](), 0
        for label, keys in outputs_of_labels(labels):
            about = [key[:3] for key in keys]
            repeated.update(about[: len(about) > 1])
            if decides(label):
                decided.update(about)
                decisions += 1
                continue
            who = label.labeller or _NOBODY
            counts[who] += 1
            found.setdefault(who, {}).update(dict.fromkeys(about, label.score))
        return cls(found, frozenset(decided), counts, decisions, frozenset(repeated))

    def differing(self) -> dict[OutputKey, dict[str, float]]:
        """Return the outputs with labels that differ and nobody has decided on, with the label of each labeller."""
        said: dict[OutputKey, dict[str, float]] = {}
        for who, labels in self.by_labeller.items():
            for key, score in labels.items():
                said.setdefault(key, {})[who] = score
        return {key: one for key, one in said.items() if len(set(one.values())) > 1 and key not in self.decided}

    def document(self) -> dict[str, Any]:
        """The figures; what is not defined is null, and *reasons* says why."""
        pairs = [self._pair(a, b) for a, b in combinations(self.by_labeller, 2)]
        pairs = [pair for pair in pairs if pair["n"]]
        alpha = self.alpha()
        several = "the labels of subjects with several labellers all pass, or all fail" if pairs else _APART
        reasons = [] if alpha is not None else [f"there is no alpha: {several}"]
        return {
            "labellers": dict(self.counts),
            "pairs": pairs,
            "alpha": alpha,
            "adjudicated": self.decisions,
            "differ": [
                {"subject_kind": kind, "subject_id": id, "output_digest": digest, "labels": one}
                for (kind, id, digest), one in self.differing().items()
            ],
            "reasons": reasons,
        }

    def _pair(self, a: str, b: str) -> dict[str, Any]:
        one, other = self.by_labeller[a], self.by_labeller[b]
        both = [(one[key] >= _HALF, other[key] >= _HALF) for key in one if key in other and key not in self.repeated]
        return {"a": a, "b": b, "n": len(both), "agree": _share([x == y for x, y in both]), "kappa": _kappa(both)}

    def alpha(self) -> float | None:
        """Krippendorff's alpha of pass and fail (nominal), over subjects with two labels or more; None where it is not defined."""
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


def _share(found: Sequence[bool]) -> float | None:
    return sum(found) / len(found) if found else None


def _kappa(both: Sequence[tuple[bool, bool]]) -> float | None:
    """Cohen's kappa of pairs; None where chance alone makes them all agree."""
    if not both:
        return None
    p, q = _share([x for x, _ in both]) or 0.0, _share([y for _, y in both]) or 0.0
    chance = p * q + (1 - p) * (1 - q)
    agree = _share([x == y for x, y in both]) or 0.0
    return None if chance == 1 else (agree - chance) / (1 - chance)
