"""The changes that ``dicast bisect`` tells apart: those that it is given, or what differs between two pipeline files."""

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
"""More factors than these have more than 64 cells."""

BESIDE = (
    *("name", "include", "plugins", "ledger", "executor", "sinks", "gate", "budget", "disabled"),
    *("baseline", "aggregates", "early_stop"),
)
"""Sections that change no score."""

_PLAIN = re.compile(r"[A-Za-z0-9_/-]+")

Change = tuple[tuple[str | int, ...], object]
"""A place in the file, and what stands there in the other one."""


def named_factors(given: Sequence[str]) -> dict[str, list[str]]:
    """The overrides of each factor.

    :raises ConfigError: when one is not written like NAME=PATH=VALUE, or there are none or too many.
    """
    found: dict[str, list[str]] = {}
    wrong = []
    for text in given:
        name, _, change = text.partition("=")
        if not name.strip() or "=" not in change or "+" in name:
            wrong.append(Problem(f"{text!r} is no factor; write it like model=define.grader.openai/chat.model=gpt-4o", path="--factor", value=text))  # fmt: skip
        found.setdefault(name.strip(), []).append(change)
    if not given:
        wrong.append(
            Problem(
                "there is no factor; name each change with --factor NAME=PATH=VALUE, or a second file", path="--factor"
            )
        )
    if len(found) > MOST:
        wrong.append(
            Problem(f"{len(found)} factors have {2 ** len(found)} cells, and {MOST} are the most", path="--factor")
        )
    if wrong:
        raise ConfigError(wrong)
    return found


def between_files(file: Path, other: Path, factors: Sequence[str]) -> dict[str, list[str]]:
    """The overrides of each factor that differs between two files.

    :raises ConfigError: when there are factors of another kind as well, or the files are not to be compared.
    """
    if factors:
        raise ConfigError(Problem("give a second file, or factors: not both", path="--factor", value=factors[0]))
    found = file_changes(file, other, MOST)
    if len(found) > MOST:
        message = f"{file} and {other} differ in {len(found)} sections, which has {2 ** len(found)} cells, and {MOST} are the most; name some changes with --factor"
        raise ConfigError(message)
    return found


def given_cells(given: Sequence[str], factors: Mapping[str, object]) -> dict[Cell, str]:
    """The runs that the user names, by their cells.

    :raises ConfigError: when a name is not that of a factor.
    """
    found, wrong = dict[Cell, str](), []
    for text in given:
        names, equals, run_id = text.partition("=")
        swapped = [name.strip() for name in names.split("+") if name.strip()]
        unknown = [name for name in swapped if name not in factors]
        if not equals or not run_id or unknown:
            about = f"; there is no factor {unknown[0]!r}" if unknown else ""
            hint = nearest(unknown[0], factors) if unknown else None
            wrong.append(Problem(f"{text!r} is no cell; write it like model+prompt=RUN{about}", path="--cell", value=text, hint=hint))  # fmt: skip
        found[frozenset(swapped)] = run_id
    if wrong:
        raise ConfigError(wrong)
    return found


def file_changes(file: Path, other: Path, most: int) -> dict[str, list[str]]:
    """The overrides that turn *file* into *other*, each under the place that it changes: a factor each.

    Where more than *most* places differ, the changes of one section are one factor.

    :raises ConfigError: when nothing differs that changes a score, the files judge different data, or relative paths of *other* would mean others.
    """
    ours, theirs = pipeline_text(file), pipeline_text(other)
    if ours.get("source") != theirs.get("source"):
        message = f"{file} and {other} judge different data (source): which change moved a score shows on the same subjects; give both one source"
        raise ConfigError(Problem(message, str(other), path="source"))
    changes = list(_differing(_scoring(ours), _scoring(theirs), ()))
    if not changes:
        raise ConfigError(f"{file} and {other} differ in nothing that changes a score: there is nothing to bisect")
    if gone := [str(path[0]) for path, value in changes if len(path) == 1 and value is None]:
        message = f"{other} has no section {gone[0]!r}, and a change can set a section but not take it out; name the changes with --factor"
        raise ConfigError(Problem(message, str(other), path=gone[0]))
    if Path(os.path.realpath(other)).parent != Path.cwd():
        message = f"relative paths in {other} are meant from its own folder: run dicast bisect there, or name the changes with --factor"
        raise ConfigError(Problem(message, str(other)))
    by_section, names = len(changes) > most, _names([path for path, _ in changes], ours)
    found: dict[str, list[str]] = {}
    for path, value in changes:
        name = _dotted(path[: 2 if path[0] == "define" else 1]) if by_section else names[path]
        found.setdefault(name, []).append(f"{_dotted(path)}={json.dumps(value, ensure_ascii=False)}")
    return found


def _scoring(sections: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in sections.items() if name not in BESIDE}


def _differing(ours: object, theirs: object, path: tuple[str | int, ...]) -> Iterator[Change]:
    """The smallest places that can be set, and differ: keys of mappings that both have alike, items of lists of one length."""
    if ours == theirs and type(ours) is type(theirs):
        return
    if isinstance(ours, Mapping) and isinstance(theirs, Mapping) and (not path or ours.keys() == theirs.keys()):
        for name in dict.fromkeys((*ours, *theirs)):
            yield from _differing(ours.get(name), theirs.get(name), (*path, str(name)))
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for place, (one, another) in enumerate(zip(ours, theirs, strict=True)):
            yield from _differing(one, another, (*path, place))
    else:
        yield path, theirs


def _names(paths: Sequence[tuple[str | int, ...]], sections: object) -> dict[tuple[str | int, ...], str]:
    """What each place is called: its path, with an item of a list by its label, as after --set; where two would be called alike, with its number."""
    short = {path: _dotted(_labelled(path, sections)) for path in paths}
    called = [*short.values()]
    return {path: name if called.count(name) == 1 else _dotted(path) for path, name in short.items()}


def _labelled(path: Sequence[str | int], value: object) -> list[str | int]:
    """*path* with the label of an item, where it has one, in place of its number and its component."""
    found: list[str | int] = []
    steps = iter(path)
    for step in steps:
        value = _at(value, step)
        label = _label(value) if isinstance(step, int) else None
        found.append(step if label is None else label)
        if label is not None and (component := next(steps, None)) is not None:
            value = _at(value, component)
    return found


def _at(value: Any, step: str | int) -> object:
    """What stands there; None where nothing does."""
    return value.get(step) if isinstance(value, Mapping) else value[int(step)] if isinstance(value, list) else None


def _label(item: Any) -> str | None:
    """The label that an item of a list gives itself with ``as``."""
    options = next(iter(item.values())) if isinstance(item, Mapping) and len(item) == 1 else None
    label = options.get("as") if isinstance(options, Mapping) else None
    return label if isinstance(label, str) else None


def _dotted(path: Sequence[str | int]) -> str:
    names = (str(one) if _PLAIN.fullmatch(str(one)) else json.dumps(str(one)) for one in path)
    return ".".join(names)
