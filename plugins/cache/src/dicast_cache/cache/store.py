"""The SQLite file: every request with the data of its key, and its reply if it may be used again."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import attrs
import orjson

from dicast import ConfigError, Failure, KeptReply, Reply
from dicast.toolkit.files import check_regular

APPLICATION_ID = 0x64696363  # "dicc": distinguishes a cache from other SQLite files
FORMAT = 1
BUSY_SECONDS = 5.0
"""Seconds to wait for another process that is writing."""

_SCHEMA = f"""
CREATE TABLE requests (
    seq INTEGER PRIMARY KEY, digest TEXT UNIQUE, time TEXT, key TEXT, nonces TEXT, reply TEXT, unfit TEXT);
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT};
"""
_MARKS = ("application_id", "user_version")
_PUT = """
INSERT INTO requests (digest, time, key, nonces, reply, unfit) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT (digest) DO UPDATE SET
    time = excluded.time, nonces = excluded.nonces, reply = excluded.reply, unfit = excluded.unfit
WHERE reply IS NULL
"""


@attrs.frozen
class Entry:
    """A request that was sent at *time* (ISO 8601, UTC).

    *key* is the digested data. *reply* is the stored reply, or None if the answer was *unfit* for another use.
    """

    digest: str
    time: str
    key: Mapping[str, Any]
    reply: Mapping[str, Any] | None
    unfit: str | None


class Store:
    """The cache at *path*. A missing file is created with *create*, else it is refused.

    :raises ConfigError: if the file is not a cache, has a newer format, is damaged, missing or cannot be opened.
    """

    def __init__(self, path: Path, *, create: bool) -> None:
        self.path = path
        try:
            if create and not path.exists():
                _make(path)
            elif not path.exists():
                raise ConfigError(f"no cache at {path}: name the path of a cache/chat that was asked before")
            self._connection = _connected(path, write=create)
        except (OSError, sqlite3.Error) as error:
            raise ConfigError(f"the cache {path} cannot be used: {_why(error)}") from error
        try:
            self._check()
        except BaseException:
            self.close()
            raise

    def _check(self) -> None:
        try:
            # A commit survives the end of the process, but not a loss of power; then a request is sent once more.
            self._connection.execute("PRAGMA synchronous = NORMAL")
            marks = tuple(self._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in _MARKS)
        except sqlite3.Error as error:
            raise ConfigError(f"the cache {self.path} cannot be used: {_why(error)}") from error
        if marks[0] != APPLICATION_ID:
            raise ConfigError(
                f"{self.path} is a database, but not a cache of dicast: choose another path for the cache"
            )
        if marks[1] != FORMAT:
            raise ConfigError(
                f"{self.path} is a cache of format {marks[1]}, this dicast-cache reads format {FORMAT}: upgrade it, or "
                "choose another path"
            )

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    def find(self, digest: str) -> KeptReply | None:
        """Return the stored reply to the request with *digest*, or None."""
        query = "SELECT reply, nonces FROM requests WHERE digest = ? AND reply IS NOT NULL"
        row = self._connection.execute(query, (digest,)).fetchone()
        return None if row is None else KeptReply.of(orjson.loads(row[0]), orjson.loads(row[1]))

    def put(
        self,
        digest: str,
        key: Mapping[str, Any],
        nonces: Sequence[str],
        answer: Reply | Failure,
        unfit: str | None,
    ) -> None:
        """Store a request and its answer. A reply that is already stored stays.

        :raises sqlite3.Error: if nothing was written.
        :raises TypeError: if the answer cannot be written as JSON.
        """
        reply = (
            None if unfit or isinstance(answer, Failure) else orjson.dumps(KeptReply(answer).plain()["reply"]).decode()
        )
        time = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        texts = (orjson.dumps(part).decode() for part in (key, list(nonces)))
        self._connection.execute(_PUT, (digest, time, *texts, reply, unfit))

    def entries(self, prefix: str = "") -> Iterator[Entry]:
        """Yield every request, or each request whose digest begins with *prefix*, in the order in which they were first sent."""
        query = "SELECT digest, time, key, reply, unfit FROM requests WHERE substr(digest, 1, ?) = ? ORDER BY seq"
        for digest, time, key, reply, unfit in self._connection.execute(query, (len(prefix), prefix)):
            yield Entry(digest, time, orjson.loads(key), None if reply is None else orjson.loads(reply), unfit)


def _make(path: Path) -> None:
    """Create an empty cache. The file gets its name when it is complete, unless another process has created the cache meanwhile."""
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    os.close(os.open(hidden, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        with closing(sqlite3.connect(hidden, isolation_level=None)) as connection:
            # The schema is written before the file has a write-ahead log: a log that remains on a full disk would lose its database.
            connection.executescript(f"BEGIN; {_SCHEMA} COMMIT; PRAGMA journal_mode = WAL")
        os.link(hidden, path)
    except FileExistsError:
        return
    finally:
        for suffix in ("", "-journal", "-wal", "-shm"):
            hidden.with_name(hidden.name + suffix).unlink(missing_ok=True)


def _connected(path: Path, *, write: bool) -> sqlite3.Connection:
    check_regular(path)
    writable = os.access(path, os.W_OK)
    if write and not writable:
        raise PermissionError(0, "it cannot be written to; check its permissions")
    # Even a reader of a WAL database writes its index; a file that cannot be written to is opened immutable.
    mode = "rw" if writable and os.access(path.parent, os.W_OK) else "ro&immutable=1"
    uri = f"{path.absolute().as_uri()}?mode={mode}"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_SECONDS, isolation_level=None)


def _why(error: OSError | sqlite3.Error) -> str:
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_NOTADB:
        return "it is not a SQLite file; choose another path, or move the file away"
    return str(error)
