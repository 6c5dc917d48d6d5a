"""Runs as tables: one row per subject, with its task's output and its verdicts."""

from __future__ import annotations

import marshal
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from heapq import merge
from itertools import takewhile
from operator import itemgetter
from pathlib import Path
from typing import Any

import orjson

from .._kernel.classes import define, field, frozen
from .._kernel.events import (
    EVAL_STARTED,
    RECORD_ENDS,
    RUN_STARTED,
    SUBJECT_READ,
    VERDICT_ENDS,
)
from .._kernel.plan.labels import recorded_score_label
from .._kernel.values import Event
from .._kernel.values.errors import DicastError
from .._kernel.values.payloads import evidence_of
from .._kernel.values.stop_reasons import output_ending
from .flat import METRICS, ROW, Columns, Place, leaves, names
from .table_texts import ENDING, VERDICT, TableTexts, column_names, data_columns

SUBJECT = ("subject_kind", "subject_id", "session_id", "score", "tier", "failure", "cost_usd")
"""The columns that every table has."""

_COMBINED = "metrics"
"""The label of all metrics together."""

_SESSION: Place = (VERDICT, "session_id")
_ROWS_SESSION: Place = (ROW, "session_id")

_BLOCK = 200
"""The number of rows in one block of the file."""

Key = tuple[str | None, str | None]


@define
class Row:
    """A subject with its record and the terminal events so far: *verdicts* maps a label to the payload.

    *first* is the id of the subject's first event; such ids ascend in the order of reading. *is_started* is True if the subject was sent to a
    task or a judge. *content* is the judged content, if it is kept.
    """

    kind: str | None
    id: str | None
    session_id: str | None
    first: str
    is_started: bool
    record: Mapping[str, Any] = field(factory=dict)
    verdicts: dict[str, Mapping[str, Any]] = field(factory=dict)
    content: Mapping[str, Any] | None = None
    read: Mapping[str, Any] = field(factory=dict)
    columns: Mapping[str, Any] = field(factory=dict)


class RunTable:
    """Table of a run's rows, made from its events and kept in a temporary file in *folder*; memory holds unfinished rows.

    First come the columns of :func:`~dicast.toolkit.flat.flat` if the run has records, else with *content* the columns of the data; then ``subject_kind, subject_id, session_id, score,
    tier, failure, cost_usd``, ``metric_<label>`` for each metric, and ``judge_<label>_score``, ``_confidence``, ``_kind`` and
    ``_failure`` for each judge. A failure of the task has ``task:`` before its kind in the columns of the judges, and its reason in
    ``reason_record``. A row's column ``session_id`` and the subject's are one column; a row's column with one of the six other
    names gets the prefix ``row_``. A metric with raw scores has its values in ``metric_<label>_raw``, and in ``raw`` next to an empty
    ``score`` if it has a weight. If other columns have the same name, ``_2`` is appended to the second. With *metrics* False, columns whose
    name begins with ``metric_`` are left out.

    These columns exist if any row has a value: ``finish_reason`` (of the output) and ``finish_reason_<judge>`` (of the judge's last reply)
    have the endpoint's reason for the end of the text; ``hidden_media_<judge>`` has the kinds and numbers of media that the judge saw as
    markers; ``cut_evidence_<judge>`` has the number of characters cut from its evidence. With *content* the last columns are ``input``,
    ``output`` and ``reference``, unless a record has them, ``reason_<label>`` for each metric and judge, and ``rationale_<label>`` for each
    captured rationale.
    """

    wants = (RUN_STARTED, SUBJECT_READ, EVAL_STARTED, *RECORD_ENDS, *VERDICT_ENDS)

    def __init__(self, folder: Path, *, metrics: bool = True, content: bool = False) -> None:
        self.started: Mapping[str, Any] | None = None
        self._levels: Mapping[str, Any] = {}
        self._makes_records = False
        self._metrics = metrics
        self._content = content
        self._texts: TableTexts | None = None
        self._names: dict[str, str] = {}
        self._columns = Columns()
        self._spool = _Spool(folder)
        self._rows: dict[Key, Row] = {}
        self._newest: Key | None = None
        self._verdicts: _Verdicts | None = None

    def take(self, events: Sequence[Event]) -> int:
        """Add *events*, and return the number of rows that they finish. After an OSError the call may be repeated.

        Subjects end in the order in which they were read, so a final event of a subject finishes the rows of all subjects before it. A
        subject that is judged again may come later; then all of its events are sent again, including ``subject.read``.
        """
        for event in events:
            if event.type == RUN_STARTED:
                self._start(event.payload)
            else:
                self._note(event)
        return 0 if self._newest is None else self._keep(list(takewhile(self._newest.__ne__, self._rows)))

    def end(self) -> int:
        """Finish the remaining rows, and return their number.

        Subjects without judgments have a row too. Subjects whose judgments had started and not ended when the run stopped have no row.
        """
        return self._keep([key for key, row in self._rows.items() if row.verdicts or row.record or not row.is_started])

    def close(self) -> None:
        """Delete the temporary file."""
        self._spool.close()

    def columns(self) -> list[str]:
        """Return the names of all columns; they are complete after :meth:`end`."""
        return names(self._places(), {*SUBJECT} - {"session_id"})

    def rows(self) -> Iterator[list[object]]:
        """Yield the rows in the order in which the subjects were read, with None for missing values. Each call starts at the beginning."""
        numbers = [self._columns.numbers[_SESSION if place == _ROWS_SESSION else place] for place in self._places()]
        width = len(self._columns.numbers)
        in_order = numbers == list(range(width))
        for _, row in merge(_ascending(self._spool, False), _ascending(self._spool, True), key=itemgetter(0)):
            cells = row if len(row) == width else row + [None] * (width - len(row))
            yield cells if in_order else [cells[number] for number in numbers]

    def _places(self) -> list[Place]:
        places = self._columns.ordered()
        if _ROWS_SESSION in self._columns.numbers:
            places.remove(_SESSION)
        return places

    def _start(self, payload: Mapping[str, Any]) -> None:
        if self._verdicts is None:
            self.started = payload
            self._levels = {"security_level": payload.get("security_level")}
            self._makes_records = bool(payload.get("task") or payload.get("extractors"))
            self._verdicts = _Verdicts.of(payload, metrics=self._metrics)
            self._texts = TableTexts(payload, records=self._makes_records) if self._content else None
            labels = [*payload["judges"], *payload["metrics"]]
            self._names = dict(zip(labels, column_names(labels), strict=True))
            for place in (*self._verdicts.places, *(self._texts.places if self._texts else ())):
                self._columns.number(place)

    def _note(self, event: Event) -> None:
        key = event.subject_kind, event.subject_id
        row = self._rows.get(key)
        if row is None:
            row = self._rows[key] = Row(*key, event.session_id, event.id, self._makes_records)
        if event.type == EVAL_STARTED:
            row.is_started = True
        elif event.type in VERDICT_ENDS:
            row.verdicts[str(event.payload["judge"])] = event.payload
            self._newest = key
        elif event.type in RECORD_ENDS:
            row.record = event.payload
            self._newest = key
        elif event.type == SUBJECT_READ:
            if self._content:
                content: Any = event.payload.get("content")
                columns: Any = event.payload.get("columns", {})
                row.content, row.columns = content, columns
            if not (self.started or {}).get("task") and "finish_reason" in event.payload:
                row.read = {"finish_reason": event.payload["finish_reason"]}

    def _keep(self, keys: list[Key]) -> int:
        if not keys:
            return 0
        if self._verdicts is None:
            raise DicastError("the table got subjects before run.started, which has the columns")
        # The rows are forgotten only when they are written, so that the kernel may try again.
        verdicts, rows = self._verdicts, map(self._rows.__getitem__, keys)
        self._spool.add([(row.first, self._cells(verdicts, row)) for row in rows])
        for key in keys:
            del self._rows[key]
        return len(keys)

    def _cells(self, verdicts: _Verdicts, row: Row) -> list[object]:
        cells = verdicts.cells(row)  # their columns have the first numbers
        if row.record:
            values = leaves({**self._levels, **row.record})  # a failed task's record has no level
            self._columns.put(cells, values if self._metrics else (leaf for leaf in values if leaf[0][0] != METRICS))
        if endings := [*self._endings(row)]:
            self._columns.put(cells, endings)
        if self._texts is not None:
            if row.content is not None and row.kind == "row" and not self._makes_records:
                parts = {**row.content, "id": row.id, "session_id": row.session_id}
                self._columns.put(cells, leaves({"row": data_columns(parts, row.columns)}))
            self._columns.put(cells, self._texts.texts(row.content, row.verdicts, row.record).items())
        return cells

    def _endings(self, row: Row) -> Iterator[tuple[Place, object]]:
        """Yield why the output of *row* ended; for each judge why its last reply ended, and its hidden media and cut evidence."""
        if (ending := output_ending(row.record, row.read)) is not None:
            yield (ENDING, "finish_reason"), ending
        for item in row.verdicts.get(_COMBINED, {}).get("scores", ()):
            yield from self._evidence(str(item["metric"]), item["signals"])
        for label, payload in row.verdicts.items():
            reason = payload.get("finish_reason") or (payload.get("signals") or {}).get("finish_reason")
            name = self._names.get(label)
            if name is None:
                if payload.get("judge_kind") == "recorded":  # the label of another tool's score is in the data alone
                    yield (ENDING, column_names([label])[0]), _recorded_value(payload)
                continue
            if reason is not None:
                yield (ENDING, f"finish_reason_{name}"), reason
            yield from self._evidence(label, payload.get("signals") or {})

    def _evidence(self, label: str, signals: Mapping[str, Any]) -> Iterator[tuple[Place, object]]:
        """Yield the hidden media and the cut evidence that *signals* of a judge or metric state."""
        hidden, cut = Counter[str](), 0
        for evidence in evidence_of(signals):  # the judges of a jury see the same evidence
            kinds, length = evidence.get("hidden"), evidence.get("cut")
            hidden |= Counter(kinds if isinstance(kinds, Mapping) else {})
            cut = max(cut, length if type(length) is int else 0)
        name = self._names.get(label, label)
        if hidden:
            yield (ENDING, f"hidden_media_{name}"), ", ".join(f"{kind} {n}" for kind, n in sorted(hidden.items()))
        if cut:
            yield (ENDING, f"cut_evidence_{name}"), cut


@frozen
class _Verdicts:
    """The columns of verdicts: *metrics* and *judges* are the labels with columns; *label* is the label of the run's score.

    A failure of a *counted* label is the failure of the row. *raw* labels have an additional column for their raw scores.
    """

    metrics: tuple[str, ...]
    judges: tuple[str, ...]
    label: str | None
    counted: tuple[str, ...]
    places: tuple[Place, ...]
    raw: frozenset[str] = frozenset()

    @classmethod
    def of(cls, started: Mapping[str, Any], *, metrics: bool) -> _Verdicts:
        """Read the labels from the payload of ``run.started``."""
        labels, judges = tuple(started["metrics"]) if metrics else (), tuple(started["judges"])
        raw = frozenset(started.get("raw", ()))
        columns = [*SUBJECT, *(["raw"] if _COMBINED in raw else [])]
        for name, label in zip(column_names(labels), labels, strict=True):
            columns += (f"metric_{name}", *([f"metric_{name}_raw"] if label in raw else []))
        for name in column_names(judges):
            columns += (f"judge_{name}_{field}" for field in ("score", "confidence", "kind", "failure"))
        places = tuple((VERDICT, column) for column in columns)
        return cls(labels, judges, recorded_score_label(started), tuple(started["counted"]), places, raw)

    def cells(self, row: Row) -> list[object]:
        """Return the cells of *row*, with None for missing values."""
        score, tier, failure = self._outcome(row)
        failure = failure or row.record.get("failure_mode")  # the task's failure, if no output was judged
        cells: list[object] = [row.kind, row.id, row.session_id, score, tier, failure, _cost(row)]
        payload = row.verdicts.get(_COMBINED, {})
        if _COMBINED in self.raw:
            cells.append(payload.get("raw"))
        if self.metrics:
            signals = payload.get("signals", {})
            values, raws = signals.get("metrics", {}), signals.get("raw", {})
            for label in self.metrics:
                cells += (values.get(label), raws.get(label)) if label in self.raw else (values.get(label),)
        for judge in self.judges:
            payload = row.verdicts.get(judge, {})
            cells += (payload.get(key) for key in ("score", "confidence", "judge_kind"))
            cells.append(_failure(payload))
        return cells

    def _outcome(self, row: Row) -> tuple[object, object, object]:
        """Return score, tier and failure for the label of the run's score; without a verdict of this label, only the first failure."""
        label = self.label
        if label is not None and label in row.verdicts:
            payload = row.verdicts[label]
            return payload.get("score"), payload.get("tier"), payload.get("failure_mode")
        combined = row.verdicts.get("metrics", {})
        value = combined.get("signals", {}).get("metrics", {}).get(label)
        if value is not None:
            return value, _tier(combined["scores"], label), None
        if label is not None and isinstance(scores := row.record.get("metrics", {}).get("scores"), Mapping):
            value = scores.get(label)
        modes = (row.verdicts[label].get("failure_mode") for label in self.counted if label in row.verdicts)
        return value, None, next(filter(None, modes), None)


def _failure(payload: Mapping[str, Any]) -> str | None:
    """Return the kind of the failure of a verdict, after ``task:`` if the judge was not asked, because the task failed; None without a failure."""
    mode, origin = payload.get("failure_mode"), payload.get("origin")
    return mode if origin is None else f"{origin}: {mode}"


def _recorded_value(payload: Mapping[str, Any]) -> object:
    """Return the score of another tool: in [0, 1], on a scale of its own, or a category."""
    values = payload.get("score"), payload.get("raw"), (payload.get("signals") or {}).get("category")
    return next((value for value in values if value is not None), payload.get("failure_mode"))


def _tier(scores: Sequence[Mapping[str, Any]], metric: object) -> object:
    """Return the tier of *metric* among the *scores* of a combined verdict."""
    return next((item["tier"] for item in scores if item["metric"] == metric), None)


class _Spool:
    """Rows on disk. Rows added before an OSError are overwritten when they are added again."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._file = tempfile.TemporaryFile(buffering=0, dir=folder)  # noqa: SIM115  # closed by close()
        self._size = 0

    def add(self, rows: Sequence[Sequence[Any]]) -> None:
        """Store *rows*, or raise OSError and store nothing."""
        blocks = [_packed(rows[start : start + _BLOCK]) for start in range(0, len(rows), _BLOCK)]
        data = b"".join(len(block).to_bytes(8, "big") + block for block in blocks)
        self._file.seek(self._size)
        written = 0
        try:
            while written < len(data):
                written += self._file.write(data[written:])
        except OSError as error:  # the file has no name, so the error names its folder
            raise OSError(error.errno, error.strerror, str(self._folder)) from error
        self._size += len(data)

    def rows(self) -> Iterator[Any]:
        """Yield the rows, from the first at each call."""
        place = 0
        while place < self._size:
            self._file.seek(place)
            length = int.from_bytes(self._read(8), "big")
            yield from marshal.loads(self._read(length))  # noqa: S302  # written by this process
            place += 8 + length

    def _read(self, length: int) -> bytes:
        data = b""
        while len(data) < length and (part := self._file.read(length - len(data))):
            data += part
        return data  # data that is too short is refused when it is decoded

    def close(self) -> None:
        """Delete the file."""
        self._file.close()


def _ascending(spool: _Spool, late: bool) -> Iterator[Any]:
    """Yield the rows in *spool* that were added in the order of reading; with *late*, only the rows that were added after a later row."""
    newest = ""
    for row in spool.rows():
        if (row[0] < newest) == late:
            yield row
        newest = max(newest, row[0])


def _packed(rows: Any) -> bytes:
    try:
        return marshal.dumps(rows)
    except ValueError:  # a cell is not a plain value: it is stored as its JSON value
        return marshal.dumps([(first, [_as_json(value) for value in cells]) for first, cells in rows])


def _as_json(value: object) -> object:
    return value if type(value) in (str, int, float, bool, type(None)) else orjson.loads(orjson.dumps(value, _plain))


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Decimal):
        return format(value, "f")
    raise TypeError(f"{type(value).__name__} is no JSON value")


def _cost(row: Row) -> str | None:
    """Return the cost of judging *row* as a plain decimal number, or None if a part of it is unknown."""
    costs: list[Any] = [payload.get("judge_cost_usd") for payload in row.verdicts.values()]
    if not costs or None in costs:
        return None
    return format(sum(map(Decimal, costs)), "f")
