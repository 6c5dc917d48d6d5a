"""Figures of scores that other tools recorded; they enter no figure of the run's own labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from ..classes import define, field
from ..values import BASES, Basis, weakest
from ..values.judged import Records
from .tally import ScoreSum, weights_of

CATEGORIES = 50
"""Largest number of categories of one label that are counted separately."""

OTHER = "(other categories)"
"""Name for all further categories."""


@define
class RecordedTally(ScoreSum):
    """Running sums over the verdicts of one label of another tool.

    *is_raw* is True if its numbers are not in [0, 1]. *categories* counts the verdicts without a number.
    """

    total: int = 0
    failed: int = 0
    is_raw: bool = False
    calibrated: int = 0
    bases: Counter[Basis] = field(factory=Counter)
    kinds: Counter[str | None] = field(factory=Counter)
    categories: Counter[str] = field(factory=Counter)

    def add(self, verdicts: Records, weights: Sequence[float] | None = None) -> list[float | None]:
        """Count ``eval.completed`` events of subjects with *weights*; return their numbers, None for a category."""
        payloads: list[Mapping[str, Any]] = [event.payload for event in verdicts]
        numbers = [_number(payload) for payload in payloads]
        self.is_raw = self.is_raw or any(payload["score"] is None is not payload.get("raw") for payload in payloads)
        self.total += len(numbers)
        self.kinds.update([event.subject_kind for event in verdicts])
        self.bases.update([payload["basis"] for payload in payloads])
        for payload, number in zip(payloads, numbers, strict=True):
            if number is None:
                category = str(payload["signals"].get("category"))
                has_counter = category in self.categories or len(self.categories) < CATEGORIES
                self.categories[category if has_counter else OTHER] += 1
        self.add_scores([number for number in numbers if number is not None], weights_of(numbers, weights))
        return numbers

    def share(self, subjects: Mapping[str, int], failed: int) -> float | None:
        """Return the share of scored subjects among all subjects that could have such a score; None without such subjects.

        :param subjects: the numbers of read subjects by kind; kinds without any such score are left out.
        :param failed: the number of failed records, which have no score.
        """
        count = sum(subjects.get(str(kind), 0) for kind in self.kinds) + failed
        return min(self.scored / count, 1.0) if count else None

    def basis(self) -> Basis | None:
        """Return the weakest basis for a gate: a score of another tool counts as a proxy, unless a person or a reference made it."""
        return (
            weakest([basis if basis in ("human", "truth") else "proxy" for basis in self.bases]) if self.bases else None
        )

    def by_basis(self) -> dict[Basis, int]:
        """Return the number of verdicts for each basis, the strongest first."""
        return {basis: self.bases[basis] for basis in BASES if basis in self.bases}

    def document(self) -> dict[str, Any]:
        """Return the figures for the run's document."""
        return {
            "mean": self.mean(),
            **self.weights(),
            **({"scale": "raw"} if self.is_raw else {}),
            "by_basis": self.by_basis(),
            "scored": self.scored,
            "total": self.total,
            **({"categories": dict(sorted(self.categories.items()))} if self.categories else {}),
        }


def recorded_figures(tallies: Mapping[str, RecordedTally]) -> dict[str, Any]:
    """Return the member ``recorded`` of a run's document; empty without scores of other tools."""
    return {"recorded": {label: tally.document() for label, tally in sorted(tallies.items())}} if tallies else {}


def _number(payload: Mapping[str, Any]) -> float | None:
    number: float | None = payload["score"] if payload["score"] is not None else payload.get("raw")
    return number
