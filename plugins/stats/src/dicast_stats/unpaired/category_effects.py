"""Differences of two runs by category of subjects."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from math import inf
from typing import TYPE_CHECKING

import attrs

from dicast import Results, Within
from dicast.toolkit.json_values import MISSING

from ..numbers.adjustment import Adjustment, check_adjustment
from ..numbers.values import ignore_float_warnings
from ..scores.records import record_score
from ..scores.row_values import missing_columns_text, row_values
from ..text.reasons import without_empty
from .criteria_effects import adjust_effects, measure_effect

if TYPE_CHECKING:
    from ..numbers.values import Column


@attrs.frozen
class CategoryEffects:
    """Mann-Whitney test of two runs' scores in each category of rows, adjusted for the number of categories.

    A row's category is the value of its column *category_field*; its score is its ``metrics.score``, else the mean of its ``metrics.scores``.
    ``categories`` has for each category, in alphabetical order, the figures of ``stats/criteria_effects``: ``n``, ``n_baseline``,
    ``n_variant``, ``mean_difference``, ``effect_size`` (Cliff's delta) with ``ci_low`` and ``ci_high``, ``u``, ``p_value``,
    ``adjusted_p_value`` and ``words``. ``only_in_baseline`` and ``only_in_variant`` are the categories of one run alone; ``without`` is the
    number of rows without a category.

    :param category_field: the row's column, or a dotted path in it.
    :param adjustment: how ``adjusted_p_value`` accounts for several categories: ``holm``, ``fdr``, ``bonferroni`` or ``none``.
    :param min_samples: how many scores of a category each run needs, 2 or more.
    """

    name = "category_effects"

    category_field: str = "category"
    adjustment: Adjustment = attrs.field(default="holm", validator=check_adjustment)
    min_samples: int = attrs.field(default=2, validator=Within(2, inf, "2 or more"))

    def compare(self, baseline: Results, variant: Results) -> Mapping[str, object]:
        """Return the test of each category."""
        (before, nowhere), (after, without) = self._scores(baseline), self._scores(variant)
        with ignore_float_warnings():
            effects = {
                name: measure_effect(before[name], after[name], self.min_samples)
                for name in sorted(before.keys() & after.keys())
            }
        adjust_effects(effects.values(), self.adjustment)
        unshared = {
            "only_in_baseline": sorted(before.keys() - after.keys()),
            "only_in_variant": sorted(after.keys() - before.keys()),
        }
        reason_part = {}
        if not effects:
            reason = f"no category is in both runs: the rows' column {self.category_field!r} has the category"
            reason_part["reason"] = reason + missing_columns_text(baseline=baseline, variant=variant)
        return {
            "categories": effects,
            **without_empty(unshared),
            **without_empty({"without": nowhere + without}),
            **reason_part,
        }

    def _scores(self, results: Results) -> tuple[Mapping[str, Column], int]:
        """Return the scores by category, from each subject's newest record, and the number of subjects without a category."""
        import numpy as np  # 0.1 s, which starting a run does not spend

        newest = {
            (str(record.get("subject_kind", "row")), subject_id): record for subject_id, record in results.records()
        }
        columns: dict[str, array[float]] = {}
        without, of_row = 0, row_values(results, [self.category_field])
        for subject, record in newest.items():
            (category,), score = of_row(subject, record), record_score(record)
            if category is MISSING or category is None:
                without += 1
            elif score is not None:
                columns.setdefault(str(category), array("d")).append(score)
        return {name: np.frombuffer(column) for name, column in columns.items()}, without
