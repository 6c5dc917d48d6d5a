"""Agreement between labelers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

import attrs

from dicast.toolkit.gold import GoldLabel
from dicast.toolkit.intervals import wilson

from .gold import decides, outputs_of_labels

_HALF = 0.5
_NOBODY = "nobody named"
_DISJOINT = "no two labelers have labeled the same subject"
RESAMPLES = 2_000
SEED = 0
METHOD = f"percentile bootstrap over subjects, {RESAMPLES:,} resamples, seed {SEED}"


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
        interval = self.alpha_interval()
        return {
            "labellers": dict(self.counts),
            "pairs": pairs,
            "alpha": alpha,
            "alpha_ci": interval,
            "alpha_ci_method": None if interval is None else METHOD,
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
        agree = _share([x == y for x, y in pairs])
        interval = None if agree is None else list(wilson(agree, len(pairs)))
        return {"a": a, "b": b, "n": len(pairs), "agree": agree, "agree_ci": interval, "kappa": _kappa(pairs)}

    def alpha(self) -> float | None:
        """Return Krippendorff's alpha of pass and fail (nominal), over subjects with two labels or more; None if it is not defined."""
        units = self._units()
        sums = [sum(parts) for parts in zip(*(_parts(*unit) for unit in units), strict=True)] if units else [0, 0, 0]
        return _alpha(*sums)

    def alpha_interval(self) -> list[float] | None:
        """Return the 95 % interval of alpha, by the percentiles of resamples of the subjects.

        It is None if alpha is not defined in a quarter of the resamples, such as for a single subject.
        """
        units = Counter(self._units())
        if units.total() < 2:
            return None
        import numpy as np  # 0.1 s, which starting dicast does not spend

        shares = np.array(list(units.values())) / units.total()
        counts = np.random.default_rng(SEED).multinomial(units.total(), shares, RESAMPLES)
        resamples = counts @ np.array([_parts(*unit) for unit in units])
        alphas = [alpha for sums in resamples.tolist() if (alpha := _alpha(*sums)) is not None]
        if len(alphas) < RESAMPLES * 3 / 4:
            return None
        return [float(end) for end in np.percentile(alphas, (2.5, 97.5))]

    def _units(self) -> list[tuple[int, int]]:
        """Return the numbers of passing and of failing labels of each subject with two labels or more."""
        units: dict[OutputKey, list[bool]] = {}
        for labels in self.by_labeller.values():
            for key, score in labels.items():
                if key not in self.repeated:
                    units.setdefault(key, []).append(score >= _HALF)
        return [(sum(unit), len(unit) - sum(unit)) for unit in units.values() if len(unit) > 1]


def _parts(passed: int, failed: int) -> tuple[float, int, int]:
    """Return the disagreement of one subject, and its numbers of passing and of failing labels."""
    return 2 * passed * failed / (passed + failed - 1), passed, failed


def _alpha(observed: float, passed: float, failed: float) -> float | None:
    """Return Krippendorff's alpha of sums over subjects; None if all labels pass, or all fail."""
    expected = 2 * passed * failed
    return 1 - (passed + failed - 1) * observed / expected if expected else None


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
