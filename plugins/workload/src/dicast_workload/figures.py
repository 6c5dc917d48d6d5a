"""What the runs of a suite come to: quality and its spread, cost, savings, provenance."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from statistics import stdev
from typing import Any

import attrs

from dicast import mean

from .judged import Judged
from .record import PINNED, instant

NOISY = 0.15
"""A sample standard deviation above it makes a workload noisy."""

GAP, GAP_RUNS = 0.4, 4
"""The signal is high where the dearest model's mean is this much above the cheapest's, each over at least so many runs."""

SUCCESS, SURE = 0.5, 0.5
"""From which score, at which confidence, work counts as successful."""

_DIGITS = 12  # of a score that count: a difference of .4 is .4, whatever binary floats make of it


@attrs.frozen
class Sum:
    """Amounts of money: *known* is the sum of those that are known, *unknown* how many are not."""

    known: Decimal = Decimal(0)
    unknown: int = 0

    @classmethod
    def of(cls, amounts: Iterable[Decimal | None]) -> Sum:
        """Add up *amounts*."""
        given = list(amounts)
        return cls(sum((one for one in given if one is not None), Decimal(0)), given.count(None))

    @property
    def total(self) -> Decimal | None:
        """The sum, None when a part of it is not known."""
        return None if self.unknown else self.known


@attrs.frozen
class Row:
    """The runs of one *workload* by one *model*: *judged* have a score, *failed* were not judged."""

    workload: str
    model: str | None
    judged: tuple[Judged, ...]
    failed: int

    @property
    def scores(self) -> list[float]:
        """The scores, in the order of the runs."""
        return [one.score for one in self.judged if one.score is not None]

    @property
    def mean(self) -> float | None:
        """The mean score; None without any."""
        return mean(self.scores) if self.scores else None

    @property
    def std(self) -> float | None:
        """The sample standard deviation (n - 1); None for fewer than two runs."""
        return stdev(self.scores) if len(self.scores) > 1 else None

    @property
    def confidence(self) -> float | None:
        """The mean confidence; None without any score."""
        return mean([one.confidence for one in self.judged if one.confidence is not None]) if self.scores else None

    @property
    def quality(self) -> str | None:
        """``score@confidence``."""
        return None if self.mean is None else f"{self.mean:.2f}@{self.confidence:.2f}"

    @property
    def noisy(self) -> bool:
        """Whether the runs differ too much to tell anything."""
        return self.std is not None and round(self.std, _DIGITS) > NOISY

    def sum(self, amount: Callable[[Judged], Decimal | None]) -> Sum:
        """The sum of an *amount* of all runs, those that were not judged included."""
        return Sum.of(map(amount, self.judged))


@attrs.frozen
class Signal:
    """How well a workload tells models apart: *gap* is the *dearest* model's mean minus the *cheapest*'s, None if not measured."""

    workload: str
    declared: str | None
    gap: float | None = None
    cheapest: str | None = None
    dearest: str | None = None

    @property
    def strength(self) -> str:
        """``high`` where that was measured, else ``marginal``."""
        return "high" if self.gap is not None and round(self.gap, _DIGITS) >= GAP else "marginal"


def rows(judged: Sequence[Judged]) -> list[Row]:
    """A row for each workload and model, in the order of their names."""
    groups: dict[tuple[str, str | None], list[Judged]] = {}
    for one in judged:
        groups.setdefault((one.workload, one.model), []).append(one)
    return [
        Row(workload, model, tuple(own), sum(one.score is None for one in own))
        for (workload, model), own in sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] or ""))
    ]


def signals(table: Sequence[Row]) -> dict[str, Signal]:
    """How well each workload tells models apart, by its name."""
    found = {}
    for workload in dict.fromkeys(row.workload for row in table):
        own = [row for row in table if row.workload == workload]
        declared = next((one.context.get("signal_strength") for row in own for one in row.judged), None)
        found[workload] = _signal(Signal(workload, declared), own)
    return found


def _signal(signal: Signal, own: Sequence[Row]) -> Signal:
    """Compare the cheapest and the dearest model; those whose price is not known cannot be ranked."""
    costs = [
        (cost.total / len(row.judged), row) for row in own if (cost := row.sum(lambda one: one.cost)).total is not None
    ]
    if len(costs) < 2 or len(costs) < len(own):
        return signal
    (low, cheap), (high, dear) = min(costs, key=lambda one: one[0]), max(costs, key=lambda one: one[0])
    if low == high or cheap.mean is None or dear.mean is None:
        return signal
    if min(len(cheap.scores), len(dear.scores)) < GAP_RUNS:
        return signal
    return attrs.evolve(signal, gap=dear.mean - cheap.mean, cheapest=cheap.model, dearest=dear.model)


def is_successful(one: Judged) -> bool:
    """Whether the work was done, as far as the judge can tell."""
    return one.score is not None and one.score >= SUCCESS and one.confidence is not None and one.confidence >= SURE


@attrs.frozen
class Provenance:
    """Where the runs come from: *pinned* has the one value of each key, None where no run gives it or they differ; *mixed* has
    the values of those that differ. *start* is the earliest, *end* the latest instant, as the run wrote it.
    """

    pinned: Mapping[str, object]
    mixed: Mapping[str, Sequence[object]]
    models: Sequence[str]
    seeds: Sequence[object]
    start: str | None
    end: str | None

    @classmethod
    def of(cls, judged: Sequence[Judged]) -> Provenance:
        """Put together what the runs say of themselves; a run that does not say differs from one that does."""
        told = [_told(one) for one in judged]
        values = {key: _distinct(one.get(key) for one in told) for key in PINNED}
        listed = [name for one in told for name in _list(one.get("models"))]
        return cls(
            {key: own[0] if len(own) == 1 else None for key, own in values.items()},
            {key: own for key, own in values.items() if len(own) > 1},
            sorted({*(one.model for one in judged if one.model), *map(str, listed)}),
            _distinct(one["seed"] for one in told if one.get("seed") is not None),
            min(_times(told, "start"), default=(None, None))[1],
            max(_times(told, "end"), default=(None, None))[1],
        )


def _told(one: Judged) -> Mapping[str, Any]:
    given = one.context.get("provenance")
    return given if isinstance(given, Mapping) else {}


def _times(told: Iterable[Mapping[str, Any]], key: str) -> list[tuple[datetime, str]]:
    """The instants at *key*, each as it is written, too; another source's may be none."""
    return [(found, str(one[key])) for one in told if (found := instant(one.get(key))) is not None]


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _distinct(values: Iterable[object]) -> list[object]:
    """Each value once; true and 1 are two, 0 and 0.0 one."""
    found: dict[tuple[bool, str], object] = {}
    for value in values:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        found.setdefault(
            (number, str(float(value)) if isinstance(value, int | float) and number else str(value)), value
        )
    return list(found.values())
