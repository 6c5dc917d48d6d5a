"""The distribution of the scores, by criterion and of all together."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from math import isfinite
from typing import TYPE_CHECKING, Any

import attrs

from dicast import ConfigError, Record, RunContext

from .values import mapping, number, plain, quiet

if TYPE_CHECKING:
    from .values import Column


def check_ddof(_instance: object, _attribute: attrs.Attribute[int], ddof: int) -> None:
    """Refuse fewer degrees of freedom than none."""
    if ddof < 0:
        raise ConfigError(f"ddof is {ddof}; 0 divides by the count, 1 by one less")


@attrs.frozen
class ScoreStats:
    """Count, mean, median, least, greatest and standard deviation of the scores, and how many pass.

    For each criterion in ``criteria``, and in ``overall`` of all scores put together: ``count``, ``missing`` (scores that are null
    or no finite number; a criterion that a record does not name at all is not counted), ``mean``, ``median``, ``min``, ``max``,
    ``std``, ``flagged`` (how many have a flag), ``passes`` (true flags) and ``pass_rate``, which is passes/(count + missing). What
    is not defined is absent. Flags are the extractor's, by its threshold; without one nothing passes, and ``flagged`` is 0.

    :param source_field: where the scores are, a dotted path under ``metrics``: an object with a number for each criterion.
    :param flag_field: where the flags are: an object with true or false for each criterion.
    :param ddof: the standard deviation divides by the count less this: 0 for the scores as they are, 1 to estimate that of all
        there could be. A single score has 0.
    """

    name = "score_stats"

    source_field: str = "scores"
    flag_field: str = "score_flags"
    ddof: int = attrs.field(default=0, validator=check_ddof)

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Stats]:
        """Begin with no record."""
        yield Stats(self.source_field, self.flag_field, self.ddof)


class Stats:
    """Takes records and keeps their scores, 8 bytes each: a median needs all of them."""

    def __init__(self, source_field: str, flag_field: str, ddof: int = 0) -> None:
        self._source, self._flags, self._ddof = source_field, flag_field, ddof
        self._scores: dict[str, array[float]] = {}
        self._missing, self._flagged, self._passes = (Counter[str]() for _ in range(3))

    def add(self, record: Record) -> None:
        """Take a record."""
        scores = self._scores
        for criterion, value in mapping(record, self._source).items():
            column = scores.get(criterion)
            if column is None:
                column = scores[criterion] = array("d")
            found = value if value.__class__ is float and isfinite(value) else number(value)
            if found is None:
                self._missing[criterion] += 1
            else:
                column.append(found)
        for criterion, flag in mapping(record, self._flags).items():
            if flag is not None:
                self._flagged[criterion] += 1
                if flag:
                    self._passes[criterion] += 1

    def finish(self) -> Mapping[str, object]:
        """The figures by criterion, and of all scores."""
        import numpy as np  # 0.1 s, which starting a run does not spend

        columns = {name: np.frombuffer(column) for name, column in self._scores.items() if column}
        names = dict.fromkeys((*self._scores, *self._flagged))
        criteria = {name: self._summary(columns.get(name, np.empty(0)), name) for name in names}
        overall = self._summary(np.concatenate([np.empty(0), *columns.values()]), *names)
        return {"criteria": criteria, "overall": overall}

    def _summary(self, scores: Column, *names: str) -> dict[str, Any]:
        missing, flagged, passes = (
            sum(count[name] for name in names) for count in (self._missing, self._flagged, self._passes)
        )
        return summary(scores, missing, flagged, passes, self._ddof)


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

    spread: float | None = 0.0 if len(values) == 1 else None
    with quiet():
        if len(values) > max(1, ddof):
            spread = plain(values.std(ddof=ddof))
        ends = {"min": plain(values.min()), "max": plain(values.max()), "std": spread}
        return {"mean": plain(values.mean()), "median": plain(np.median(values)), **ends}
