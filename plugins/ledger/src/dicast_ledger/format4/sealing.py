"""Small appends become compressed blocks. No digest changes, because the chain is over lines."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

import attrs
import orjson

from dicast.toolkit.ledger_lines.blocks import MOST_BYTES, MOST_LINES, is_packed, joined, lines_in
from dicast.toolkit.ledger_lines.lines import events_in, run_of

from .reading import Makers
from .rows import INSERT, ROW
from .texts import PLACES, Group, groups_of, keys_of

SEALED_APPENDS, SEALED_LINES = 256, 1_000
"""Number of small appends, and of their lines, from which a later append compresses them together."""

_OVERDUE = 2
"""Factor of these numbers from which they are compressed inside the transaction, because other processes write all the time."""

ERASED = b"null"
"""The text in the place of an erased content."""

Row = Sequence[Any]


@attrs.frozen(eq=False)
class Sealing:
    """Rows of ``blocks`` and of ``texts`` that become compressed rows: the keys of the old rows, and the new rows. *bounds* has the last event of each run."""

    firsts: Sequence[int]
    rows: Sequence[Row]
    ids: Sequence[int]
    groups: Sequence[Group]
    bounds: Mapping[str, int]


def small_appends(connection: sqlite3.Connection) -> tuple[int, int]:
    """Return the number of small appends since the last compressed block, and the number of their lines."""
    small = _small(connection, "lines, size, length(body)")
    return len(small), sum(row[0] for row in small)


def sealing_of(connection: sqlite3.Connection) -> Sealing:
    """Return the small appends since the last compressed block as compressed rows."""
    from dicast.reading.blocks.making import packed_columns  # a short run seals nothing

    small = _small(connection, ROW)
    ids, texts = list[int](), dict[str, bytes]()
    makers = Makers(connection)
    columns = packed_columns(makers)
    for id_, size, body in connection.execute("SELECT id, size, body FROM texts ORDER BY id DESC"):
        if is_packed(size, body):
            break
        ids.append(id_)
        texts.update((sha256(text).hexdigest(), text) for text in lines_in(size, body) if text != ERASED)
    rows = [joined(part, columns) for part in _parts(small)]
    return Sealing([row[0] for row in small], rows, ids, groups_of(texts, packed=True), _bounds_of(small, makers))


def overdue(connection: sqlite3.Connection) -> Sealing | None:
    """Return the sealing of very many small appends; None if there are fewer."""
    appends, lines = small_appends(connection)
    is_late = appends >= _OVERDUE * SEALED_APPENDS or lines >= _OVERDUE * SEALED_LINES
    return sealing_of(connection) if is_late else None


def seal(connection: sqlite3.Connection, sealing: Sealing | None) -> None:
    """Replace the rows inside a transaction. No other process has written since :func:`sealing_of`."""
    if sealing is None:
        return
    connection.executemany("DELETE FROM blocks WHERE first = ?", [(first,) for first in sealing.firsts])
    connection.executemany(INSERT, sealing.rows)
    bounds = [(last, run_id) for run_id, last in sealing.bounds.items()]
    connection.executemany("UPDATE runs SET last_seq = ? WHERE run_id = ?", bounds)
    connection.executemany("DELETE FROM texts WHERE id = ?", [(id_,) for id_ in sealing.ids])
    for digests, size, body in sealing.groups:
        id_ = connection.execute("INSERT INTO texts (size, body) VALUES (?, ?)", (size, body)).lastrowid or 0
        connection.executemany(
            """UPDATE contents SET place = ? WHERE key =
                (SELECT key FROM contents WHERE key IN (?, ?) ORDER BY length(key) DESC LIMIT 1)""",
            [(id_ * PLACES + index, *keys_of(digest)) for index, digest in enumerate(digests)],
        )


def _bounds_of(rows: Sequence[Row], makers: Makers) -> dict[str, int]:
    """Return the number of the last event of each run in *rows*."""
    bounds = dict[str, int]()
    for row in rows:
        seq, last, _, run_id = row[:4]
        if run_id is not None:
            bounds[run_id] = last
            continue
        for line in map(orjson.loads, lines_in(*row[-2:])):  # events of several runs
            seq += events_in(line, makers)
            if (run := run_of(line, makers)) is not None:
                bounds[run] = seq - 1
    return bounds


def _parts(rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
    """Yield the rows that become a block together."""
    part, lines, size = list[Row](), 0, 0
    for row in rows:
        if part and (lines + row[2] > MOST_LINES or size + row[-2] > MOST_BYTES):
            yield part
            part, lines, size = [], 0, 0
        part.append(row)
        lines, size = lines + row[2], size + row[-2]
    if part:
        yield part


def _small(connection: sqlite3.Connection, columns: str) -> list[Row]:
    """Return *columns* of the blocks after the last compressed block. The last two are the size, and the body or its length."""
    rows: list[Row] = []
    for row in connection.execute(f"SELECT {columns} FROM blocks ORDER BY first DESC"):
        length = row[-1] if isinstance(row[-1], int) else len(row[-1])
        if row[-2] != length:
            break
        rows.append(row)
    return rows[::-1]
