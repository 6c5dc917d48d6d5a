"""The events that the tables of amounts do not count yet: see :mod:`dicast_ledger.spending`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson

from dicast.toolkit.ledger_lines.blocks import list_in
from dicast.toolkit.ledger_lines.lines import EVENT, events_in

from ..spending import AMOUNT_TABLES, SPENDING_TABLES, Spending, counted_in
from .reading import Makers
from .rows import newest

SPEND = "spend."
"""Prefix of the types of events of amounts."""

_MARK = b'"spend.'
_TYPE, _RUN, _PAYLOAD = 2, 4, 10
"""Places in the line of an event."""


def count_later(connection: sqlite3.Connection, spending: Spending) -> bool:
    """Record the events that the tables of *connection* do not count, and return True if there are any.

    :raises ValueError: if a block cannot be read.
    :raises LedgerError: if an amount cannot be added.
    """
    seq, (last, _) = counted_in(connection), newest(connection) or (0, b"")
    if seq is None or seq >= last:
        return False
    for event in _spending_after(connection, seq):
        spending.record(*event)
    return True


@contextmanager
def counted(connection: sqlite3.Connection) -> Iterator[Spending]:
    """Yield the amounts of all events. The tables of *connection* are not changed."""
    seq, (last, _) = counted_in(connection), newest(connection) or (0, b"")
    if seq is None or seq >= last:
        yield Spending(connection)
        return
    copy = sqlite3.connect(":memory:")
    try:
        copy.executescript(SPENDING_TABLES)
        for table in AMOUNT_TABLES:
            rows = connection.execute(f"SELECT * FROM {table}").fetchall()
            if rows:
                copy.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(rows[0]))})", rows)
        spending = Spending(copy)
        count_later(connection, spending)
        spending.write()
        yield spending
    finally:
        copy.close()


def _spending_after(connection: sqlite3.Connection, seq: int) -> Iterator[tuple[int, str, str, Any]]:
    """Yield the number, the run, the type and the payload of each event of amounts after *seq*, the last event of a block."""
    makers = Makers(connection)
    for first, size, body in connection.execute(
        "SELECT first, size, body FROM blocks WHERE first > ? ORDER BY first", (seq,)
    ):
        raw = list_in(size, body)
        if _MARK not in raw:
            continue
        number = first
        for line in orjson.loads(raw):
            if line[0] == EVENT and line[_TYPE].startswith(SPEND):
                yield number, line[_RUN], line[_TYPE], line[_PAYLOAD]
            number += events_in(line, makers)
