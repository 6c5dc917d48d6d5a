"""A promptfoo configuration with the places of its values, and what could not be carried over."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs
import orjson

from .._kernel.pipeline.yaml_nodes import Node, Place
from .._kernel.values.errors import ConfigError, DataError, Problem
from .._toolkit.input_file import InputFile
from .._toolkit.yaml_reader import Composer

MOST_BYTES = 16 * 2**20

_NAME = re.compile(r"\{\{-?\s*([A-Za-z_]\w*(?:\.\w+)*)\s*-?\}\}")
_OWN = frozenset(
    ("id", "context", "output", "outputs", "session_id", "assert", "test", "latency_seconds", "cost", "rubric")
)
"""Columns that the rows have of their own; a variable of such a name gets another."""


@attrs.define
class Losses:
    """What could not be carried over: the place, what it is, and what to do instead."""

    found: list[tuple[Place, str, str]] = attrs.field(factory=list)

    def add(self, place: Place, what: str, instead: str) -> None:
        """Note *what* stands at *place*; the same thing of one place once."""
        if all((place, what) != (at, said) for at, said, _ in self.found):
            self.found.append((place, what, instead))
            self.found.sort(key=lambda one: (one[0].file, one[0].line or 0))

    def lines(self) -> list[str]:
        """A line each."""
        return [f"{at.file}:{at.line}: {what}; {instead}" for at, what, instead in self.found]

    def document(self) -> list[dict[str, Any]]:
        """The same for ``--json``."""
        return [
            {"file": at.file, "line": at.line, "what": what, "instead": instead} for at, what, instead in self.found
        ]


def read_node(path: Path) -> Node:
    """The YAML or JSON file *path*.

    :raises ConfigError: with everything that is wrong with it.
    """
    start, problems = Place(str(path), 1, 1, path.absolute().parent), list[Problem]()
    node = Composer(start, problems).compose(read_text(path))
    if problems:
        raise ConfigError(problems)
    return node


def read_text(path: Path) -> str:
    """The text of the file *path*.

    :raises ConfigError: where it cannot be read.
    """
    try:
        with InputFile.opened(path) as file:
            return b"".join(line for _, line in file.lines(MOST_BYTES)).decode()
    except DataError as error:
        raise ConfigError(error.problems) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from error


def mapping_of(node: Node | None) -> Mapping[str, Node]:
    """What *node* holds as a mapping; nothing where it is none."""
    return node.value if node is not None and isinstance(node.value, dict) else {}


def items(node: Node | None) -> list[Node]:
    """What *node* holds as a list; what is none is the only item."""
    if node is None or node.value is None:
        return []
    return node.value if isinstance(node.value, list) else [node]


def data_of(node: Node | None) -> Any:
    """*node* as plain data."""
    if node is None:
        return None
    if isinstance(node.value, dict):
        return {name: data_of(child) for name, child in node.value.items()}
    return [data_of(child) for child in node.value] if isinstance(node.value, list) else node.value


def node_of(value: Any, place: Place) -> Node:
    """Plain data as nodes that all stand at *place*."""
    if isinstance(value, dict):
        return Node({name: node_of(child, place) for name, child in value.items()}, place, place)
    return Node([node_of(child, place) for child in value] if isinstance(value, list) else value, place)


def file_named(node: Node) -> Path | None:
    """The file that a text ``file://PATH`` means."""
    if isinstance(node.value, str) and node.value.startswith("file://"):
        return Path(node.place.file).parent / node.value.removeprefix("file://")
    return None


def column_name(variable: str) -> str:
    """The column that has *variable*."""
    return f"{variable}_" if variable in _OWN else variable


def renamed(template: str) -> str:
    """*template* with the columns' names in place of the variables'."""
    inside = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
    word = re.compile(rf"(?<![\w.'\"])({'|'.join(_OWN)})(?![\w'\"])")
    return inside.sub(lambda found: word.sub(lambda name: column_name(name[1]), found[0]), template)


def rendered(template: str, names: Mapping[str, Any]) -> str | None:
    """*template* with the values of its variables, as promptfoo fills them in; None where it is more than names in braces."""

    def value(found: re.Match[str]) -> str:
        here: Any = names
        for step in found[1].split("."):
            here = here.get(step) if isinstance(here, Mapping) else None
        return as_text(here)

    return None if "{{" in _NAME.sub("", template) or "{%" in template else _NAME.sub(value, template)


def variables_of(template: str) -> Iterator[str]:
    """The names in the braces of *template*."""
    return (found[1] for found in _NAME.finditer(template))


def as_text(value: object) -> str:
    """*value* as JavaScript writes it in a text."""
    if value is None:
        return ""
    return value if isinstance(value, str) else orjson.dumps(value).decode()
