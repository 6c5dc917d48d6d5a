"""The file of recorded replies: JSON lines. Opening the file indexes its lines; recording appends one line at a time.

The first line has the format: ``{"dicast_replay": 1}``. Each further line has one reply: ``{"digest", "key", "nonces", "reply"}``.
``key`` shows the request to readers; ``nonces`` are the seals and delimiters of the answered call.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from dicast import ChatRequest, ConfigError, KeptReply, Problem, Reply
from dicast.toolkit.files import check_regular

FORMAT = 1
NAMED = 100
"""The number of bad lines that are reported; the others are counted."""

_BINARY = getattr(os, "O_BINARY", 0)
"""Windows would change line ends without it."""


class Recording:
    """The recorded replies at *path*. Memory holds only their positions. With *write* a missing file is created.

    :raises ConfigError: for every line that is not a recorded reply, and if the file cannot be opened.
    """

    def __init__(self, path: Path, *, write: bool) -> None:
        self.path = path
        self._places: dict[bytes, tuple[int, int]] = {}
        self._file = _opened(path, write=write)
        try:
            self._index()
        except BaseException:
            self.close()
            raise

    def __contains__(self, digest: str) -> bool:
        return bytes.fromhex(digest) in self._places

    def find(self, digest: str) -> KeptReply | None:
        """Return the reply to the request with *digest*, or None."""
        place = self._places.get(bytes.fromhex(digest))
        if place is None:
            return None
        start, length = place
        os.lseek(
            self._file, start, os.SEEK_SET
        )  # os.pread does not exist on every system; O_APPEND makes writes independent of the position
        return _read_reply(orjson.loads(os.read(self._file, length)))

    def append(self, digest: str, request: ChatRequest, reply: Reply) -> None:
        """Record *reply* in one write, because other processes may append to the same file.

        :raises OSError: if the line could not be written; no part of it stays in the file.
        :raises TypeError: if the reply has text that cannot be encoded in UTF-8.
        """
        recorded = KeptReply(reply, request.nonces)
        line = orjson.dumps(
            {"digest": digest, "key": request.key(), **recorded.plain()}, option=orjson.OPT_APPEND_NEWLINE
        )
        written = os.write(self._file, line)
        start = os.lseek(self._file, 0, os.SEEK_CUR) - written
        if written < len(line):
            try:
                os.write(self._file, line[written:])  # raises the cause, such as a full disk
            finally:
                os.ftruncate(self._file, start)
            raise OSError(0, f"only {written} of {len(line)} bytes were written")
        self._places[bytes.fromhex(digest)] = start, len(line)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)

    def _index(self) -> None:
        problems: list[Problem] = []
        wrong = 0
        for number, start, line in self._lines():
            fault = self._note(line, start)
            if fault is not None:
                wrong += 1
                problems += [Problem(fault, str(self.path), number)] if wrong <= NAMED else []
        if wrong > NAMED:
            problems.append(Problem(f"… and {wrong - NAMED:,} more", str(self.path)))
        if problems:
            raise ConfigError(problems)

    def _lines(self) -> Iterator[tuple[int, int, bytes]]:
        start = 0
        with os.fdopen(os.dup(self._file), "rb") as file:
            for number, line in enumerate(file, 1):
                yield number, start, line
                start += len(line)

    def _note(self, line: bytes, start: int) -> str | None:
        """Index the reply in *line*, and return the fault of an invalid line, else None. The first of equal digests counts."""
        if not line.endswith(b"\n"):
            return "the last line is cut off or has no line end: remove it, or end it"
        try:
            data = orjson.loads(line)
            if "dicast_replay" in data:
                return _wrong_format(data["dicast_replay"])
            _read_reply(data)
            digest = bytes.fromhex(data["digest"])
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            reason = f"no {error}" if isinstance(error, KeyError) else error
            return f"this is not a recorded reply ({reason}): remove the line, or record it again"
        self._places.setdefault(digest, (start, len(line)))
        return None


def _opened(path: Path, *, write: bool) -> int:
    try:
        check_regular(path)
        if not write:
            return os.open(path, os.O_RDONLY | _BINARY)
        path.parent.mkdir(parents=True, exist_ok=True)
        with suppress(FileExistsError):
            return _created(path)
        return os.open(path, os.O_RDWR | _BINARY | os.O_APPEND)
    except OSError as error:
        raise ConfigError(f"the recording {path} cannot be opened: {error.strerror or error}") from error


def _created(path: Path) -> int:
    file = os.open(path, os.O_RDWR | _BINARY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(file, orjson.dumps({"dicast_replay": FORMAT}, option=orjson.OPT_APPEND_NEWLINE))
    except BaseException:  # such as a full disk
        os.close(file)
        path.unlink()
        raise
    return file


def _wrong_format(format: object) -> str | None:
    return None if format == FORMAT else f"the recording has format {format!r}, this version reads format {FORMAT}"


def _read_reply(data: Mapping[str, Any]) -> KeptReply:
    return KeptReply.of(data["reply"], data.get("nonces", ()))
