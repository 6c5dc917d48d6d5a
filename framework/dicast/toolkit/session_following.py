"""A receiver for ``dicast watch`` that follows files of sessions, which grow while an agent works."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import attrs

from dicast import DataError

from .beginning import read_beginning
from .conversations import Rules
from .encodings import UTF_8
from .expressions import compiled
from .files import open_file
from .input_file import InputFile
from .reception import ReceivedSession, Receiver, Reception
from .repeats import UniqueNames
from .session_folders import SessionFolder
from .session_reading import Failed, SessionReading, Totals
from .session_source import SessionSource
from .sessions import Session
from .turn_ends import RETRIED

QUIET = 2.0
"""Seconds without a change after which a last turn is complete that ended with an answer, with a failed call of the model or with a stop of the user."""

OVER = 600.0
"""Seconds without a change after which a session is over, also in the middle of a turn."""

_LOOK = 1.0

_RESTS = 10
"""A file that grows rests for this many times the time of its reading, which takes at most a tenth of the processor then."""

_START = 1024
"""The number of bytes at the start of a file that distinguish it from a new file in its place."""

Version = tuple[int, int, bool, bool]
"""Time of the last change in nanoseconds, size in bytes, whether the file is quiet, and whether it is over."""


class SessionFollower:
    """Follower of the files of *sources*, which may grow and increase in number. It is not a component, so a run does not open its sources."""

    def __init__(self, *sources: SessionSource) -> None:
        self._sources = sources

    @contextmanager
    def receiving(self, reception: Reception) -> Iterator[Receiver]:
        """Yield the receiver of the sessions. A file is read again after a change, a large one less often."""
        owners: dict[str, Path] = {}
        yield _Together([FollowedSessions(source, reception, owners) for source in self._sources])


class _Together:
    """Several *receivers* as one. Each in turn returns the sessions of one file."""

    def __init__(self, receivers: Sequence[FollowedSessions]) -> None:
        self._receivers = deque(receivers)

    @property
    def unread(self) -> int:
        return sum(receiver.unread for receiver in self._receivers)

    def sessions(self, now: float) -> Sequence[ReceivedSession]:
        for _ in range(len(self._receivers)):
            self._receivers.rotate(-1)
            if sessions := self._receivers[-1].sessions(now):
                return sessions
        return ()

    def settle(self) -> None:
        for receiver in self._receivers:
            receiver.settle()

    def deadline(self) -> float | None:
        return min(receiver.deadline() for receiver in self._receivers)


class FollowedSessions:
    """Receiver of the sessions in the files, one file at a time. The last turn of a session is held back until it is complete.

    *owners* has the file of each session id, also of files that other receivers follow.
    """

    def __init__(self, source: SessionSource, reception: Reception, owners: dict[str, Path] | None = None) -> None:
        self._source, self._reception = source, reception
        self._waiting: deque[Path] = deque()
        self._next = 0.0
        self._versions: dict[Path, Version] = {}
        self._read: dict[Path, Version] = {}
        self._others: dict[Path, int] = {}
        self._owners: dict[str, Path] = {} if owners is None else owners
        self._folders: dict[Path, SessionFolder] = {}
        self._rest_until: dict[Path, float] = {}
        self._starts: dict[Path, tuple[int, bytes]] = {}

    @property
    def unread(self) -> int:
        """The bytes of the changed files that were not read yet."""
        return sum(path.stat().st_size for path in self._waiting if path.exists())

    def sessions(self, now: float) -> Sequence[ReceivedSession]:
        """Return the sessions of the next changed file; none if no file has changed."""
        if not self._waiting and now >= self._next:
            self._waiting += [path for path in self._paths() if self._is_due(path, now)]
            self._next = now + _LOOK
        while self._waiting:
            path = self._waiting.popleft()
            version = self._version(path, now)
            began = time.monotonic()
            sessions = [] if version is None else self._sessions(path, version)
            self._rest_until[path] = now + _RESTS * (time.monotonic() - began)
            if sessions and version is not None:
                self._read[path] = version
                return sessions
            if version is not None:
                self._versions[path] = version
        return ()

    def _is_due(self, path: Path, now: float) -> bool:
        """Return whether the file has changed and does not rest. A file that is quiet does not rest."""
        version = self._version(path, now)
        is_quiet = version is not None and version[2]
        return version != self._versions.get(path) and (is_quiet or now >= self._rest_until.get(path, 0.0))

    def settle(self) -> None:
        """Note that the newest sessions are in the ledger."""
        self._versions |= self._read
        self._read = {}

    def deadline(self) -> float:
        """Return the time of the next look at the files."""
        return time.time() if self._waiting else self._next

    def _paths(self) -> Iterator[Path]:
        root = self._source.path
        files = [path for path in (sorted(root.rglob("*")) if root.is_dir() else [root]) if path.is_file()]
        names = [path.relative_to(root).as_posix() for path in files] if root.is_dir() else []
        folders = self._source.session_folders(root, names)
        self._folders = {
            item.folder: item for item in folders if item.folder in self._folders or self._is_of_format(item.first)
        }
        parts = {part for item in self._folders.values() for part in (*item.files, *item.copies)}
        yield from self._folders
        for path in files:
            if path not in parts and self._is_of_format(path):
                yield path

    def _is_of_format(self, path: Path) -> bool:
        """Return whether the source detects the file. A file of another format is checked again when its size has changed."""
        size = path.stat().st_size
        if path in self._versions:
            return True
        if self._others.get(path) == size:
            return False
        try:
            is_detected = self._source.detect(read_beginning(path, UTF_8)) is not None
        except DataError:
            is_detected = False
        if not is_detected:
            self._others[path] = size
        return is_detected

    def _version(self, path: Path, now: float) -> Version | None:
        files = self._folders[path].files if path in self._folders else (path,)
        try:
            states = [file.stat() for file in files]
        except OSError:
            return None
        changed = max(state.st_mtime_ns for state in states)
        age = now - changed / 1e9
        return changed, sum(state.st_size for state in states), age >= QUIET, age >= OVER

    def _sessions(self, path: Path, version: Version) -> list[ReceivedSession]:
        """Return the sessions of a file; after a fault, report it and return none."""
        source, (_, _, is_quiet, is_over) = self._source, version
        self._note_rewriting(path)
        error = None if source.tool_error is None else compiled(source.tool_error)
        rules = Rules(error, source.trailing == "keep", self._reception.name_call)
        try:
            opened = self._folders[path].opened() if path in self._folders else InputFile.opened(path)
            name = self._folders[path].name if path in self._folders else path.name
            with opened as file, _Names(self._owners, path) as names:
                most, is_marked = source.max_line_bytes, source.unknown == "mark"
                reading = SessionReading(
                    file, name, rules, is_marked, most, None, Totals(), names, keeps_abandoned=True
                )
                return [_received(session, is_quiet, is_over) for session in source.sessions(reading)]
        except DataError as fault:
            self._reception.report(f"{path}: {fault}")
            return []

    def _note_rewriting(self, path: Path) -> None:
        """Report a file that was not only continued since it was read: it is shorter, or begins with other bytes."""
        if path in self._folders:
            return
        try:
            with open_file(path) as file:
                size, start = path.stat().st_size, file.read(_START)
        except OSError:
            return  # reading reports it
        old_size, old_start = self._starts.get(path, (0, b""))
        if size < old_size or not start.startswith(old_start):
            self._reception.report(f"{path}: the file was written anew; it is read from its start")
        self._starts[path] = size, start


class _Names(UniqueNames):
    """Names of sessions that are unique among all files, and the same whenever the file is read again."""

    def __init__(self, owners: dict[str, Path], path: Path) -> None:
        super().__init__()
        self._owners, self._path = owners, path

    def take(self, name: str) -> str:
        """Return the name, with a number if another file or an earlier session of the file has it."""
        unique = candidate = super().take(name)
        number = 2
        while self._owners.setdefault(candidate, self._path) != self._path:
            candidate = f"{unique}#{number}"
            number += 1
        return candidate


def _received(session: Session | Failed, is_quiet: bool, is_over: bool) -> ReceivedSession:
    """Return the session without a last turn that may go on."""
    if isinstance(session, Failed) or is_over or not session.turns:
        return ReceivedSession(session, is_over)
    last = session.turns[-1]
    completed = next(event.payload for event in reversed(last.events) if event.type == "turn.completed")
    has_ended = completed.get("stop_reason") == "end_turn" or "ended_by" in completed
    if is_quiet and has_ended and completed.get("stop_reason") != RETRIED:
        return ReceivedSession(session, is_over)
    turns, log = session.turns[:-1], (*session.log[: last.begins], session.log[-1])  # with the end of the session
    return ReceivedSession(attrs.evolve(session, turns=turns, log=log), is_over)
