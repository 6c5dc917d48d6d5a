"""Rows of a run as columns, for viewers of a ledger that filter and sort them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import attrs

from dicast import ALL_METRICS, ConfigError, Ledger
from dicast.reading import READ, read_activity

from .baseline import Baseline, baseline
from .marking import Marking
from .row_texts import read_subject
from .subjects import STARTED, Key, Read, SubjectResults, event_of, read_subjects

NO_SCORE = 2.0
"""Rank of a missing score: it is above every score in [0, 1]."""

_NAMES = ("kinds", "ids", "sessions", "outcomes", "bases", "scores", "worst", "odds", "places")


def read_table(ledger: Ledger, *, run_id: str, baseline_id: str | None = None) -> dict[str, Any]:
    """Return the subjects of a run as columns, in the order of the run.

    ``labels`` are the metrics, judges and criteria with their lines. ``label`` is the gate's label, else the score's, else the first.
    ``score_label`` is the label of ``scores``, null if it differs from subject to subject.
    ``columns`` has ``kinds``, ``ids``, ``sessions``, ``outcomes``, ``bases``, ``scores``, ``worst`` (the lower, the worse the subject), ``odds`` (one
    label passes the subject, another does not) and ``places``, which :func:`read_rows` needs. ``values`` has a column for each label. ``baseline`` has the
    same columns of the baseline, and ``flips`` by label: "gained" for a subject that now passes and did not, "lost" for the reverse, or "".

    :raises ConfigError: if the ledger has no such run.
    """
    columns = _Columns.of(ledger, run_id)
    marking = columns.marking
    compared = baseline(ledger.read, baseline_id, run_id)
    label = None if compared is None else compared.label
    return {
        "run_id": run_id,
        "label": _main_label(columns) if label is None else label,
        "score_label": marking.label,
        "labels": [_label(marking, label) for label in columns.labels()],
        "columns": columns.json(),
        "values": columns.values,
        "baseline": None if compared is None else _baseline_columns(ledger, compared, list(columns.numbers)),
    }


@attrs.define
class _Columns:
    """Columns of a run. A subject that is judged again keeps its row."""

    marking: Marking
    numbers: dict[Key, int] = attrs.field(factory=dict)
    values: dict[str, list[float | None]] = attrs.field(factory=dict)
    _rows: list[tuple[Any, ...]] = attrs.field(factory=list)

    @classmethod
    def of(cls, ledger: Ledger, run_id: str) -> _Columns:
        """Read the run *run_id*."""
        started = event_of(ledger.read, run_id, STARTED)
        if started is None:
            raise ConfigError(f"the ledger has no run {run_id}")
        columns, reads = cls(Marking.of(started.payload)), _reads(ledger, run_id)
        for subject in read_subjects(ledger.read, run_id):
            columns._put(subject, reads.get(subject.key, 0), ledger.read, run_id)
        return columns

    def _put(self, subject: SubjectResults, place: int, read: Read, run_id: str) -> None:
        number = self.numbers.setdefault(subject.key, len(self.numbers))
        if number < len(self._rows):
            subject = attrs.evolve(read_subject(read, run_id, subject.key)[0], session_id=subject.session_id)
            subject.events = 0
            for column in self.values.values():
                column[number] = None
        else:
            self._rows.append(())
            for column in self.values.values():
                column.append(None)
        values = self.marking.all_values(subject)
        for label, value in values.items():
            if label not in self.values:
                self.values[label] = [None] * len(self._rows)
            self.values[label][number] = value
        self._rows[number] = self._row(subject, place, values)

    def _row(self, subject: SubjectResults, read: int, values: Mapping[str, float]) -> tuple[Any, ...]:
        outcome, score = self.marking.outcome(subject), self.marking.score(subject)
        worst = _badness(outcome, score, [value for label, value in values.items() if label.startswith("recorded/")])
        basis, odds = self.marking.basis(subject), self.marking.is_at_odds(subject)
        place = read, subject.place, subject.events
        return subject.kind, subject.id, subject.session_id, outcome, basis, score, worst, odds, place

    def json(self) -> dict[str, list[Any]]:
        """Return the columns by name."""
        return {name: [row[number] for row in self._rows] for number, name in enumerate(_NAMES)}

    def labels(self) -> list[str]:
        """Return the labels with values: metrics and judges in the order of the pipeline, then criteria."""
        pipeline = (ALL_METRICS, *self.marking.metrics, *self.marking.judges)
        return list(dict.fromkeys([*(label for label in pipeline if label in self.values), *self.values]))


def _reads(ledger: Ledger, run_id: str) -> dict[Key, int]:
    """Return the number of the newest event with the content of each subject."""
    events = read_activity(ledger, run_id, (READ,))
    kinds = [origin.kind_or_model for origin in events.origins]
    return {(kinds[code], str(id)): seq for seq, code, id in zip(events.seqs, events.codes, events.ids, strict=True)}


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
    numbers, columns = [older.numbers.get(key) for key in keys], older.json()
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
