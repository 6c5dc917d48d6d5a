"""The scores of records, a column for each criterion."""

from __future__ import annotations

from abc import abstractmethod
from array import array
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import nan
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from dicast import Record

from ..numbers.values import finite, number_or_nan
from ..text.reasons import there
from .records import finder, nowhere

if TYPE_CHECKING:
    from ..numbers.values import Column


TOGETHER = 1_000
"""How many records wait until their values are brought into columns together."""


def numbers(values: Iterable[object]) -> list[float]:
    """*values* as finite numbers or infinite ones, NaN for what is no number."""
    return [value if value.__class__ is float else number_or_nan(value) for value in values]


def named(mappings: Collection[Mapping[str, object]], name: str) -> list[object]:
    """What each of *mappings* that has the *name* has under it."""
    try:
        return list(map(itemgetter(name), mappings))
    except KeyError:
        return [one[name] for one in mappings if name in one]


class _Columns:
    """Takes records, and keeps the scores at *source_field* of the *criteria*, all when that is empty: 8 bytes each."""

    def __init__(self, source_field: str, criteria: Sequence[str] = ()) -> None:
        self._field, self._wanted, self._scores_of = source_field, frozenset(criteria), finder(source_field)
        self._columns: dict[str, array[float]] = {}
        self._waiting: list[Mapping[str, object]] = []
        self._without: Record | None = None
        self._settled = 0

    def add(self, record: Record) -> None:
        """Take a record."""
        scores = self._scores_of(record)
        if not scores:
            self._without = record
        self._waiting.append(scores)
        if len(self._waiting) >= TOGETHER:
            self._settle()

    def _settle(self) -> None:
        """Bring what was taken into the columns."""
        for name in dict.fromkeys(chain.from_iterable(self._waiting)):
            if not self._wanted or name in self._wanted:
                self._extend(self._columns.setdefault(name, array("d")), name)
        self._settled += len(self._waiting)
        self._waiting.clear()

    @abstractmethod
    def _extend(self, column: array[float], criterion: str) -> None:
        """Bring the criterion's scores into its *column*."""


class ScoreColumns(_Columns):
    """A column for each criterion, with a number for each record that names it, NaN where that is none."""

    def _extend(self, column: array[float], criterion: str) -> None:
        column.fromlist(numbers(named(self._waiting, criterion)))

    def finish(self) -> dict[str, Column]:
        """The columns."""
        import numpy as np  # 0.1 s, which starting a run does not spend

        self._settle()
        return {name: np.frombuffer(column) for name, column in self._columns.items()}

    def items(self) -> Iterator[tuple[str, Column]]:
        """Each criterion with those of its scores that are finite numbers."""
        for name, column in self.finish().items():
            yield name, finite(column)

    def missing(self, criterion: str) -> int:
        """How many records name the criterion, and have no number."""
        column = self.finish()[criterion]
        return len(column) - len(finite(column))

    def unnamed(self) -> dict[str, str]:
        """The ``reason``, where no record has scores by criterion."""
        if self.finish() or self._without is None:
            return {}
        return {"reason": nowhere(self._field, "scores by criterion", self._without)}

    def finished(self, criteria: Mapping[str, Any]) -> dict[str, Any]:
        """The document of the figures by criterion, which says what was wanted and is not there."""
        unseen = {"unseen": sorted(self._wanted - self.finish().keys())}
        return {"criteria": dict(criteria), **there(unseen), **self.unnamed()}


class AlignedColumns(_Columns):
    """A column for each criterion, with a number for each record, NaN where there is none."""

    @property
    def rows(self) -> int:
        """How many records there were."""
        return self._settled + len(self._waiting)

    def _extend(self, column: array[float], criterion: str) -> None:
        column.fromlist([nan] * (self._settled - len(column)))
        values = named(self._waiting, criterion)
        if len(values) < len(self._waiting):
            values = [scores.get(criterion) for scores in self._waiting]
        column.fromlist(numbers(values))

    def finish(self) -> dict[str, Column]:
        """The columns, each as long as there were records."""
        import numpy as np

        self._settle()
        for column in self._columns.values():
            column.fromlist([nan] * (self.rows - len(column)))
        columns = {name: np.frombuffer(column) for name, column in self._columns.items()}
        for scores in columns.values():
            scores[np.isinf(scores)] = nan
        return columns
