"""The reader of YAML, for the kernel and all plugins: the 1.2 core schema, strict scalars, unique keys, bounded aliases.

A scalar without quotes is null, a boolean or a number only where the core schema says so: ``no``, ``1_000``, ``12:30:45`` and
``2001-01-01`` are texts. A number that JSON could not hold exactly is refused, as it is in JSON files.
"""

from __future__ import annotations

import codecs
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import yaml

from ..._kernel.classes import define, evolve, field, frozen
from ..._kernel.values.errors import ConfigError, Problem
from ..json_values import inexact_message, is_inexact
from .nodes import Address, Node, Place, Scalar, kind

MAX_DEPTH = 100
"""Levels of nesting; far above any use, far below Python's recursion limit."""

MAX_NODES = 100_000
"""Values that one file may hold by default, with its aliases expanded: an alias bomb ends here."""

MAX_DATA_NODES = 1_000_000
"""Values that a file of data, or an item of :func:`read_items`, may hold."""

Opening = yaml.ScalarEvent | yaml.CollectionStartEvent
"""The first event of a value that is not an alias."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's scanner where PyYAML was built with it
_TAG = "tag:yaml.org,2002:"
_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_DECIMAL = re.compile(r"[-+]?[0-9]+")
_PREFIXED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_TAGS = {_TAG + "null": type(None), _TAG + "bool": bool, _TAG + "int": int, _TAG + "float": float}
_NO_TAG = "the tag {} does not fit here; remove it"
_ADVICE = {
    "\t": "indent with spaces, not tabs",
    ":": "quote text that has ': ', or check the indentation",
    "{": "quote text that has {, as '${NAME}'",
    **{character: f"quote text that begins with {character}" for character in "@`%"},
}


def read_yaml(
    text: str | bytes, file: str | Place, problems: list[Problem] | None = None, limit: int = MAX_NODES
) -> Node:
    """Return the only document of *text*; for an empty text, a node with the value None.

    *file* names the text in messages, or is the place where it begins. *limit* bounds the number of values.

    :raises ConfigError: with every problem. If *problems* is a list, problems of single values are added to it instead, and the rest
        is read.
    """
    start = Place(file, 1, 1, Path()) if isinstance(file, str) else file
    collected: list[Problem] = [] if problems is None else problems
    try:
        node = Composer(start, collected, limit).compose(_decoded(text, start) if isinstance(text, bytes) else text)
    except ConfigError as error:
        raise ConfigError([*collected, *error.problems]) if problems is None and collected else error from None
    if problems is None and collected:
        raise ConfigError(collected)
    return node


@frozen
class Item:
    """A node of :func:`read_items`, with the problems of its values."""

    node: Node
    problems: tuple[Problem, ...]


def read_items(pieces: Iterator[bytes], file: str, limit: int = MAX_DATA_NODES) -> Iterator[Item]:
    """Yield the items of each document of *pieces* that is a list, and each other document that is not empty.

    Only one item, and the values that have an anchor, are in memory. *limit* bounds the values of one item.

    :raises ConfigError: at the first place that is not readable YAML; nothing behind it is read.
    """
    start = Place(file, 1, 1, Path())
    problems: list[Problem] = []
    composer = Composer(start, problems, limit)
    for node in composer.items(_Stream(pieces, start)):
        yield Item(node, tuple(problems))
        problems.clear()


def resolve(text: str) -> Scalar:
    """Return the value of a plain scalar; raises ValueError for a number that JSON cannot hold."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789":
        return text
    if _DECIMAL.fullmatch(text):
        _check_exact(text)
        return int(text)
    if _PREFIXED.fullmatch(text):
        if len(text) > len("0o") + 22:  # more octal digits than 64 bits have
            raise ValueError(inexact_message(text))
        _check_exact(str(number := int(text, 0)), text)
        return number
    if _NOT_FINITE.fullmatch(text) or (_FLOAT.fullmatch(text) and not math.isfinite(float(text))):
        raise ValueError(f"{text} is not a finite number; quote it if it is text")
    if _FLOAT.fullmatch(text):
        _check_exact(text)
        return float(text)
    return text


def _check_exact(digits: str, text: str | None = None) -> None:
    if is_inexact(digits):
        raise ValueError(inexact_message(text or digits))


def _decoded(data: bytes, start: Place) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        place = start.after(data[: error.start].decode())
        message = f"byte {error.start} (0x{data[error.start]:02x}) is not UTF-8; save the file as UTF-8"
        raise ConfigError(place.problem(message)) from error


class _Stream:
    """The text of *pieces* of UTF-8, as a file object that PyYAML reads."""

    def __init__(self, pieces: Iterator[bytes], start: Place) -> None:
        self._pieces, self._start = pieces, start
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._rest = ""
        self._lines, self._is_first = 0, True

    def read(self, size: int = 2**14, /) -> str:
        """Return at most *size* characters, none at the end."""
        while not self._rest:
            piece = next(self._pieces, None)
            try:
                self._rest = self._decoder.decode(piece or b"", final=piece is None)
            except UnicodeDecodeError as error:
                line = self._lines + error.object[: error.start].count(b"\n") + 1
                message = f"byte 0x{error.object[error.start]:02x} is not UTF-8; save the file as UTF-8"
                raise ConfigError(evolve(self._start, line=line, column=None).problem(message)) from error
            self._lines += (piece or b"").count(b"\n")
            if self._is_first and self._rest:
                self._rest, self._is_first = self._rest.removeprefix("\ufeff"), False
            if piece is None:
                break
        text, self._rest = self._rest[:size], self._rest[size:]
        return text


def _tagged(value: Scalar, tag: str | None) -> Scalar:
    """Return *value* converted as the core tag *tag* requires.

    :raises ValueError: if the tag does not fit.
    """
    if tag == _TAG + "float" and type(value) is int:
        return float(value)
    if tag is None or _TAGS.get(tag) is type(value):
        return value
    raise ValueError(_NO_TAG.format(tag.replace(_TAG, "!!")))


@define
class Composer:
    """Builder of the nodes of one YAML text. Problems of single values are added to *problems* and the rest is still read.

    *start* is the text's first place. If it has no line, as on the command line, no place has a line.
    """

    start: Place
    problems: list[Problem]
    limit: int = MAX_NODES
    _events: Iterator[yaml.Event] = field(init=False, factory=lambda: iter(()))
    _anchors: dict[str, Node | None] = field(init=False, factory=dict)
    _count: int = field(init=False, default=0)

    def compose(self, text: str) -> Node:
        """Return the only document of *text*; raise ConfigError at the first place that is not readable YAML."""
        text = text.removeprefix("\ufeff")
        try:
            self._events = yaml.parse(text, Loader=_LOADER)
            next(self._events)
            if isinstance(next(self._events), yaml.StreamEndEvent):
                return Node(None, self.start)
            root = self._node(next(self._events), ())
            next(self._events)
            if not isinstance(event := next(self._events), yaml.StreamEndEvent):
                self._add(event, "a second YAML document begins here; the file must have one: remove the line with ---")
        except (yaml.YAMLError, UnicodeEncodeError) as error:
            raise ConfigError(self._syntax(error, text)) from error
        return root

    def items(self, stream: _Stream) -> Iterator[Node]:
        """Yield the items of the documents in *stream*, as :func:`read_items` does."""
        try:
            self._events = yaml.parse(stream, Loader=_LOADER)
            next(self._events)
            while not isinstance(next(self._events), yaml.StreamEndEvent):  # else a document begins
                self._anchors = {}
                event = next(self._events)
                if isinstance(event, yaml.SequenceStartEvent):
                    yield from self._listed(event)
                elif not (isinstance(event, yaml.ScalarEvent) and event.implicit[0] and event.value == ""):
                    yield self._item(event)
                next(self._events)
        except yaml.YAMLError as error:
            raise ConfigError([*self.problems, self._syntax(error, "")]) from error

    def _listed(self, start: yaml.SequenceStartEvent) -> Iterator[Node]:
        self._check_tag(start, "seq", ())
        if start.anchor:
            self._anchors[start.anchor] = None
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            yield self._item(event)

    def _item(self, event: yaml.Event) -> Node:
        self._count = 0
        return self._node(event, ())

    def _node(self, event: yaml.Event, path: Address, key: Place | None = None) -> Node:
        self._grow(event, path)
        if isinstance(event, yaml.AliasEvent):
            return self._alias(event, path, key)
        opening = cast("Opening", event)
        if opening.anchor:
            self._anchors[opening.anchor] = None
        node = Node(self._value(opening, path), self._place(event.start_mark), key)
        if opening.anchor:
            self._anchors[opening.anchor] = node
        return node

    def _value(self, event: Opening, path: Address) -> Scalar | list[Node] | dict[str, Node]:
        if isinstance(event, yaml.ScalarEvent):
            return self._scalar(event, path)
        is_mapping = isinstance(event, yaml.MappingStartEvent)
        self._check_tag(event, "map" if is_mapping else "seq", path)
        return self._mapping(path) if is_mapping else self._sequence(path)

    def _check_tag(self, event: yaml.CollectionStartEvent, name: str, path: Address) -> None:
        if event.tag not in {None, _TAG + name}:
            self._add(event, _NO_TAG.format(event.tag.replace(_TAG, "!!")), path, event.tag)

    def _scalar(self, event: yaml.ScalarEvent, path: Address) -> Scalar:
        if event.implicit[1] or event.tag in {"!", _TAG + "str"}:  # quoted, or marked as text
            return event.value
        try:
            return _tagged(resolve(event.value), event.tag)
        except ValueError as error:
            self._add(event, str(error), path, event.value)
            return None

    def _sequence(self, path: Address) -> list[Node]:
        items: list[Node] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._node(event, (*path, len(items))))
        return items

    def _mapping(self, path: Address) -> dict[str, Node]:
        members: dict[str, Node] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._node(event, path)
            name = self._name(event, key, path, members)
            value = self._node(next(self._events), (*path, name or "?"), key.place)
            if name is not None:
                members[name] = value
        return members

    def _name(self, event: yaml.Event, key: Node, path: Address, members: dict[str, Node]) -> str | None:
        """Return the key's text, or None where the member must be left out."""
        written = getattr(event, "value", None)
        if isinstance(key.value, dict | list):
            message = f"a key must be text, not {kind(key.value)}; quote text that begins with {{ or ["
        elif not isinstance(key.value, str):
            message = f"a key must be text, not {kind(key.value)}; write {written!r}"
        elif key.value == "<<" and getattr(event, "implicit", (False,))[0]:
            message = "merge keys (<<) are not YAML 1.2; write the keys out, or name a whole value with an alias"
        elif key.value in members:
            first = members[key.value].key
            lines = f", in lines {first.line} and {key.place.line}" if first and first.line else ""
            message, path = f"the key {key.value!r} is given twice{lines}; keep one", (*path, key.value)
        else:
            return key.value
        self._add(event, message, path, written)
        return None

    def _alias(self, event: yaml.AliasEvent, path: Address, key: Place | None) -> Node:
        place = self._place(event.start_mark)
        anchor = str(event.anchor)
        if anchored := self._anchors.get(anchor):
            return evolve(self._copy(anchored, event, path), place=place, key=key)
        fault = "is inside the value it names" if anchor in self._anchors else "names no anchor before it"
        self._add(event, f"the alias *{anchor} {fault}", path, f"*{anchor}")
        return Node(None, place, key)

    def _copy(self, node: Node, event: yaml.Event, path: Address) -> Node:
        """Copy the value of an alias, so that every value is counted and no later step changes a shared value."""
        self._grow(event, path)
        if isinstance(node.value, dict):
            members = {name: self._copy(child, event, (*path, name)) for name, child in node.value.items()}
            return evolve(node, value=members)
        if isinstance(node.value, list):
            items = [self._copy(child, event, (*path, index)) for index, child in enumerate(node.value)]
            return evolve(node, value=items)
        return node

    def _grow(self, event: yaml.Event, path: Address) -> None:
        self._count += 1
        if self._count > self.limit:
            message = f"more than {self.limit:,} values, aliases expanded; keep long lists in files of their own"
        elif len(path) > MAX_DEPTH:
            message = f"nested deeper than {MAX_DEPTH} levels"
        else:
            return
        raise ConfigError(self._place(event.start_mark).problem(message, path[:3]))

    def _add(self, event: yaml.Event, message: str, path: Address = (), value: object = None) -> None:
        self.problems.append(self._place(event.start_mark).problem(message, path, value))

    def _place(self, mark: Any) -> Place:
        """Return the place of a *mark* of either parser, C's or Python's."""
        if mark is None or self.start.line is None:
            return self.start
        return Place(self.start.file, mark.line + 1, mark.column + 1, self.start.base)

    def _syntax(self, error: yaml.YAMLError | UnicodeEncodeError, text: str) -> Problem:
        """Return the problem that ends *text*, with its place and its cause."""
        if not isinstance(error, yaml.MarkedYAMLError):
            code = ord(text[error.start]) if isinstance(error, UnicodeEncodeError) else getattr(error, "character", 0)
            place = self.start if self.start.line is None else self.start.after(text.partition(chr(code))[0])
            return place.problem(
                f"the character U+{code:04X} is not allowed in YAML; remove it, or escape it in quotes"
            )
        mark = error.problem_mark or error.context_mark
        character = text[mark.index : mark.index + 1] if mark else ""
        cause = "; ".join(part for part in (error.problem, _ADVICE.get(character, error.context)) if part)
        return self._place(mark).problem(f"not valid YAML: {cause}")
