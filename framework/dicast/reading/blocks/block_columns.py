"""Columns of a block: the few values of each verdict, failure, reading, record and paid call that readers of many of them need.

The column ``columns`` of a compressed block has five parts, so that a reader decompresses what it needs: the three tables, the judgments that start or end in the
block, and a JSON list of names, the ids of subjects, turns and sessions. 16 bytes of a hash of each name follow. The part of a table is a JSON list on a text
line, which describes the table, and the numbers of the columns that are neither constant nor evenly spaced. Before the parts there are 4 bytes, :data:`MARK`,
and for each part the length of its text and its length, in 4 bytes each (little-endian). A part with another length than its text is compressed by zlib.
 Columns follow from the lines, so they are checked by ``verify``, and are not in the chain.
"""

from __future__ import annotations

import sys
import zlib
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from math import isnan
from struct import Struct
from typing import Any

import attrs
import orjson

from ..._kernel.events import EVAL_COMPLETED, EVAL_FAILED, EVAL_STARTED, RECORD_COMPLETED, RECORD_FAILED, SUBJECT_READ
from ...toolkit.ledger_lines.lines import CONTENT
from ..activity import activity_of
from ..names import name_hash
from ..verdict_columns import line_of
from .spent import AGENT, SPENT_TYPES, spent_of

LEVEL = 1
"""Level of zlib. Each level makes these numbers half as large."""

MARK = b"\xff\xff\xff\xff"
"""The first bytes of columns. Columns of the first version begin with a length, which was always smaller."""

LENGTHS = Struct("<10I")

STARTED, *ENDS = EVALS = (EVAL_STARTED, EVAL_COMPLETED, EVAL_FAILED)

_FEWEST, _MOST = 3, 2**31
"""Fewest evenly spaced numbers, and the bound of their step."""

Line = Sequence[Any]
"""The parsed line of an event."""

Row = tuple[Any, ...]
"""The facts that rows share, the numbers, the name, and the amounts as text if they do not fit."""

_TYPE, _SESSION, _SUBJECT, _PAYLOAD = 2, 5, 8, 10
"""Places in the line of an event."""


def _verdict(line: Line, times: dict[str, int]) -> Row | None:
    return line_of(line[_TYPE], line[3], line[4], line[_PAYLOAD], times)


def _activity(line: Line, times: dict[str, int]) -> Row | None:
    activity = activity_of(line[_TYPE], line[4], line[6], line[7], line[_SUBJECT], line[_PAYLOAD])
    return None if activity is None else (*activity, None)


def _spent(line: Line, times: dict[str, int]) -> Row | None:
    type_, time, run_id, session_id, turn_id = line[2:7]
    payload = line[_PAYLOAD]
    if type_ == AGENT and len(line) > CONTENT:  # other texts make another call
        payload = {**payload, "texts": line[CONTENT]}
    return spent_of(type_, time, run_id, session_id, turn_id, payload, times)


@attrs.frozen
class Table:
    """A table of columns: the types of its events, and the type codes of its numbers as in :mod:`array`, after the event, the facts and the name."""

    name: str
    types: tuple[str, ...]
    codes: str
    row: Callable[[Line, dict[str, int]], Row | None]

    @property
    def all_codes(self) -> str:
        """The type codes of all columns: the number of the event in its block, the facts, the name, and the numbers."""
        return f"iii{self.codes}"


READ, *_ = ABOUT = (SUBJECT_READ, RECORD_COMPLETED, RECORD_FAILED, "route.decided", "llm.call_completed")

VERDICTS = Table("verdicts", tuple(ENDS), "qiddqq", _verdict)
ACTIVITY = Table("activity", ABOUT, "q", _activity)
SPENT = Table("spent", SPENT_TYPES, "qiqqqq", _spent)
TABLES = (VERDICTS, ACTIVITY, SPENT)
_NO_NAME = object()
"""Marker for a row without a name; None means no row."""


def _places_of(types: Sequence[str], by_type: Mapping[str, Sequence[int]]) -> Sequence[int]:
    """Return the places of the lines of *types*, ascending."""
    parts = [by_type[type_] for type_ in types if type_ in by_type]
    return parts[0] if len(parts) == 1 else sorted(chain.from_iterable(parts))


class TableRows:
    """Rows of a table of one block. *names* has the numbers of names."""

    def __init__(self, table: Table, names: Mapping[str | None, int]) -> None:
        self._table, self._names = table, names
        self._columns: list[array[Any]] = [array(code) for code in table.all_codes]
        self._new: list[tuple[Any, ...]] = []
        """Rows whose name and numbers are not in the columns yet."""
        self.facts: dict[tuple[Any, ...], int] = {}
        self.exact: list[list[Any]] = []
        self.odd = 0
        """Number of events without a row, because their payload does not have the form of their type."""

    def __len__(self) -> int:
        return len(self._columns[0])

    @property
    def columns(self) -> Sequence[array[Any]]:
        """The columns with all rows."""
        if self._new:
            _, *values, names, _ = zip(*self._new, strict=True)
            numbers = map(self._names.__getitem__, names)
            for column, new in zip(self._columns[2:], (numbers, *values), strict=True):
                column.extend(new)
            self._new.clear()
        return self._columns

    def add(self, place: int, row: Row) -> None:
        """Add the row of the event with the number *place* in its block."""
        if row[-1] is not None:
            self.exact.append([len(self), *row[-1]])
        places, codes, *_ = self._columns
        places.append(place)
        codes.append(self.code(row[0]))
        self._new.append(row)

    def add_lines(
        self, chosen: Sequence[int], places: Sequence[int], lines: Sequence[Line], times: dict[str, int]
    ) -> list[Any]:
        """Add the rows of the *chosen* lines, and return the name of the row of each line, :data:`_NO_NAME` for a row without a name."""
        make, facts, names = self._table.row, self.facts, list[Any]([None]) * len(lines)
        add_place, add_code, add = self._columns[0].append, self._columns[1].append, self._new.append
        for at in chosen:
            row = make(lines[at], times)
            if row is None:
                self.odd += 1
                continue
            if row[-1] is not None:
                self.exact.append([len(self), *row[-1]])
            add_place(places[at])
            add_code(facts.setdefault(row[0], len(facts)))
            add(row)
            names[at] = _NO_NAME if row[-2] is None else row[-2]
        return names

    def code(self, facts: tuple[Any, ...]) -> int:
        """Return the number of *facts*."""
        return self.facts.setdefault(facts, len(self.facts))

    def extend(self, places: Sequence[int], facts: tuple[Any, ...], *columns: Iterable[Any]) -> None:
        """Add rows with the same *facts*. *columns* are the names and the numbers."""
        codes = [self.code(facts)] * len(places)
        for column, values in zip(self.columns, (places, codes, *columns), strict=True):
            column.extend(values)


class BlockColumns:
    """The columns of one block, which grow with its events.

    :param has_calls: whether the calls in lines of judged subjects are paid calls too. In the first version of the columns they were not.
    """

    def __init__(self, *, has_calls: bool = True) -> None:
        self.has_calls = has_calls
        self.names: dict[str | None, int] = {}
        self.tables = {table.name: TableRows(table, self.names) for table in TABLES}
        self.open: dict[str, list[int]] = {}
        """The events that start judgments which do not end in the block, by the id of the verdict."""
        self.ends: list[str] = []
        self.times: dict[str, int] = {}
        """Times in milliseconds since 1970."""

    def name(self, name: str | None) -> int:
        """Return the number of a name."""
        return self.names.setdefault(name, len(self.names))

    def numbers_of(self, names: Sequence[str | None]) -> array[int]:
        """Return the numbers of many names."""
        start = len(self.names)
        numbers = range(start, start + len(names))
        new = dict(zip(names, numbers, strict=True))
        if len(new) < len(names) or not self.names.keys().isdisjoint(new):
            return array("i", map(self.name, names))
        self.names.update(new)
        return array("i", numbers)

    def mention(self, *names: str | None) -> None:
        """Add names that readers search for: ids of subjects and sessions."""
        for name in names:
            if name is not None:
                self.name(name)

    def add_events(self, places: Sequence[int], lines: Sequence[Line]) -> None:
        """Add the events of *lines* with the numbers *places* in their block, from 0."""
        by_type = defaultdict[str, list[int]](list)
        for at, line in enumerate(lines):
            by_type[line[_TYPE]].append(at)
        named = [[line[_SUBJECT] for line in lines], [line[_SESSION] for line in lines]]
        for table in TABLES:
            chosen = _places_of(table.types, by_type)
            if chosen:
                named.append(self.tables[table.name].add_lines(chosen, places, lines, self.times))
        mentioned = dict.fromkeys(chain.from_iterable(zip(*named, strict=True)))
        mentioned.pop(None, None)
        self.numbers_of([None if name is _NO_NAME else name for name in mentioned])
        self._add_judgments(_places_of(EVALS, by_type), places, lines)

    def _add_judgments(self, chosen: Sequence[int], places: Sequence[int], lines: Sequence[Line]) -> None:
        """Add the starts and ends of judgments in the *chosen* lines."""
        started, ended = self.open, self.ends
        for at in chosen:
            line = lines[at]
            eval_id = line[_PAYLOAD].get("eval_id")
            if not isinstance(eval_id, str):
                continue
            if line[_TYPE] == STARTED:
                started.setdefault(eval_id, []).append(places[at])
            else:
                started.pop(eval_id, None)
                ended.append(eval_id)

    def add_call(self, place: int, line: Line) -> None:
        """Add the paid call of a trace in the line of a judged subject, as the line of an event."""
        if self.has_calls:
            self.add_row(SPENT, place, line)

    def add_row(self, table: Table, place: int, line: Line) -> None:
        """Add the row of an event to *table*. Its subject and its session are mentioned already."""
        rows, row = self.tables[table.name], table.row(line, self.times)
        if row is None:
            rows.odd += 1
        else:
            self.name(row[-2])
            rows.add(place, row)

    def end(self, eval_ids: Iterable[str]) -> None:
        """Add the ends of judgments."""
        for eval_id in eval_ids:
            self.open.pop(eval_id, None)
            self.ends.append(eval_id)

    def tables_of(self) -> Iterator[tuple[str, Sequence[Any], bytes]]:
        """Yield for each table with events its name, its description, and the numbers of its columns."""
        for table in TABLES:
            rows = self.tables[table.name]
            if len(rows) or rows.odd:
                encoded = [_column(column) for column in rows.columns]
                facts = list(map(tuple, rows.facts))
                description = [len(rows), rows.odd, facts, rows.exact, [spec for spec, _ in encoded]]
                yield table.name, description, b"".join([raw for _, raw in encoded])

    def hashes(self) -> bytes:
        """Return the hashes of the names."""
        return b"".join(map(name_hash, self.names))

    def parts(self) -> Sequence[bytes]:
        """Return the parts of the columns without compression, and the hashes."""
        tables = {name: b"%b\n%b" % (orjson.dumps(head), numbers) for name, head, numbers in self.tables_of()}
        judgments = orjson.dumps([self.open, self.ends]) if self.open or self.ends else b""
        names = orjson.dumps([*self.names])
        return [*(tables.get(table.name, b"") for table in TABLES), judgments, names, self.hashes()]

    def packed(self) -> bytes:
        """Return the columns as they are stored."""
        *texts, hashes = self.parts()
        bodies = [part_of(text) for text in texts]
        lengths = [length for sizes in zip(map(len, texts), map(len, bodies), strict=True) for length in sizes]
        return b"".join([MARK, LENGTHS.pack(*lengths), *bodies, hashes])


def part_of(text: bytes) -> bytes:
    """Return *text* as it is stored: compressed if this makes it shorter."""
    body = zlib.compress(text, LEVEL)
    return body if len(body) < len(text) else text


def _column(column: array[Any]) -> tuple[list[Any] | None, bytes]:
    """Return the constant value, or the first value and the step; else None and the numbers."""
    count = len(column)
    raw = little(column).tobytes()
    if not count:
        return [], b""
    first, last, is_float = column[0], column[-1], column.typecode == "d"
    if raw == raw[: column.itemsize] * count and not (is_float and isnan(first)):  # JSON has no NaN
        return [first], b""
    step = 0 if is_float or count < _FEWEST else column[1] - first
    is_even = 0 < abs(step) < _MOST and last == first + step * (count - 1)
    if is_even and column == array(column.typecode, range(first, first + step * count, step)):
        return [first, step], b""
    return None, raw


def little(column: array[Any]) -> array[Any]:
    """Return the column with its bytes in little-endian order."""
    if sys.byteorder == "big":
        column = column[:]
        column.byteswap()
    return column
