"""The sink ``jsonl/rows``: one record a line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import attrs

from dicast import Event, RunContext
from dicast.toolkit.atomic_file import AtomicFile, output_path

from .line_file import LineFile

_LEVELS = ("security_level", "determinism_level")


@attrs.frozen
class Rows:
    """The run's records as JSON lines, one a row, in the order of reading.

    The keys of a line are ``subject_kind, subject_id, session_id`` and the record's keys: ``row``, ``response``, ``responses``,
    ``metrics``, ``retry``, ``security_level``, ``determinism_level``, as far as the record has them. A row whose task failed has ``row``,
    ``failure: {kind, message}``, ``timestamp``, ``retry`` and the levels. A row of a weighted sample has its ``weight``. A task or extractors make the records; without both the file is empty.
    Rows that ``--retry-failed`` repeats come after the other rows.
    The file appears under its name when the run ends, also when the run is interrupted; until then an older file stays.

    :param path: the file to write. It replaces an existing file; missing folders are made.
    :param base_path: a folder that must contain *path*, links resolved; any folder by default.
    """

    name = "rows"
    wants = ("run.started", "subject.read", "record.completed", "record.failed")
    rewrites = True

    path: Path = attrs.field(converter=Path)
    base_path: Path | None = attrs.field(default=None, converter=attrs.converters.optional(Path))

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[RecordFile]:
        """Open the file and yield the live sink. The path is relative to the pipeline's folder.

        :raises ConfigError: if the file cannot be written, or lies outside *base_path*.
        """
        with AtomicFile(output_path(run.base, self.path, self.base_path), run=run.run_id) as file:
            sink = RecordFile(LineFile(file))
            yield sink
            sink.close()


class RecordFile:
    """Live sink of records."""

    def __init__(self, file: LineFile) -> None:
        self._file = file
        self._levels: dict[str, object] = {}
        self._weights: dict[tuple[str | None, str | None], object] = {}
        self._newest: Event | None = None

    def write(self, events: Sequence[Event]) -> int:
        """Write the records among *events*, or raise and write none. Return the number of finished lines.

        The newest record waits for the next record: a row that failed and was retried has two records, and the later record is written.
        """
        for event in events:
            if event.type == "run.started":
                self._levels = {name: event.payload[name] for name in _LEVELS if event.payload.get(name)}
            elif event.type == "subject.read" and "weight" in event.payload:
                self._weights[_subject(event)] = event.payload["weight"]
        records = [event for event in (self._newest, *events) if event is not None and event.type.startswith("record.")]
        finished = [event for event, later in pairwise(records) if _subject(event) != _subject(later)]
        self._append(finished)
        self._newest = records[-1] if records else None
        return len(finished)

    def close(self) -> int:
        """Write the newest record, and give the file its name. Return the number of lines. A run that recorded no event leaves no file."""
        records = [] if self._newest is None else [self._newest]
        if records:
            self._append(records)
        self._newest = None
        self._file.commit()
        return len(records)

    def _append(self, records: Iterable[Event]) -> None:
        weights = self._weights
        self._file.append(
            _document(event, self._levels)
            | ({"weight": weights[_subject(event)]} if _subject(event) in weights else {})
            for event in records
        )


def _subject(event: Event) -> tuple[str | None, str | None]:
    return event.subject_kind, event.subject_id


def _document(event: Event, levels: Mapping[str, object]) -> dict[str, object]:
    subject = {
        "subject_kind": event.subject_kind,
        "subject_id": event.subject_id,
        "session_id": event.session_id,
    }
    if event.type == "record.completed":
        return {**subject, **event.payload}
    payload = dict(event.payload)
    failure = {"kind": payload.pop("failure_mode", None), "message": payload.pop("error", None)}
    return {**subject, "row": payload.pop("row", None), "failure": failure, **payload, **levels}
