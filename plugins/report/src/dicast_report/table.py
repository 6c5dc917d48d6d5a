"""Rows of a run as columns, for viewers of a ledger that filter and sort them."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from itertools import takewhile
from sys import intern
from typing import Any

import attrs

from dicast import ALL_METRICS, ConfigError, Ledger, Query
from dicast.reading import READ, ActivityColumns, read_activity, read_digest

from .baseline import Baseline, baseline
from .marking import Marking
from .row_texts import read_subject
from .subjects import ENDS, STARTED, Key, Read, SubjectResults, event_of, grouped

NO_SCORE = 2.0
"""Rank of a missing score: it is above every score in [0, 1]."""

PACE = 120
"""Most seconds with a result whose times are kept."""

_SECOND = len("2026-01-01T00:00:00")
"""Length of a time to the second."""

_NAMES = ("kinds", "ids", "sessions", "outcomes", "bases", "scores", "worst", "odds", "places")


def read_table(
    ledger: Ledger, *, run_id: str, baseline_id: str | None = None, known: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return the subjects of a run as columns, in the order of the run.

    ``labels`` are the metrics, judges and criteria with their lines. ``label`` is the gate's label, else the score's, else the first.
    ``score_label`` is the label of ``scores``, null if it differs from subject to subject.
    ``columns`` has ``kinds``, ``ids``, ``sessions``, ``outcomes``, ``bases``, ``scores``, ``worst`` (the lower, the worse the subject), ``odds`` (one
    label passes the subject, another does not) and ``places``, which :func:`read_rows` needs. ``values``, ``label_outcomes`` and ``label_bases`` have a column for each label; the outcome is null if the label has not judged the subject. ``baseline`` has the
    same columns of the baseline, and ``flips`` by label: "gained" for a subject that now passes and did not, "lost" for the reverse, or "".

    ``upto`` is the newest row of the ledger that was read. *known* is an earlier result for the same run: its columns grow by the events after ``upto``,
    and nothing else is read. With a baseline, or for another ledger, all events are read again. ``expected`` is the number of subjects that the run will
    judge, null if it is unknown. ``pace`` has a time and the number of judged subjects at that time, for the last :data:`PACE` seconds with a result.

    :raises ConfigError: if the ledger has no such run.
    """
    columns = _Columns.of(ledger, run_id) if known is None or baseline_id is not None else known["reading"]
    if not columns.is_of(ledger):
        columns = _Columns.of(ledger, run_id)
    columns.grow(ledger)
    marking = columns.marking
    compared = baseline(ledger.read, baseline_id, run_id)
    label = None if compared is None else compared.label
    return {
        "run_id": run_id,
        "label": _main_label(columns) if label is None else label,
        "score_label": marking.label,
        "labels": [_label(marking, label) for label in columns.labels()],
        "columns": columns.cells,
        "numbers": columns.numbers,
        "values": columns.values,
        "label_outcomes": columns.outcomes,
        "label_bases": columns.bases,
        "baseline": None if compared is None else _baseline_columns(ledger, compared, list(columns.numbers)),
        "upto": columns.upto,
        "expected": columns.expected,
        "pace": list(columns.pace),
        "reading": columns,
    }


def _no_cells() -> dict[str, list[Any]]:
    return {name: [] for name in _NAMES}


@attrs.define
class _Columns:
    """Columns of a run that grow with it. A subject that is judged again keeps its row."""

    run_id: str
    marking: Marking
    expected: int | None
    numbers: dict[Key, int] = attrs.field(factory=dict)
    values: dict[str, list[float | None]] = attrs.field(factory=dict)
    outcomes: dict[str, list[str | None]] = attrs.field(factory=dict)
    bases: dict[str, list[str | None]] = attrs.field(factory=dict)
    cells: dict[str, list[Any]] = attrs.field(factory=_no_cells)
    pace: deque[tuple[str, int]] = attrs.field(factory=lambda: deque(maxlen=PACE))
    upto: int = 0
    _digest: str | None = None
    _reads: dict[Key, int] = attrs.field(factory=dict)
    _last: SubjectResults | None = None

    @classmethod
    def of(cls, ledger: Ledger, run_id: str) -> _Columns:
        """Return the columns of the run *run_id*, without rows."""
        started = event_of(ledger.read, run_id, STARTED)
        if started is None:
            raise ConfigError(f"the ledger has no run {run_id}")
        payload: Mapping[str, Any] = started.payload
        return cls(run_id, Marking.of(payload), payload.get("expected"))

    def is_of(self, ledger: Ledger) -> bool:
        """Return whether *ledger* has the newest row that was read."""
        return self.upto == 0 or read_digest(ledger, self.upto) == self._digest

    def grow(self, ledger: Ledger) -> None:
        """Read the events after :attr:`upto`. Results that follow the newest row of the ledger wait for the next call, because their contents may not be read."""
        head = ledger.head()
        if head is None or head.seq <= self.upto:
            return
        self._read_contents(ledger)
        ends = takewhile(lambda entry: entry.seq <= head.seq, ledger.read(Query(self.run_id, ENDS, after=self.upto)))
        for subject in grouped(ends, self._last):
            self._put(subject, ledger.read)
        self.upto, self._digest = head.seq, head.digest

    def _read_contents(self, ledger: Ledger) -> None:
        """Record the newest event with the content of each subject."""
        if self.upto == 0:
            events = read_activity(ledger, self.run_id, (READ,))
        else:
            events = ActivityColumns().add(ledger.read(Query(self.run_id, (READ,), after=self.upto)))
        kinds = [origin.kind_or_model for origin in events.origins]
        for seq, code, id in zip(events.seqs, events.codes, events.ids, strict=True):
            self._reads[kinds[code], str(id)] = seq

    def _put(self, subject: SubjectResults, read: Read) -> None:
        number, count = self.numbers.setdefault(subject.key, len(self.numbers)), len(self.cells["ids"])
        if number == count:
            self._last = subject
            for column in (*self.cells.values(), *self._by_label()):
                column.append(None)
            self._note_time(subject.time, count + 1)
        else:
            if subject is not self._last:
                subject = attrs.evolve(read_subject(read, self.run_id, subject.key)[0], session_id=subject.session_id)
                subject.events, self._last = 0, None
            for column in self._by_label():
                column[number] = None
        values, bases = self.marking.all_values(subject), self.marking.label_bases(subject)
        for label, outcome in self.marking.label_outcomes(subject, values).items():
            if label not in self.values:
                count = len(self.cells["ids"])
                self.values[label], self.outcomes[label] = [None] * count, [None] * count
                self.bases[label] = [None] * count
            self.values[label][number], self.outcomes[label][number] = values.get(label), outcome
            basis = bases.get(label)
            self.bases[label][number] = None if basis is None else intern(basis)
        row = self._row(subject, self._reads.get(subject.key, 0), values)
        for column, cell in zip(self.cells.values(), row, strict=True):
            column[number] = cell

    def _by_label(self) -> list[list[Any]]:
        """Return the columns of the labels."""
        return [*self.values.values(), *self.outcomes.values(), *self.bases.values()]

    def _note_time(self, time: str, judged: int) -> None:
        if self.pace and self.pace[-1][0][:_SECOND] == time[:_SECOND]:
            self.pace.pop()
        self.pace.append((time, judged))

    def _row(self, subject: SubjectResults, read: int, values: Mapping[str, float]) -> tuple[Any, ...]:
        outcome, score = self.marking.outcome(subject), self.marking.score(subject)
        worst = _badness(outcome, score, [value for label, value in values.items() if label.startswith("recorded/")])
        basis, odds = self.marking.basis(subject), self.marking.is_at_odds(subject)
        place = read, subject.place, subject.events
        return subject.kind, subject.id, subject.session_id, outcome, basis, score, worst, odds, place

    def labels(self) -> list[str]:
        """Return the labels with values: metrics and judges in the order of the pipeline, then criteria."""
        pipeline = (ALL_METRICS, *self.marking.metrics, *self.marking.judges)
        return list(dict.fromkeys([*(label for label in pipeline if label in self.values), *self.values]))


def _badness(outcome: str, score: float | None, recorded: Sequence[float]) -> float:
    """Return the rank of a subject: failures first, then subjects that fail, each by the lowest score; equal subjects by their own score."""
    rank = NO_SCORE if score is None else score
    if outcome == "none":
        return -1.0
    if outcome == "open" and score is None:
        return 3 * NO_SCORE
    return (0.0 if outcome == "fail" else 1.5 * NO_SCORE) + min(rank, *recorded, NO_SCORE) + rank * 1e-6


def _main_label(columns: _Columns) -> str | None:
    marking = columns.marking
    names = (*marking.gated, *(() if marking.label is None else (marking.label,)), *columns.labels())
    return next((name for name in names if name in columns.values), None)


def _label(marking: Marking, label: str) -> dict[str, Any]:
    in_gate = label in marking.gated
    return {"label": label, "role": marking.role(label), "pass_at": marking.line(label), "in_gate": in_gate}


def _baseline_columns(ledger: Ledger, compared: Baseline, keys: Sequence[Key]) -> dict[str, Any]:
    older = _Columns.of(ledger, compared.run_id)
    older.grow(ledger)
    numbers, columns = [older.numbers.get(key) for key in keys], older.cells
    flips = {label: [compared.flip(key, label) for key in keys] for label in compared.pairs.labels}
    return {
        **compared.json(),
        "scores": _at(columns["scores"], numbers),
        "places": _at(columns["places"], numbers),
        "values": {label: _at(column, numbers) for label, column in older.values.items()},
        "flips": flips,
    }


def _at(column: Sequence[Any], numbers: Sequence[int | None]) -> list[Any]:
    return [None if number is None else column[number] for number in numbers]
