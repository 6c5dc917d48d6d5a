"""How many subjects pass, with an interval that knows of sessions."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from math import sqrt
from typing import Any

import attrs

from dicast import MISSING, Record, RunContext, Within, lookup

from .table import explained, there
from .ties import reaches
from .values import finder, number

_Z = 1.959963984540054
"""The .975 quantile of the normal distribution."""

_FIGURES = ("passes", "pass_rate", "sessions", "design_effect", "ci_low", "ci_high", "effect_size")
_NO_LINE = "there are scores and no flags; the option threshold says from which score on a record passes"


@attrs.frozen
class PassRate:
    """How many of the records pass, with Wilson's interval, by criterion.

    A record passes a criterion where its flag is true or, without a flag, where its score is *threshold* or more, which for a metric or a judge is its ``pass_at``. For each criterion: ``n``,
    the records that name it, with a score or without; ``missing``, those of them with neither a flag nor a score, which do not pass;
    ``passes``; ``pass_rate``, passes/n; ``ci_low`` and ``ci_high``, Wilson's 95 % interval (JASA 22, 1927, 209-212); ``sessions``, and
    ``design_effect``: where records share a session they are no independent trials, and the interval is that of n divided by Kish's design
    effect, the variance of the rate with sessions as clusters over that without, never less than 1 (C. Franco et al., Journal of Survey
    Statistics and Methodology 7, 2019, 334-364), as with a run's own pass rate; ``effect_size``, Cohen's h against *at_least*, and ``words``. The interval is null where all records are of one session.

    :param threshold: from which score on a record without a flag passes; by default the ``pass_at`` of the metric or judge that the criterion is, and of another criterion only flags count.
    :param at_least: the rate that the sentence and the effect size compare with.
    :param session_field: the row's column that says which session a record belongs to.
    :param criteria: only these; all by default.
    """

    name = "pass_rate"

    threshold: float | None = None
    at_least: float = attrs.field(default=0.8, validator=Within(0, 1, "from 0 to 1"))
    session_field: str = "session_id"
    criteria: tuple[str, ...] = ()

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Passes]:
        """Begin with no record."""
        yield Passes(self, run.pass_at)


class Passes:
    """Takes records, and counts who passes, by criterion and session."""

    def __init__(self, options: PassRate, lines: Mapping[str, float]) -> None:
        self._lines = lines
        self._options, self._wanted = options, frozenset(options.criteria)
        self._scores_of, self._flags_of = finder("scores"), finder("score_flags")
        self._sessions: dict[object, int] = {}
        self._count = 0
        self._held: dict[str, tuple[array[int], bytearray]] = {}
        self._missing = Counter[str]()
        self._known = {*lines}

    def add(self, record: Record) -> None:
        """Take a record."""
        scores, flags = self._scores_of(record), self._flags_of(record)
        session = self._session(record)
        for criterion in {**scores, **flags} if flags.keys() != scores.keys() else scores:
            if self._wanted and criterion not in self._wanted:
                continue
            held = self._held.get(criterion)
            if held is None:
                held = self._held[criterion] = array("i"), bytearray()
            held[0].append(session)
            flag = flags.get(criterion)
            if flag is None:
                held[1].append(self._reaches(criterion, scores))
            else:
                held[1].append(1 if flag else 0)
                self._known.add(criterion)

    def _session(self, record: Record) -> int:
        """The number of the record's session; a record without one is a session of its own."""
        name = lookup(record.get("row") or {}, self._options.session_field)
        if name is MISSING or name is None:
            self._count += 1
            return self._count - 1
        key = name if isinstance(name, str | int) else repr(name)
        if key not in self._sessions:
            self._sessions[key] = self._count
            self._count += 1
        return self._sessions[key]

    def _reaches(self, criterion: str, scores: Mapping[str, object]) -> bool:
        """Whether a record without a flag passes by its score."""
        score, threshold = number(scores.get(criterion)), self._options.threshold
        if threshold is None:
            threshold = self._lines.get(criterion)
        if score is None:
            self._missing[criterion] += 1
        return score is not None and threshold is not None and bool(reaches(score, threshold))

    def finish(self) -> Mapping[str, object]:
        """The rates by criterion."""
        criteria = {name: self._rate(name) for name in self._held}
        return {"criteria": criteria, **there({"unseen": sorted(self._wanted - self._held.keys())})}

    def _rate(self, criterion: str) -> dict[str, Any]:
        import numpy as np  # 0.1 s, which starting a run does not spend

        held = self._held[criterion]
        sessions, passes = np.frombuffer(held[0], np.intc), np.frombuffer(held[1], np.uint8)
        count, passed = len(passes), int(passes.sum())
        figures: dict[str, Any] = {"n": count, "missing": self._missing[criterion], **dict.fromkeys(_FIGURES)}
        if self._options.threshold is None and criterion not in self._known and self._missing[criterion] < count:
            return explained({**figures, "words": f"not known of {count:,}: {_NO_LINE}"}, {"pass_rate": _NO_LINE})
        rate = passed / count
        sizes, sums = np.bincount(sessions), np.bincount(sessions, passes).astype(np.int64)
        there = sizes > 0
        effective = _effective(count, passed, sizes[there].tolist(), sums[there].tolist())
        figures |= {"passes": passed, "pass_rate": rate, "sessions": int(there.sum())}
        line = self._options.at_least
        figures["effect_size"] = float(2 * np.arcsin(np.sqrt(rate)) - 2 * np.arcsin(np.sqrt(line)))
        if effective is not None:
            low, high = _wilson(rate, effective)
            figures |= {"design_effect": count / effective, "ci_low": low, "ci_high": high}
        reasons = {} if effective is not None else {"ci_low": "all records are of one session"}
        return explained({**figures, "words": self._words(figures)}, reasons)

    def _words(self, figures: Mapping[str, Any]) -> str:
        line, low, high = self._options.at_least, figures["ci_low"], figures["ci_high"]
        found = f"{figures['passes']:,} of {figures['n']:,} pass"
        if low is None:
            return f"{found}; one session says nothing of others"
        side = (
            f"at least {line:.0%}"
            if low >= line
            else f"below {line:.0%}"
            if high < line
            else f"not known to be at least {line:.0%}"
        )
        return f"{found}: {side} (95 % {low:.1%} to {high:.1%})"


def _effective(count: int, passed: int, sizes: Sequence[int], sums: Sequence[int]) -> float | None:
    """How many independent records say as much as *count* of sessions that have these *sizes* and *sums* of passes; None of one session."""
    squares, sessions = sum(size * size for size in sizes), len(sizes)
    if squares == count:
        return float(count)
    if sessions < 2:
        return None
    if passed in (0, count):
        return count * count / squares
    residuals = sum((count * here - size * passed) ** 2 for size, here in zip(sizes, sums, strict=True))
    return count / max(1.0, sessions / (sessions - 1) * residuals / (count * passed * (count - passed)))


def _wilson(rate: float, count: float) -> tuple[float, float]:
    square = _Z * _Z
    centre = (rate + square / (2 * count)) / (1 + square / count)
    half = _Z / (1 + square / count) * sqrt(rate * (1 - rate) / count + square / (4 * count * count))
    return (max(0.0, centre - half) if rate > 0 else 0.0), (min(1.0, centre + half) if rate < 1 else 1.0)
