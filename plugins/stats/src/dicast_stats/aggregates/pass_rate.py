"""How many subjects pass, with an interval that knows of sessions."""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import chain
from math import sqrt
from typing import TYPE_CHECKING, Any

import attrs

from dicast import Record, RunContext, Within
from dicast.toolkit.json_values import MISSING, lookup

from ..numbers.ties import reaches
from ..scores.columns import TOGETHER, numbers
from ..scores.records import finder
from ..text.reasons import explained, there

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_Z = 1.959963984540054
"""The .975 quantile of the normal distribution."""

_SESSION = "session_id"
_NO_FLAG = 2
_FIGURES = ("passes", "pass_rate", "sessions", "design_effect", "ci_low", "ci_high", "effect_size")
_NO_LINE = "there are scores and no flags; the option threshold says from which score on a record passes"


@attrs.frozen
class PassRate:
    """How many of the records pass, with Wilson's interval, by criterion.

    A record passes a criterion where its flag is true or, without a flag, where its score is *threshold* or more, which for a metric or a judge is its ``pass_at``. For each criterion: ``n``,
    the records that name it, with a score or without, and the subjects that the metric or judge failed for or left out; ``missing``, those of them with neither a flag nor a score, which do not pass;
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
    session_field: str = _SESSION
    criteria: tuple[str, ...] = ()

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Passes]:
        """Begin with no record."""
        yield Passes(self, run.pass_at)


@attrs.frozen
class _Held:
    """What is known of one criterion: a number for each record's session, its score, and 1 or 0 where it has a flag."""

    sessions: array[int] = attrs.field(factory=lambda: array("i"))
    scores: array[float] = attrs.field(factory=lambda: array("d"))
    flags: bytearray = attrs.field(factory=bytearray)

    def passes(self, line: float | None) -> tuple[NDArray[np.bool_], int, bool]:
        """Which records pass, by flag or else by a score of *line* or more; how many have neither; and whether nothing says who passes."""
        import numpy as np  # 0.1 s, which starting a run does not spend

        scores, flags = np.frombuffer(self.scores), np.frombuffer(self.flags, np.uint8)
        unflagged = flags == _NO_FLAG
        scored = unflagged & np.isfinite(scores)
        passes = flags == 1
        if line is not None:
            passes[scored] = reaches(scores[scored], line)
        return passes, int((unflagged & ~scored).sum()), bool(line is None and scored.any() and unflagged.all())


class Passes:
    """Takes records, and keeps each one's session, score and flag by criterion."""

    observes_failures = True

    def __init__(self, options: PassRate, lines: Mapping[str, float]) -> None:
        self._options, self._wanted, self._lines = options, frozenset(options.criteria), lines
        self._scores_of, self._flags_of = finder("scores"), finder("score_flags")
        self._sessions: dict[object, int] = {}
        self._count = 0
        self._held: dict[str, _Held] = {}
        self._waiting: list[tuple[Mapping[str, object], Mapping[str, object], int]] = []

    def add(self, record: Record) -> None:
        """Take a record."""
        self._waiting.append((self._scores_of(record), self._flags_of(record), self._session(record)))
        if len(self._waiting) >= TOGETHER:
            self._settle()

    def _settle(self) -> None:
        """Bring what was taken into the columns."""
        named = chain.from_iterable(chain(scores, flags) for scores, flags, _ in self._waiting)
        for name in dict.fromkeys(named):
            if self._wanted and name not in self._wanted:
                continue
            held = self._held.setdefault(name, _Held())
            here = self._waiting
            if not all(name in scores for scores, _, _ in here):
                here = [one for one in here if name in one[0] or name in one[1]]
            held.sessions.fromlist([session for _, _, session in here])
            held.scores.fromlist(numbers([scores.get(name) for scores, _, _ in here]))
            flags = [flags.get(name) for _, flags, _ in here]
            held.flags.extend([_NO_FLAG if flag is None else 1 if flag else 0 for flag in flags])
        self._waiting.clear()

    def _session(self, record: Record) -> int:
        """The number of the record's session; a record without one is a session of its own."""
        row, field = record.get("row") or {}, self._options.session_field
        name = lookup(row, field) if "." in field else row.get(field)
        if name is None and field == _SESSION:
            name = record.get(_SESSION)  # of a subject that has no row
        if name is MISSING or name is None:
            self._count += 1
            return self._count - 1
        key = name if isinstance(name, str | int) else repr(name)
        if key not in self._sessions:
            self._sessions[key] = self._count
            self._count += 1
        return self._sessions[key]

    def finish(self) -> Mapping[str, object]:
        """The rates by criterion."""
        self._settle()
        criteria = {name: self._rate(name) for name in self._held}
        return {"criteria": criteria, **there({"unseen": sorted(self._wanted - self._held.keys())})}

    def _rate(self, criterion: str) -> dict[str, Any]:
        import numpy as np  # 0.1 s, which starting a run does not spend

        held, line = self._held[criterion], self._options.threshold
        line = self._lines.get(criterion) if line is None else line
        passes, missing, unknown = held.passes(line)
        sessions, count, passed = np.frombuffer(held.sessions, np.intc), len(passes), int(passes.sum())
        figures: dict[str, Any] = {"n": count, "missing": missing, **dict.fromkeys(_FIGURES)}
        if unknown:
            return explained({**figures, "words": f"not known of {count:,}: {_NO_LINE}"}, {"pass_rate": _NO_LINE})
        rate = passed / count
        sizes, sums = np.bincount(sessions), np.bincount(sessions, passes).astype(np.int64)
        there = sizes > 0
        alone = sizes.max() == 1  # each record is a session of its own
        effective = float(count) if alone else _effective(count, passed, sizes[there].tolist(), sums[there].tolist())
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
        rate = f"{line * 100:.6g}%"
        found = f"{figures['passes']:,} of {figures['n']:,} pass"
        if low is None:
            return f"{found}; one session says nothing of others"
        side = (
            f"at least {rate}"
            if low >= line
            else f"below {rate}"
            if high < line
            else f"not known to be at least {rate}"
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
