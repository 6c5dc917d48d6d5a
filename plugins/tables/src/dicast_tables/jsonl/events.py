"""The sink ``jsonl/events``: one event a line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import attrs

from dicast import ConfigError, Event, RunContext
from dicast.toolkit.atomic_file import AtomicFile, output_path

from .line_file import LineFile


def _as_types(types: Sequence[str]) -> tuple[str, ...]:
    if isinstance(types, str):
        raise ConfigError(f"types is a list: write [{types}]")
    return tuple(types)


@attrs.frozen
class Events:
    """The run's events as JSON lines, in their order.

    The keys of a line are ``id, type, time, run_id, session_id, turn_id, subject_kind, subject_id, sensitivity, payload``.
    The file appears under its name when the run ends, also when the run is interrupted; until then an older file stays.

    :param path: the file to write. It replaces an existing file; missing folders are made.
    :param types: the event types to write, such as ``eval.completed``; all by default.
    :param base_path: a folder that must contain *path*, links resolved; any folder by default.
    """

    name = "events"
    wants = ()
    rewrites = True

    path: Path = attrs.field(converter=Path)
    types: tuple[str, ...] = attrs.field(default=(), converter=_as_types)
    base_path: Path | None = attrs.field(default=None, converter=attrs.converters.optional(Path))

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[EventFile]:
        """Open the file and yield the live sink. The path is relative to the pipeline's folder.

        :raises ConfigError: if the file cannot be written, or lies outside *base_path*.
        """
        with AtomicFile(output_path(run.base, self.path, self.base_path), run=run.run_id) as file:
            sink = EventFile(LineFile(file), self.types)
            yield sink
            sink.close()


class EventFile:
    """Live sink of events. The kernel sends it the event types in *wants*."""

    def __init__(self, file: LineFile, types: tuple[str, ...]) -> None:
        self.wants = types
        self._file = file

    def write(self, events: Sequence[Event]) -> int:
        """Write *events*, or raise and write none. Return the number of lines."""
        selected = [event for event in events if event.type in self.wants] if self.wants else events
        self._file.append(map(_document, selected))
        return len(selected)

    def close(self) -> None:
        """Give the file its name. A run that recorded no event leaves no file."""
        self._file.commit()


def _document(event: Event) -> dict[str, object]:
    return {
        "id": event.id,
        "type": event.type,
        "time": event.time,
        "run_id": event.run_id,
        "session_id": event.session_id,
        "turn_id": event.turn_id,
        "subject_kind": event.subject_kind,
        "subject_id": event.subject_id,
        "sensitivity": event.sensitivity,
        "payload": event.payload,
    }
