"""The figures of a suite's runs: quality and its spread, cost, savings, provenance."""

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
"""The signal is high where the most expensive model's mean is this much above the cheapest's, each over at least so many runs."""

SUCCESS, SURE = 0.5, 0.5
"""From which score, at which confidence, work counts as successful."""

_DIGITS = 12  # of a score that count: a difference of .4 is .4, in spite of binary floats


@attrs.frozen
class Sum:
    """Amounts of money: *known* is the sum of the known amounts, *unknown* the number of the others."""

    known: Decimal = Decimal(0)
    unknown: int = 0

    @classmethod
    def of(cls, amounts: Iterable[Decimal | None]) -> Sum:
        """Add up *amounts*."""
        values = list(amounts)
        return cls(sum((amount for amount in values if amount is not None), Decimal(0)), values.count(None))

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
        return [run.score for run in self.judged if run.score is not None]

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
        return mean([run.confidence for run in self.judged if run.confidence is not None]) if self.scores else None

    @property
    def quality(self) -> str | None:
        """``score@confidence``."""
        return None if self.mean is None else f"{self.mean:.2f}@{self.confidence:.2f}"

    @property
    def noisy(self) -> bool:
        """True if the runs differ too much for a conclusion."""
        return self.std is not None and round(self.std, _DIGITS) > NOISY

    def sum(self, amount: Callable[[Judged], Decimal | None]) -> Sum:
        """Return the sum of an *amount* of all runs, including runs that were not judged."""
        return Sum.of(map(amount, self.judged))


@attrs.frozen
class Signal:
    """The ability of a workload to distinguish models: *gap* is the most expensive model (*dearest*)'s mean minus the *cheapest*'s, None if not measured."""

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
    """Return a row for each workload and model, in the order of their names."""
    groups: dict[tuple[str, str | None], list[Judged]] = {}
    for run in judged:
        groups.setdefault((run.workload, run.model), []).append(run)
    return [
        Row(workload, model, tuple(runs), sum(run.score is None for run in runs))
        for (workload, model), runs in sorted(groups.items(), key=lambda item: (item[0][0], item[0][1] or ""))
    ]


def signals(table: Sequence[Row]) -> dict[str, Signal]:
    """Return how well each workload distinguishes models, by its name."""
    by_workload = {}
    for workload in dict.fromkeys(row.workload for row in table):
        workload_rows = [row for row in table if row.workload == workload]
        declared = next((run.context.get("signal_strength") for row in workload_rows for run in row.judged), None)
        by_workload[workload] = _signal(Signal(workload, declared), workload_rows)
    return by_workload


def _signal(signal: Signal, workload_rows: Sequence[Row]) -> Signal:
    """Compare the cheapest and the most expensive model; those whose price is not known cannot be ranked."""
    costs = [
        (cost.total / len(row.judged), row)
        for row in workload_rows
        if (cost := row.sum(lambda pair: pair.cost)).total is not None
    ]
    if len(costs) < 2 or len(costs) < len(workload_rows):
        return signal
    (low, cheap), (high, costly) = min(costs, key=lambda pair: pair[0]), max(costs, key=lambda pair: pair[0])
    if low == high or cheap.mean is None or costly.mean is None:
        return signal
    if min(len(cheap.scores), len(costly.scores)) < GAP_RUNS:
        return signal
    return attrs.evolve(signal, gap=costly.mean - cheap.mean, cheapest=cheap.model, dearest=costly.model)


def is_successful(run: Judged) -> bool:
    """Return True if the work was done, as far as the judge can decide."""
    return run.score is not None and run.score >= SUCCESS and run.confidence is not None and run.confidence >= SURE


@attrs.frozen
class Provenance:
    """The origin of the runs. *pinned* has the one value of each key, None if no run has it or they differ; *mixed* has
    the different values. *start* is the earliest, *end* the latest instant, in the run's form.
    """

    pinned: Mapping[str, object]
    mixed: Mapping[str, Sequence[object]]
    models: Sequence[str]
    seeds: Sequence[object]
    start: str | None
    end: str | None

    @classmethod
    def of(cls, judged: Sequence[Judged]) -> Provenance:
        """Combine the provenance of the runs. A run without a value differs from a run with one."""
        all_facts = [_facts(facts) for facts in judged]
        values = {key: _distinct(facts.get(key) for facts in all_facts) for key in PINNED}
        listed = [name for facts in all_facts for name in _list(facts.get("models"))]
        return cls(
            {key: distinct[0] if len(distinct) == 1 else None for key, distinct in values.items()},
            {key: distinct for key, distinct in values.items() if len(distinct) > 1},
            sorted({*(facts.model for facts in judged if facts.model), *map(str, listed)}),
            _distinct(facts["seed"] for facts in all_facts if facts.get("seed") is not None),
            min(_times(all_facts, "start"), default=(None, None))[1],
            max(_times(all_facts, "end"), default=(None, None))[1],
        )


def _facts(run: Judged) -> Mapping[str, Any]:
    provenance = run.context.get("provenance")
    return provenance if isinstance(provenance, Mapping) else {}


def _times(all_facts: Iterable[Mapping[str, Any]], key: str) -> list[tuple[datetime, str]]:
    """Return the instants at *key*, each with its text. Values of other sources that are no instants are skipped."""
    return [(instant_, str(facts[key])) for facts in all_facts if (instant_ := instant(facts.get(key))) is not None]


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _distinct(values: Iterable[object]) -> list[object]:
    """Return each value once; true and 1 are different, 0 and 0.0 are equal."""
    seen: dict[tuple[bool, str], object] = {}
    for value in values:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        seen.setdefault((number, str(float(value)) if isinstance(value, int | float) and number else str(value)), value)
    return list(seen.values())
