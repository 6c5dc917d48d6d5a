"""Reading the lines of the columns: as columns, of one subject, or one by one to be compared."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterator
from typing import Any

import orjson

from dicast.reading import Judged, Maker, Teller, Told

from .columns import JUDGED, PAID, TOLD, Packed
from .spent import Payer, Spent

Bounds = tuple[int, int]


def read_judged(connection: sqlite3.Connection, bounds: Bounds | None) -> Judged:
    """The verdicts and failures in the columns, those of rows within *bounds* and perhaps some beside."""
    found = Judged(makers=[Maker(*facts) for facts in common(connection, JUDGED)])
    lines, texts, exact = _whole(connection, JUDGED, bounds)
    numbers, floats = array("q", lines), array("d", lines)
    found.seqs, found.times, found.codes, found.flags = (numbers[place::8] for place in range(4))
    found.scores, found.confidences = floats[4::8], floats[5::8]
    found.usd, found.msat = numbers[6::8], numbers[7::8]
    if exact:
        found.exact = {row: (text[1], text[2]) for row, text in enumerate(texts) if isinstance(text, list)}
        texts = [text[0] if isinstance(text, list) else text for text in texts]
    found.ids = texts
    return found


def read_told(connection: sqlite3.Connection, bounds: Bounds | None) -> Told:
    """What was told, likewise."""
    lines, texts, _ = _whole(connection, TOLD, bounds)
    numbers = array("q", lines)
    tellers = [Teller(*facts) for facts in common(connection, TOLD)]
    return Told(numbers[0::3], numbers[1::3], numbers[2::3], texts, tellers)


def read_spent(connection: sqlite3.Connection, bounds: Bounds | None) -> Spent:
    """What was spent, likewise."""
    lines, texts, exact = _whole(connection, PAID, bounds)
    numbers = array("q", lines)
    times, codes, flags, amounts, tokens, calls, marks = (numbers[place::8] for place in range(1, 8))
    amounts_as_text = {}
    if exact:
        amounts_as_text = {line: text[1] for line, text in enumerate(texts) if isinstance(text, list)}
        texts = [text[0] if isinstance(text, list) else text for text in texts]
    payers = [Payer(*facts) for facts in common(connection, PAID)]
    return Spent(times, codes, flags, amounts, tokens, calls, marks, texts, payers, amounts_as_text)


def rows_about(connection: sqlite3.Connection, subject_id: str) -> Iterator[int]:
    """The rows of the chain about a subject, as far as the columns go: verdicts, failures, readings and records."""
    text = orjson.dumps(subject_id).decode()
    for table in (JUDGED, TOLD):
        query = f"SELECT lines, texts FROM {table.name} WHERE instr(texts, ?)"
        for lines, texts in connection.execute(query, (text,)):
            words = table.pack.size // 8
            seqs = array("q", lines)[::words]
            for seq, found in zip(seqs, orjson.loads(f"[{texts}]"), strict=True):
                if found == subject_id or (isinstance(found, list) and found[0] == subject_id):
                    yield seq


def exploded(connection: sqlite3.Connection, table: Packed) -> Iterator[tuple[int, bytes, str]]:
    """Each line of *table*: its row of the chain, what is packed, and its text as JSON; to be compared with what it should be.

    :raises sqlite3.DatabaseError: when a row of the table does not say what its own lines say.
    """
    size = table.pack.size
    query = f"SELECT first, last, exact, lines, texts FROM {table.name} ORDER BY first"
    for first, last, exact, lines, texts in connection.execute(query):
        found = orjson.loads(f"[{texts}]")
        seqs = [row[0] for row in table.pack.iter_unpack(lines)] if len(lines) == size * len(found) else []
        if [first, last, exact] != [*seqs[:1], *seqs[-1:], sum(isinstance(text, list) for text in found)]:
            raise sqlite3.DatabaseError(f"row {first!r} of {table.name} is not what its lines are")
        for place, text in enumerate(found):
            yield seqs[place], lines[place * size : (place + 1) * size], orjson.dumps(text).decode()


def common(connection: sqlite3.Connection, table: Packed) -> list[list[Any]]:
    """What lines of *table* have in common, by its code."""
    query = f"SELECT code, facts FROM {table.common} ORDER BY code"
    rows = connection.execute(query).fetchall()
    if [code for code, _ in rows] != list(range(len(rows))):
        raise sqlite3.DatabaseError(f"a row of {table.common} is missing")
    return [orjson.loads(facts) for _, facts in rows]


def _whole(connection: sqlite3.Connection, table: Packed, bounds: Bounds | None) -> tuple[bytes, list[Any], int]:
    first, last = bounds or (0, 2**62)
    query = f"SELECT lines, texts, exact FROM {table.name} WHERE last >= ? AND first <= ? ORDER BY first"
    rows = connection.execute(query, (first, last)).fetchall()
    lines = b"".join([row[0] for row in rows])
    texts = orjson.loads(f"[{','.join([row[1] for row in rows])}]")
    if len(lines) != len(texts) * table.pack.size:
        raise sqlite3.DatabaseError(f"{table.name} has {len(lines)} bytes for {len(texts)} lines")
    return lines, texts, sum(row[2] for row in rows)
