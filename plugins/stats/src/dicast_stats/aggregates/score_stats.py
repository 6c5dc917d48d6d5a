"""The distribution of the scores, by criterion and of all together."""

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
from ..numbers.values import finite
from ..scores.columns import ScoreColumns
from ..scores.records import finder
from ..scores.summary import summary
from ..scores.table import SCORES

if TYPE_CHECKING:
    from ..numbers.values import Column


_NO_LINES: Mapping[str, float] = {}


@attrs.frozen
class ScoreStats:
    """Count, mean, median, least, greatest and standard deviation of the scores, and how many pass.

    For each criterion in ``criteria``, and in ``overall`` of all scores put together: ``count``, ``missing`` (scores that are null
    or no finite number, and those of subjects that the metric or judge failed for or left out; a criterion that a record does not name at all is not counted), ``mean``, ``median``, ``min``, ``max``,
    ``std``, ``flagged`` (how many have a flag), ``passes`` (true flags) and ``pass_rate``, which is passes/(count + missing). What
    is not defined is absent; where no record has scores, ``reason`` in ``overall`` says what there is instead. Flags are the
    extractor's, by its threshold; a metric's or judge's score has one by its ``pass_at``. Without any nothing passes, and ``flagged`` is 0.

    :param source_field: where the scores are, a dotted path under ``metrics``: an object with a number for each criterion.
    :param flag_field: where the flags are: an object with true or false for each criterion.
    :param ddof: the standard deviation divides by the count less this: 0 for the scores as they are, 1 to estimate that of all
        there could be. A single score has 0.
    """

    name = "score_stats"

    source_field: str = "scores"
    flag_field: str = "score_flags"
    ddof: int = attrs.field(default=0, validator=Within(0, inf, "0 or more (0 divides by the count, 1 by one less)"))

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Stats]:
        """Begin with no record; numpy, which takes 0.1 s, is imported while the first calls are waited for."""
        loading = asyncio.get_running_loop().run_in_executor(None, import_module, "numpy")
        yield Stats(self.source_field, self.flag_field, self.ddof, run.pass_at)
        await loading


class Stats:
    """Takes records and keeps their scores, 8 bytes each: a median needs all of them."""

    observes_failures = True

    def __init__(
        self, source_field: str, flag_field: str, ddof: int = 0, lines: Mapping[str, float] = _NO_LINES
    ) -> None:
        self._lines = lines if source_field == SCORES else _NO_LINES
        self._scores, self._flags_of, self._ddof = ScoreColumns(source_field), finder(flag_field), ddof
        self._flags: dict[str, list[int]] = {}

    def add(self, record: Record) -> None:
        """Take a record."""
        self._scores.add(record)
        counts = self._flags
        for criterion, flag in self._flags_of(record).items():
            if flag is not None:
                if criterion not in counts:
                    counts[criterion] = [0, 0]
                counts[criterion][1 if flag else 0] += 1

    def finish(self) -> Mapping[str, object]:
        """The figures by criterion, and of all scores."""
        columns = self._scores.finish()
        names = dict.fromkeys((*columns, *self._flags))
        criteria = {name: self._summary({name: columns[name]} if name in columns else {}, name) for name in names}
        return {"criteria": criteria, "overall": {**self._summary(columns, *names), **self._scores.unnamed()}}

    def _summary(self, columns: Mapping[str, Column], *names: str) -> dict[str, Any]:
        import numpy as np  # 0.1 s, which starting a run does not spend

        there = np.concatenate([np.empty(0), *map(finite, columns.values())])
        flagged, passes = map(sum, zip((0, 0), *(self._passes(name, columns) for name in names), strict=True))
        missing = sum(map(len, columns.values())) - len(there)
        return summary(there, missing, flagged, passes, self._ddof)

    def _passes(self, criterion: str, columns: Mapping[str, Column]) -> tuple[int, int]:
        """How many flags the criterion has, and how many are true; without any, how many scores reach its line."""
        flags, line = self._flags.get(criterion), self._lines.get(criterion)
        if flags is not None or line is None or criterion not in columns:
            return (0, 0) if flags is None else (sum(flags), flags[1])
        scores = finite(columns[criterion])
        return len(scores), int(reaches(scores, line).sum())
