"""YAML text to nodes: the 1.2 core schema, with strict scalars, unique keys and bounded aliases."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, cast

import yaml

from ..classes import define, evolve, field
from ..values.errors import ConfigError, Problem
from .yaml_nodes import MAX_DEPTH, MAX_NODES, Address, Node, Place, Scalar, kind

Opening = yaml.ScalarEvent | yaml.CollectionStartEvent
"""What begins a value that is not an alias."""

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's scanner where PyYAML was built with it
_TAG = "tag:yaml.org,2002:"
_WORDS: dict[str, Scalar] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_LONGEST = 300  # an integer that still has a float; Python itself refuses to read more than 4300 digits
_TAGS = {_TAG + "null": type(None), _TAG + "bool": bool, _TAG + "int": int, _TAG + "float": float}
_NO_TAG = "the tag {} does not fit here; remove it"
_ADVICE = {
    "\t": "indent with spaces, not tabs",
    ":": "quote text that has ': ', or check the indentation",
    "{": "quote text that has {, as '${NAME}'",
    **{character: f"quote text that begins with {character}" for character in "@`%"},
}


def resolve(text: str) -> Scalar:
    """Return the value of a plain scalar; raises ValueError for a number that is not finite, or too long to read."""
    if text in _WORDS:
        return _WORDS[text]
    if _INTEGER.fullmatch(text):
        if len(text) > _LONGEST:
            raise ValueError(f"a number of {len(text)} digits is too long to read; quote it if it is text")
        return int(text, 0) if text[1:2] in ("o", "x") else int(text)
    if _NOT_FINITE.fullmatch(text) or (_FLOAT.fullmatch(text) and not math.isfinite(float(text))):
        raise ValueError(f"{text} is not a finite number; quote it if it is text")
    return float(text) if _FLOAT.fullmatch(text) else text


def _tagged(value: Scalar, tag: str | None) -> Scalar:
    """Return *value* as the core tag *tag* asks for, if it can."""
    if tag == _TAG + "float" and type(value) is int:
        return float(value)
    if tag is None or _TAGS.get(tag) is type(value):
        return value
    raise ValueError(_NO_TAG.format(tag.replace(_TAG, "!!")))


@define
class Composer:
    """Composes one YAML text. What is wrong with single values is added to *problems* and the rest is still read.

    *start* is the text's first place; without a line there, as on the command line, no place gets one.
    """

    start: Place
    problems: list[Problem]
    _events: Iterator[yaml.Event] = field(init=False, factory=lambda: iter(()))
    _anchors: dict[str, Node | None] = field(init=False, factory=dict)
    _count: int = field(init=False, default=0)

    def compose(self, text: str) -> Node:
        """Return the only document of *text*; raises ConfigError where the text stops being readable YAML."""
        text = text.removeprefix("\ufeff")
        try:
            self._events = yaml.parse(text, Loader=_LOADER)
            next(self._events)
            if isinstance(next(self._events), yaml.StreamEndEvent):
                return Node(None, self.start)
            root = self._node(next(self._events), ())
            next(self._events)
            if not isinstance(event := next(self._events), yaml.StreamEndEvent):
                self._add(event, "a second YAML document begins here; a pipeline is one: remove the line with ---")
        except (yaml.YAMLError, UnicodeEncodeError) as error:
            raise ConfigError(self._syntax(error, text)) from error
        return root

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
        mapping = isinstance(event, yaml.MappingStartEvent)
        if event.tag not in {None, _TAG + ("map" if mapping else "seq")}:
            self._add(event, _NO_TAG.format(event.tag.replace(_TAG, "!!")), path, event.tag)
        return self._mapping(path) if mapping else self._sequence(path)

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
            message = "merge keys (<<) are not YAML 1.2; share values through 'include' or 'define'"
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
        fault = "stands inside the value it names" if anchor in self._anchors else "names no anchor before it"
        self._add(event, f"the alias *{anchor} {fault}", path, f"*{anchor}")
        return Node(None, place, key)

    def _copy(self, node: Node, event: yaml.Event, path: Address) -> Node:
        """Copy what an alias names, so that every value is counted and no later step meets a shared one."""
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
        if self._count > MAX_NODES:
            message = f"more than {MAX_NODES:,} values, aliases expanded; keep long lists in files of their own"
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
        return evolve(self.start, line=mark.line + 1, column=mark.column + 1)

    def _syntax(self, error: yaml.YAMLError | UnicodeEncodeError, text: str) -> Problem:
        """Say in plain words where and why *text* stopped being YAML."""
        if not isinstance(error, yaml.MarkedYAMLError):
            code = ord(text[error.start]) if isinstance(error, UnicodeEncodeError) else getattr(error, "character", 0)
            place = self.start if self.start.line is None else self.start.after(text.partition(chr(code))[0])
            return place.problem(f"the character U+{code:04X} cannot stand in YAML; remove it, or escape it in quotes")
        mark = error.problem_mark or error.context_mark
        found = text[mark.index : mark.index + 1] if mark else ""
        cause = "; ".join(part for part in (error.problem, _ADVICE.get(found, error.context)) if part)
        return self._place(mark).problem(f"not valid YAML: {cause}")
