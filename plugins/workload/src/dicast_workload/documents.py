"""YAML files whose values remember where they were written."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import attrs
import yaml

from dicast import Problem

MAX_VALUES, MAX_DEPTH = 20_000, 50
"""What one file may hold, aliases expanded: far above any use, and an end to files made to exhaust the reader."""

Address = tuple[str | int, ...]
Mark = tuple[int, int]
"""Line and column, both from 1."""

_WORDS: dict[str, object] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?[0-9]{1,300}")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")


@attrs.frozen
class Fault:
    """One thing that is wrong with the value at *path*, or with its key; *mark* says where, if not there."""

    path: Address
    message: str
    value: object = None
    hint: str | None = None
    at_key: bool = False
    mark: Mark | None = None


@attrs.frozen
class Document:
    """A YAML file as plain *data*; *file* is what messages call it. *values* and *keys* say where each one stands."""

    file: str
    data: Any
    values: dict[Address, Mark]
    keys: dict[Address, Mark]

    def problem(self, fault: Fault) -> Problem:
        """*fault* with its place; what is missing is missed where the mapping around it begins."""
        place, path = fault.mark, fault.path
        while place is None:
            place = self.keys.get(path) if fault.at_key and path == fault.path else self.values.get(path)
            path = path[:-1]
        return Problem(fault.message, self.file, *place, dotted(fault.path) or None, fault.value, fault.hint)


def dotted(path: Address) -> str:
    """*path* as messages show it: ``turns[0].expect.stop_reason``."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def read_document(path: Path, label: str, problems: list[Problem]) -> Document | None:
    """Read the YAML file at *path*: the core schema of YAML 1.2, in which ``yes`` is a text.

    What is wrong with it is added to *problems*; None where there is nothing to work with.
    """
    if path.exists() and not path.is_file():
        problems.append(Problem("not a file, but a folder, a pipe or a device", label))
        return None
    try:
        root = yaml.compose(path.read_text(encoding="utf-8-sig"), Loader=yaml.BaseLoader)
    except (OSError, UnicodeDecodeError) as error:
        problems.append(Problem(f"cannot read the file: {error}", label))
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        place = (None, None) if mark is None else (mark.line + 1, mark.column + 1)
        problems.append(Problem(f"not valid YAML: {getattr(error, 'problem', None) or error}", label, *place))
    else:
        reader = _Reader(label)
        data = None if root is None else reader.value(root, ())
        document = Document(label, data, {(): (1, 1)} | reader.values, reader.keys)
        problems += map(document.problem, reader.faults)
        return document
    return None


class _Reader:
    """Makes plain data of YAML nodes."""

    def __init__(self, label: str) -> None:
        self.values: dict[Address, Mark] = {}
        self.keys: dict[Address, Mark] = {}
        self.faults: list[Fault] = []

    def value(self, node: yaml.Node, path: Address) -> object:
        """The value of *node*, and None for what is left out."""
        self.values[path] = _mark(node)
        if len(path) > MAX_DEPTH or len(self.values) > MAX_VALUES:
            if not self.faults or self.faults[-1].message != _TOO_LARGE:
                self.faults.append(Fault(path[:3], _TOO_LARGE))
            return None
        if isinstance(node, yaml.MappingNode):
            return {name: self.value(item, (*path, name)) for name, item in self._members(node, path)}
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*path, number)) for number, item in enumerate(node.value)]
        return self._scalar(node, path)

    def _members(self, node: yaml.MappingNode, path: Address) -> Iterator[tuple[str, yaml.Node]]:
        for key, item in node.value:
            name = (*path, str(key.value))
            if not isinstance(key, yaml.ScalarNode):
                self.faults.append(
                    Fault(path, "a key must be text; quote one that begins with { or [", mark=_mark(key))
                )
            elif name in self.keys:
                self.faults.append(Fault(name, f"the key {key.value!r} is given twice; keep one", mark=_mark(key)))
            else:
                self.keys[name] = _mark(key)
                yield key.value, item

    def _scalar(self, node: yaml.Node, path: Address) -> object:
        text: str = node.value
        if getattr(node, "style", None) is not None:  # quoted, or a block of text
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _INTEGER.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text) and math.isfinite(float(text)):
            return float(text)
        return text


_TOO_LARGE = f"more than {MAX_VALUES:,} values, aliases expanded, or {MAX_DEPTH} levels; a workload's file is small"


def _mark(node: yaml.Node) -> Mark:
    return node.start_mark.line + 1, node.start_mark.column + 1
