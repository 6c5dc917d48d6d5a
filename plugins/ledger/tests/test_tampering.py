"""Every change of a ledger of format 4 is found by its check: of each column of each table, and of each byte of a body."""

from __future__ import annotations

import sqlite3
import zlib
from contextlib import closing, contextmanager, suppress

import pytest

from dicast.toolkit.ledger_lines.blocks import COLUMNS, is_packed
from dicast_ledger.format4.check import verify

VALUES = {
    "NULL": "NULL",
    "text": "'x'",
    "a number": "7",
    "a fraction": "7.5",
    "bytes": "x'ff00'",
    "zeros": "zeroblob(32)",
    "no UTF-8": "CAST(x'ff' AS TEXT)",
    "infinity": "9e999",
}
TABLES = ("blocks", "texts", "contents", "makers", "runs", "reservations", "held", "lost", "spend", "counted")
"""The tables that follow from the lines. The rows of ``leases`` do not."""

PLACES = "(SELECT {key} FROM {table} ORDER BY 1 LIMIT 1)", "(SELECT {key} FROM {table} ORDER BY 1 DESC LIMIT 1)"


@pytest.fixture(scope="module")
def connection(tmp_path_factory, opened, make_subject, make_event):
    """Return a connection to a ledger with rows in each table, and with compressed and plain bodies."""
    path = tmp_path_factory.mktemp("tampering") / "ledger.db"
    amounts = {"scopes": ["run:R1"], "amount": "2", "unit": "usd", "lease_until": "2026-03-01T12:00:00.000Z"}
    with opened(path) as ledger:
        for start in (0, 100):
            ledger.append([event for number in range(start, start + 100) for event in make_subject(number)])
        for number in range(3):
            ledger.append([make_event("spend.reserved", {"reservation_id": str(number), **amounts})])
        ledger.append([make_event("spend.settled", {"reservation_id": "0", "amount": "1.5", "unit": "usd"})])
        ledger.append([make_event("spend.lost", {"reservation_id": "1", "amount": "2", "unit": "usd"})])
        ledger.append([make_event("run.completed")])  # writes the sums
        ledger.append([event for number in (200, 201) for event in make_subject(number, run_id="R2", judge='ä "b"')])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        assert verify(connection, None).ok
        yield connection


@contextmanager
def changed(connection):
    """Undo the changes of the block."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")


def columns_of(connection, table):
    return [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]


def state(connection, table):
    """Return the rows of a table with their types. A text that is no UTF-8 is bytes."""
    names = columns_of(connection, table)
    values = ", ".join(f"typeof({name}), CAST({name} AS BLOB)" for name in names)
    return sorted(connection.execute(f"SELECT {values} FROM {table}").fetchall(), key=repr)


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("table", TABLES)
def test_a_changed_column_is_found(connection, table, value):
    before, key, tried = state(connection, table), columns_of(connection, table)[0], 0
    for column in columns_of(connection, table):
        for place in PLACES:
            where = f"{key} = {place.format(key=key, table=table)}"
            with changed(connection):
                with suppress(sqlite3.IntegrityError):
                    connection.execute(f"UPDATE {table} SET {column} = {VALUES[value]} WHERE {where}")
                if state(connection, table) == before:
                    continue
                tried += 1
                result = verify(connection, None)
                assert not result.ok, (column, place)
                assert result.bad_seq >= 1
    assert tried or value in ("a fraction", "NULL", "text", "a number")


@pytest.mark.parametrize("table", TABLES)
def test_a_row_less_is_found(connection, table):
    key = columns_of(connection, table)[0]
    for place in PLACES:
        with changed(connection):
            connection.execute(f"DELETE FROM {table} WHERE {key} = {place.format(key=key, table=table)}")
            if table == "blocks" and place is PLACES[1]:
                connection.execute("UPDATE runs SET last_seq = min(last_seq, (SELECT max(last) FROM blocks))")
                connection.execute("DELETE FROM runs WHERE first_seq > (SELECT max(last) FROM blocks)")
            assert not verify(connection, None).ok


def bodies(connection, table):
    key = columns_of(connection, table)[0]
    return connection.execute(f"SELECT {key}, size, body FROM {table} ORDER BY 1").fetchall()


def first_of(connection, first):
    """Return the numbers of the first and last events of the block from *first*."""
    return connection.execute("SELECT first, last FROM blocks WHERE first = ?", (first,)).fetchone()


@pytest.mark.slow
@pytest.mark.parametrize("flip", [1, 0x20, 0x81])
def test_a_changed_byte_of_a_plain_body_is_found_in_its_block(connection, flip):
    """Bytes of each class are changed: digits, letters, quotes, brackets, commas, newlines, escapes and UTF-8."""
    for key, size, body in bodies(connection, "blocks"):
        if is_packed(size, body):
            continue
        for place in range(flip % 3, len(body), 3):
            edited = bytearray(body)
            edited[place] ^= flip
            with changed(connection):
                connection.execute("UPDATE blocks SET body = ? WHERE first = ?", (bytes(edited), key))
                result = verify(connection, None)
            first, last = first_of(connection, key)
            assert first <= (result.bad_seq or 0) <= last, (key, place, result)


@pytest.mark.slow
@pytest.mark.parametrize("table", ["blocks", "texts"])
def test_a_changed_byte_of_a_compressed_body_is_found(connection, table):
    """A change that decompresses to the same text is no change of the ledger."""
    key_name = columns_of(connection, table)[0]
    key, size, body = next(row for row in bodies(connection, table) if is_packed(*row[1:]))
    for place in range(0, len(body), 7):
        edited = bytearray(body)
        edited[place] ^= 1 << place % 8
        with suppress(zlib.error):
            if zlib.decompress(edited) == zlib.decompress(body):
                continue
        with changed(connection):
            connection.execute(f"UPDATE {table} SET body = ? WHERE {key_name} = ?", (bytes(edited), key))
            result = verify(connection, None)
        assert not result.ok, place
        if table == "blocks":
            assert result.bad_seq == key


@pytest.mark.parametrize("table", ["blocks", "texts"])
@pytest.mark.parametrize(
    ("old", "new"), [(b"0.01", b"0.91"), (b"Answer", b"answer"), (b"[", b"{"), (b"null", b"true"), (b",\n", b", ")]
)
def test_a_body_that_is_compressed_again_is_found(connection, table, old, new):
    key_name = columns_of(connection, table)[0]
    key, size, body = next(row for row in bodies(connection, table) if is_packed(*row[1:]))
    raw = zlib.decompress(body)
    for edited in {raw.replace(old, new, 1), new.join(raw.rsplit(old, 1))} - {raw}:
        with changed(connection):
            row = len(edited), zlib.compress(edited), key
            connection.execute(f"UPDATE {table} SET size = ?, body = ? WHERE {key_name} = ?", row)
            assert not verify(connection, None).ok


@pytest.mark.slow
def test_a_changed_byte_of_the_columns_is_found_in_its_block(connection):
    key, columns = connection.execute("SELECT first, columns FROM blocks WHERE columns IS NOT NULL").fetchone()
    for place in range(0, len(columns), 11):
        edited = bytearray(columns)
        edited[place] ^= 0x10
        with changed(connection):
            connection.execute("UPDATE blocks SET columns = ? WHERE first = ?", (bytes(edited), key))
            result = verify(connection, None)
        assert result.bad_seq == key, place
    for edited in (columns + b"x", columns[:-1], b"", columns * 2):
        with changed(connection):
            connection.execute("UPDATE blocks SET columns = ? WHERE first = ?", (edited, key))
            assert verify(connection, None).bad_seq == key


MOVES = {
    "swapped": [
        "UPDATE blocks SET first = -1 WHERE first = 601",
        "UPDATE blocks SET first = 601 WHERE first = 602",
        "UPDATE blocks SET first = 602 WHERE first = -1",
    ],
    "duplicated": [
        f"INSERT INTO blocks SELECT first + 10000, last + 10000, {', '.join(COLUMNS[2:])} FROM blocks WHERE first = 301"
    ],
    "repeated content": ["INSERT INTO texts SELECT id + 1000, size, 'x' || body FROM texts LIMIT 1"],
    "moved content": ["UPDATE texts SET id = id + 1000"],
    "swapped contents": [
        "UPDATE contents SET place = place + 1000000 WHERE place % 2 = 0",
        "UPDATE contents SET place = place - 1 WHERE place < 1000000",
        "UPDATE contents SET place = place - 1000000 + 1 WHERE place > 999999",
    ],
    "another run": ["UPDATE runs SET run_id = 'R9' WHERE run_id = 'R2'"],
    "fewer events that the sums count": ["UPDATE counted SET seq = 603"],
    "a settled amount": ["UPDATE spend SET amount = '0.5'"],
    "a reservation less": ["DELETE FROM reservations", "DELETE FROM held"],
    "a reservation again": [
        "INSERT INTO reservations SELECT id || 'x', seq, run_id, scopes, amount, unit, lease_until, outlives FROM reservations"
    ],
}


@pytest.mark.parametrize("move", MOVES)
def test_moved_rows_are_found(connection, move):
    with changed(connection):
        for statement in MOVES[move]:
            assert connection.execute(statement).rowcount, statement
        assert not verify(connection, None).ok
