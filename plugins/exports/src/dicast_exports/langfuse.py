"""The source ``exports/langfuse``: traces, observations and scores of Langfuse."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any, Literal

import attrs
import orjson

from dicast import Basis, DataError, RecordedScore
from dicast.toolkit.beginning import Beginning, read_beginning
from dicast.toolkit.detection import Detection
from dicast.toolkit.document_parts import document_parts
from dicast.toolkit.encodings import UTF_8
from dicast.toolkit.input_file import InputFile
from dicast.toolkit.input_files import InputFiles
from dicast.toolkit.session_reading import SessionReading
from dicast.toolkit.temporary import temporary_database

from .export import ExportSource, Row
from .values import Value, decoded, first, mapping, objects, single, text

Table = Literal["traces", "observations", "scores"]

_BASES: dict[str, Basis] = {"ANNOTATION": "human", "EVAL": "model"}
"""Basis of a score by its source: a person annotates, an evaluator of Langfuse asks a model."""

_FOLDERS = ("traces", "observations", "observations_v2", "scores")
_MOST_FIELD = 2**26


@attrs.frozen
class Langfuse(ExportSource):
    """Traces of Langfuse with their scores: its exports to blob storage or from the interface, in JSON, JSON lines or CSV.

    Each trace is a row. An export without traces has a row for each observation without a parent. Scores are joined by ``trace_id``, from all
    files in the folder; if *path* is a file, from the files next to it.
    """

    title = "an export of Langfuse"
    name = "langfuse"

    @classmethod
    def detect(cls, beginning: Beginning) -> Detection | None:
        """Return the detection of traces, observations or scores."""
        table = _table_of(beginning)
        return None if table is None else Detection(cls.title, table)

    def companions(self, files: InputFiles) -> _Index:
        """Return the scores and the errors of all files of the export."""
        names = [files.root / name if name else files.root for name in files.names]
        if not files.root.is_dir() and str(self.path) != "-":
            names += _neighbors(files.root)
        return _Index(list(dict.fromkeys(names)), self.max_line_bytes)

    def rows(self, reading: SessionReading, companions: _Index) -> Iterator[Row]:
        """Yield the traces of a file; if the export has no traces, the observations without a parent."""
        table = _table_of(read_beginning(reading.file.path, UTF_8))
        if table == "scores" and not reading.name:
            reading.refuse(
                "the file has scores without traces; name the folder of the export, or the file of its traces", 1
            )
        for line, record in _records(reading):
            if table == "traces":
                yield _row(record, companions, reading)
            elif table == "observations" and not companions.has_traces:
                if first(record, "parent_observation_id", "parentObservationId") in (None, ""):
                    yield _row(record, companions, reading)
                else:
                    reading.totals.left_out["observations with a parent"] += 1
            reading.settle(line)


class _Index:
    """The scores by trace, and the errors of observations, in a temporary file."""

    def __init__(self, paths: list[Path], most: int) -> None:
        self._database = temporary_database(self, "CREATE TABLE items(trace TEXT, kind TEXT, data BLOB)")
        self.has_traces = False
        digest = sha256()
        self._database.execute("BEGIN")
        for path in paths:
            try:
                table = _table_of(read_beginning(path, UTF_8))
            except (DataError, OSError):
                continue
            self.has_traces = self.has_traces or table == "traces"
            if table in ("scores", "observations"):
                self._read(path, table, most, digest)
        self._database.execute("COMMIT")
        self._database.execute("CREATE INDEX traces ON items(trace, kind)")
        self.digest = digest.hexdigest()

    def _read(self, path: Path, table: str, most: int, digest: Any) -> None:
        with InputFile.opened(path) as file:
            for record in _plain_records(file, most):
                trace = first(record, "trace_id", "traceId")
                if table == "scores":
                    data = orjson.dumps(record)
                    digest.update(data)
                    self._database.execute("INSERT INTO items VALUES (?, 'score', ?)", (str(trace), data))
                elif record.get("level") == "ERROR":
                    message = first(record, "status_message", "statusMessage") or record.get("name") or "an observation"
                    self._database.execute(
                        "INSERT INTO items VALUES (?, 'error', ?)", (str(trace), str(message).encode())
                    )

    def scores(self, trace: str) -> Iterator[Value]:
        """Yield the scores of a trace."""
        yield from (mapping(orjson.loads(data)) for data in self._of(trace, "score"))

    def error(self, trace: str) -> str | None:
        """Return the message of the first failed observation of a trace, None if no observation failed."""
        return next((data.decode() for data in self._of(trace, "error")), None)

    def _of(self, trace: str, kind: str) -> list[bytes]:
        query = "SELECT data FROM items WHERE trace = ? AND kind = ? ORDER BY rowid"
        return [data for (data,) in self._database.execute(query, (trace, kind)).fetchall()]


def _neighbors(path: Path) -> list[Path]:
    """Return the files of the export next to the file at *path*."""
    folders = [path.parent]
    if path.parent.name in _FOLDERS:
        folders += [path.parent.parent / name for name in _FOLDERS]
    return [file for folder in folders if folder.is_dir() for file in sorted(folder.iterdir()) if file.is_file()]


def _table_of(beginning: Beginning) -> Table | None:
    """Return the table of a file by the keys of its first record."""
    keys: set[str] = set()
    if beginning.objects:
        keys = {*beginning.objects[0]}
    elif beginning.lines and b"," in beginning.lines[0]:
        keys = set(next(csv.reader([beginning.lines[0].decode(errors="replace")]), []))
    if "id" not in keys:
        return None
    if {"trace_id", "traceId"} & keys:
        if "name" in keys and {"data_type", "dataType"} & keys:
            return "scores"
        return "observations" if "type" in keys and {"start_time", "startTime"} & keys else None
    is_trace = {"timestamp", "input", "output"} <= keys and {"session_id", "sessionId", "user_id", "userId"} & keys
    return "traces" if is_trace else None


def _records(reading: SessionReading) -> Iterator[tuple[int, Value]]:
    """Yield the records of a file in JSON, JSON lines or CSV."""
    with reading.file.binary() as stream:
        start = stream.read(64).lstrip()[:1]
    if start == b"[":
        for line, path, value in document_parts(reading, [()]):
            if path == ():
                yield line, value
    elif start == b"{":
        yield from reading.objects()
    else:
        yield from _of_csv(reading)


def _of_csv(reading: SessionReading) -> Iterator[tuple[int, Value]]:
    if reading.check is not None:
        for _ in reading.file.lines(reading.max_bytes, reading.check):
            pass
    with reading.file.binary() as stream, io.TextIOWrapper(stream, "utf-8", newline="") as texts:
        try:
            for line, record in _csv_records(texts):
                if None in record or len(record) < 2:
                    reading.refuse("the record has another number of values than the header", line)
                else:
                    yield line, record
        except UnicodeDecodeError as error:
            reading.refuse(f"byte 0x{error.object[error.start]:02x} is not UTF-8; save the file as UTF-8", 1)
        except csv.Error as error:
            reading.refuse(f"the file is not CSV: {error}", 1)


def _csv_records(stream: io.TextIOWrapper) -> Iterator[tuple[int, dict[Any, Any]]]:
    csv.field_size_limit(_MOST_FIELD)
    reader = csv.DictReader(stream)
    for record in reader:
        yield reader.line_num, {key: decoded(value) if value != "" else None for key, value in record.items()}


def _plain_records(file: InputFile, most: int) -> Iterator[Value]:
    """Yield the records of a file of scores or observations. Its faults are reported when the file is read as an input."""
    from dicast.toolkit.conversations import Rules
    from dicast.toolkit.input_file import InputCheck
    from dicast.toolkit.repeats import UniqueNames
    from dicast.toolkit.session_reading import Totals

    with InputCheck(file) as check, UniqueNames() as names:
        reading = SessionReading(file, "", Rules(), True, most, check, Totals(), names)
        yield from (record for _, record in _records(reading))


def _row(record: Value, index: _Index, reading: SessionReading) -> Row:
    id_ = str(record.get("id"))
    trace = str(first(record, "trace_id", "traceId") or id_)
    output = decoded(record.get("output"))
    model = text(first(record, "provided_model_name", "providedModelName", "model"))
    context = {
        "name": first(record, "name", "trace_name"),
        "model": model,
        "metadata": decoded(record.get("metadata")) or None,
        "tags": record.get("tags") or None,
        "user_id": first(record, "user_id", "userId"),
        "time": first(record, "timestamp", "start_time", "startTime"),
        "latency": record.get("latency"),
        "cost": first(record, "total_cost", "totalCost", "cost"),
        "usage": decoded(first(record, "usage_details", "usageDetails", "usage")),
    }
    error = index.error(trace) if output is None else None
    if record.get("level") == "ERROR":
        error = str(first(record, "status_message", "statusMessage") or "without a message")
    failure = f"the trace failed: {error}" if error else "the trace has no output" if output is None else None
    session = text(first(record, "session_id", "sessionId"))
    models = (model,) if model else ()
    return Row(
        id_, single(decoded(record.get("input"))), single(output), None, context,
        _scores([*objects(record.get("scores")), *index.scores(trace)], reading), session, failure=failure, models=models,
    )  # fmt: skip


def _scores(scores: list[Any], reading: SessionReading) -> Iterator[RecordedScore | None]:
    seen: set[str] = set()
    for item in scores:
        key = str(item.get("id"))
        if key in seen and item.get("id") is not None:  # the trace and the table of scores both have it
            continue
        seen.add(key)
        type_, number = str(first(item, "data_type", "dataType")), item.get("value")
        answer = (
            first(item, "string_value", "stringValue") if type_ in ("CATEGORICAL", "TEXT", "CORRECTION") else number
        )
        answer = number if answer is None else answer
        if type_ == "BOOLEAN" and not isinstance(answer, bool) and answer is not None:
            answer = str(answer).lower() in ("1", "1.0", "true")
        elif type_ == "NUMERIC" and isinstance(answer, str):
            answer = _number(answer)
        basis = _BASES.get(str(item.get("source")), "recorded")
        by = first(item, "author_user_id", "authorUserId")
        yield reading.scales.score(str(item.get("name")), answer, basis=basis, reason=item.get("comment"), by=by)


def _number(value: str) -> object:
    try:
        return float(value)
    except ValueError:
        return value
