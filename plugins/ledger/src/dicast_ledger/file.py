"""The SQLite file: its schema, its creation, and the reasons to refuse it."""

from __future__ import annotations

import os
import shlex
import sqlite3
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from dicast import LedgerRefused
from dicast.toolkit.files import check_regular

from .format4 import schema
from .format4.views import VIEWS
from .spending import COUNTED_TABLE

APPLICATION_ID = 0x64696361  # "dica": distinguishes a ledger from other SQLite files
VERSIONS = 2, 3, *schema.VERSIONS
"""The supported values of ``PRAGMA user_version``."""

_VIEWS = [(view,) for view in sorted(VIEWS)]

_NAPS = 0.001, 0.05
"""Seconds between two attempts to get a lock: first, and at most."""


class Patient(sqlite3.Connection):
    """Connection whose statements wait up to *timeout* seconds of wall-clock time for a lock.

    After a timeout, statements fail at once until a transaction begins. SQLite's own timeout is not used: it adds up the sleeps that it requested,
    and the timer of the run cuts each of them short.
    """

    timeout = 0.0
    _has_timed_out = False

    def execute(self, *statement: Any) -> sqlite3.Cursor:
        """Execute a statement as soon as its lock is free.

        :raises sqlite3.OperationalError: if the lock is not free within the timeout, or the statement fails.
        """
        deadline, (nap, longest) = 0.0, _NAPS
        while True:
            try:
                cursor = super().execute(*statement)
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or self._has_timed_out:
                    raise
                now = time.monotonic()
                deadline = deadline or now + self.timeout
                if now >= deadline:
                    self._has_timed_out = True
                    raise
                time.sleep(min(nap, deadline - now))
                nap = min(2 * nap, longest)
            else:
                if self._has_timed_out and statement[0].startswith("BEGIN"):
                    self._has_timed_out = False
                return cursor


def _is_busy(error: sqlite3.Error) -> bool:
    return getattr(error, "sqlite_errorcode", 0) & 0xFF == sqlite3.SQLITE_BUSY


def open_file(path: Path, *, create: bool, timeout: float) -> sqlite3.Connection:
    """Return a connection to the ledger at *path*. With *create* a missing ledger is created, and the file has to be writable.

    :raises LedgerRefused: with the fault of the file and its fix.
    """
    if path.is_dir():
        raise LedgerRefused(
            f"{path} is a folder, but a ledger is a file: name a file in it, such as {path / 'ledger.db'}"
        )
    _check_regular(path)
    if create:
        _touch(path)
    elif not path.exists():
        raise LedgerRefused(f"no ledger at {path}: name the ledger of an earlier run, or run a pipeline first")
    try:
        connection = connect(path, timeout)
        try:
            _prepare(connection, path, create=create)
        except BaseException:
            connection.close()
            raise
    except sqlite3.Error as error:
        raise LedgerRefused(explain(path, error, timeout)) from error
    return connection


def _check_regular(path: Path) -> None:
    try:
        check_regular(path)
    except OSError as error:
        raise LedgerRefused(f"the ledger {path} cannot be opened: {error.strerror or error}") from error


def connect(path: Path, timeout: float) -> sqlite3.Connection:
    """Return a connection in autocommit mode, usable from any thread, that waits *timeout* seconds for a lock."""
    place = path.absolute().as_posix()  # Path.as_uri imports an HTTP client from Python 3.14 on
    uri = f"file://{'' if place.startswith('/') else '/'}{quote(os.fsencode(place), safe='/:')}?{_mode(path)}"
    connection = sqlite3.connect(
        uri, uri=True, timeout=0, isolation_level=None, check_same_thread=False, factory=Patient
    )
    connection.timeout = timeout
    try:
        connection.execute("PRAGMA synchronous = NORMAL")  # a commit survives the process: docs/adr/0011
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
        connection.execute("PRAGMA cache_size = -8000")
    except BaseException:
        connection.close()
        raise
    return connection


def _mode(path: Path) -> str:
    if os.access(path, os.W_OK) and os.access(path.parent, os.W_OK):
        return "mode=rw"
    wal = path.with_name(path.name + "-wal")
    # A reader of a WAL database creates its index file. If it cannot, and the log is empty, SQLite must open the file
    # as immutable.
    return "mode=ro" if wal.exists() and wal.stat().st_size else "mode=ro&immutable=1"


def _touch(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        # Never open and close an existing file: closing it drops every lock of this process on it, SQLite's locks included.
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except OSError as error:
        raise LedgerRefused(
            f"cannot create the ledger {path}: {error.strerror}; choose a path in a folder you may write to"
        ) from error


def _prepare(connection: sqlite3.Connection, path: Path, *, create: bool) -> None:
    """Check the file. With *create*, make its tables if they are missing."""
    if create and _is_blank(connection):
        _create(connection)
    number = _check_format(connection, path)
    if create and number not in schema.VERSIONS:
        raise refusal_of(path, number)
    if create:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        # BEGIN succeeds on a read-only file, so a value is written
        connection.execute(f"PRAGMA user_version = {schema.VERSIONS[-1]}")
        _replace_views(connection)
        _add_counted(connection)
        connection.execute("COMMIT")


def _replace_views(connection: sqlite3.Connection) -> None:
    """Replace the views of an older version, which cannot read new kinds of lines."""
    if [*connection.execute("SELECT sql FROM sqlite_master WHERE type = 'view' ORDER BY name")] == _VIEWS:
        return
    for name in ("verdicts", "events"):
        connection.execute(f"DROP VIEW IF EXISTS {name}")
    for view in VIEWS:
        connection.execute(view)


def _add_counted(connection: sqlite3.Connection) -> None:
    """Make the table ``counted`` in the file of an older version, whose tables of amounts count all events."""
    if not connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'counted'").fetchone():
        connection.execute(COUNTED_TABLE)
        connection.execute("INSERT INTO counted SELECT 1, coalesce(max(last), 0) FROM blocks")


def refusal_of(path: Path, number: int) -> LedgerRefused:
    """Return the refusal to write on a ledger of the older format *number*."""
    converted = path.with_name(f"{path.stem}-{schema.FORMAT}{path.suffix}")
    return LedgerRefused(
        f"{path} is a ledger of format {number}, which is read but not written on: convert it into a new file, "
        f"dicast ledger convert {shlex.quote(str(path))} {shlex.quote(str(converted))}, and use the new file"
    )


def _is_blank(connection: sqlite3.Connection) -> bool:
    tables: int = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
    return not tables and _pragma(connection, "application_id") == 0 == _pragma(connection, "user_version")


def _create(connection: sqlite3.Connection) -> None:
    connection.execute(f"PRAGMA page_size = {schema.PAGE_BYTES}")
    connection.execute("BEGIN IMMEDIATE")
    # Another process may have created the tables while this process waited for the lock.
    if _is_blank(connection):
        for statement in schema.SCHEMA:
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {schema.VERSIONS[-1]}")
    connection.execute("COMMIT")


def _check_format(connection: sqlite3.Connection, path: Path) -> int:
    if _pragma(connection, "application_id") != APPLICATION_ID:
        raise LedgerRefused(f"{path} is a SQLite database, but not a dicast ledger: choose another path for the ledger")
    version_number = _pragma(connection, "user_version")
    if version_number not in VERSIONS:
        from importlib.metadata import version  # for this message alone

        formats = f"{', '.join(map(str, VERSIONS[:-1]))} and {VERSIONS[-1]}"
        raise LedgerRefused(
            f"{path} is a ledger of format {version_number}, but dicast-ledger {version('dicast-ledger')} reads formats {formats}: "
            "use the version that wrote it or a newer one (pip install --upgrade dicast-ledger), or choose another path"
        )
    return version_number


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    with closing(connection.execute(f"PRAGMA {name}")) as cursor:
        value: int = cursor.fetchone()[0]
        return value


def explain(path: Path, error: sqlite3.Error, timeout: float) -> str:
    """Return the meaning of *error* for the ledger at *path*, and its fix."""
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return (
                f"another process has kept the ledger {path} locked for {timeout:g} s: let it finish, or wait longer with --ledger "
                f"{shlex.quote(f'{{ledger/sqlite: {{path: {path}, busy_timeout: {max(30.0, 2 * timeout):g}}}}}')}, or choose another path for a new run"
            )
        case sqlite3.SQLITE_NOTADB:
            return f"{path} is not a SQLite file, so it is not a ledger: choose another path, or move the file away"
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return f"the ledger {path} cannot be opened or written ({error}): check the permissions of the file and its folder"
        case sqlite3.SQLITE_FULL:
            return f"no disk space left for the ledger {path} ({error}): free some space and resume the run"
        case sqlite3.SQLITE_CORRUPT:
            return f"the ledger {path} is damaged ({error}): restore it from a copy, or choose another path"
    return f"the ledger {path} could not be read or written: {error}"
