"""Figures of each label over a whole run: the spread of values, failures, cost and time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from decimal import Decimal
from math import floor, log10
from typing import Any

import attrs

from dicast import ALL_METRICS
from dicast.reporting import failure_text, value_of
from dicast.toolkit.money import plain_text

from .marking import Marking, is_number
from .subjects import RECORD, SubjectResults

BINS = 20
_FINEST = 1074
"""Exponent of the unit of sums: the smallest positive float is ``2 ** -1074``."""
_DISTINCT, _DIGITS = 4096, 3
"""Values counted exactly, and digits of further values. Memory must not grow with the run."""


@attrs.define
class Spread:
    """Values and verdicts of one label."""

    n: int = 0
    total: int = 0
    passed: int = 0
    flagged: int = 0
    unit: list[int] = attrs.field(factory=lambda: [0] * BINS)
    counts: Counter[float] = attrs.field(factory=Counter)
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
        _count(self.counts, value)

    def mean(self) -> float | None:
        """Return the mean of the values, rounded once, like the means in the run's document; None without values."""
        return self.total / (self.n << _FINEST) if self.n else None

    def spend(self, payload: Mapping[str, Any]) -> None:
        """Count the cost and the time of a verdict or a failure."""
        self.verdicts += 1
        cost = payload.get("judge_cost_usd")
        self.usd = None if cost is None or self.usd is None else self.usd + Decimal(cost)
        if (latency := payload.get("judge_latency_ms")) is not None:
            _count(self.latency, latency)

    def reply(self, metrics: Mapping[str, Any]) -> None:
        """Count the cost and the time of a task's reply, from the *metrics* in its record."""
        self.verdicts += 1
        cost: Any = metrics.get("cost")
        seconds: Any = metrics.get("latency_seconds")
        self.usd = self.usd + Decimal(str(cost)) if is_number(cost) and self.usd is not None else None
        if is_number(seconds):
            _count(self.latency, 1000 * seconds)

    def histogram(self) -> dict[str, Any]:
        """Return equally wide bins, of [0, 1], or from the least to the greatest value if a value is outside of it."""
        if sum(self.unit) == self.n:
            return {"bins": self.unit, "low": 0, "high": 1}
        low, high = min(self.counts), max(self.counts)
        bins = [0] * BINS
        for value, count in self.counts.items():
            bins[min(BINS - 1, int((value - low) / ((high - low) or 1) * BINS))] += count
        return {"bins": bins, "low": low, "high": high}

    def times(self) -> dict[str, float] | None:
        """Return median, 95 % quantile and longest time, in milliseconds; None without times."""
        if not self.latency:
            return None
        count, ascending = sum(self.latency.values()), sorted(self.latency.items())
        shares = {"p50": 0.5, "p95": 0.95, "longest": 1.0}
        return {name: _quantile(ascending, share * count) for name, share in shares.items()}


class Spreads:
    """Spreads of all labels of a run."""

    def __init__(self, marking: Marking) -> None:
        self._marking = marking
        labels = (ALL_METRICS, *marking.metrics, *marking.judges)
        self._labels: dict[str, Spread] = {label: Spread() for label in labels}
        self._lines = {label: marking.line(label) for label in labels}
        self._task: dict[str, Spread] = {}

    def add(self, subject: SubjectResults) -> None:
        """Count a subject."""
        for label, value in self._marking.values(subject).items():
            self._passes(label, value)
        for label, result in subject.results.items():
            if "failure_mode" in result:
                self._of(label).failures[failure_text(result)] += 1
            elif label == ALL_METRICS and (combined := value_of(result)) is not None:
                self._passes(label, combined, passed=self._marking.passes(subject, label))
            if label != RECORD:
                self._of(label).spend(result)
        for criterion, response in _responses(subject.record or {}):
            self._task.setdefault(criterion, Spread()).reply(response.get("metrics") or {})
        flags = ((subject.record or {}).get("metrics") or {}).get("score_flags")
        for criterion, flag in flags.items() if isinstance(flags, Mapping) else ():
            if flag is not None:
                self._of(str(criterion)).flagged += 1
                self._of(str(criterion)).passed += bool(flag)

    def take_back(self, failures: list[tuple[str, str]]) -> None:
        """Subtract *failures*: the subject was judged again."""
        for label, kind in failures:
            self._of(label).failures[kind] -= 1

    def json(self) -> list[dict[str, Any]]:
        """Return each label with values or failures, for the page."""
        return [self._json(label, spread) for label, spread in self._labels.items() if spread.n or +spread.failures]

    def task_json(self) -> list[dict[str, Any]]:
        """Return the cost and the times of the task's replies by criterion, if their records have times."""
        return [
            {
                "criterion": name,
                "replies": spread.verdicts,
                "usd": None if spread.usd is None else plain_text(spread.usd),
                "latency": times,
            }
            for name, spread in self._task.items()
            if (times := spread.times()) is not None
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
        spread = self._labels.get(label)
        if spread is None:
            spread = self._labels[label] = Spread()
        return spread


def _responses(record: Mapping[str, Any]) -> Iterable[tuple[str, Mapping[str, Any]]]:
    """Return the responses of *record* by criterion; a single response has the name ""."""
    named: Mapping[str, Mapping[str, Any]] | None = record.get("responses")
    return named.items() if named else (("", record["response"]),) if record.get("response") else ()


def _count(counts: Counter[float], value: float) -> None:
    if value not in counts and len(counts) >= _DISTINCT:
        value = _rounded(value)
    counts[value] += 1


def _rounded(value: float) -> float:
    """Return *value* with few digits."""
    return round(value, _DIGITS - 1 - floor(log10(abs(value)))) if value else 0.0


def _quantile(ascending: list[tuple[float, int]], rank: float) -> float:
    """Return the least value such that *rank* values do not exceed it."""
    seen = 0
    for value, count in ascending:
        seen += count
        if seen >= rank:
            return value
    return ascending[-1][0]
