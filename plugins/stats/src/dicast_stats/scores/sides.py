"""Scores of two runs for each criterion."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import attrs

from dicast import Results

from ..numbers.values import quiet
from ..text.reasons import there
from .table import METRICS, Table

if TYPE_CHECKING:
    from ..numbers.values import Column


@attrs.frozen
class Sides:
    """The scores of two runs for one criterion."""

    criterion: str
    baseline: Table
    variant: Table

    @property
    def present(self) -> tuple[Column, Column]:
        """The scores that are there, of baseline and variant."""
        return self.baseline.present(self.criterion), self.variant.present(self.criterion)


def compared(
    baseline: Results, variant: Results, criteria: Sequence[str], measure: Callable[[Sides], Any]
) -> dict[str, Any]:
    """What *measure* says of each criterion that both runs have, in alphabetical order, and which ones one of them alone has.

    *criteria* are those that are wanted, all when it is empty; those of them that neither run has are named, too.
    """
    tables = Table.of(baseline), Table.of(variant)
    wanted = set(criteria) or tables[0].criteria | tables[1].criteria
    if not criteria and tables[0].only_metric is not None and tables[0].only_metric == tables[1].only_metric:
        wanted -= {METRICS}  # the metric has the same scores under its name
    ours, theirs = (set(table.criteria & wanted) for table in tables)
    with quiet():
        found = {criterion: measure(Sides(criterion, *tables)) for criterion in sorted(ours & theirs)}
    alone = {
        "only_in_baseline": sorted(ours - theirs),
        "only_in_variant": sorted(theirs - ours),
        "in_neither": sorted(wanted - ours - theirs),
    }
    return {"criteria": found, **there(alone)}
