"""The sink of records: one a line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import attrs

from dicast import Event, RunContext
from dicast.toolkit.atomic_file import AtomicFile, output_path

from .events import line

_LEVELS = ("security_level", "determinism_level")


@attrs.frozen
class Rows:
    """The run's records as JSON lines, one a row, in the order in which the rows were read.

    The keys of a line are ``subject_kind, subject_id, session_id`` and the record's own: ``row``, ``response``, ``responses``,
    ``metrics``, ``retry``, ``security_level``, ``determinism_level``, as far as it has them. A row whose task failed has ``row``, ``failure: {kind,
    message}``, ``timestamp``, ``retry`` and the levels. Records are made by a task or by extractors: in a run with neither the file is empty.
    What ``--retry-failed`` asks for again comes behind the other rows.
    The file appears under its name when the run ends, also when it is interrupted; until then an older one stays.

    :param path: the file to write, replacing what is there; folders above it are made.
    :param base_path: a folder that *path* must lie in, links resolved; any by default.
    """

    name = "rows"
    wants = ("run.started", "record.completed", "record.failed")
    rewrites = True

    path: Path = attrs.field(converter=Path)
    base_path: Path | None = attrs.field(default=None, converter=attrs.converters.optional(Path))

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[RowFile]:
        """Open the file for *run*; its path is relative to the pipeline's folder.

        :raises ConfigError: when it cannot be written, or lies outside *base_path*.
        """
        with AtomicFile(output_path(run.base, self.path, self.base_path), run=run.run_id) as file:
            live = RowFile(file)
            yield live
            live.close()


class RowFile:
    """The open file."""

    def __init__(self, file: AtomicFile) -> None:
        self._file = file
        self._told = False
        self._levels: dict[str, object] = {}
        self._newest: Event | None = None

    def write(self, events: Sequence[Event]) -> int:
        """Take the records among *events*, or raise and take none of them; return how many lines are finished with them.

        The newest one waits for the next: of a row that failed and was retried both are told, and the later one is written.
        """
        for event in events:
            if event.type == "run.started":
                self._levels = {name: event.payload[name] for name in _LEVELS if event.payload.get(name)}
        records = [event for event in (self._newest, *events) if event is not None and event.type != "run.started"]
        finished = [event for event, later in pairwise(records) if _subject(event) != _subject(later)]
        self._write(finished)
        self._newest = records[-1] if records else None
        self._told = True
        return len(finished)

    def close(self) -> int:
        """Write the newest line, and give the file its name. A run of which nothing was told leaves no file."""
        left = [] if self._newest is None else [self._newest]
        self._write(left)
        self._newest = None
        if self._told:
            self._file.commit()
        return len(left)

    def _write(self, records: Iterable[Event]) -> None:
        self._file.write(b"".join(line(_fields(event, self._levels)) for event in records))


def _subject(event: Event) -> tuple[str | None, str | None]:
    return event.subject_kind, event.subject_id


def _fields(event: Event, levels: Mapping[str, object]) -> dict[str, object]:
    subject = {
        "subject_kind": event.subject_kind,
        "subject_id": event.subject_id,
        "session_id": event.session_id,
    }
    if event.type == "record.completed":
        return {**subject, **event.payload}
    told = dict(event.payload)
    failure = {"kind": told.pop("failure_mode", None), "message": told.pop("error", None)}
    return {**subject, "row": told.pop("row", None), "failure": failure, **told, **levels}
