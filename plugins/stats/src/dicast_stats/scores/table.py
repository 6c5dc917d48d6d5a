"""The scores of a run, a column for each criterion, and two of them side by side."""

from __future__ import annotations

from array import array
from collections.abc import Set as AbstractSet
from math import nan
from typing import TYPE_CHECKING

from dicast import Record, Results

from ..numbers.ties import reaches
from ..numbers.values import number_or_nan
from .records import mapping, score_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..numbers.values import Column

    Marks = NDArray[np.uint8]
    Rows = NDArray[np.intp]

SCORES, FLAGS = "scores", "score_flags"
METRICS = "metrics"
"""The label of all metrics together."""

Key = tuple[str, str]
"""A subject's kind and its id: a turn and a session may have the same."""

_NAMED, _FLAGGED, _PASSED = 1, 2, 4
"""What is known of a subject and a criterion: the record names it; it has a flag; the flag is true."""


class Table:
    """The scores and flags of a run, a row for each subject: the newest record of each counts.

    *sessions* has those of the subjects with one. *only_metric* is the label of the run's metric where it has a single one.
    """

    def __init__(self, results: Results) -> None:
        self.rows: dict[Key, int] = {}
        self.sessions: dict[Key, str] = {}
        self._scores: dict[str, array[float]] = {}
        self._marks: dict[str, bytearray] = {}
        self._whole = array("d")
        self._lines = results.pass_at
        metrics = [] if results.rule is None else [*results.rule.metrics]
        self.only_metric = metrics[0] if len(metrics) == 1 else None
        for subject_id, record in results.records():
            key = str(record.get("subject_kind", "row")), subject_id
            self._put(self._row(key), record)
            if (session := record.get("session_id", (record.get("row") or {}).get("session_id"))) is not None:
                self.sessions[key] = str(session)
        for scores, marks in zip(self._scores.values(), self._marks.values(), strict=True):
            self._fill(scores, marks, len(self.rows))

    @classmethod
    def of(cls, results: Results) -> Table:
        """That of *results*, which are read once for all comparisons."""
        found: Table | None = results.kept.get(cls)
        if found is None:
            found = results.kept[cls] = cls(results)
        return found

    @property
    def criteria(self) -> AbstractSet[str]:
        """The names of those criteria that any record has, in the order in which they are met."""
        return self._scores.keys()

    @property
    def whole(self) -> Column:
        """The one score of each row, NaN where there is none."""
        import numpy as np

        return np.frombuffer(self._whole)

    def scores(self, criterion: str) -> Column:
        """The scores in the order of the rows, NaN where there is none."""
        import numpy as np  # 0.1 s, which starting a run does not spend

        return np.frombuffer(self._scores[criterion])

    def present(self, criterion: str) -> Column:
        """The scores that are there."""
        import numpy as np

        scores = self.scores(criterion)
        return scores[~np.isnan(scores)]

    def missing(self, criterion: str) -> int:
        """How many records name the criterion, and have no number."""
        import numpy as np

        named = (self._bits(criterion) & _NAMED).astype(bool)
        return int(np.isnan(self.scores(criterion)[named]).sum())

    def flagged(self, criterion: str) -> NDArray[np.bool_]:
        """Which rows have a flag."""
        return (self._bits(criterion) & _FLAGGED).astype(bool)

    def passes(self, criterion: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Of which rows it is known whether they pass, and which do: by flags, or where there are none by the score and the ``pass_at`` of what gave it."""
        import numpy as np

        flagged, line = self.flagged(criterion), self._lines.get(criterion)
        if line is None or flagged.any():
            return flagged, (self._bits(criterion) & _PASSED).astype(bool)
        scores = self.scores(criterion)
        return ~np.isnan(scores), reaches(scores, line)

    def line(self, criterion: str) -> float | None:
        """The least score that passes where a metric or judge gave it; None where that is not known."""
        return self._lines.get(criterion)

    def _bits(self, criterion: str) -> Marks:
        import numpy as np

        return np.frombuffer(self._marks[criterion], np.uint8)

    def _row(self, subject: Key) -> int:
        """The row of the subject, an empty one."""
        count = len(self.rows)
        row = self.rows.setdefault(subject, count)
        if row == count:
            self._whole.append(nan)
            return row
        for criterion, scores in self._scores.items():
            if row < len(scores):
                scores[row], self._marks[criterion][row] = nan, 0
        return row

    def _put(self, row: int, record: Record) -> None:
        whole = score_of(record)
        self._whole[row] = nan if whole is None else whole
        combined = {METRICS: record["combined"]} if "combined" in record else {}
        for criterion, value in {**combined, **mapping(record, SCORES)}.items():
            self._mark(criterion, row, _NAMED)
            self._scores[criterion][row] = number_or_nan(value)
        combined = {METRICS: record["combined_passes"]} if "combined_passes" in record else {}
        for criterion, flag in {**combined, **mapping(record, FLAGS)}.items():
            if flag is not None:
                self._mark(criterion, row, _FLAGGED | (_PASSED if flag else 0))

    def _mark(self, criterion: str, row: int, bits: int) -> None:
        if criterion not in self._scores:
            self._scores[criterion], self._marks[criterion] = array("d"), bytearray()
        marks = self._marks[criterion]
        if len(marks) <= row:
            self._fill(self._scores[criterion], marks, row + 1)
        marks[row] |= bits

    @staticmethod
    def _fill(scores: array[float], marks: bytearray, length: int) -> None:
        """Lengthen columns to *length*, without scores."""
        if (short := length - len(scores)) > 0:
            scores.extend([nan] * short)
            marks.extend(bytes(short))


def pairs(baseline: Table, variant: Table) -> tuple[Rows, Rows]:
    """The rows of each subject that both have, in baseline and variant."""
    import numpy as np

    theirs = variant.rows.get
    found = np.fromiter((theirs(subject, -1) for subject in baseline.rows), np.intp, len(baseline.rows))
    ours = np.flatnonzero(found >= 0)
    return ours, found[ours]
