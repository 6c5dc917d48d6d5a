"""The tables and views of a ledger of format 4."""

from __future__ import annotations

from ..leases import LEASES_TABLE
from ..spending import COUNTED_TABLE, SPENDING_TABLES
from .rows import BLOCKS_TABLE
from .texts import TEXTS_TABLES
from .views import VIEWS

FORMAT = 4
VERSIONS = 4, 5
"""The values of ``PRAGMA user_version`` for files of format 4: 5 for files with the table ``counted``.

Older code would keep ``counted`` as it is and add to the sums, so later events would be counted twice. It refuses files of version 5.
"""
PAGE_BYTES = 4096

SCHEMA = (
    BLOCKS_TABLE,
    *TEXTS_TABLES,
    "CREATE TABLE makers (name TEXT PRIMARY KEY, line TEXT) WITHOUT ROWID",
    "CREATE TABLE runs (run_id TEXT PRIMARY KEY, first_seq INTEGER, last_seq INTEGER) WITHOUT ROWID",
    *(statement for statement in SPENDING_TABLES.split(";") if statement.strip()),
    COUNTED_TABLE,
    "INSERT INTO counted VALUES (1, 0)",
    LEASES_TABLE,
    *VIEWS,
)
"""The statements that make an empty ledger."""
