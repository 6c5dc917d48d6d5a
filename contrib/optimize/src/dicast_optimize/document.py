"""Reads a spec file, TOML or YAML, with the line and column of each value."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import attrs

from dicast import ConfigError, Problem
from dicast.toolkit import yaml
from dicast.toolkit.files import read_bytes

Address = tuple[str | int, ...]
Places = dict[Address, tuple[int, int]]

MAX_BYTES = 4 * 2**20
MAX_DEPTH = 100
_TOO_DEEP = f"the spec is nested deeper than {MAX_DEPTH} levels"
_HEADER = re.compile(r"\s*\[{1,2}\s*([^\[\]]+?)\s*\]{1,2}\s*(#.*)?")
_KEY = re.compile(r"(\s*)([\w.\"'-]+)\s*=")


@attrs.frozen
class Document:
    """The content of the spec at *path*. *places* has the line and column of each value; *folder* is the spec's folder."""

    path: Path
    data: dict[str, Any]
    places: Places
    problems: tuple[Problem, ...] = ()
    folder: Path = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "folder", self.path.absolute().parent)

    def problem(self, address: Address, message: str, value: object = None, hint: str | None = None) -> Problem:
        """Return a problem at *address*, or at the nearest known place above it."""
        nearest_address = next((address[:n] for n in range(len(address), 0, -1) if address[:n] in self.places), ())
        line, column = self.places.get(nearest_address, (1, 1))
        return Problem(message, str(self.path), line, column, dotted(address), value, hint)


def dotted(address: Address) -> str:
    """Return *address* as messages show it: ``evaluator.command[0]``."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in address).lstrip(".")


def read_document(path: Path) -> Document:
    """Read the spec at *path* as TOML if it has this suffix, else as YAML.

    :raises ConfigError: if it cannot be read, or is invalid.
    """
    try:
        data = read_bytes(path, MAX_BYTES)
        problems: list[Problem] = []
        is_toml = path.suffix.lower() == ".toml"
        content, places = _toml(data, str(path)) if is_toml else _yaml(data, str(path), problems)
    except OSError as error:
        wrong = "no such file" if isinstance(error, FileNotFoundError) else f"cannot be read: {error.strerror}"
        raise ConfigError(Problem(f"spec: {wrong}", str(path))) from error
    except UnicodeDecodeError as error:
        raise ConfigError(Problem(f"byte {error.start} is not UTF-8; save the spec as UTF-8", str(path))) from error
    if not isinstance(content, dict):
        raise ConfigError(Problem("a spec has sections: optimization, evaluator, model, intake", str(path), 1, 1))
    return Document(path, content, places, tuple(problems))


def _toml(content: bytes, file: str) -> tuple[object, Places]:
    text = content.decode("utf-8-sig")
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        at = re.search(r"line (\d+), column (\d+)", str(error))
        line, column = (int(at[1]), int(at[2])) if at else (None, None)
        raise ConfigError(Problem(f"the spec is not TOML: {error}", file, line, column)) from error
    except RecursionError as error:
        raise ConfigError(Problem(_TOO_DEEP, file)) from error
    if _is_deeper(data, MAX_DEPTH):
        raise ConfigError(Problem(_TOO_DEEP, file))
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


def _is_deeper(value: object, levels: int) -> bool:
    """Return whether lists and tables in *value* are nested more than *levels* deep."""
    if not isinstance(value, dict | list):
        return False
    inside = value.values() if isinstance(value, dict) else value
    return not levels or any(_is_deeper(child, levels - 1) for child in inside)


def _yaml(data: bytes, file: str, problems: list[Problem]) -> tuple[object, Places]:
    root = yaml.read_yaml(data, file, problems)
    places: Places = {}
    _add_places(root, (), places)
    return {} if root.value is None else root.plain(), places


def _add_places(node: yaml.Node, address: Address, places: Places) -> None:
    place = node.key or node.place
    places[address] = (place.line or 1, place.column or 1)
    if isinstance(node.value, dict):
        for name, child in node.value.items():
            _add_places(child, (*address, name), places)
    elif isinstance(node.value, list):
        for index, child in enumerate(node.value):
            _add_places(child, (*address, index), places)
