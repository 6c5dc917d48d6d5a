"""The pipeline file as a tree of values that remember where they were written."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from ..classes import evolve, frozen
from ..values.errors import ConfigError, Problem

Scalar = str | int | float | bool | None
Address = tuple[str | int, ...]

MAX_DEPTH = 100
"""Levels of nesting a pipeline may have; far above any use, far below Python's recursion limit."""

MAX_NODES = 100_000
"""Values one file may hold, with its aliases expanded: an alias bomb ends here."""

COMPONENT = re.compile(r"[a-z][a-z0-9_]*/[a-z][a-z0-9_]*")
"""How the name of a component looks; no option and no section has a slash."""

_PLAIN = re.compile(r'[^.\[\]"]+')
_SEGMENT = re.compile(rf'(?:^|(?!^)\.)(?:("(?:[^"\\]|\\.)*")|({_PLAIN.pattern}))|\[(\d+)\]')


@frozen
class Place:
    """Where something stands: *line* and *column* count from 1, and are None where the source has none.

    *file* is named as the user wrote it; *base* is the directory that relative paths written there are relative to.
    """

    file: str
    line: int | None
    column: int | None
    base: Path

    def problem(self, message: str, path: Address = (), value: object = None, hint: str | None = None) -> Problem:
        """Return a problem at this place."""
        return Problem(message, self.file, self.line, self.column, dotted(path) or None, value, hint)

    def after(self, text: str) -> Place:
        """Return the place that follows *text*, which begins a file."""
        return evolve(self, line=text.count("\n") + 1, column=len(text) - text.rfind("\n"))


@frozen
class Node:
    """A value, its place, and the place of its key (None in a list and at the top)."""

    value: Scalar | list[Node] | dict[str, Node]
    place: Place
    key: Place | None = None

    def find(self, path: Address) -> Node:
        """Return the node at *path*, or its nearest ancestor."""
        node = self
        for step in path:
            child: Node | None = None
            if isinstance(node.value, dict) and isinstance(step, str):
                child = node.value.get(step)
            elif isinstance(node.value, list) and isinstance(step, int) and 0 <= step < len(node.value):
                child = node.value[step]
            if child is None:
                return node
            node = child
        return node

    def plain(self) -> object:
        """Return mappings, lists and scalars without their places."""
        if isinstance(self.value, dict):
            return {name: node.plain() for name, node in self.value.items()}
        return [node.plain() for node in self.value] if isinstance(self.value, list) else self.value

    def texts(self) -> Iterator[str]:
        """Yield all texts below, without keys."""
        if isinstance(self.value, str):
            yield self.value
        elif isinstance(self.value, dict | list):
            for child in self.value.values() if isinstance(self.value, dict) else self.value:
                yield from child.texts()

    def component(self) -> str | None:
        """Return the name when this is a component: ``plugin/name`` or ``{plugin/name: …}``."""
        name = next(iter(self.value)) if isinstance(self.value, dict) and len(self.value) == 1 else self.value
        return name if isinstance(name, str) and COMPONENT.fullmatch(name) else None


def dotted(path: Address) -> str:
    """Render *path* as messages show it and ``--set`` takes it: ``metrics[1].proxy/format.field``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += ("." if text else "") + (step if _PLAIN.fullmatch(step) else json.dumps(step))
    return text


def split(path: str) -> tuple[str, ...]:
    """Take a dotted path apart; ``metrics[1]`` equals ``metrics.1``. Raises ValueError where it cannot be read."""
    names: list[str] = []
    end = 0
    while end < len(path) or not names:
        match = _SEGMENT.match(path, end)
        if match is None:
            raise ValueError(f"no path: {path!r}")
        quoted, plain, index = match.groups()
        names.append(json.loads(quoted) if quoted else plain or index)
        end = match.end()
    return tuple(names)


def kind(value: object) -> str:
    """Name the type of *value* as a user of YAML knows it."""
    names = {str: "text", bool: "a boolean", int: "a number", float: "a number", dict: "a mapping", list: "a list"}
    return names.get(type(value), "nothing" if value is None else type(value).__name__)


def merge(under: Node, over: Node) -> Node:
    """Lay *over* on *under*: mappings merge deeply, all else is replaced.

    Two different components are not merged: ``{a/x: …}`` over ``{a/y: …}`` would make a component with two names.
    """
    if not (isinstance(under.value, dict) and isinstance(over.value, dict)):
        return over
    if under.component() and over.component() and under.component() != over.component():
        return over
    merged = dict(under.value)
    for name, node in over.value.items():
        merged[name] = merge(merged[name], node) if name in merged else node
    return evolve(over, value=merged)


def from_data(value: object, place: Place, path: Address = (), key: Place | None = None) -> Node:
    """Turn plain Python data into nodes that all stand at *place*; raises ConfigError at what YAML could not say."""
    if len(path) > MAX_DEPTH:
        raise ConfigError(place.problem(f"nested deeper than {MAX_DEPTH} levels", path[:3]))
    if isinstance(value, os.PathLike):
        value = os.fspath(value)
    if isinstance(value, float) and not math.isfinite(value):
        raise ConfigError(place.problem(f"{value} is not a finite number", path, value))
    if value is None or isinstance(value, str | int | float):
        return Node(value, place, key)
    if isinstance(value, Mapping):
        members = {_name(k, place, path): from_data(v, place, (*path, k), place) for k, v in value.items()}
        return Node(members, place, key)
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return Node([from_data(item, place, (*path, index)) for index, item in enumerate(value)], place, key)
    message = f"a {type(value).__name__} cannot stand in a pipeline: use mappings, lists, text, numbers, booleans, None"
    raise ConfigError(place.problem(message, path, repr(value)))


def is_data(value: object) -> bool:
    """Whether *value* holds nothing but what a file could: no component that was made in Python."""
    if isinstance(value, Mapping):
        return all(map(is_data, value.values()))
    if isinstance(value, list | tuple):
        return all(map(is_data, value))
    return value is None or isinstance(value, str | int | float | os.PathLike)


def _name(key: object, place: Place, path: Address) -> str:
    if not isinstance(key, str):
        raise ConfigError(place.problem(f"the key {key!r} is {kind(key)}; keys are text", path, key))
    return key
