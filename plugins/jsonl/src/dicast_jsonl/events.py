"""The sink of everything that happens: one event a line."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path

import attrs
import orjson

from dicast import ConfigError, Event, RunContext
from dicast.toolkit.atomic_file import AtomicFile, output_path


def _types(given: Sequence[str]) -> tuple[str, ...]:
    if isinstance(given, str):
        raise ConfigError(f"types is a list: write [{given}]")
    return tuple(given)


@attrs.frozen
class Events:
    """The run's events as JSON lines, in their order.

    The keys of a line are ``id, type, time, run_id, session_id, turn_id, subject_kind, subject_id, sensitivity, payload``.
    The file appears under its name when the run ends, also when it is interrupted; until then an older one stays.

    :param path: the file to write, replacing what is there; folders above it are made.
    :param types: the event types to write, such as ``eval.completed``; all by default.
    :param base_path: a folder that *path* must lie in, links resolved; any by default.
    """

    name = "events"
    wants = ()
    rewrites = True

    path: Path = attrs.field(converter=Path)
    types: tuple[str, ...] = attrs.field(default=(), converter=_types)
    base_path: Path | None = attrs.field(default=None, converter=attrs.converters.optional(Path))

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[EventFile]:
        """Open the file for *run*; its path is relative to the pipeline's folder.

        :raises ConfigError: when it cannot be written, or lies outside *base_path*.
        """
        with AtomicFile(output_path(run.base, self.path, self.base_path), run=run.run_id) as file:
            live = EventFile(file, self.types)
            yield live
            live.close()


class EventFile:
    """The open file. *wants* are the event types it is to be told."""

    def __init__(self, file: AtomicFile, types: tuple[str, ...]) -> None:
        self.wants = types
        self._file = file
        self._told = False

    def write(self, events: Sequence[Event]) -> int:
        """Write *events*, or raise and write none of them."""
        wanted = [event for event in events if event.type in self.wants] if self.wants else events
        self._file.write(b"".join(line(_fields(event)) for event in wanted))
        self._told = True
        return len(wanted)

    def close(self) -> None:
        """Give the file its name. A run of which nothing was told leaves no file."""
        if self._told:
            self._file.commit()


def _fields(event: Event) -> dict[str, object]:
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


def line(fields: dict[str, object]) -> bytes:
    """*fields* as a line of JSON; money is a decimal text."""
    return orjson.dumps(fields, _plain, orjson.OPT_APPEND_NEWLINE)


def _plain(value: object) -> str:
    if isinstance(value, Decimal):
        return format(value, "f")
    raise TypeError(f"{type(value).__name__} is no JSON value")
