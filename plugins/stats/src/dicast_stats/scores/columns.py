"""Scores of records, in a column for each criterion."""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import nan
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from dicast import Record

from ..numbers.values import finite_values, number_or_nan
from ..text.reasons import without_empty
from .records import metrics_reader, missing_metric_text

if TYPE_CHECKING:
    from ..numbers.values import Column


BATCH = 1_000
"""Number of records whose values are moved into the columns together."""


def to_floats(values: Iterable[object]) -> list[float]:
    """Return *values* as floats; NaN for a value that is not a number. Infinite floats stay."""
    return [value if value.__class__ is float else number_or_nan(value) for value in values]


def values_under(mappings: Collection[Mapping[str, object]], name: str) -> list[object]:
    """Return the value under *name* from each of *mappings* that has the key."""
    try:
        return list(map(itemgetter(name), mappings))
    except KeyError:
        return [mapping[name] for mapping in mappings if name in mapping]


class _Columns:
    """Collector of the scores at *source_field*, 8 bytes a score; only of *criteria*, or of all criteria if that is empty."""

    def __init__(self, source_field: str, criteria: Sequence[str] = ()) -> None:
        self._field, self._criteria, self._read_scores = source_field, frozenset(criteria), metrics_reader(source_field)
        self._columns: dict[str, array[float]] = {}
        self._batch: list[Mapping[str, object]] = []
        self._record_without_scores: Record | None = None
        self._flushed = 0

    def add(self, record: Record) -> None:
        """Add a record."""
        scores = self._read_scores(record)
        if not scores:
            self._record_without_scores = record
        self._batch.append(scores)
        if len(self._batch) >= BATCH:
            self._flush()

    def _flush(self) -> None:
        """Move the batch of records into the columns."""
        for name in dict.fromkeys(chain.from_iterable(self._batch)):
            if not self._criteria or name in self._criteria:
                self._extend(self._columns.setdefault(name, array("d")), name)
        self._flushed += len(self._batch)
        self._batch.clear()

    @abstractmethod
    def _extend(self, column: array[float], criterion: str) -> None:
        """Append the batch's scores of *criterion* to its *column*."""


class ScoreColumns(_Columns):
    """Columns with a number for each record that names the criterion, NaN if its value is not a number."""

    def _extend(self, column: array[float], criterion: str) -> None:
        column.fromlist(to_floats(values_under(self._batch, criterion)))

    def finish(self) -> dict[str, Column]:
        """Return the columns by criterion."""
        import numpy as np  # 0.1 s, which starting a run does not spend

        self._flush()
        return {name: np.frombuffer(column) for name, column in self._columns.items()}

    def items(self) -> Iterator[tuple[str, Column]]:
        """Yield each criterion with its finite scores."""
        for name, column in self.finish().items():
            yield name, finite_values(column)

    def missing(self, criterion: str) -> int:
        """Return the number of records that name the criterion without a finite number."""
        column = self.finish()[criterion]
        return len(column) - len(finite_values(column))

    def missing_reason(self) -> dict[str, str]:
        """Return the ``reason`` if no record has scores by criterion; else an empty dictionary."""
        if self.finish() or self._record_without_scores is None:
            return {}
        return {"reason": missing_metric_text(self._field, "scores by criterion", self._record_without_scores)}

    def document(self, criteria: Mapping[str, Any]) -> dict[str, Any]:
        """Return the document with the figures in *criteria*, the selected criteria that no record has, and the reason if there are no scores."""
        missing_criteria = {"unseen": sorted(self._criteria - self.finish().keys())}
        return {"criteria": dict(criteria), **without_empty(missing_criteria), **self.missing_reason()}


class AlignedColumns(_Columns):
    """Columns with a number for each record, NaN if the record has no score of the criterion."""

    @property
    def rows(self) -> int:
        """Return the number of records."""
        return self._flushed + len(self._batch)

    def _extend(self, column: array[float], criterion: str) -> None:
        column.fromlist([nan] * (self._flushed - len(column)))
        values = values_under(self._batch, criterion)
        if len(values) < len(self._batch):
            values = [scores.get(criterion) for scores in self._batch]
        column.fromlist(to_floats(values))

    def finish(self) -> dict[str, Column]:
        """Return the columns by criterion; each is as long as the number of records."""
        import numpy as np

        self._flush()
        for column in self._columns.values():
            column.fromlist([nan] * (self.rows - len(column)))
        columns = {name: np.frombuffer(column) for name, column in self._columns.items()}
        for scores in columns.values():
            scores[np.isinf(scores)] = nan
        return columns
