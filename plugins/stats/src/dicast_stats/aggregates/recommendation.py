"""Which criterion leads, in a sentence."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from math import inf
from typing import Any

import attrs

from dicast import Record, RunContext, Within

from ..numbers.ties import reaches
from .score_stats import Stats

TOO_FEW = "Insufficient data for confident recommendation"
NOBODY = "No clear leader across criteria"


@attrs.frozen
class Recommendation:
    """Names the criterion with the highest mean; of equal ones the first.

    ``recommendation`` is a sentence, ``summary`` the figures of all scores as ``stats/score_stats`` has them, ``best_criteria``
    the leader and ``best_stats`` its figures; these two are absent where nobody leads. It says who leads in this run, not that
    the lead is more than chance: for that compare two runs with ``stats/paired``.

    :param min_samples: how many scores there have to be, of all criteria together.
    :param improvement_margin: how far above the mean of all scores the leader has to be for the sentence to say so.
    :param source_field: where the scores are, as in ``stats/score_stats``.
    :param flag_field: where the flags are.
    """

    name = "recommendation"

    min_samples: int = attrs.field(default=5, validator=Within(0, inf, "0 or more"))
    improvement_margin: float = 0.05
    source_field: str = "scores"
    flag_field: str = "score_flags"

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Adviser]:
        """Begin with no record."""
        yield Adviser(self, Stats(self.source_field, self.flag_field, lines=run.pass_at))


@attrs.frozen
class Adviser:
    """Takes records, and names the leader."""

    options: Recommendation
    stats: Stats

    def add(self, record: Record) -> None:
        """Take a record."""
        self.stats.add(record)

    def finish(self) -> Mapping[str, object]:
        """The sentence, and what it rests on."""
        figures: Mapping[str, Any] = self.stats.finish()
        overall, criteria = figures["overall"], figures["criteria"]
        if overall["count"] < self.options.min_samples:
            return {"recommendation": TOO_FEW, "summary": overall}
        means = {name: one["mean"] for name, one in criteria.items() if one.get("mean") is not None}
        if not means:
            return {"recommendation": NOBODY, "summary": overall}
        most = max(means.values())
        best = next(name for name, mean in means.items() if reaches(mean, most))
        sentence = self._sentence(best, criteria[best], overall)
        return {
            "recommendation": sentence,
            "summary": overall,
            "best_criteria": best,
            "best_stats": criteria[best],
        }

    def _sentence(self, best: str, stats: Mapping[str, Any], overall: Mapping[str, Any]) -> str:
        sentence = f"{best} leads with mean score {stats['mean']:.2f}, pass rate {stats['pass_rate']:.0%}"
        if overall["mean"] is None or not reaches(stats["mean"], overall["mean"] + self.options.improvement_margin):
            return sentence
        return f"{sentence}, which is {stats['mean'] - overall['mean']:.2f} above overall average"
