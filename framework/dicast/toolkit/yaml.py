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

from .._toolkit.yaml_nodes import Address, Node, Place, Scalar, dotted, kind
from .._toolkit.yaml_reader import MAX_DATA_NODES, MAX_DEPTH, MAX_NODES, Item, read_items, read_yaml, resolve
from .._toolkit.yaml_writer import write_yaml

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
