"""The subjects whose scores changed most between two runs."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import attrs

from dicast import Results, Within

from ..numbers.scale import TOO_LARGE
from ..numbers.ties import varies
from ..numbers.values import plain
from ..scores.sides import compared
from ..scores.table import Key
from ..text.reasons import explained
from ..text.sentences import subjects
from .scores import PairedScores, mean_change, named, paired_rows

_NONE = "no subject has a score in both runs"
_LONGEST = 60
"""How many characters of an id are in a sentence."""


@attrs.frozen
class Outliers:
    """The subjects whose scores changed most, where both runs judged the same subjects.

    For each criterion, over the ``n`` subjects with a score in both: ``mean_difference`` (variant less baseline) with ``ci_low``, ``ci_high``
    (paired t, 95 %) and ``effect_size`` (d_z); ``outliers``, the subjects with the largest changes, largest first: ``subject_kind``,
    ``subject_id``, ``baseline``, ``variant`` and ``difference``; and ``words``. Subjects that did not change are not listed. What is not
    defined is null.

    :param top_n: how many subjects are listed.
    :param criteria: only these; all by default.
    """

    name = "outliers"

    top_n: int = attrs.field(default=10, validator=Within(1, inf, "1 or more"))
    criteria: tuple[str, ...] = ()

    def compare(self, baseline: Results, variant: Results) -> Mapping[str, object]:
        """The subjects for each criterion."""
        rows = paired_rows(baseline, variant)
        return compared(baseline, variant, self.criteria, lambda sides: self._listed(PairedScores.of(sides, rows)))

    def _listed(self, scores: PairedScores) -> dict[str, Any]:
        import numpy as np  # 0.1 s, which starting a run does not spend

        largest = [
            place
            for place in np.argsort(-abs(scores.change), kind="stable")[: self.top_n].tolist()
            if scores.change[place]
        ]
        found = [
            {
                **named(scores.subjects[place]),
                "baseline": float(scores.was[place]),
                "variant": float(scores.now[place]),
                "difference": plain(scores.change[place]),
            }
            for place in largest
        ]
        figures = {**mean_change(scores.change), "outliers": found}
        if not len(scores.change):
            return explained({**figures, "words": _NONE}, {"n": _NONE})
        if not found:
            words = f"no score of {subjects(len(scores.change))} changed"
        elif found[0]["difference"] is None:
            words = f"not known over {subjects(len(scores.change))}: {TOO_LARGE}"
        elif len(found) > 1 and not varies(scores.change):
            words = f"all {len(scores.change):,} subjects changed by {found[0]['difference']:+.4g}"
        else:
            words = f"of {subjects(len(scores.change))}, {_short(scores.subjects[largest[0]])!r} changed most, by {found[0]['difference']:+.4g}"
        alike = (
            {}
            if figures["effect_size"] is not None
            else {"effect_size": "the differences are all alike, or there is one"}
        )
        return explained({**figures, "words": words}, alike)


def _short(subject: Key) -> str:
    _, name = subject
    return name if len(name) <= _LONGEST else f"{name[: _LONGEST - 1]}…"
