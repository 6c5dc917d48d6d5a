"""Operations on the nodes of a pipeline file: paths, merging, and nodes of plain Python data."""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Mapping, Sequence

from ...toolkit.yaml.nodes import COMPONENT, PLAIN_STEP, Address, Node, Place, Scalar, dotted, kind
from ...toolkit.yaml.reader import MAX_DEPTH
from ..classes import evolve
from ..values.errors import ConfigError

__all__ = [
    "COMPONENT",
    "Address",
    "Node",
    "Place",
    "Scalar",
    "dotted",
    "from_data",
    "is_data",
    "kind",
    "merge",
    "split",
]

_SEGMENT = re.compile(rf'(?:^|(?!^)\.)(?:("(?:[^"\\]|\\.)*")|({PLAIN_STEP.pattern}))|\[(\d+)\]')


def split(path: str) -> tuple[str, ...]:
    """Split a dotted path; ``metrics[1]`` equals ``metrics.1``.

    :raises ValueError: when the path is invalid.
    """
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


def merge(under: Node, over: Node) -> Node:
    """Merge *over* into *under*: mappings merge deeply, other values are replaced.

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
    """Convert plain Python data to nodes that are all at *place*.

    :raises ConfigError: for data that YAML cannot express.
    """
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
    message = (
        f"a {type(value).__name__} cannot be part of a pipeline; use mappings, lists, text, numbers, booleans, None"
    )
    raise ConfigError(place.problem(message, path, repr(value)))


def to_data(node: Node) -> object:
    """Return the values of *node* without their places."""
    if isinstance(node.value, dict):
        return {name: to_data(child) for name, child in node.value.items()}
    return [to_data(child) for child in node.value] if isinstance(node.value, list) else node.value


def is_data(value: object) -> bool:
    """Return True if *value* holds only data that a file can hold, and no Python component."""
    if isinstance(value, Mapping):
        return all(map(is_data, value.values()))
    if isinstance(value, list | tuple):
        return all(map(is_data, value))
    return value is None or isinstance(value, str | int | float | os.PathLike)


def _name(key: object, place: Place, path: Address) -> str:
    if not isinstance(key, str):
        raise ConfigError(place.problem(f"the key {key!r} is {kind(key)}; keys are text", path, key))
    return key
