"""The source ``rows/json``: the objects of an array."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from typing import Any

import attrs
import orjson

from dicast import ConfigError, InputPath, Problem, Within, nearest
from dicast.toolkit.file_source import check_source, each_subject, open_source
from dicast.toolkit.input_file import MAX_LINE_BYTES, InputCheck, InputFile
from dicast.toolkit.json_data import marked_numbers
from dicast.toolkit.json_values import inexact, too_deep
from dicast.toolkit.scan import Scan
from dicast.toolkit.scanning import Scanner, TooLong
from dicast.toolkit.surrogates import with_lone_surrogates

from .encodings import UTF_8, encoding_advice, known_encoding
from .fields import Fields, check_fields
from .rows import Failures, Items, Numbered, Rows, chunks, names
from .unknown import Marker, Unknown

_JSON_TYPES = {b"{": "an object", b"[": "an array", b'"': "a string"}
_MAX_SHOWN = 40


@attrs.frozen
class Json:
    """Rows from a JSON document: each object of an array becomes a subject.

    The file is read item by item, twice. Memory holds one item, for an array of any length.

    :param path: the file, UTF-8. gzip is recognized; ``-`` is standard input.
    :param at: the place of the array in the document, a dotted path (``data.rows``, ``results.0.items``); by default the document is
        the array.
    :param fields: the column of each part of a row, as for ``rows/jsonl``: dotted paths. Every row must have a path that is named here, except
        ``error``. An ``id`` may be a template over several columns, ``"{{ question }}-{{ model }}"``;
        ``{{ line }}`` in it is the row's number. Without an ``id`` a row is named by its place in the array, counted from 1.
    :param kind: the subject kind of the rows.
    :param strip_reasoning: leave each ``<think>…</think>`` out of an output that is a text. The column keeps it under its name.
    :param encoding: the file's encoding, by a name that Python knows (``cp1252``, ``utf-16``); UTF-8 by default.
    :param max_item_bytes: the longest item that is read, in bytes; 64 MiB by default. The part of the file after a longer item is not
        checked.
    :param unknown: ``error`` refuses a number that needs more than 64 bits, which cannot be recorded. ``mark`` puts a marker in its place
        (``[number 1…]``), which the run counts.
    :param scan: secrets and personal data in the input: ``warn`` counts them, ``mask`` replaces them by markers such as ``[masked: aws-key]``
        before anything is stored or sent, ``off`` does not look for them.
    """

    path: InputPath
    at: str | None = None
    fields: Fields = attrs.field(factory=dict)
    kind: str = "row"
    max_item_bytes: int = attrs.field(default=MAX_LINE_BYTES, validator=Within(1, inf, "1 or more"))
    encoding: str = attrs.field(default=UTF_8, metadata={"later": True})
    unknown: Unknown = attrs.field(default="error", metadata={"later": True})
    strip_reasoning: bool = attrs.field(default=False, metadata={"later": True})
    scan: Scan = attrs.field(default="warn", metadata={"later": True})

    open, check, subjects = open_source, check_source, each_subject

    def __attrs_post_init__(self) -> None:
        check_fields(self.fields)
        known_encoding(self.encoding)
        if self.at is not None and not all(self.at.split(".")):
            what = (
                f"{self.at!r} is not a path into a document; write names and places with dots between them: data.rows"
            )
            raise ConfigError(Problem(what, path="at", value=self.at))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The subject kinds this source yields."""
        return (self.kind,)

    @contextmanager
    def reading(self) -> Iterator[Rows]:
        """Open the input and yield the live source."""
        with InputFile.opened(self.path, known_encoding(self.encoding)) as file:
            items = Items(file, "item", Marker.of(self.unknown))
            array = _Array(file, self.at, self.max_item_bytes, items)
            yield items.rows(self, array.rows)


@attrs.frozen
class _Array:
    """Reader of an array. Faults of items go to *items*."""

    file: InputFile
    at: str | None
    most: int
    items: Items

    def rows(self, check: InputCheck | None, failures: Failures) -> Numbered:
        """Yield each object with its place in the array; faults go to *check*, or are raised."""
        self.items.line = 1
        broken = False

        def fault(what: str | Problem) -> None:
            nonlocal broken
            broken = True
            self.items.fault(what, 0, check)

        scanner = Scanner(chunks(self.file, fault, check), self.most)
        try:
            depth = _descend(scanner, self.at, fault)
            if depth is not None:
                yield from self._items(scanner, check, failures)
                if not broken:
                    self._end(scanner, depth, check)
        except TooLong as long:
            self.items.line = long.line
            self.items.fault(f"a value is longer than max_item_bytes ({self.most:,})", 0, check)

    def _items(self, scanner: Scanner, check: InputCheck | None, failures: Failures) -> Numbered:
        number = 0
        while scanner.peek() not in (b"]", b"}", b""):
            number += 1
            if number > 1:
                self._expect_comma(scanner, number, check)
            if scanner.peek() in (b"]", b"}", b""):
                return
            self.items.line, column = scanner.line, scanner.column
            item = scanner.value()
            if not item:
                scanner.skip(b":")
                self.items.fault(Problem("there is no value", column=column), number, check)
            elif (row := self._row(item, number, check, failures)) is not None:
                yield number, row

    def _expect_comma(self, scanner: Scanner, number: int, check: InputCheck | None) -> None:
        self.items.line, column = scanner.line, scanner.column
        if not scanner.skip(b","):
            self.items.fault(Problem("a comma is missing before it", column=column), number, check)
        elif scanner.peek() in (b"]", b"}", b""):
            self.items.fault(Problem("there is no value after the comma", column=column), number, check)

    def _end(self, scanner: Scanner, depth: int, check: InputCheck | None) -> None:
        """Check the part of the document after the last item."""
        closed = scanner.peek() != b"}" and scanner.leave(depth)
        self.items.line = scanner.line
        if not closed:
            self.items.fault("the array, or a value around it, has no end", 0, check)
        elif scanner.peek():
            self.items.fault("there is text after the end of the document; remove it", 0, check)

    def _row(self, item: bytes, number: int, check: InputCheck | None, failures: Failures) -> dict[str, Any] | None:
        """Return the object of *item*, and put the reason of a failed record into *failures*; else report its fault."""
        try:
            value = orjson.loads(item)
        except orjson.JSONDecodeError as error:
            record = with_lone_surrogates(item)
            if record is None:
                self._fault(item, error, number, check)
                return None
            value, failures[number] = record.value, record.why
        if type(value) is not dict:
            wrong = f"it is {_kind(item[:1])}, it must be a JSON object"
        elif self.items.marker.is_on and inexact(item) is not None:
            row: dict[str, Any] = marked_numbers(item, self.items.marker.number)
            return row
        elif check is None:
            return value
        elif too_deep(item, value):
            wrong = "it is nested too deeply to be recorded; flatten it, or keep its deep part as text"
        elif (digits := inexact(item)) is not None:
            wrong = f"the number {digits:.{_MAX_SHOWN}} cannot be recorded exactly in 64 bits; write it as a string"
        else:
            return value
        failures.pop(number, None)
        self.items.fault(wrong, number, check)
        return None

    def _fault(self, item: bytes, error: orjson.JSONDecodeError, number: int, check: InputCheck | None) -> None:
        """Report that *item* is not UTF-8, or not JSON."""
        first = self.items.line or 1
        if (wrong := _undecodable(item, first)) is not None:
            self.items.undecodable(wrong, number, check)
        else:
            wrong = Problem(f"it is not JSON: {error.msg}", line=first + error.lineno - 1)
            self.items.fault(wrong, number, check)


def _undecodable(item: bytes, line: int) -> Problem | None:
    """Return the problem of an item that is not UTF-8."""
    try:
        item.decode()
    except UnicodeDecodeError as wrong:
        before = item[: wrong.start].count(b"\n")
        return Problem(f"byte 0x{item[wrong.start]:02x} is not UTF-8; {encoding_advice(item)}", line=line + before)
    return None


def _descend(scanner: Scanner, at: str | None, fault: Any) -> int | None:
    """Go to the first item of the array *at*; return the number of containers around the item, None if there is no such array."""
    depth, rest = 0, at
    while rest is not None:
        opening, seen = scanner.peek(), list[str]()
        depth += 1
        if scanner.skip(b"{"):
            remainder = _find_key(scanner, rest, seen)
        elif scanner.skip(b"["):
            remainder = _find_place(scanner, rest, seen)
        else:
            fault(f"there is nothing at {at!r}: {_kind(opening)} has no {rest!r}")
            return None
        if remainder is None:
            has = f"it has {names(seen)}" if opening == b"{" else f"the array there has {len(seen):,} items"
            fault(Problem(f"the document has nothing at {at!r}; {has}", path="at", value=at, hint=nearest(rest, seen)))
            return None
        rest = remainder or None
    opening = scanner.peek()
    if scanner.skip(b"["):
        return depth + 1
    fault(_no_array(scanner, at, opening))
    return None


def _find_key(scanner: Scanner, rest: str, seen: list[str]) -> str | None:
    """Go to the value of the key that *rest* begins with, and return the path after this key; None if there is no such key."""
    for key in _keys(scanner):
        seen.append(key)
        if key == rest or rest.startswith(f"{key}."):
            return rest[len(key) + 1 :]
        scanner.value()
    return None


def _find_place(scanner: Scanner, rest: str, seen: list[str]) -> str | None:
    first, _, behind = rest.partition(".")
    while scanner.peek() not in (b"", b"]"):
        if first == str(len(seen)):
            return behind
        seen.append(str(len(seen)))
        if not scanner.value() or not scanner.skip(b","):
            return None
    return None


def _keys(scanner: Scanner) -> Iterator[str]:
    """Yield the keys of the object at the scanner's place. The caller must read each value before the next key."""
    while scanner.peek() == b'"':
        try:
            key = orjson.loads(scanner.value())
        except orjson.JSONDecodeError:
            return
        if not scanner.skip(b":"):
            return
        yield key
        scanner.skip(b",")


def _no_array(scanner: Scanner, at: str | None, opening: bytes) -> Problem:
    """Return the problem that the value at the place *at* is not an array, with the places of arrays."""
    where = "the document" if at is None else f"the value at {at!r}"
    wrong = f"{where} is {_kind(opening)}, it must be an array"
    arrays = []
    if scanner.skip(b"{"):
        for key in _keys(scanner):
            arrays += [key if at is None else f"{at}.{key}"] if scanner.peek() == b"[" else []
            scanner.value()
        scanner.skip(b"}")
        if at is None and scanner.peek() == b"{":
            return Problem(f"{wrong}; more objects follow: one object a line is read by rows/jsonl")
    if not arrays:
        return Problem(wrong, path="at", value=at)
    return Problem(f"{wrong}; there are arrays at {names(arrays)}: write at: {arrays[0]}", path="at", value=at)


def _kind(opening: bytes) -> str:
    return _JSON_TYPES.get(opening, "a single value" if opening else "empty")
