"""What the values of each label come to over a whole run: how they are spread, what failed, what it cost and how long it took."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from math import floor, log10
from typing import Any

import attrs

from dicast.reporting import value_of

from .marking import METRICS, Marking, is_number
from .told import RECORD, Told

BINS = 20
_FINEST = 1074
"""The smallest float above 0 is 2 to the power of minus this; values are added up in units of it."""
_DISTINCT, _DIGITS = 4096, 3
"""So many different values are counted exactly, and of others three digits are: memory must not grow with the run."""


@attrs.define
class Spread:
    """One label's values and verdicts."""

    n: int = 0
    total: int = 0
    passed: int = 0
    flagged: int = 0
    unit: list[int] = attrs.field(factory=lambda: [0] * BINS)
    others: Counter[float] = attrs.field(factory=Counter)
    failures: Counter[str] = attrs.field(factory=Counter)
    verdicts: int = 0
    usd: Decimal | None = Decimal(0)
    latency: Counter[float] = attrs.field(factory=Counter)

    def add(self, value: float) -> None:
        """Count a value."""
        self.n += 1
        numerator, denominator = value.as_integer_ratio()
        self.total += numerator << (_FINEST + 1 - denominator.bit_length())
        if 0 <= value <= 1:
            self.unit[min(BINS - 1, int(value * BINS))] += 1
        _count(self.others, value)

    def mean(self) -> float | None:
        """The mean of the values, rounded once, as the run's document has its means; None without any."""
        return self.total / (self.n << _FINEST) if self.n else None

    def spend(self, payload: Mapping[str, Any]) -> None:
        """Count what a verdict, or a failure, cost and how long it took."""
        self.verdicts += 1
        cost = payload.get("judge_cost_usd")
        self.usd = None if cost is None or self.usd is None else self.usd + Decimal(cost)
        if (took := payload.get("judge_latency_ms")) is not None:
            _count(self.latency, took)

    def reply(self, metrics: Mapping[str, Any]) -> None:
        """Count a reply of the task, by what its record says that it cost and how long it took."""
        self.verdicts += 1
        cost: Any = metrics.get("cost")
        seconds: Any = metrics.get("latency_seconds")
        self.usd = self.usd + Decimal(str(cost)) if is_number(cost) and self.usd is not None else None
        if is_number(seconds):
            _count(self.latency, 1000 * seconds)

    def histogram(self) -> dict[str, Any]:
        """Equally wide bins: of [0, 1], or where values leave that, from the least to the greatest."""
        if sum(self.unit) == self.n:
            return {"bins": self.unit, "low": 0, "high": 1}
        low, high = min(self.others), max(self.others)
        bins = [0] * BINS
        for value, count in self.others.items():
            bins[min(BINS - 1, int((value - low) / ((high - low) or 1) * BINS))] += count
        return {"bins": bins, "low": low, "high": high}

    def times(self) -> dict[str, float] | None:
        """Median, 95 % quantile and longest time, in milliseconds; None where nothing was timed."""
        if not self.latency:
            return None
        count, ascending = sum(self.latency.values()), sorted(self.latency.items())
        found = {"p50": 0.5, "p95": 0.95, "longest": 1.0}
        return {name: _quantile(ascending, share * count) for name, share in found.items()}


class Spreads:
    """The spreads of all labels of a run."""

    def __init__(self, marking: Marking) -> None:
        self._marking = marking
        known = (METRICS, *marking.metrics, *marking.judges)
        self._labels: dict[str, Spread] = {label: Spread() for label in known}
        self._lines = {label: marking.line(label) for label in known}
        self._task: dict[str, Spread] = {}

    def add(self, told: Told) -> None:
        """Count a subject."""
        for label, value in self._marking.values(told).items():
            self._passes(label, value)
        for label, ended in told.ended.items():
            if "failure_mode" in ended:
                self._of(label).failures[str(ended["failure_mode"])] += 1
            elif label == METRICS and (combined := value_of(ended)) is not None:
                self._passes(label, combined, passed=self._marking.passes(told, label))
            if label != RECORD:
                self._of(label).spend(ended)
        for criterion, response in _responses(told.record or {}):
            self._task.setdefault(criterion, Spread()).reply(response.get("metrics") or {})
        flags = ((told.record or {}).get("metrics") or {}).get("score_flags")
        for criterion, flag in flags.items() if isinstance(flags, Mapping) else ():
            if flag is not None:
                self._of(str(criterion)).flagged += 1
                self._of(str(criterion)).passed += bool(flag)

    def take_back(self, failures: list[tuple[str, str]]) -> None:
        """Count *failures* no longer: the subject was judged again."""
        for label, kind in failures:
            self._of(label).failures[kind] -= 1

    def json(self) -> list[dict[str, Any]]:
        """Each label that has anything to say, for the page."""
        return [self._json(label, spread) for label, spread in self._labels.items() if spread.n or +spread.failures]

    def task_json(self) -> list[dict[str, Any]]:
        """What the task's replies cost and how long they took, by criterion, where their records say how long."""
        return [
            {
                "criterion": name,
                "replies": one.verdicts,
                "usd": None if one.usd is None else format(one.usd.normalize(), "f"),
                "latency": times,
            }
            for name, one in self._task.items()
            if (times := one.times()) is not None
        ]

    def _json(self, label: str, spread: Spread) -> dict[str, Any]:
        role = self._marking.role(label)
        knows = role != "criterion" or spread.flagged > 0
        return {
            "label": label,
            "role": "record" if label == RECORD else role,
            "counted": label in self._marking.counted,
            "pass_at": None if role == "criterion" else self._marking.line(label),
            "n": spread.n,
            "mean": spread.mean(),
            "passed": spread.passed if knows and spread.n else None,
            **(spread.histogram() if spread.n else {"bins": [], "low": 0, "high": 1}),
            "failed": sum(spread.failures.values()),
            "failures": dict(sorted((+spread.failures).items())),
            "verdicts": spread.verdicts,
            "usd": None if spread.usd is None else format(spread.usd, "f"),
            "latency": spread.times() if spread.verdicts else None,
        }

    def _passes(self, label: str, value: float, *, passed: bool | None = None) -> None:
        spread = self._of(label)
        spread.add(value)
        if passed is not None:
            spread.passed += passed
        elif (line := self._lines.get(label)) is not None:
            spread.passed += value >= line

    def _of(self, label: str) -> Spread:
        found = self._labels.get(label)
        if found is None:
            found = self._labels[label] = Spread()
        return found


def _responses(record: Mapping[str, Any]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """The responses of *record* by criterion; an only one has the name ""."""
    named: Mapping[str, Mapping[str, Any]] | None = record.get("responses")
    return named.items() if named else (("", record["response"]),) if record.get("response") else ()


def _count(counts: Counter[float], value: float) -> None:
    if value not in counts and len(counts) >= _DISTINCT:
        value = _rounded(value)
    counts[value] += 1


def _rounded(value: float) -> float:
    """*value* with few digits."""
    return round(value, _DIGITS - 1 - floor(log10(abs(value)))) if value else 0.0


def _quantile(ascending: list[tuple[float, int]], rank: float) -> float:
    """The least of the values that so many do not exceed."""
    seen = 0
    for value, count in ascending:
        seen += count
        if seen >= rank:
            return value
    return ascending[-1][0]
