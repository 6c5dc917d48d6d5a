"""Columns beside the chain: of each verdict, failure, reading and model the few values that readers of many of them need.

A row of ``judged`` or ``told`` holds the lines of one append, or of several small ones: whole numbers and floats of 8 bytes each, and the
ids as JSON. What many lines have in common is stored once, in ``makers`` and ``tellers``. ``covered`` says up to which row of the
chain the columns go; a version of before leaves that where it was, and the rows behind it are read from the chain. It also counts the
``odd`` ones: rows that are about a subject and have no line, because their payload is not as their type asks.
"""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from struct import Struct
from typing import Any, NamedTuple

import orjson

from dicast import Event, Judged, Maker, Teller, Told, line_of, teller_of

from .spent import SPENT_TYPES, Payer, Spent, spent_of

COLUMN_TABLES = (
    "CREATE TABLE IF NOT EXISTS covered (upto INTEGER, odd INTEGER)",
    "CREATE TABLE IF NOT EXISTS makers (code INTEGER PRIMARY KEY, facts TEXT UNIQUE)",
    "CREATE TABLE IF NOT EXISTS tellers (code INTEGER PRIMARY KEY, facts TEXT UNIQUE)",
    "CREATE TABLE IF NOT EXISTS judged (first INTEGER PRIMARY KEY, last INTEGER, exact INTEGER, texts TEXT, lines BLOB)",
    "CREATE TABLE IF NOT EXISTS payers (code INTEGER PRIMARY KEY, facts TEXT UNIQUE)",
    "CREATE TABLE IF NOT EXISTS spent (first INTEGER PRIMARY KEY, last INTEGER, exact INTEGER, texts TEXT, lines BLOB)",
    "CREATE TABLE IF NOT EXISTS begun (eval_id TEXT, seq INTEGER, PRIMARY KEY (eval_id, seq)) WITHOUT ROWID",
    "CREATE TABLE IF NOT EXISTS told (first INTEGER PRIMARY KEY, last INTEGER, exact INTEGER, texts TEXT, lines BLOB)",
)

FEW = 128
"""Lines up to which a row is written anew with the next ones: a run whose every call is an append of its own makes small ones."""

AT_ONCE = 20_000
"""Rows of a chain without columns that one append catches up on."""


Line = tuple[int, bytes, object, bool]
"""A row of the chain, what is packed of it, its text, and whether the text holds amounts, too."""

Found = tuple[Any, tuple[Any, ...], tuple[Any, ...], object, bool, bool]
"""What an event has in common with others, the numbers before and behind the code of that, the text, whether that holds amounts, and
whether the line does not say which subject it is about."""

Times = dict[str, int]


class Packed(NamedTuple):
    """A table of lines: what it is about, how a line is packed, and the table of what lines have in common."""

    name: str
    common: str
    types: Sequence[str]
    pack: Struct
    line: Callable[[Event, Times], Found | None]


def _verdict(event: Event, times: Times) -> Found | None:
    line = line_of(event, times)
    if line is None:
        return None
    maker, time, flags, score, confidence, usd, msat, id, exact = line
    text = id if exact is None else [id, *exact]
    return maker, (time,), (flags, score, confidence, usd, msat), text, exact is not None, id != event.subject_id


def _told(event: Event, times: Times) -> Found | None:
    found = teller_of(event)
    return None if found is None else (found[0], (), (found[1],), found[2], False, False)


def _spent(event: Event, times: Times) -> Found | None:
    found = spent_of(event)
    return None if found is None else (*found, False)


ABOUT = ("subject.read", "record.completed", "record.failed")
TRACES = ("route.decided", "llm.call_completed")
JUDGED = Packed("judged", "makers", ("eval.completed", "eval.failed"), Struct("=qqqqddqq"), _verdict)
TOLD = Packed("told", "tellers", (*ABOUT, *TRACES), Struct("=qqq"), _told)
PAID = Packed("spent", "payers", SPENT_TYPES, Struct("=qqqqqqqq"), _spent)
PACKED = (JUDGED, TOLD, PAID)
"""All tables of lines. A call of an agent has a line in two of them."""
STARTED, *_ = EVALS = ("eval.started", *JUDGED.types)
COLUMNED = frozenset((STARTED, *(type_ for table in PACKED for type_ in table.types)))
"""The types of events that the columns are about."""


class Columns:
    """Writes the columns of one ledger, inside the transactions of its appends. After one that failed it has to :meth:`forget`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._codes: dict[str, dict[Any, int]] = {table.common: {} for table in PACKED}
        self._there = False

    def forget(self) -> None:
        """Forget the numbers that were given in a transaction that came to nothing."""
        for codes in self._codes.values():
            codes.clear()

    def covered(self) -> int | None:
        """Up to which row of the chain the columns go; None in a ledger that has none."""
        self._there = self._there or has_columns(self._connection)
        return covered(self._connection)[0] if self._there else None

    def add(self, events: Sequence[Event], first: int) -> None:
        """Add *events*, which are the rows from *first* on, if the columns go up to there."""
        if self.covered() == first - 1:
            self.extend(enumerate(events, first), first + len(events) - 1)

    def extend(self, events: Iterable[tuple[int, Event]], upto: int) -> None:
        """Add *events* with the numbers of their rows; the columns go up to the row *upto* then."""
        chosen = [one for one in events if one[1].type in COLUMNED]
        self.begin([one for one in chosen if one[1].type in EVALS])
        odd = 0
        for table in PACKED:
            if found := [one for one in chosen if one[1].type in table.types]:
                odd += self._write(table, found)
        execute = self._connection.execute
        if not execute("UPDATE covered SET upto = ?, odd = odd + ?", (upto, odd)).rowcount:
            execute("INSERT INTO covered VALUES (?, ?)", (upto, odd))

    def begin(self, events: Iterable[tuple[int, Event]]) -> None:
        """Note which verdicts *events* begin, and forget those that they end."""
        begun: dict[object, list[int]] = {}
        ended = []
        for seq, event in events:
            eval_id = event.payload.get("eval_id")
            if event.type == STARTED:
                begun.setdefault(eval_id, []).append(seq)
            else:
                begun.pop(eval_id, None)
                ended.append((eval_id,))
        if self._connection.execute("SELECT 1 FROM begun LIMIT 1").fetchone() is not None:
            self._connection.executemany("DELETE FROM begun WHERE eval_id = ?", ended)
        rows = [(eval_id, seq) for eval_id, seqs in begun.items() if isinstance(eval_id, str) for seq in seqs]
        self._connection.executemany("INSERT INTO begun VALUES (?, ?)", rows)

    def _write(self, table: Packed, events: Sequence[tuple[int, Event]]) -> int:
        """Write the lines of *events*; return how many of these are odd."""
        made, odd = self.lines(table, events)
        if made:
            self._put(table, made)
        return odd

    def _put(self, table: Packed, made: Sequence[Line]) -> None:
        first, last = made[0][0], made[-1][0]
        lines, exact = b"".join([line[1] for line in made]), sum([line[3] for line in made])
        texts = orjson.dumps([line[2] for line in made])[1:-1].decode()
        if len(made) < FEW:
            newest = f"SELECT first, lines, texts, exact FROM {table.name} ORDER BY first DESC LIMIT 1"
            before = self._connection.execute(newest).fetchone()
            if before is not None and len(before[1]) < FEW * table.pack.size:
                first, lines, texts, exact = before[0], before[1] + lines, f"{before[2]},{texts}", before[3] + exact
        row = (first, last, exact, texts, lines)  # a search among the texts does not read the lines
        self._connection.execute(f"INSERT OR REPLACE INTO {table.name} VALUES (?, ?, ?, ?, ?)", row)

    def lines(self, table: Packed, events: Iterable[tuple[int, Event]]) -> tuple[list[Line], int]:
        """The line of each of *events* that has one, and how many are odd: that have none, but for a trace without a model, or whose
        line does not say which subject they are about.
        """
        pack, line, codes = table.pack.pack, table.line, self._codes[table.common]
        made: list[Line] = []
        times: Times = {}
        odd = 0
        for seq, event in events:
            found = line(event, times)
            if found is None:
                odd += event.type not in TRACES or table is PAID
                continue
            facts, before, after, text, exact, apart = found
            code = codes.get(facts)
            if code is None:
                code = codes[facts] = self._code(table.common, orjson.dumps(tuple(facts)).decode())
            odd += apart
            made.append((seq, pack(seq, *before, code, *after), text, exact))
        return made, odd

    def _code(self, common: str, facts: str) -> int:
        execute = self._connection.execute
        row = execute(f"SELECT code FROM {common} WHERE facts = ?", (facts,)).fetchone()
        if row is None:
            made = f"INSERT INTO {common} SELECT coalesce(max(code), -1) + 1, ? FROM {common} RETURNING code"
            row = execute(made, (facts,)).fetchone()
        return int(row[0])


def has_columns(connection: sqlite3.Connection) -> bool:
    """Whether a ledger has the tables of the columns."""
    return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'covered'").fetchone() is not None


def covered(connection: sqlite3.Connection) -> tuple[int, int]:
    """Up to which row of the chain the columns go, and how many odd rows there are; nothing where there are no columns."""
    if not has_columns(connection):
        return 0, 0
    upto, odd = connection.execute("SELECT upto, odd FROM covered").fetchone() or (0, 0)
    if type(upto) is not int or type(odd) is not int:
        raise sqlite3.DatabaseError(f"covered says {upto!r}, {odd!r}")
    return upto, odd


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
