"""Single number for ranking variants."""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import attrs

from dicast import Record, RunContext

from ..numbers.scale import common_power, divide_by_power, mean_of, multiply_by_power
from ..numbers.ties import reaches
from ..numbers.values import json_number
from ..scores.records import record_score


@attrs.frozen
class VariantRanking:
    """Weighted sum of the mean score and the pass rate, ``composite``.

    A record's value is its ``metrics.score``, or without one the mean of its ``metrics.scores``. ``samples`` counts values,
    ``missing`` records without a value, which do not pass: ``pass_rate`` is passes/(samples + missing). The composite is ``weight_mean``
    times the ``mean`` plus ``weight_pass`` times the ``pass_rate``, so it may exceed 1. The document is empty if no record has a value.

    :param threshold: the lowest value that passes, in 12 significant digits: the mean of .6, .7 and .8 reaches .7.
    :param weight_mean: the weight of the mean.
    :param weight_pass: the weight of the pass rate.
    """

    name = "variant_ranking"

    threshold: float = 0.7
    weight_mean: float = 1.0
    weight_pass: float = 1.0

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Ranking]:
        """Yield a collector without records."""
        yield Ranking(self)


class Ranking:
    """Collector of the records' values."""

    def __init__(self, options: VariantRanking) -> None:
        self._options = options
        self._values = array("d")
        self._missing = 0

    def add(self, record: Record) -> None:
        """Add a record."""
        value = record_score(record)
        if value is None:
            self._missing += 1
        else:
            self._values.append(value)

    def finish(self) -> Mapping[str, object]:
        """Return the composite and its parts."""
        import numpy as np  # 0.1 s, which starting a run does not spend

        samples, options = len(self._values), self._options
        if not samples:
            return {}
        values = np.frombuffer(self._values)
        power, passes = common_power(values), int(reaches(values, options.threshold).sum())
        mean = multiply_by_power(mean_of(divide_by_power(values, power)), power)
        pass_rate = passes / (samples + self._missing)
        return {
            "samples": samples,
            "missing": self._missing,
            "mean": mean,
            "threshold": options.threshold,
            "pass_rate": pass_rate,
            "composite": None
            if mean is None
            else json_number(options.weight_mean * mean + options.weight_pass * pass_rate),
        }
