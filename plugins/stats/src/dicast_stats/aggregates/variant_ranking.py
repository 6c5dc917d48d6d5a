"""One number for a variant, to rank it among others by."""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import attrs

from dicast import Record, RunContext

from ..numbers.scale import divided, mean_of, multiplied, power_of
from ..numbers.ties import reaches
from ..numbers.values import plain
from ..scores.records import score_of


@attrs.frozen
class VariantRanking:
    """Weighs the mean score and the share that passes into one number, ``composite``.

    A record's value is its ``metrics.score``, or without one the mean of its ``metrics.scores``. ``samples`` counts values,
    ``missing`` records without one, which do not pass: ``pass_rate`` is passes/(samples + missing). The composite is ``weight_mean``
    times the ``mean`` and ``weight_pass`` times the ``pass_rate``, so it may exceed 1. It is empty where no record has a value.

    :param threshold: what a value has to reach to pass, in 12 significant digits: the mean of .6, .7 and .8 reaches .7.
    :param weight_mean: the weight of the mean.
    :param weight_pass: the weight of the share that passes.
    """

    name = "variant_ranking"

    threshold: float = 0.7
    weight_mean: float = 1.0
    weight_pass: float = 1.0

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Ranking]:
        """Begin with no record."""
        yield Ranking(self)


class Ranking:
    """Takes records, and keeps their values."""

    def __init__(self, options: VariantRanking) -> None:
        self._options = options
        self._values = array("d")
        self._missing = 0

    def add(self, record: Record) -> None:
        """Take a record."""
        value = score_of(record)
        if value is None:
            self._missing += 1
        else:
            self._values.append(value)

    def finish(self) -> Mapping[str, object]:
        """The composite, and what it is made of."""
        import numpy as np  # 0.1 s, which starting a run does not spend

        samples, options = len(self._values), self._options
        if not samples:
            return {}
        values = np.frombuffer(self._values)
        power, passes = power_of(values), int(reaches(values, options.threshold).sum())
        mean = multiplied(mean_of(divided(values, power)), power)
        pass_rate = passes / (samples + self._missing)
        return {
            "samples": samples,
            "missing": self._missing,
            "mean": mean,
            "threshold": options.threshold,
            "pass_rate": pass_rate,
            "composite": None if mean is None else plain(options.weight_mean * mean + options.weight_pass * pass_rate),
        }
