"""Connections of other programs to the views of a ledger."""

from __future__ import annotations

import sqlite3
import zlib
from pathlib import Path

from dicast.toolkit.ledger_lines.blocks import is_packed

from .. import file

_TIMEOUT = 5.0


def connect(path: Path | str) -> sqlite3.Connection:
    """Return a connection to the ledger at *path* that only reads: the views ``events`` and ``verdicts`` are readable, for example by pandas.

    :raises sqlite3.OperationalError: if there is no such file.
    """
    connection = file.connect(Path(path), _TIMEOUT)
    connection.execute("PRAGMA query_only = 1")
    add_functions(connection)
    return connection


def add_functions(connection: sqlite3.Connection) -> None:
    """Define the function that the views of a ledger use, as the ``sqlite3`` shell does."""

    def uncompressed(body: bytes, size: int) -> bytes:
        return zlib.decompress(body) if is_packed(size, body) else body

    connection.create_function("sqlar_uncompress", 2, uncompressed, deterministic=True)
