"""The distribution of the scores, by criterion and of all together."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib import import_module
from math import inf, nan
from typing import TYPE_CHECKING, Any

import attrs

from dicast import Record, RunContext, Within

from .scale import divided, multiplied, power_of
from .table import SCORES
from .ties import reaches
from .values import finder, finite, nowhere, number_or_nan, quiet

if TYPE_CHECKING:
    from .values import Column


_NO_LINES: Mapping[str, float] = {}


@attrs.frozen
class ScoreStats:
    """Count, mean, median, least, greatest and standard deviation of the scores, and how many pass.

    For each criterion in ``criteria``, and in ``overall`` of all scores put together: ``count``, ``missing`` (scores that are null
    or no finite number; a criterion that a record does not name at all is not counted), ``mean``, ``median``, ``min``, ``max``,
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

    def __init__(
        self, source_field: str, flag_field: str, ddof: int = 0, lines: Mapping[str, float] = _NO_LINES
    ) -> None:
        self._lines = lines if source_field == SCORES else _NO_LINES
        self._scores_of, self._flags_of, self._ddof = finder(source_field), finder(flag_field), ddof
        self._scores: dict[str, array[float]] = {}
        self._flags: dict[str, bytearray] = {}
        self._field = source_field
        self._without: Record | None = None

    def add(self, record: Record) -> None:
        """Take a record."""
        columns, scores = self._scores, self._scores_of(record)
        if not scores:
            self._without = record
        for criterion, value in scores.items():
            if criterion not in columns:
                columns[criterion] = array("d")
            columns[criterion].append(value if value.__class__ is float else number_or_nan(value))
        flags = self._flags
        for criterion, flag in self._flags_of(record).items():
            if flag is not None:
                if criterion not in flags:
                    flags[criterion] = bytearray()
                flags[criterion].append(1 if flag else 0)

    def finish(self) -> Mapping[str, object]:
        """The figures by criterion, and of all scores."""
        import numpy as np  # 0.1 s, which starting a run does not spend

        columns = {name: np.frombuffer(column) for name, column in self._scores.items()}
        names = dict.fromkeys((*columns, *self._flags))
        criteria = {name: self._summary([columns[name]] if name in columns else [], name) for name in names}
        overall = self._summary(list(columns.values()), *names)
        if not columns and self._without is not None:
            overall["reason"] = nowhere(self._field, "scores by criterion", self._without)
        return {"criteria": criteria, "overall": overall}

    def _summary(self, columns: Sequence[Column], *names: str) -> dict[str, Any]:
        import numpy as np

        there = np.concatenate([np.empty(0), *map(finite, columns)])
        flagged, passes = map(sum, zip((0, 0), *map(self._passes, names), strict=True))
        missing = sum(map(len, columns)) - len(there)
        return summary(there, missing, flagged, passes, self._ddof)

    def _passes(self, criterion: str) -> tuple[int, int]:
        """How many flags the criterion has, and how many are true; without any, how many scores reach its line."""
        import numpy as np

        flags, line = self._flags.get(criterion), self._lines.get(criterion)
        if flags is not None or line is None or criterion not in self._scores:
            return (0, 0) if flags is None else (len(flags), flags.count(1))
        scores = finite(np.frombuffer(self._scores[criterion]))
        return len(scores), int(reaches(scores, line).sum())


def summary(scores: Column, missing: int, flagged: int, passes: int, ddof: int = 0) -> dict[str, Any]:
    """The figures of *scores*, of which *missing* more are not there, and what there is of flags."""
    count = len(scores)
    found: dict[str, Any] = {"count": count, "missing": missing}
    if count:
        found |= distribution(scores, ddof)
    if count + missing:
        found |= {"flagged": flagged, "passes": passes, "pass_rate": passes / (count + missing)}
    return found


def distribution(values: Column, ddof: int) -> dict[str, float | None]:
    """Mean, median, least, greatest and standard deviation; the last is 0 of one value, None of others too few for *ddof*."""
    import numpy as np

    power = power_of(values)
    values = divided(values, power)
    with quiet():
        spread = values.std(ddof=ddof) if len(values) > max(1, ddof) else 0.0 if len(values) == 1 else nan
        figures = {"mean": values.mean(), "median": np.median(values), "min": values.min(), "max": values.max()}
        return {name: multiplied(value, power) for name, value in {**figures, "std": spread}.items()}
