"""Share of subjects that pass, with an interval that accounts for sessions."""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

import attrs

from dicast import Record, RunContext, Within
from dicast.toolkit.intervals import wilson
from dicast.toolkit.json_values import MISSING, lookup

from ..numbers.ties import reaches
from ..scores.columns import BATCH, to_floats
from ..scores.records import metrics_reader
from ..text.reasons import with_reasons, without_empty

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SESSION = "session_id"
_NO_FLAG = 2
_FIGURES = ("passes", "pass_rate", "sessions", "design_effect", "ci_low", "ci_high", "effect_size")
_NO_LINE = "there are scores but no flags; set the option threshold, the lowest score that passes"


@attrs.frozen
class PassRate:
    """Share of the records that pass, with Wilson's interval, by criterion.

    A record passes a criterion if its flag is true or, without a flag, if its score is *threshold* or more. For each criterion:

    - ``n``: the records that name the criterion, with or without a score, and the subjects that the metric or judge failed for or left out;
    - ``missing``: the records among them with neither a flag nor a score, which do not pass;
    - ``passes``, and ``pass_rate``, passes/n;
    - ``ci_low`` and ``ci_high``: Wilson's 95 % interval (JASA 22, 1927, 209-212), null if all records belong to one session;
    - ``sessions`` and ``design_effect``: records of one session are not independent trials, so the interval is computed for n divided by Kish's
      design effect. The effect is the variance of the rate with sessions as clusters over the variance without, at least 1 (C. Franco et al.,
      Journal of Survey Statistics and Methodology 7, 2019, 334-364), as for the pass rate of a run;
    - ``effect_size``, Cohen's h against *at_least*, and ``words``.

    :param threshold: the lowest score with which a record without a flag passes; by default the ``pass_at`` of the metric or judge of the criterion. For
        any other criterion only flags count.
    :param at_least: the rate to which the sentence and the effect size compare.
    :param session_field: the row's column with the session of a record.
    :param criteria: only these criteria; all by default.
    """

    name = "pass_rate"

    threshold: float | None = None
    at_least: float = attrs.field(default=0.8, validator=Within(0, 1, "from 0 to 1"))
    session_field: str = _SESSION
    criteria: tuple[str, ...] = ()

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Passes]:
        """Yield a collector without records."""
        yield Passes(self, run.pass_at)


@attrs.frozen
class _FlagColumn:
    """Columns of one criterion: the number of each record's session, its score, and its flag as 1 or 0."""

    sessions: array[int] = attrs.field(factory=lambda: array("i"))
    scores: array[float] = attrs.field(factory=lambda: array("d"))
    flags: bytearray = attrs.field(factory=bytearray)

    def passes(self, line: float | None) -> tuple[NDArray[np.bool_], int, bool]:
        """Return whether each record passes, the number of records with neither flag nor score, and whether no record can be decided.

        The flag decides, else a score of *line* or more.
        """
        import numpy as np  # 0.1 s, which starting a run does not spend

        scores, flags = np.frombuffer(self.scores), np.frombuffer(self.flags, np.uint8)
        unflagged = flags == _NO_FLAG
        scored = unflagged & np.isfinite(scores)
        passes = flags == 1
        if line is not None:
            passes[scored] = reaches(scores[scored], line)
        return passes, int((unflagged & ~scored).sum()), bool(line is None and scored.any() and unflagged.all())


class Passes:
    """Collector of each record's session, score and flag, by criterion."""

    observes_failures = True

    def __init__(self, options: PassRate, lines: Mapping[str, float]) -> None:
        self._options, self._criteria, self._lines = options, frozenset(options.criteria), lines
        self._read_scores, self._read_flags = metrics_reader("scores"), metrics_reader("score_flags")
        self._sessions: dict[object, int] = {}
        self._count = 0
        self._columns: dict[str, _FlagColumn] = {}
        self._batch: list[tuple[Mapping[str, object], Mapping[str, object], int]] = []

    def add(self, record: Record) -> None:
        """Add a record."""
        self._batch.append((self._read_scores(record), self._read_flags(record), self._session(record)))
        if len(self._batch) >= BATCH:
            self._flush()

    def _flush(self) -> None:
        """Move the batch of records into the columns."""
        named = chain.from_iterable(chain(scores, flags) for scores, flags, _ in self._batch)
        for name in dict.fromkeys(named):
            if self._criteria and name not in self._criteria:
                continue
            column = self._columns.setdefault(name, _FlagColumn())
            batch = self._batch
            if not all(name in scores for scores, _, _ in batch):
                batch = [item for item in batch if name in item[0] or name in item[1]]
            column.sessions.fromlist([session for _, _, session in batch])
            column.scores.fromlist(to_floats([scores.get(name) for scores, _, _ in batch]))
            flags = [flags.get(name) for _, flags, _ in batch]
            column.flags.extend([_NO_FLAG if flag is None else 1 if flag else 0 for flag in flags])
        self._batch.clear()

    def _session(self, record: Record) -> int:
        """Return the number of the record's session; a record without a session gets a number of its own."""
        row, field = record.get("row") or {}, self._options.session_field
        name = lookup(row, field) if "." in field else row.get(field)
        if name is None and field == _SESSION:
            name = record.get(_SESSION)  # a subject without a row
        if name is MISSING or name is None:
            self._count += 1
            return self._count - 1
        key = name if isinstance(name, str | int) else repr(name)
        if key not in self._sessions:
            self._sessions[key] = self._count
            self._count += 1
        return self._sessions[key]

    def finish(self) -> Mapping[str, object]:
        """Return the rates by criterion."""
        self._flush()
        criteria = {name: self._rate(name) for name in self._columns}
        return {"criteria": criteria, **without_empty({"unseen": sorted(self._criteria - self._columns.keys())})}

    def _rate(self, criterion: str) -> dict[str, Any]:
        import numpy as np  # 0.1 s, which starting a run does not spend

        column, line = self._columns[criterion], self._options.threshold
        line = self._lines.get(criterion) if line is None else line
        passes, missing, unknown = column.passes(line)
        sessions, count, passed = np.frombuffer(column.sessions, np.intc), len(passes), int(passes.sum())
        figures: dict[str, Any] = {"n": count, "missing": missing, **dict.fromkeys(_FIGURES)}
        if unknown:
            return with_reasons({**figures, "words": f"not known for {count:,}: {_NO_LINE}"}, {"pass_rate": _NO_LINE})
        rate = passed / count
        sizes, sums = np.bincount(sessions), np.bincount(sessions, passes).astype(np.int64)
        is_used = sizes > 0
        has_no_clusters = sizes.max() == 1  # each record is a session of its own
        effective = (
            float(count)
            if has_no_clusters
            else _effective_count(count, passed, sizes[is_used].tolist(), sums[is_used].tolist())
        )
        figures |= {"passes": passed, "pass_rate": rate, "sessions": int(is_used.sum())}
        line = self._options.at_least
        figures["effect_size"] = float(2 * np.arcsin(np.sqrt(rate)) - 2 * np.arcsin(np.sqrt(line)))
        if effective is not None:
            low, high = wilson(rate, effective)
            figures |= {"design_effect": count / effective, "ci_low": low, "ci_high": high}
        reasons = {} if effective is not None else {"ci_low": "all records are of one session"}
        return with_reasons({**figures, "words": self._words(figures)}, reasons)

    def _words(self, figures: Mapping[str, Any]) -> str:
        line, low, high = self._options.at_least, figures["ci_low"], figures["ci_high"]
        rate = f"{line * 100:.6g}%"
        counts = f"{figures['passes']:,} of {figures['n']:,} pass"
        if low is None:
            return f"{counts}; one session gives no interval"
        side = (
            f"at least {rate}"
            if low >= line
            else f"below {rate}"
            if high < line
            else f"not known to be at least {rate}"
        )
        return f"{counts}: {side} (95 % interval {low:.1%} to {high:.1%})"


def _effective_count(count: int, passed: int, sizes: Sequence[int], sums: Sequence[int]) -> float | None:
    """Return the number of independent records with the same information as *count* records in sessions.

    *sizes* and *sums* are the records and the passes of each session. None for a single session.
    """
    squares, sessions = sum(size * size for size in sizes), len(sizes)
    if squares == count:
        return float(count)
    if sessions < 2:
        return None
    if passed in (0, count):
        return count * count / squares
    residuals = sum((count * total - size * passed) ** 2 for size, total in zip(sizes, sums, strict=True))
    return count / max(1.0, sessions / (sessions - 1) * residuals / (count * passed * (count - passed)))
