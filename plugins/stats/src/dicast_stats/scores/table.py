"""Scores of a run, in a column for each criterion, and rows that two runs share."""

from __future__ import annotations

from array import array
from collections.abc import Set as AbstractSet
from math import nan
from typing import TYPE_CHECKING

from dicast import ALL_METRICS, Record, Results
from dicast.reporting import changed_subjects

from ..numbers.ties import reaches
from ..numbers.values import number_or_nan
from .records import read_metrics, record_score

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..numbers.values import Column

    Marks = NDArray[np.uint8]
    Rows = NDArray[np.intp]

SCORES, FLAGS = "scores", "score_flags"
Key = tuple[str, str]
"""Kind and id of a subject: a turn and a session may have the same id."""

_NAMED, _FLAGGED, _PASSED, _HELD_BACK = 1, 2, 4, 8
"""Bits for a subject and a criterion: the record names the criterion; there is a flag; the flag is true; the metric did not run because of a proxy."""


class Table:
    """Scores and flags of a run, in a row for each subject; the newest record of a subject counts.

    *sessions* maps subjects to their sessions. *only_metric* is the label of the run's metric if the run has only one metric.
    """

    def __init__(self, results: Results) -> None:
        self.rows: dict[Key, int] = {}
        self.sessions: dict[Key, str] = {}
        self._scores: dict[str, array[float]] = {}
        self._marks: dict[str, bytearray] = {}
        self._record_scores = array("d")
        self._lines = results.pass_at
        metrics = [] if results.rule is None else [*results.rule.metrics]
        self.only_metric = metrics[0] if len(metrics) == 1 else None
        for subject_id, record in results.records():
            key = str(record.get("subject_kind", "row")), subject_id
            self._write(self._row(key), record)
            if (session := record.get("session_id", (record.get("row") or {}).get("session_id"))) is not None:
                self.sessions[key] = str(session)
        for scores, marks in zip(self._scores.values(), self._marks.values(), strict=True):
            self._fill(scores, marks, len(self.rows))

    @classmethod
    def of(cls, results: Results) -> Table:
        """Return the table of *results*; the records are read once for all comparisons."""
        table: Table | None = results.kept.get(cls)
        if table is None:
            table = results.kept[cls] = cls(results)
        return table

    @property
    def criteria(self) -> AbstractSet[str]:
        """Return the criteria of all records, in the order of their first appearance."""
        return self._scores.keys()

    @property
    def record_scores(self) -> Column:
        """Return the combined score of each row, NaN if there is none."""
        import numpy as np

        return np.frombuffer(self._record_scores)

    def scores(self, criterion: str) -> Column:
        """Return the scores of *criterion* in the order of the rows, NaN if there is none."""
        import numpy as np  # 0.1 s, which starting a run does not spend

        return np.frombuffer(self._scores[criterion])

    def known_scores(self, criterion: str) -> Column:
        """Return the scores of *criterion* without missing scores."""
        import numpy as np

        scores = self.scores(criterion)
        return scores[~np.isnan(scores)]

    def missing(self, criterion: str) -> int:
        """Return the number of records that name *criterion* without a number."""
        import numpy as np

        named = (self._bits(criterion) & _NAMED).astype(bool)
        return int(np.isnan(self.scores(criterion)[named]).sum())

    def flagged(self, criterion: str) -> NDArray[np.bool_]:
        """Return whether each row has a flag for *criterion*."""
        return (self._bits(criterion) & _FLAGGED).astype(bool)

    def held_back(self, criterion: str) -> NDArray[np.bool_]:
        """Return whether the score of each row is open, because the metric *criterion* did not run for lack of a passing proxy."""
        return (self._bits(criterion) & _HELD_BACK).astype(bool)

    def passes(self, criterion: str) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return whether it is known that each row passes *criterion* or not, and whether the row passes.

        Flags decide. If the criterion has no flags, the score decides, by the ``pass_at`` of the metric or judge.
        """
        import numpy as np

        flagged, line = self.flagged(criterion), self._lines.get(criterion)
        if line is None or flagged.any():
            return flagged, (self._bits(criterion) & _PASSED).astype(bool)
        scores = self.scores(criterion)
        return ~np.isnan(scores), reaches(scores, line)

    def pass_line(self, criterion: str) -> float | None:
        """Return the ``pass_at`` of the metric or judge that scored *criterion*; None if it is not known."""
        return self._lines.get(criterion)

    def _bits(self, criterion: str) -> Marks:
        import numpy as np

        return np.frombuffer(self._marks[criterion], np.uint8)

    def _row(self, subject: Key) -> int:
        """Return the row of *subject*, emptied."""
        count = len(self.rows)
        row = self.rows.setdefault(subject, count)
        if row == count:
            self._record_scores.append(nan)
            return row
        for criterion, scores in self._scores.items():
            if row < len(scores):
                scores[row], self._marks[criterion][row] = nan, 0
        return row

    def _write(self, row: int, record: Record) -> None:
        score = record_score(record)
        self._record_scores[row] = nan if score is None else score
        combined = {ALL_METRICS: record["combined"]} if "combined" in record else {}
        for criterion, value in {**combined, **read_metrics(record, SCORES)}.items():
            self._mark(criterion, row, _NAMED)
            self._scores[criterion][row] = number_or_nan(value)
        for criterion in record.get("held_back", ()):
            self._mark(criterion, row, _HELD_BACK)
        combined = {ALL_METRICS: record["combined_passes"]} if "combined_passes" in record else {}
        for criterion, flag in {**combined, **read_metrics(record, FLAGS)}.items():
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
        """Extend the columns to *length* with missing scores."""
        if (short := length - len(scores)) > 0:
            scores.extend([nan] * short)
            marks.extend(bytes(short))


def shared_rows(baseline: Results, variant: Results) -> tuple[Rows, Rows]:
    """Return the rows of the subjects that both runs have with an equal input and reference, in the tables of *baseline* and of *variant*."""
    import numpy as np

    subjects, theirs = Table.of(baseline).rows, Table.of(variant).rows
    changed = changed_subjects(baseline, variant)
    rows = (-1 if subject in changed else theirs.get(subject, -1) for subject in subjects)
    positions = np.fromiter(rows, np.intp, len(subjects))
    ours = np.flatnonzero(positions >= 0)
    return ours, positions[ours]
