"""The scores of records, a column for each criterion."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping, Sequence
from math import nan
from typing import TYPE_CHECKING, Any

from dicast import Record

from .table import there
from .values import finder, finite, nowhere, number_or_nan

if TYPE_CHECKING:
    from .values import Column


class ScoreColumns:
    """Takes records, and keeps the scores at *source_field* of the *criteria*, all when that is empty: 8 bytes each."""

    def __init__(self, source_field: str, criteria: Sequence[str]) -> None:
        self._field, self._wanted, self._scores_of = source_field, frozenset(criteria), finder(source_field)
        self._columns: dict[str, array[float]] = {}
        self._without: Record | None = None

    def add(self, record: Record) -> None:
        """Take a record."""
        columns, scores = self._columns, self._scores_of(record)
        if not scores:
            self._without = record
        for criterion, value in scores.items():
            if self._wanted and criterion not in self._wanted:
                continue
            if criterion not in columns:
                columns[criterion] = array("d")
            columns[criterion].append(value if value.__class__ is float else number_or_nan(value))

    def items(self) -> Iterator[tuple[str, Column]]:
        """Each criterion with those of its scores that are finite numbers."""
        import numpy as np  # 0.1 s, which starting a run does not spend

        for name, column in self._columns.items():
            yield name, finite(np.frombuffer(column))

    def missing(self, criterion: str) -> int:
        """How many records name the criterion, and have no number."""
        import numpy as np

        column = np.frombuffer(self._columns[criterion])
        return len(column) - len(finite(column))

    def finished(self, criteria: Mapping[str, Any]) -> dict[str, Any]:
        """The document of the figures by criterion, which says what was wanted and is not there."""
        unseen = {"unseen": sorted(self._wanted - self._columns.keys())}
        none = {}
        if not self._columns and self._without is not None:
            none = {"reason": nowhere(self._field, "scores by criterion", self._without)}
        return {"criteria": dict(criteria), **there(unseen), **none}


class AlignedColumns:
    """Takes records, and keeps a column of scores for each criterion, NaN where there is none; *rows* is how many records there were."""

    def __init__(self, source_field: str, criteria: Sequence[str] = ()) -> None:
        self._wanted, self._scores_of = frozenset(criteria), finder(source_field)
        self._columns: dict[str, array[float]] = {}
        self.rows = 0

    def add(self, record: Record) -> None:
        """Take a record."""
        row, columns, wanted = self.rows, self._columns, self._wanted
        for criterion, value in self._scores_of(record).items():
            if wanted and criterion not in wanted:
                continue
            column = columns.get(criterion)
            if column is None:
                column = columns[criterion] = array("d")
            if len(column) < row:
                column.extend([nan] * (row - len(column)))
            column.append(value if value.__class__ is float else number_or_nan(value))
        self.rows = row + 1

    def finish(self) -> dict[str, Column]:
        """The columns, each as long as there were records."""
        import numpy as np

        for column in self._columns.values():
            column.extend([nan] * (self.rows - len(column)))
        columns = {name: np.frombuffer(column) for name, column in self._columns.items()}
        for scores in columns.values():
            scores[np.isinf(scores)] = nan
        return columns
