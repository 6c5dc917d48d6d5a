"""Temporary SQLite files for data that grows with the number of subjects and therefore must not be in memory.

The file has no name and disappears with its owner.
"""

from __future__ import annotations

import sqlite3
import weakref


def temporary_database(owner: object, schema: str) -> sqlite3.Connection:
    """Return a database with *schema* that is closed when *owner* is no longer used, in whichever thread that happens."""
    connection = sqlite3.connect("", isolation_level=None, check_same_thread=False)
    weakref.finalize(owner, connection.close)
    connection.execute("PRAGMA journal_mode=OFF")
    connection.execute("PRAGMA synchronous=OFF")
    connection.execute(schema)
    return connection
