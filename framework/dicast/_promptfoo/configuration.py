"""A promptfoo configuration with the places of its values, and the parts that cannot be converted."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from glob import glob
from pathlib import Path
from typing import Any

import attrs
import orjson

from .._kernel.pipeline.yaml_nodes import Node, Place
from .._kernel.values.errors import ConfigError, DataError, Problem
from ..toolkit.input_file import InputFile
from ..toolkit.yaml.reader import Composer

_LARGE, _SMALL = 1e21, 1e-6
"""JavaScript writes numbers between these without an exponent."""

MOST_BYTES = 16 * 2**20

_NAME = re.compile(r"\{\{-?\s*([A-Za-z_]\w*(?:\.\w+)*)\s*-?\}\}")
_COLUMNS = frozenset(
    (
        "id",
        "context",
        "output",
        "outputs",
        "inputs",
        "session_id",
        "assert",
        "test",
        "latency_seconds",
        "cost",
        "criterion",
        "vars",
        "not_carried",
    )
)
"""Columns with another meaning in the rows; a variable with such a name gets ``_`` appended."""


@attrs.frozen
class Loss:
    """A part of the configuration that cannot be converted: its place, its name, and the reason with the fix (*instead*)."""

    place: Place
    what: str
    instead: str

    @property
    def line(self) -> str:
        """The loss in one line."""
        return f"{self.place.file}:{self.place.line}: {self.what}; {self.instead}"


@attrs.define
class Losses:
    """All losses, each once by place and name."""

    losses: dict[tuple[Place, str], Loss] = attrs.field(factory=dict)

    def add(self, place: Place, what: str, instead: str) -> Loss:
        """Record a loss at *place*, and return it."""
        return self.losses.setdefault((place, what), Loss(place, what, instead))

    def sorted(self) -> list[Loss]:
        """Return the losses by file and line."""
        return sorted(self.losses.values(), key=lambda loss: (loss.place.file, loss.place.line or 0))

    def lines(self) -> list[str]:
        """Return a line for each loss."""
        return [loss.line for loss in self.sorted()]

    def document(self) -> list[dict[str, Any]]:
        """Return the losses as plain data."""
        return [
            {"file": loss.place.file, "line": loss.place.line, "what": loss.what, "instead": loss.instead}
            for loss in self.sorted()
        ]


def read_node(path: Path) -> Node:
    """Return the YAML or JSON file *path* as nodes.

    :raises ConfigError: with all faults of the file.
    """
    start, problems = Place(str(path), 1, 1, path.absolute().parent), list[Problem]()
    node = Composer(start, problems).compose(read_text(path))
    if problems:
        raise ConfigError(problems)
    return node


def read_text(path: Path) -> str:
    """Return the text of the file *path*.

    :raises ConfigError: if it cannot be read.
    """
    try:
        with InputFile.opened(path) as file:
            return b"".join(line for _, line in file.lines(MOST_BYTES)).decode()
    except DataError as error:
        raise ConfigError(error.problems) from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: byte {error.start} is not UTF-8; save the file as UTF-8") from error


def mapping_of(node: Node | None) -> Mapping[str, Node]:
    """Return the mapping of *node*; an empty one for any other node."""
    return node.value if node is not None and isinstance(node.value, dict) else {}


def items(node: Node | None) -> list[Node]:
    """Return the items of *node*; any other value is the only item."""
    if node is None or node.value is None:
        return []
    return node.value if isinstance(node.value, list) else [node]


def data_of(node: Node | None) -> Any:
    """Return *node* as plain data."""
    if node is None:
        return None
    if isinstance(node.value, dict):
        return {name: data_of(child) for name, child in node.value.items()}
    return [data_of(child) for child in node.value] if isinstance(node.value, list) else node.value


def node_of(value: Any, place: Place) -> Node:
    """Return plain data as nodes whose place is *place*."""
    if isinstance(value, dict):
        return Node({name: node_of(child, place) for name, child in value.items()}, place, place)
    return Node([node_of(child, place) for child in value] if isinstance(value, list) else value, place)


@attrs.frozen
class Folders:
    """The folder of the configuration, to which its paths are relative."""

    base: Path

    def path(self, name: str, place: Place) -> Path:
        """Return the path of the file *name*, which is relative to the configuration, or if it exists only there, to the file of *place*."""
        path = self.base / name.removeprefix("file://")
        neighbor = Path(place.file).parent / name.removeprefix("file://")
        return neighbor if not path.exists() and neighbor.exists() else path

    def file(self, node: Node) -> Path | None:
        """Return the file that a text ``file://PATH`` names; None for any other value."""
        return self.path(str(node.value), node.place) if is_file(node.value) else None

    def matches(self, name: str, place: Place) -> list[Path]:
        """Return the files that *name* matches, which may be a pattern with ``*``, sorted."""
        name = name.removeprefix("file://")
        if not any(sign in name for sign in "*?["):
            path = self.path(name, place)
            return [path] if path.is_file() else []
        paths = glob(name, root_dir=self.base, recursive=True)  # noqa: PTH207  # absolute patterns, too
        return sorted(path for path in map(self.base.joinpath, paths) if path.is_file())


def is_file(value: object) -> bool:
    """Return whether *value* is a text ``file://PATH``."""
    return isinstance(value, str) and value.startswith("file://")


def text_node(text: str, place: Place) -> Node:
    """Return the YAML or JSON *text*, whose values are all at *place*.

    :raises ConfigError: if it is neither.
    """
    problems = list[Problem]()
    node = Composer(place, problems).compose(text)
    if problems:
        raise ConfigError(problems)
    return node


def follow(node: Node, root: Mapping[str, Node]) -> Node:
    """Return the node that ``{$ref: "#/PATH"}`` points to in *root*; any other node itself.

    :raises ConfigError: if there is no node at the path.
    """
    pointer = data_of(mapping_of(node).get("$ref"))
    if pointer is None:
        return node
    target = Node(dict(root), node.place)
    for step in str(pointer).removeprefix("#").split("/")[1:]:
        target = mapping_of(target).get(step.replace("~1", "/").replace("~0", "~"))  # type: ignore[assignment]  # below
        if target is None:
            raise ConfigError(node.place.problem(f"$ref: there is nothing at {pointer}"))
    return target


def column_name(variable: str) -> str:
    """Return the name of the column of *variable*."""
    return f"{variable}_" if variable in _COLUMNS else variable


def renamed(template: str) -> str:
    """Return *template* with the columns' names in place of the variables' names."""
    word = re.compile(rf"(?<![\w.'\"])({'|'.join(_COLUMNS)})(?![\w'\"])")
    parts, place = list[str](), 0
    for start, end in _insides(template):
        parts += [template[place:start], word.sub(lambda name: column_name(name[1]), template[start:end])]
        place = end
    return "".join((*parts, template[place:]))


def _insides(template: str) -> Iterator[tuple[int, int]]:
    """Yield the start and the end of each expression and each block of *template*. The time is linear in the length of the text."""
    place, endless = 0, set[str]()
    while (match := _OPENING.search(template, place)) is not None:
        start, place = match.start(), match.start() + 1
        end = -1 if match[0] in endless else template.find("}}" if match[0] == "{{" else "%}", match.end())
        if end < 0:
            endless.add(match[0])
        else:
            place = end + 2
            yield start, place


_OPENING = re.compile(r"\{[{%]")


def rendered(template: str, names: Mapping[str, Any]) -> str | None:
    """Return *template* with the values of its variables, in promptfoo's notation; None if it has expressions other than names in braces.

    :raises ConfigError: if the text becomes longer than :data:`MOST_BYTES`.
    """
    size = 0

    def value(match: re.Match[str]) -> str:
        nonlocal size
        current: Any = names
        for step in match[1].split("."):
            current = current.get(step) if isinstance(current, Mapping) else None
        text = as_text(current)
        size += len(text)
        if size > MOST_BYTES:
            raise ConfigError(
                f"{template[:40]!r}… becomes longer than {MOST_BYTES:,} characters with its variables; shorten them"
            )
        return text

    return None if "{{" in _NAME.sub("", template) or "{%" in template else _NAME.sub(value, template)


def variables_of(template: str) -> Iterator[str]:
    """Return the names in the braces of *template*."""
    return (match[1] for match in _NAME.finditer(template))


def as_text(value: object) -> str:
    """Return *value* as text, as JavaScript converts it."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return ",".join(map(as_text, value))
    if isinstance(value, Mapping):
        return "[object Object]"
    if isinstance(value, float):
        return _number(value)
    return "" if value is None else orjson.dumps(value).decode()


def _number(value: float) -> str:
    if value.is_integer() and abs(value) < _LARGE:
        return str(int(value))
    if _SMALL <= abs(value) < 1:
        return format(Decimal(repr(value)), "f")
    return re.sub(r"e([+-])0", r"e\1", repr(value))


def slug(text: object) -> str:
    """Return *text* as the name of an experiment."""
    return re.sub(r"[^A-Za-z0-9_.-]+", "-", str(text)).strip("-.")[:40] or "variant"
