"""Scores of two runs for each criterion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from dicast import ALL_METRICS, Results

from ..numbers.values import ignore_float_warnings
from ..text.reasons import without_empty
from .table import Table

if TYPE_CHECKING:
    from ..numbers.values import Column


@attrs.frozen
class Sides:
    """Scores of two runs for one criterion."""

    criterion: str
    baseline: Table
    variant: Table

    @property
    def known_scores(self) -> tuple[Column, Column]:
        """Return the scores of baseline and variant, without missing scores."""
        return self.baseline.known_scores(self.criterion), self.variant.known_scores(self.criterion)


def compare_criteria(
    baseline: Results, variant: Results, criteria: Sequence[str], measure: Callable[[Sides], Any]
) -> dict[str, Any]:
    """Return the result of *measure* for each criterion of both runs, in alphabetical order, and the criteria of one run alone.

    *criteria* selects criteria; all are compared if it is empty. The document lists the selected criteria that neither run has.
    """
    tables = Table.of(baseline), Table.of(variant)
    names = set(criteria) or tables[0].criteria | tables[1].criteria
    if not criteria and tables[0].only_metric is not None and tables[0].only_metric == tables[1].only_metric:
        names -= {ALL_METRICS}  # the only metric has the same scores under its name
    ours, theirs = (set(table.criteria & names) for table in tables)
    with ignore_float_warnings():
        results = {criterion: measure(Sides(criterion, *tables)) for criterion in sorted(ours & theirs)}
    unshared = {
        "only_in_baseline": sorted(ours - theirs),
        "only_in_variant": sorted(theirs - ours),
        "in_neither": sorted(names - ours - theirs),
    }
    return {"criteria": results, **without_empty(unshared)}
