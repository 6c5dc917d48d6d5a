"""Whether the subjects of a run pass, by label."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..classes import define, field, frozen

SLACK = 1e-9
"""A score passes that is at most this far below the line of its label: sums of decimal fractions are off by less."""

_ABSENT, _FAILS, _PASSES, _OPEN = range(4)
_CODES = {False: _FAILS, True: _PASSES, None: _OPEN}
_MEANINGS = {_FAILS: False, _PASSES: True, _OPEN: None}

SubjectKey = tuple[str, str]
"""A subject's kind and id."""


@frozen
class PassRule:
    """What ``run.started`` says of passing.

    :param pass_at: the least score with which a subject passes, by label.
    :param labels: the labels of the file: ``metrics``, each judge, each criterion of the task.
    :param label: the label of the gate, else of the run's score; None where the file has several labels and no gate names one.
    :param metrics: the kinds of subjects that each metric judges, by label; none for all kinds.
    """

    pass_at: Mapping[str, float] = field(factory=dict)
    labels: tuple[str, ...] = ()
    label: str | None = None
    metrics: Mapping[str, tuple[str, ...]] = field(factory=dict)

    def passes(self, label: str, score: float) -> bool | None:
        """Return whether *score* passes under *label*; None where the label has no line."""
        line = self.pass_at.get(label)
        return None if line is None else score >= line - SLACK


@define(eq=False)
class SubjectPasses:
    """The subjects of one run, each with whether it passes under each label, in the order in which they were first recorded.

    *labels* are numbered; a subject's row has a code for each, so that a run of a million subjects fits into memory. *assumed* are the labels
    of a file of records that names neither flags nor a line for them: there a score of one half passes.
    """

    labels: dict[str, int] = field(factory=dict)
    rows: dict[SubjectKey, bytearray] = field(factory=dict)
    assumed: set[str] = field(factory=set)

    def put(self, subject: SubjectKey, label: str, *, passed: bool | None) -> None:
        """Record whether *subject* passes under *label*, None where it is open. The newest answer replaces older ones."""
        column = self.labels.setdefault(label, len(self.labels))
        row = self.rows.setdefault(subject, bytearray())
        if len(row) <= column:
            row.extend(bytes(column + 1 - len(row)))
        row[column] = _CODES[passed]

    def code(self, subject: SubjectKey, label: str) -> int | None:
        """Return the code of *subject* under *label*; None where the run has none."""
        row, column = self.rows.get(subject), self.labels.get(label)
        if row is None or column is None or column >= len(row):
            return None
        return row[column] or None

    def get(self, subject: SubjectKey, label: str) -> bool | None:
        """Return whether *subject* passes under *label*; None where that is open, or the run has no answer."""
        return _MEANINGS[self.code(subject, label) or _OPEN]

    def subjects(self, label: str) -> Iterator[SubjectKey]:
        """Yield the subjects that the run judged under *label*, also those for which that is open."""
        return (subject for subject in self.rows if self.code(subject, label) is not None)
