"""In which categories of subjects two runs differ."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING

import attrs

from dicast import Results, Within
from dicast.toolkit.json_values import MISSING

from ..numbers.adjustment import Adjustment, check_adjustment
from ..numbers.values import quiet
from ..scores.records import score_of
from ..scores.row_values import row_values, unkept
from ..text.reasons import there
from .criteria_effects import adjust, effect_of

if TYPE_CHECKING:
    from ..numbers.values import Column


@attrs.frozen
class CategoryEffects:
    """In which categories of rows two runs differ: the Mann-Whitney test of the rows' scores in each, adjusted for their number.

    A row's category is what its column *category_field* holds; its score is its ``metrics.score``, else the mean of its ``metrics.scores``.
    ``categories`` has for each, in alphabetical order, what ``stats/criteria_effects`` has for a criterion: ``n``, ``n_baseline``,
    ``n_variant``, ``mean_difference``, ``effect_size`` (Cliff's delta) with ``ci_low`` and ``ci_high``, ``u``, ``p_value``,
    ``adjusted_p_value`` and ``words``. ``only_in_baseline`` and ``only_in_variant`` are the categories of one run alone, ``without`` how many
    rows have none.

    :param category_field: the row's column, or a dotted path in it.
    :param adjustment: how ``adjusted_p_value`` accounts for several categories: ``holm``, ``fdr``, ``bonferroni`` or ``none``.
    :param min_samples: how many scores of a category each run needs, 2 or more.
    """

    name = "category_effects"

    category_field: str = "category"
    adjustment: Adjustment = attrs.field(default="holm", validator=check_adjustment)
    min_samples: int = attrs.field(default=2, validator=Within(2, inf, "2 or more"))

    def compare(self, baseline: Results, variant: Results) -> Mapping[str, object]:
        """The test of each category."""
        (before, nowhere), (after, without) = self._scores(baseline), self._scores(variant)
        with quiet():
            found = {
                name: effect_of(before[name], after[name], self.min_samples)
                for name in sorted(before.keys() & after.keys())
            }
        adjust(found.values(), self.adjustment)
        alone = {
            "only_in_baseline": sorted(before.keys() - after.keys()),
            "only_in_variant": sorted(after.keys() - before.keys()),
        }
        none = {}
        if not found:
            why = f"no category is in both runs: the rows' column {self.category_field!r} says it"
            none["reason"] = why + unkept(baseline=baseline, variant=variant)
        return {"categories": found, **there(alone), **there({"without": nowhere + without}), **none}

    def _scores(self, results: Results) -> tuple[Mapping[str, Column], int]:
        """The scores by category, of each subject's newest record, and how many subjects have no category."""
        import numpy as np  # 0.1 s, which starting a run does not spend

        newest = {
            (str(record.get("subject_kind", "row")), subject_id): record for subject_id, record in results.records()
        }
        columns: dict[str, array[float]] = {}
        without, of_row = 0, row_values(results, [self.category_field])
        for subject, record in newest.items():
            (category,), score = of_row(subject, record), score_of(record)
            if category is MISSING or category is None:
                without += 1
            elif score is not None:
                columns.setdefault(str(category), array("d")).append(score)
        return {name: np.frombuffer(column) for name, column in columns.items()}, without
