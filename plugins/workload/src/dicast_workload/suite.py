"""The workloads of a suite, from a folder or a list of files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from dicast import ConfigError, Problem, nearest
from dicast.toolkit.files import read_bytes

from .definition import Definition
from .documents import read_document

SUFFIXES = (".yaml", ".yml")


@attrs.frozen
class Suite:
    """Workloads by name; *digest* is one of all their files."""

    workloads: Mapping[str, Definition]
    digest: str

    @classmethod
    def read(cls, paths: Sequence[Path]) -> Suite:
        """Read the files at *paths*; a folder means its YAML files and the ``workload.yaml`` of its folders.

        :raises ConfigError: with everything that is wrong with any of them.
        """
        problems: list[Problem] = []
        definitions: dict[str, Definition] = {}
        digest = hashlib.sha256()
        for file in _files(paths, problems):
            document = read_document(file, _label(file), problems)
            definition = None if document is None else Definition.read(document, problems)
            if definition is None:
                continue
            digest.update(read_bytes(file))
            first = definitions.setdefault(definition.name, definition)
            if first is not definition:
                message = f"the workload {definition.name!r} is in {first.file} already; give each a name of its own"
                problems.append(Problem(message, definition.file, path="name", value=definition.name))
        if problems:
            raise ConfigError(
                sorted(problems, key=lambda problem: (problem.file or "", problem.line or 0, problem.column or 0))
            )
        return cls(definitions, digest.hexdigest())


def _files(paths: Sequence[Path], problems: list[Problem]) -> Iterator[Path]:
    for path in paths:
        if path.is_dir():
            files = sorted(
                [*(entry for entry in path.iterdir() if entry.suffix in SUFFIXES), *path.glob("*/workload.yaml")]
            )
            if not files:
                problems.append(
                    Problem(
                        "the folder has no workloads: no .yaml file, and no folder with a workload.yaml", _label(path)
                    )
                )
            yield from files
        elif path.exists():
            yield path
        else:
            names = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
            problems.append(Problem("no such file or folder", _label(path), hint=nearest(path.name, names)))


def _label(path: Path) -> str:
    """Return *path* as messages name it: relative to the current directory if it is below it."""
    below = os.path.relpath(path)
    return str(path) if below.startswith("..") else below
