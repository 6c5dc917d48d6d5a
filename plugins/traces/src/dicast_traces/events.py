"""The source ``traces/events``: one trace event a line."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any, Self

import attrs

from dicast import ConfigError, DataError, Problem, ReadCounts, Subject, Within, nearest
from dicast.toolkit.assembly import Assembly
from dicast.toolkit.encodings import UTF_8, check_encoding, known_encoding
from dicast.toolkit.file_source import check_source, each_subject, open_source
from dicast.toolkit.input_file import MAX_LINE_BYTES, InputCheck, InputFile
from dicast.toolkit.scan import Scan
from dicast.toolkit.sessions import Kind, chosen, subjects

from .event_counts import EventCounts
from .payloads import check_event, checked_event

STDIN = Path("-")

_BATCH = 5000
_NAMING = ("turn.completed", "tool.called")


def _existing(path: Path) -> Path:
    """Return the *path* of a file or a directory, or ``-``.

    :raises ConfigError: if it does not exist.
    """
    if path.name == STDIN.name:
        return STDIN
    if path.exists():
        return path
    names = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    hint = nearest(path.name, names)
    raise ConfigError(
        Problem(f"the file {path.name!r} does not exist: {path}", path="path", value=str(path), hint=hint)
    )


@attrs.frozen
class Events:
    """Traces of agents, one event a line, judged turn by turn.

    An event is ``{type, time, session_id, turn_id, payload}``; unknown types and fields are kept, and sessions may be mixed. A turn
    is judged if it has a ``turn.completed``. Feedback that names it counts among its events, and its context then has
    ``feedback_after_messages``: the number of later user messages before each feedback event.

    :param path: the file, JSON lines. gzip is recognized; ``-`` is standard input. ``dicast watch`` follows a file as it grows,
        and also all ``*.jsonl`` files of a directory.
    :param kinds: the kinds of subjects to judge (``subjects`` in a pipeline): ``turn``, ``tool_cycle``, ``session``.
    :param max_line_bytes: the longest line that is read, in bytes; 64 MiB by default.
    :param encoding: the file's encoding, by a name that Python knows (``cp1252``, ``utf-16``); UTF-8 by default. ``dicast watch`` reads UTF-8.
    :param scan: secrets and personal data in the input: ``warn`` counts them, ``mask`` replaces them by markers such as ``[masked: aws-key]``
        before anything is stored or sent, ``off`` does not look for them.
    """

    path: Path = attrs.field(converter=_existing)
    kinds: tuple[Kind, ...] = attrs.field(default=("turn",), alias="subjects", converter=chosen)
    max_line_bytes: int = attrs.field(default=MAX_LINE_BYTES, validator=Within(1, inf, "1 or more"))
    encoding: str = attrs.field(default=UTF_8, validator=check_encoding, metadata={"later": True})
    scan: Scan = attrs.field(default="warn", metadata={"later": True})

    open, check, subjects = open_source, check_source, each_subject

    @contextmanager
    def reading(self) -> Iterator[Trace]:
        """Open the input and yield the live source."""
        with InputFile.opened(self.path, known_encoding(self.encoding)) as file, _LastLines() as last_lines:
            yield Trace(file, self, last_lines)


class Trace:
    """An opened file of events, whose absolute path is in *paths*. Memory holds only the sessions whose last line was not read yet."""

    def __init__(self, file: InputFile, options: Events, last_lines: _LastLines) -> None:
        self.total: int | None = None
        self.kinds = options.kinds
        self.paths = frozenset({Path(options.path).resolve()})
        self._file, self._options, self._last_lines = file, options, last_lines
        self._counts = EventCounts()

    def check(self) -> str:
        """Read everything once and return the SHA-256 of the data.

        :raises DataError: naming the bad lines, or that there is nothing to judge.
        """
        count = 0
        with InputCheck(self._file) as check:
            for line, record in self._file.objects(self._options.max_line_bytes, check):
                try:
                    session_id, turn_id = check_event(record, calls_named="tool_cycle" in self.kinds)
                except DataError as error:
                    self._file.fault(error, line, check)
                else:
                    self._last_lines.note(session_id, line)
                    if "session" in self.kinds or record["type"] in _NAMING:  # other events name no subject
                        count += self._names(record, turn_id, line, check)
            self._last_lines.finish()
            self.total = count
            return check.finish(count)

    def subjects(self) -> Iterator[Subject]:
        """Yield the subjects of each session as soon as its last line is read.

        :raises DataError: at the first bad line.
        """
        if not self._last_lines.is_complete:
            self.check()
        counts = self._counts = EventCounts()
        open_sessions: dict[str | None, Assembly] = {}
        last_lines = iter(self._last_lines)
        last = next(last_lines, None)
        for line, record in self._file.objects(self._options.max_line_bytes):
            event = checked_event(record)
            counts.note(event)
            if (session := open_sessions.get(event.session_id)) is None:
                session = open_sessions[event.session_id] = Assembly(str(event.session_id))
            session.add(event)
            if line == last:
                last = next(last_lines, None)
                counts.note_session(session)
                whole = open_sessions.pop(event.session_id).session()
                yield from subjects(attrs.evolve(whole, place=self._file.label), self.kinds)

    def read_counts(self) -> ReadCounts:
        """Return the counts of the newest pass over the subjects, so far."""
        return self._counts.read_counts()

    def _names(self, record: Mapping[str, Any], turn_id: str | None, line: int, check: InputCheck) -> int:
        """Record the ids that an event gives to subjects; return the number of subjects that it certainly makes."""
        type_ = record["type"]
        if type_ == "turn.completed":
            check.add_id(str(turn_id), line, "turn id")
            return "turn" in self.kinds
        if type_ == "tool.called" and "tool_cycle" in self.kinds:
            check.add_id(str(record["payload"]["tool_use_id"]), line, "tool use id")
            return 1
        return "session" in self.kinds


class _LastLines:
    """The last line of each session, on disk."""

    def __init__(self) -> None:
        self.is_complete = False
        self._waiting: dict[str | None, int] = {}
        self._database = sqlite3.connect("", isolation_level=None)  # "" is a temporary file
        self._database.executescript(
            "PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF;"
            "CREATE TABLE last (session TEXT PRIMARY KEY, line INTEGER) WITHOUT ROWID"
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self._database.close()

    def note(self, session_id: str | None, line: int) -> None:
        """Record that *line* belongs to *session_id*. Lines have to come in order."""
        self._waiting[session_id] = line
        if len(self._waiting) >= _BATCH:
            self._flush()

    def finish(self) -> None:
        """End the first pass."""
        self._flush()
        self._database.execute("CREATE INDEX IF NOT EXISTS by_line ON last (line)")
        self.is_complete = True

    def __iter__(self) -> Iterator[int]:
        for (line,) in self._database.execute("SELECT line FROM last ORDER BY line"):
            yield line

    def _flush(self) -> None:
        self._database.execute("BEGIN")  # otherwise each row is a separate transaction
        self._database.executemany("INSERT OR REPLACE INTO last VALUES (?, ?)", self._waiting.items())
        self._database.execute("COMMIT")
        self._waiting.clear()
