"""Practical size of a difference between two runs."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING, Any

import attrs

from dicast import Results, Within

from ..numbers.ties import reaches
from ..scores.sides import Sides, compare_criteria
from ..text.reasons import with_reasons
from ..text.sentences import count_subjects
from .scores import PairedScores, describe_change, pair_rows, scale_warning

if TYPE_CHECKING:
    from ..scores.table import Rows

_SHARES = ("meaningful_change_rate", "baseline_success_rate", "variant_success_rate", "success_delta", "nnt")


@attrs.frozen
class Practical:
    """Shares of subjects that changed by enough to matter, and that succeed, if both runs judged the same subjects.

    The defaults are for grades from 1 to 5; if all scores are from 0 to 1, ``words`` warns of it. For each criterion, over the ``n`` subjects
    with a score in both runs: ``mean_difference`` (variant minus baseline) with ``ci_low``, ``ci_high`` (paired t, 95 %) and ``effect_size``
    (d_z); ``meaningful_change_rate``, the share of subjects whose score changed by *threshold* or more in either direction;
    ``baseline_success_rate`` and ``variant_success_rate``, the shares at *success_threshold* or above; ``success_delta``, their difference;
    ``nnt``, 1/``success_delta``: the number of subjects for one more success, negative for one success less, null if both rates are equal
    (R. J. Cook and D. L. Sackett, BMJ 310, 1995, 452-454); and ``words``. An undefined figure is null, and ``reasons`` has the cause.

    :param threshold: the smallest change of a score that matters, in the scores' scale; more than 0.
    :param success_threshold: the lowest score of a success.
    :param criteria: only these criteria; all by default.
    """

    name = "practical"

    threshold: float = attrs.field(default=1.0, validator=Within(0, inf, "more than 0", open=True))
    success_threshold: float = 4.0
    criteria: tuple[str, ...] = ()

    def compare(self, baseline: Results, variant: Results) -> Mapping[str, object]:
        """Return the shares for each criterion."""
        rows = pair_rows(baseline, variant)
        return compare_criteria(baseline, variant, self.criteria, lambda sides: self._change_shares(sides, rows))

    def _change_shares(self, sides: Sides, rows: tuple[Rows, Rows]) -> dict[str, Any]:
        scores = PairedScores.of(sides, rows)
        figures, count = {**describe_change(scores.change), **dict.fromkeys(_SHARES)}, len(scores.change)
        if not count:
            return with_reasons(
                {**figures, "words": "no subject has a score in both runs"},
                {"n": "no subject has a score in both runs"},
            )
        before, after = (int(reaches(side, self.success_threshold).sum()) for side in (scores.before, scores.after))
        changed = float(reaches(abs(scores.change), self.threshold).mean())
        rates = (
            changed,
            before / count,
            after / count,
            (after - before) / count,
            count / (after - before) if after != before else None,
        )
        reasons = {} if after != before else {"nnt": "as many succeed in both runs"}
        if count < 2 or figures["effect_size"] is None:
            reasons["effect_size"] = "all differences are equal: there is no variance to compare them with"
        words = f"{changed:.1%} of {count_subjects(count)} changed by {self.threshold:g} or more; {before:,} succeeded ({self.success_threshold:g} or more) before, {after:,} do now"
        line = sides.variant.pass_line(sides.criterion)
        words += scale_warning(scores, self.success_threshold, line, "success_threshold and threshold")
        return with_reasons({**figures, **dict(zip(_SHARES, rates, strict=True)), "words": words}, reasons)
