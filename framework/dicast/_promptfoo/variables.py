"""The variables of promptfoo's tests, and the product of their lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import prod
from typing import Any

import attrs
import orjson

from .._kernel.values.errors import ConfigError
from ..toolkit.yaml.nodes import Node
from .configuration import Folders, data_of, is_file, items, mapping_of, read_node, read_text, rendered

MOST_ROWS = 100_000
"""The most rows for the tests of a configuration."""

_TEXTS = (".txt", ".md", ".json", ".csv", ".html", ".xml", ".j2", "")
_DATA = (".yaml", ".yml")


class UnreadableVariable(Exception):
    """A variable has no value for the rows; the message has the reason."""


@attrs.frozen
class Variables:
    """The variables of a test with their *values*, at least one each; *unreadable* has the node and the reason of variables without a value."""

    values: Mapping[str, list[Any]]
    unreadable: Mapping[str, tuple[Node, str]]

    @property
    def rows(self) -> int:
        """The number of rows that the test becomes."""
        return prod(len(values) for values in self.values.values())

    def sizes(self) -> str:
        """Return the numbers of values of all variables with several."""
        return ", ".join(f"{name}: {len(values):,}" for name, values in self.values.items() if len(values) > 1)

    def combinations(self) -> Iterator[dict[str, Any]]:
        """Yield every combination of the variables' values, with the templates in texts filled in."""
        for chosen in product(*self.values.values()):
            names = dict(zip(self.values, chosen, strict=True))
            yield {
                name: (rendered(value, names) or value) if isinstance(value, str) and "{{" in value else value
                for name, value in names.items()
            }


def variables(parts: list[Node | None], folders: Folders, *, expand: bool) -> Variables:
    """Return the variables of *parts*; a later part replaces the variables of an earlier part. With *expand*, each item of a list is a value; else the list is.

    :raises ConfigError: if a file of variables cannot be read.
    """
    nodes = {name: node for part in parts for name, node in _mapping(part, folders).items()}
    values, unreadable = dict[str, list[Any]](), dict[str, tuple[Node, str]]()
    for name, node in nodes.items():
        try:
            values[name] = _values(node, folders, expand=expand)
        except UnreadableVariable as reason:
            values[name], unreadable[name] = [""], (node, str(reason))
    return Variables(values, unreadable)


def _mapping(node: Node | None, folders: Folders) -> dict[str, Node]:
    """Return the variables of *node*: a mapping, or the names of YAML and JSON files with mappings."""
    if node is None or isinstance(node.value, dict):
        return dict(mapping_of(node))
    result: dict[str, Node] = {}
    for entry in items(node):
        paths = folders.matches(str(entry.value), entry.place)
        if not paths:
            raise ConfigError(entry.place.problem(f"vars: there is no file {entry.value}"))
        for path in paths:
            result |= mapping_of(read_node(path))
    return result


def _values(node: Node, folders: Folders, *, expand: bool) -> list[Any]:
    value = data_of(node)
    if is_file(value):
        paths = folders.matches(value, node.place)
        if not paths:
            raise UnreadableVariable("there is no such file")
        return [_content(value, suffix=path.suffix, text=path) for path in paths]
    if not isinstance(value, list) or not expand or not value or not isinstance(value[0], str):
        return [value.removesuffix("\n") if isinstance(value, str) else value]
    result: list[Any] = []
    for entry in value:
        result += _values(Node(entry, node.place), folders, expand=False) if isinstance(entry, str) else [entry]
    return result


def _content(name: str, *, suffix: str, text: Any) -> str:
    if suffix in _DATA:
        return orjson.dumps(data_of(read_node(text))).decode()
    if suffix not in _TEXTS:
        raise UnreadableVariable(f"promptfoo makes a value of {name} in its own way: write the value into the rows")
    return read_text(text).strip()


def refuse_many(rows: int, place: Node, sizes: str) -> None:
    """Check that the tests up to *place* become at most :data:`MOST_ROWS` rows.

    :raises ConfigError: with the *sizes* of the lists.
    """
    if rows > MOST_ROWS:
        lists = f" (lists of this test: {sizes})" if sizes else ""
        message = f"the lists of variables make {rows:,} rows, and {MOST_ROWS:,} are the most{lists}; shorten the lists"
        raise ConfigError(place.place.problem(message))
