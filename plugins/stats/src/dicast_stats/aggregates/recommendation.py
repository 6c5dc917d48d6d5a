"""Sentence on the criterion with the highest mean."""

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
    """Names the criterion with the highest mean, the first of equal criteria.

    ``recommendation`` is a sentence, ``summary`` the figures of all scores as in ``stats/score_stats``, ``best_criteria``
    the leader and ``best_stats`` its figures; the last two are absent without a leader. The leader is the leader of this run; whether
    the lead is more than chance is a question for ``stats/paired``, which compares two runs.

    :param min_samples: how many scores are needed, of all criteria together.
    :param improvement_margin: how far the leader has to be above the mean of all scores for the sentence to mention it.
    :param source_field: the place of the scores, as in ``stats/score_stats``.
    :param flag_field: the place of the flags.
    """

    name = "recommendation"

    min_samples: int = attrs.field(default=5, validator=Within(0, inf, "0 or more"))
    improvement_margin: float = 0.05
    source_field: str = "scores"
    flag_field: str = "score_flags"

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Adviser]:
        """Yield a collector without records."""
        yield Adviser(self, Stats(self.source_field, self.flag_field, lines=run.pass_at))


@attrs.frozen
class Adviser:
    """Collector of the scores that names the leader."""

    options: Recommendation
    stats: Stats

    def add(self, record: Record) -> None:
        """Add a record."""
        self.stats.add(record)

    def finish(self) -> Mapping[str, object]:
        """Return the sentence, and the figures behind it."""
        figures: Mapping[str, Any] = self.stats.finish()
        overall, criteria = figures["overall"], figures["criteria"]
        if overall["count"] < self.options.min_samples:
            return {"recommendation": TOO_FEW, "summary": overall}
        means = {
            name: criterion_figures["mean"]
            for name, criterion_figures in criteria.items()
            if criterion_figures.get("mean") is not None
        }
        if not means:
            return {"recommendation": NOBODY, "summary": overall}
        highest = max(means.values())
        best = next(name for name, mean in means.items() if reaches(mean, highest))
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
