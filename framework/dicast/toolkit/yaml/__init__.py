"""YAML as dicast reads it everywhere: the 1.2 core schema, strict scalars, unique keys, bounded aliases, places of all values.

>>> from dicast.toolkit import yaml
>>> node = yaml.read_yaml("a: {b: 0x1F, c: no}", "file.yaml")
>>> node.plain()
{'a': {'b': 31, 'c': 'no'}}
>>> place = node.place_of(("a", "c"), key=True)
>>> place.line, place.column
(1, 14)
"""

from __future__ import annotations

from collections.abc import Mapping

import yaml

from .nodes import Address, Node, Place, Scalar, dotted, kind
from .reader import MAX_DATA_NODES, MAX_DEPTH, MAX_NODES, Item, read_items, read_yaml, resolve

__all__ = [
    "MAX_DATA_NODES",
    "MAX_DEPTH",
    "MAX_NODES",
    "Address",
    "Item",
    "Node",
    "Place",
    "Scalar",
    "dotted",
    "kind",
    "read_items",
    "read_yaml",
    "resolve",
    "write_yaml",
]


def write_yaml(data: Mapping[str, object]) -> str:
    """Return *data* as YAML, keys in their order; :func:`read_yaml` gives it back."""
    return yaml.dump(dict(data), Dumper=_Dumper, sort_keys=False, allow_unicode=True)


class _Dumper(yaml.SafeDumper):
    """PyYAML's writer, which quotes the special words of YAML 1.1, extended to quote the special words of YAML 1.2."""


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if _is_text(text) else "'")


def _is_text(text: str) -> bool:
    try:
        return resolve(text) == text
    except ValueError:  # a number that the reader refuses
        return False


_Dumper.add_representer(str, _text)
