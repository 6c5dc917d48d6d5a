"""Figures of the scores, by criterion and of all together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib import import_module
from math import inf
from typing import TYPE_CHECKING, Any

import attrs

from dicast import Record, RunContext, Within

from ..numbers.ties import reaches
from ..numbers.values import finite_values
from ..scores.columns import ScoreColumns
from ..scores.records import metrics_reader
from ..scores.summary import summarize_scores
from ..scores.table import SCORES

if TYPE_CHECKING:
    from ..numbers.values import Column


_NO_LINES: Mapping[str, float] = {}


@attrs.frozen
class ScoreStats:
    """Count, mean, median, minimum, maximum and standard deviation of the scores, and the number that pass.

    For each criterion in ``criteria``, and for all scores together in ``overall``: ``count``, ``missing``, ``mean``, ``median``, ``min``,
    ``max``, ``std``, ``flagged`` (scores with a flag), ``passes`` (true flags) and ``pass_rate``, which is passes/(count + missing).
    ``missing`` counts scores that are null or not finite, and subjects that the metric or judge failed for or left out; a record that
    does not name the criterion is not counted. An undefined figure is absent. If no record has scores, ``reason`` in ``overall`` lists the
    metrics that records have. Flags come from the extractor, by its threshold; the score of a metric or judge has a flag by its ``pass_at``.
    Without flags nothing passes, and ``flagged`` is 0.

    :param source_field: the place of the scores, a dotted path under ``metrics``: an object with a number for each criterion.
    :param flag_field: the place of the flags: an object with true or false for each criterion.
    :param ddof: the standard deviation divides by the count minus this number: 0 for the deviation of the scores themselves, 1 to
        estimate that of the population. A single score has a deviation of 0.
    """

    name = "score_stats"

    source_field: str = "scores"
    flag_field: str = "score_flags"
    ddof: int = attrs.field(default=0, validator=Within(0, inf, "0 or more (0 divides by the count, 1 by one less)"))

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Stats]:
        """Yield a collector without records. Import numpy, which takes 0.1 s, while the run waits for its first calls."""
        loading = asyncio.get_running_loop().run_in_executor(None, import_module, "numpy")
        yield Stats(self.source_field, self.flag_field, self.ddof, run.pass_at)
        await loading


class Stats:
    """Collector of all scores, 8 bytes each: a median needs all of them."""

    observes_failures = True

    def __init__(
        self, source_field: str, flag_field: str, ddof: int = 0, lines: Mapping[str, float] = _NO_LINES
    ) -> None:
        self._lines = lines if source_field == SCORES else _NO_LINES
        self._scores, self._read_flags, self._ddof = ScoreColumns(source_field), metrics_reader(flag_field), ddof
        self._flags: dict[str, list[int]] = {}

    def add(self, record: Record) -> None:
        """Add a record."""
        self._scores.add(record)
        counts = self._flags
        for criterion, flag in self._read_flags(record).items():
            if flag is not None:
                if criterion not in counts:
                    counts[criterion] = [0, 0]
                counts[criterion][1 if flag else 0] += 1

    def finish(self) -> Mapping[str, object]:
        """Return the figures by criterion, and of all scores."""
        columns = self._scores.finish()
        names = dict.fromkeys((*columns, *self._flags))
        criteria = {name: self._summary({name: columns[name]} if name in columns else {}, name) for name in names}
        return {"criteria": criteria, "overall": {**self._summary(columns, *names), **self._scores.missing_reason()}}

    def _summary(self, columns: Mapping[str, Column], *names: str) -> dict[str, Any]:
        import numpy as np  # 0.1 s, which starting a run does not spend

        scores = np.concatenate([np.empty(0), *map(finite_values, columns.values())])
        flagged, passes = map(sum, zip((0, 0), *(self._pass_figures(name, columns) for name in names), strict=True))
        missing = sum(map(len, columns.values())) - len(scores)
        return summarize_scores(scores, missing, flagged, passes, self._ddof)

    def _pass_figures(self, criterion: str, columns: Mapping[str, Column]) -> tuple[int, int]:
        """Return the number of flags and of true flags; without flags, the number of scores and of scores that reach the ``pass_at``."""
        flags, line = self._flags.get(criterion), self._lines.get(criterion)
        if flags is not None or line is None or criterion not in columns:
            return (0, 0) if flags is None else (sum(flags), flags[1])
        scores = finite_values(columns[criterion])
        return len(scores), int(reaches(scores, line).sum())
