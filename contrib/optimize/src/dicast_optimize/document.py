"""Reading a spec file, TOML or YAML, with the place of each value."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs
import yaml

from dicast import ConfigError, Problem

Address = tuple[str | int, ...]
Places = dict[Address, tuple[int, int]]

MAX_BYTES = 4 * 2**20
_MOST_NODES = 100_000
_SHAPES: tuple[tuple[re.Pattern[str], Callable[[str], object]], ...] = (
    (re.compile(r"(|~|null|Null|NULL)"), lambda _: None),
    (re.compile(r"(true|True|TRUE|false|False|FALSE)"), lambda text: text.lower() == "true"),
    (re.compile(r"[-+]?[0-9]+"), int),
    (re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"), float),
)
_HEADER = re.compile(r"\s*\[{1,2}\s*([^\[\]]+?)\s*\]{1,2}\s*(#.*)?")
_KEY = re.compile(r"(\s*)([\w.\"'-]+)\s*=")


@attrs.frozen
class Document:
    """What the spec at *path* says; *places* has the line and column of what is in it. *folder* is where it stands."""

    path: Path
    data: dict[str, Any]
    places: Places
    folder: Path = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "folder", self.path.absolute().parent)

    def problem(self, address: Address, message: str, value: object = None, hint: str | None = None) -> Problem:
        """A problem at *address*, or at the nearest place above it that is known."""
        known = next((address[:n] for n in range(len(address), 0, -1) if address[:n] in self.places), ())
        line, column = self.places.get(known, (1, 1))
        return Problem(message, str(self.path), line, column, dotted(address), value, hint)


def dotted(address: Address) -> str:
    """*address* as messages write it: ``evaluator.command[0]``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in address).lstrip(".")


def read_document(path: Path) -> Document:
    """Read the spec at *path*: TOML where its name ends so, else YAML.

    :raises ConfigError: when it cannot be read, or is neither.
    """
    try:
        data = path.read_bytes()
        if len(data) > MAX_BYTES:
            raise ConfigError(Problem(f"the spec has more than {MAX_BYTES:,} bytes", str(path)))
        text = data.decode("utf-8-sig")
    except OSError as error:
        wrong = "no such file" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
        raise ConfigError(Problem(f"spec: {wrong}", str(path))) from error
    except UnicodeDecodeError as error:
        raise ConfigError(Problem(f"byte {error.start} is not UTF-8; save the spec as UTF-8", str(path))) from error
    found, places = (_toml if path.suffix.lower() == ".toml" else _Yaml().read)(text, str(path))
    if not isinstance(found, dict):
        raise ConfigError(Problem("a spec has sections: optimization, evaluator, model, intake", str(path), 1, 1))
    return Document(path, found, places)


def _toml(text: str, file: str) -> tuple[object, Places]:
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"line (\d+), column (\d+)", str(error))
        line, column = (int(at[1]), int(at[2])) if at else (None, None)
        raise ConfigError(Problem(f"the spec is not TOML: {error}", file, line, column)) from error
    places: Places = {}
    section: Address = ()
    for number, line_text in enumerate(text.splitlines(), 1):
        if header := _HEADER.fullmatch(line_text):
            section = tuple(part.strip(" \"'") for part in header[1].split("."))
            places.setdefault(section, (number, line_text.index("[") + 1))
        elif key := _KEY.match(line_text):
            address = (*section, *(part.strip("\"'") for part in key[2].split(".")))
            places.setdefault(address, (number, len(key[1]) + 1))
    return data, places


class _Yaml:
    """Builds values by YAML 1.2's core schema: ``no`` is a text, and a key stands once."""

    def __init__(self) -> None:
        self._places: Places = {}
        self._problems: list[Problem] = []
        self._nodes = 0
        self._file = ""

    def read(self, text: str, file: str) -> tuple[object, Places]:
        self._file = file
        try:
            root = yaml.compose(text, Loader=yaml.SafeLoader)
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line, column = (mark.line + 1, mark.column + 1) if mark else (None, None)
            message = f"the spec is not YAML: {getattr(error, 'problem', None) or error}"
            raise ConfigError(Problem(message, file, line, column)) from error
        value = {} if root is None else self._value(root, ())
        if self._problems:
            raise ConfigError(self._problems)
        return value, self._places

    def _value(self, node: yaml.Node, address: Address) -> object:
        self._places.setdefault(address, (node.start_mark.line + 1, node.start_mark.column + 1))
        self._nodes += 1
        if self._nodes > _MOST_NODES or len(address) > 50:
            raise ConfigError(Problem("the spec's aliases or nesting make it too large", self._file))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, address)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(item, (*address, n)) for n, item in enumerate(node.value)]
        return _scalar(str(node.value), node.style)  # type: ignore[attr-defined]  # what is left is a ScalarNode

    def _mapping(self, node: yaml.MappingNode, address: Address) -> dict[str, object]:
        found: dict[str, object] = {}
        for key, value in node.value:
            line, column = key.start_mark.line + 1, key.start_mark.column + 1
            if not isinstance(key, yaml.ScalarNode):
                self._problems.append(Problem("a key is a text", self._file, line, column))
                continue
            name = str(key.value)
            if name in found:
                wrong = f"the key {name!r} stands here twice"
                self._problems.append(Problem(wrong, self._file, line, column, dotted((*address, name))))
            self._places.setdefault((*address, name), (line, column))
            found[name] = self._value(value, (*address, name))
        return found


def _scalar(text: str, style: str | None) -> object:
    if style is None:
        for shape, make in _SHAPES:
            if shape.fullmatch(text):
                return make(text)
    return text
