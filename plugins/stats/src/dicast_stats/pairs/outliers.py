"""Subjects with the largest changes of score between two runs."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import attrs

from dicast import Results, Within
from dicast.toolkit.printable import short_name

from ..numbers.scale import TOO_LARGE
from ..numbers.ties import varies
from ..numbers.values import json_number
from ..scores.sides import compare_criteria
from ..scores.table import Key
from ..text.reasons import with_reasons
from ..text.sentences import count_subjects
from .scores import PairedScores, describe_change, pair_rows, subject_key

_NO_PAIRS = "no subject has a score in both runs"


@attrs.frozen
class Outliers:
    """Subjects with the largest changes of score, if both runs judged the same subjects.

    For each criterion, over the ``n`` subjects with a score in both runs: ``mean_difference`` (variant minus baseline) with ``ci_low``,
    ``ci_high`` (paired t, 95 %) and ``effect_size`` (d_z); ``outliers``, the subjects with the largest changes, largest first: ``subject_kind``,
    ``subject_id``, ``baseline``, ``variant`` and ``difference``; and ``words``. Subjects without a change are not listed. An undefined
    figure is null.

    :param top_n: how many subjects are listed.
    :param criteria: only these criteria; all by default.
    """

    name = "outliers"

    top_n: int = attrs.field(default=10, validator=Within(1, inf, "1 or more"))
    criteria: tuple[str, ...] = ()

    def compare(self, baseline: Results, variant: Results) -> Mapping[str, object]:
        """Return the subjects for each criterion."""
        rows = pair_rows(baseline, variant)
        return compare_criteria(
            baseline, variant, self.criteria, lambda sides: self._largest_changes(PairedScores.of(sides, rows))
        )

    def _largest_changes(self, scores: PairedScores) -> dict[str, Any]:
        import numpy as np  # 0.1 s, which starting a run does not spend

        largest = [
            place
            for place in np.argsort(-abs(scores.change), kind="stable")[: self.top_n].tolist()
            if scores.change[place]
        ]
        outliers = [
            {
                **subject_key(scores.subjects[place]),
                "baseline": float(scores.before[place]),
                "variant": float(scores.after[place]),
                "difference": json_number(scores.change[place]),
            }
            for place in largest
        ]
        figures = {**describe_change(scores.change), "outliers": outliers}
        if not len(scores.change):
            return with_reasons({**figures, "words": _NO_PAIRS}, {"n": _NO_PAIRS})
        if not outliers:
            words = f"no score of {count_subjects(len(scores.change))} changed"
        elif outliers[0]["difference"] is None:
            words = f"not known over {count_subjects(len(scores.change))}: {TOO_LARGE}"
        elif len(outliers) > 1 and not varies(scores.change):
            words = f"all {len(scores.change):,} subjects changed by {outliers[0]['difference']:+.4g}"
        else:
            words = f"of {count_subjects(len(scores.change))}, {_short(scores.subjects[largest[0]])!r} changed most, by {outliers[0]['difference']:+.4g}"
        reasons = (
            {}
            if figures["effect_size"] is not None
            else {"effect_size": "all differences are equal, or there is only one pair"}
        )
        return with_reasons({**figures, "words": words}, reasons)


def _short(subject: Key) -> str:
    _, name = subject
    return short_name(name)
