"""Factors of ``dicast bisect``: the named changes, or the differences between two pipeline files."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from dicast import ConfigError, Problem, nearest
from dicast.commands import pipeline_text

from ..statistics.shapley import Cell

MOST = 6
"""Greatest number of factors: they have 64 cells."""

UNSCORED = (
    *("name", "include", "plugins", "ledger", "executor", "sinks", "gate", "budget", "disabled"),
    *("baseline", "aggregates", "early_stop"),
)
"""Sections without an effect on scores."""

_PLAIN = re.compile(r"[A-Za-z0-9_/-]+")

Change = tuple[tuple[str | int, ...], object]
"""A place in the file, and its value in the other file."""


def named_factors(options: Sequence[str]) -> dict[str, list[str]]:
    """Return the overrides of each factor.

    :raises ConfigError: if an option is not written like NAME=PATH=VALUE, or there are no factors or too many.
    """
    overrides: dict[str, list[str]] = {}
    problems = []
    for text in options:
        name, _, change = text.partition("=")
        if not name.strip() or "=" not in change or "+" in name:
            problems.append(Problem(f"{text!r} is not a factor; write it like model=define.grader.openai/chat.model=gpt-4o", path="--factor", value=text))  # fmt: skip
        overrides.setdefault(name.strip(), []).append(change)
    if not options:
        problems.append(
            Problem(
                "no change is named; name each change with --factor NAME=PATH=VALUE, or a second file", path="--factor"
            )
        )
    if len(overrides) > MOST:
        problems.append(
            Problem(
                f"{len(overrides)} factors have {2 ** len(overrides)} cells; name at most {MOST} factors",
                path="--factor",
            )
        )
    if problems:
        raise ConfigError(problems)
    return overrides


def between_files(file: Path, other: Path, factors: Sequence[str]) -> dict[str, list[str]]:
    """Return the overrides of each factor that differs between two files.

    :raises ConfigError: if factors are named as well, or the files cannot be compared.
    """
    if factors:
        raise ConfigError(
            Problem("a second file and factors are both named: remove one of them", path="--factor", value=factors[0])
        )
    changes = file_changes(file, other, MOST)
    if len(changes) > MOST:
        message = f"{file} and {other} differ in {len(changes)} sections, which make {2 ** len(changes)} cells; name at most {MOST} changes with --factor"
        raise ConfigError(message)
    return changes


def named_cells(options: Sequence[str], factors: Mapping[str, object]) -> dict[Cell, str]:
    """Return the runs that the user names, by their cells.

    :raises ConfigError: if a cell names an unknown factor.
    """
    cells, problems = dict[Cell, str](), []
    for text in options:
        names, equals, run_id = text.partition("=")
        cell = [name.strip() for name in names.split("+") if name.strip()]
        unknown = [name for name in cell if name not in factors]
        if not equals or not run_id or unknown:
            about = f"; there is no factor {unknown[0]!r}" if unknown else ""
            hint = nearest(unknown[0], factors) if unknown else None
            problems.append(Problem(f"{text!r} is not a cell; write it like model+prompt=RUN{about}", path="--cell", value=text, hint=hint))  # fmt: skip
        cells[frozenset(cell)] = run_id
    if problems:
        raise ConfigError(problems)
    return cells


def file_changes(file: Path, other: Path, most: int) -> dict[str, list[str]]:
    """Return the overrides that turn *file* into *other*, by the place that they change; each place is a factor.

    If more than *most* places differ, the changes of one section are one factor.

    :raises ConfigError: if no difference affects scores, the files judge different data, or *other* is in another folder, so that its relative paths would change.
    """
    old, new = pipeline_text(file), pipeline_text(other)
    if old.get("source") != new.get("source"):
        message = f"{file} and {other} judge different data (source): scores can be compared on the same subjects only; set the same source in both"
        raise ConfigError(Problem(message, str(other), path="source"))
    changes = list(_differing(_scoring(old), _scoring(new), ()))
    if not changes:
        raise ConfigError(
            f"{file} and {other} do not differ in a section that affects scores: there is nothing to bisect"
        )
    if removed := [str(path[0]) for path, value in changes if len(path) == 1 and value is None]:
        message = f"{other} has no section {removed[0]!r}, and a change can set a section but not remove it; name the changes with --factor"
        raise ConfigError(Problem(message, str(other), path=removed[0]))
    if Path(os.path.realpath(other)).parent != Path.cwd():
        message = f"relative paths in {other} are relative to its folder: run dicast bisect there, or name the changes with --factor"
        raise ConfigError(Problem(message, str(other)))
    by_section, names = len(changes) > most, _names([path for path, _ in changes], old)
    overrides: dict[str, list[str]] = {}
    for path, value in changes:
        name = _dotted(path[: 2 if path[0] == "define" else 1]) if by_section else names[path]
        overrides.setdefault(name, []).append(f"{_dotted(path)}={json.dumps(value, ensure_ascii=False)}")
    return overrides


def _scoring(sections: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in sections.items() if name not in UNSCORED}


def _differing(old: object, new: object, path: tuple[str | int, ...]) -> Iterator[Change]:
    """Yield the smallest places that differ and can be set: keys of mappings with equal keys, items of lists of equal length."""
    if old == new and type(old) is type(new):
        return
    if isinstance(old, Mapping) and isinstance(new, Mapping) and (not path or old.keys() == new.keys()):
        for name in dict.fromkeys((*old, *new)):
            yield from _differing(old.get(name), new.get(name), (*path, str(name)))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for place, (old_item, new_item) in enumerate(zip(old, new, strict=True)):
            yield from _differing(old_item, new_item, (*path, place))
    else:
        yield path, new


def _names(paths: Sequence[tuple[str | int, ...]], sections: object) -> dict[tuple[str | int, ...], str]:
    """Return the name of each place: its path, with the label of a list item as in --set.

    If two names are equal, the item's number replaces its label.
    """
    short = {path: _dotted(_with_labels(path, sections)) for path in paths}
    labels = [*short.values()]
    return {path: name if labels.count(name) == 1 else _dotted(path) for path, name in short.items()}


def _with_labels(path: Sequence[str | int], value: object) -> list[str | int]:
    """Return *path* with the label of an item, if it has one, in place of its number and its component."""
    labeled: list[str | int] = []
    steps = iter(path)
    for step in steps:
        value = _at(value, step)
        label = _label(value) if isinstance(step, int) else None
        labeled.append(step if label is None else label)
        if label is not None and (component := next(steps, None)) is not None:
            value = _at(value, component)
    return labeled


def _at(value: Any, step: str | int) -> object:
    """Return the value at a step, or None."""
    return value.get(step) if isinstance(value, Mapping) else value[int(step)] if isinstance(value, list) else None


def _label(item: Any) -> str | None:
    """Return the label that an item of a list sets with ``as``."""
    options = next(iter(item.values())) if isinstance(item, Mapping) and len(item) == 1 else None
    label = options.get("as") if isinstance(options, Mapping) else None
    return label if isinstance(label, str) else None


def _dotted(path: Sequence[str | int]) -> str:
    names = (str(step) if _PLAIN.fullmatch(str(step)) else json.dumps(str(step)) for step in path)
    return ".".join(names)
