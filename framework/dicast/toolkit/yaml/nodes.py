"""A YAML file as a tree of values with their places in the file."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from ..._kernel.classes import evolve, frozen
from ..._kernel.values.errors import Problem

Scalar = str | int | float | bool | None
Address = tuple[str | int, ...]

COMPONENT = re.compile(r"[a-z][a-z0-9_]*/[a-z][a-z0-9_]*")
"""Pattern of a component's name; no option and no section has a slash."""

PLAIN_STEP = re.compile(r'[^.\[\]"]+')
"""A key that needs no quotes in a dotted path."""


@frozen
class Place:
    """A position in a file: *line* and *column* count from 1, and are None where the source has no lines.

    *file* is the file's name as the user wrote it; relative paths in the file are relative to the directory *base*.
    """

    file: str
    line: int | None
    column: int | None
    base: Path

    def problem(self, message: str, path: Address = (), value: object = None, hint: str | None = None) -> Problem:
        """Return a problem at this place."""
        return Problem(message, self.file, self.line, self.column, dotted(path) or None, value, hint)

    def after(self, text: str) -> Place:
        """Return the place behind *text*, the beginning of the file."""
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

    def place_of(self, path: Address, key: bool = False) -> Place:
        """Return the place of the value at *path*, with *key* of its key; if there is no such value, of its nearest ancestor."""
        node = self.find(path)
        return node.key if key and node.key else node.place

    def plain(self) -> object:
        """Return mappings, lists and scalars without their places."""
        if isinstance(self.value, dict):
            return {name: node.plain() for name, node in self.value.items()}
        return [node.plain() for node in self.value] if isinstance(self.value, list) else self.value

    def nodes(self) -> Iterator[Node]:
        """Yield this node and all below."""
        yield self
        if isinstance(self.value, dict | list):
            for child in self.value.values() if isinstance(self.value, dict) else self.value:
                yield from child.nodes()

    def texts(self) -> Iterator[str]:
        """Yield all texts below, without keys."""
        return (node.value for node in self.nodes() if isinstance(node.value, str))

    def component(self) -> str | None:
        """Return the name if this is a component, ``plugin/name`` or ``{plugin/name: …}``, else None."""
        name = next(iter(self.value)) if isinstance(self.value, dict) and len(self.value) == 1 else self.value
        return name if isinstance(name, str) and COMPONENT.fullmatch(name) else None


def dotted(path: Address) -> str:
    """Return *path* as messages show it and ``--set`` takes it: ``metrics[1].proxy/format.field``."""
    text = ""
    for step in path:
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text += ("." if text else "") + (step if PLAIN_STEP.fullmatch(step) else json.dumps(step))
    return text


def kind(value: object) -> str:
    """Return the type of *value* in the words of a user of YAML."""
    names = {str: "text", bool: "a boolean", int: "a number", float: "a number", dict: "a mapping", list: "a list"}
    return names.get(type(value), "nothing" if value is None else type(value).__name__)
