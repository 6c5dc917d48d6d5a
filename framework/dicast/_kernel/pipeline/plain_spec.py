"""A pipeline file as plain data, from which another process builds the same pipeline."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from ..classes import evolve, frozen
from ..values.errors import ConfigError
from .read import PipelineFile, assembled_file
from .yaml_nodes import Node, Place

FORMAT = 1
"""Format of the data."""

_OF_DRIVER = ("sinks", "ledger", "executor")
"""Sections that are for the process that made the data."""


def plain_spec(file: PipelineFile, experiment: str | None = None, ready: Collection[str] = ()) -> dict[str, Any] | None:
    """Return *file*, or one *experiment* of it, as plain data, without its sinks, its ledger and its executor; None if it has objects of a program.

    References to environment variables stay as they are in the file, so their values are read where the pipeline is built.

    :param ready: the names of the objects.
    """
    places: dict[tuple[str, str], int] = {}
    root = file.root
    if isinstance(root.value, dict):
        root = evolve(root, value={name: node for name, node in root.value.items() if name not in _OF_DRIVER})
    if ready and not _names(root).isdisjoint(ready):
        return None
    return {
        "format": FORMAT,
        "file": _place(file.start, places),
        "root": _plain(root, places),
        "experiment": file.chosen if experiment is None else experiment,
        "only": [*file.only],
        "files": [[name, base] for name, base in places],
    }


def _names(root: Node) -> set[str]:
    """Return all texts of *root*, and all keys of its mappings."""
    return {
        name
        for node in root.nodes()
        for name in (node.value if isinstance(node.value, dict) else [node.value])
        if isinstance(name, str)
    }


def _plain(node: Node, places: dict[tuple[str, str], int]) -> dict[str, Any]:
    value: Any = node.value
    if isinstance(value, dict):
        value = {name: _plain(child, places) for name, child in value.items()}
    elif isinstance(value, list):
        value = [_plain(child, places) for child in value]
    plain = {"value": value, "at": _place(node.place, places)}
    return plain if node.key is None else {**plain, "key": _place(node.key, places)}


def _place(place: Place, places: dict[tuple[str, str], int]) -> list[int | None]:
    number = places.setdefault((place.file, os.fspath(place.base)), len(places))
    return [number, place.line, place.column]


def read_spec(spec: Mapping[str, Any], environ: Mapping[str, str] = os.environ) -> PipelineFile:
    """Return the pipeline file of *spec*, as :func:`plain_spec` wrote it. Its environment variables have the values of *environ*.

    :raises ConfigError: for data of another format.
    """
    if spec.get("format") != FORMAT:
        message = f"this dicast reads pipelines of format {FORMAT}, not {spec.get('format')!r:.100}"
        raise ConfigError(f"{message}; install the same version of dicast on all machines")
    reader = _SpecReader([(name, Path(base)) for name, base in spec["files"]])
    file = assembled_file(reader.place(spec["file"]), reader.node(spec["root"]), environ)
    file = evolve(file, only=tuple(spec["only"]))
    return file if spec["experiment"] is None else file.alone(spec["experiment"])


@frozen
class _SpecReader:
    """Reader of the nodes of a specification; *files* are the names of its files with their folders."""

    files: list[tuple[str, Path]]

    def node(self, plain: Mapping[str, Any]) -> Node:
        """Return the node of *plain*."""
        value = plain["value"]
        if isinstance(value, Mapping):
            value = {name: self.node(child) for name, child in value.items()}
        elif isinstance(value, list):
            value = [self.node(child) for child in value]
        return Node(value, self.place(plain["at"]), self.place(plain["key"]) if "key" in plain else None)

    def place(self, at: list[Any]) -> Place:
        """Return the place of the numbers *at*."""
        name, base = self.files[at[0]]
        return Place(name, at[1], at[2], base)
