"""YAML files whose values remember where they were written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import attrs

from dicast import ConfigError, Problem
from dicast.toolkit import yaml
from dicast.toolkit.files import error_reason, read_bytes
from dicast.toolkit.yaml import Address, Node, dotted

__all__ = ["Address", "Document", "Fault", "dotted", "read_document"]

MAX_VALUES = 20_000
"""The largest number of values in a file, aliases expanded; a workload's file is small."""


@attrs.frozen
class Fault:
    """A problem of the value at *path*, or of its key."""

    path: Address
    message: str
    value: object = None
    hint: str | None = None
    at_key: bool = False


@attrs.frozen
class Document:
    """A YAML file as plain *data*; *file* is its name in messages, *root* has the places."""

    file: str
    data: Any
    root: Node = attrs.field(repr=False)
    unread: frozenset[str | None] = frozenset()
    """Paths of values that could not be read, which are null in *data*."""

    def problem(self, fault: Fault) -> Problem:
        """Return *fault* with its place; that of a missing value is the mapping around it."""
        place = self.root.place_of(fault.path, key=fault.at_key)
        return place.problem(fault.message, fault.path, fault.value, fault.hint)


def read_document(path: Path, label: str, problems: list[Problem]) -> Document | None:
    """Read the YAML file at *path*: the core schema of YAML 1.2, in which ``yes`` is a text.

    Its problems are added to *problems*; None where the file cannot be read.
    """
    if path.exists() and not path.is_file():
        problems.append(Problem("not a file, but a folder, a pipe or a device", label))
        return None
    wrong: list[Problem] = []
    try:
        root = yaml.read_yaml(read_bytes(path), label, wrong, MAX_VALUES)
    except OSError as error:
        problems.append(Problem(f"cannot read the file: {error_reason(error)}", label))
    except ConfigError as error:
        problems += (*wrong, *error.problems)
    else:
        problems += wrong
        return Document(label, root.plain(), root, frozenset(problem.path for problem in wrong))
    return None
