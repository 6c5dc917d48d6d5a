"""Problems of a pipeline file with their places, as one error."""

from __future__ import annotations

import re
from collections.abc import Container, Sequence

from ...toolkit.installing import with_one_command
from ...toolkit.json_values import MISSING
from ..classes import evolve
from ..contract.kinds import parts
from ..values.errors import ConfigError, PluginError, Problem
from .faults import Fault, visible_steps
from .read import Document, dotted


def refusal(document: Document, faults: Sequence[Fault]) -> ConfigError | PluginError:
    """Return the error with all *faults* and the document's own problems, in the order of the file."""
    unread = {problem.path for problem in document.problems}
    fault_problems = [_problem(document, fault) for fault in faults if not _follows(fault, unread)]
    problems = list({str(problem): problem for problem in (*document.problems, *fault_problems)}.values())
    problems.sort(
        key=lambda problem: (problem.file != document.file, problem.file or "", problem.line or 0, problem.column or 0)
    )
    problems = _with_one_command(problems)
    plugins = not document.problems and all(fault.plugin for fault in faults)
    return (PluginError if plugins else ConfigError)(problems)


def _with_one_command(problems: list[Problem]) -> list[Problem]:
    """Return *problems* with one last problem that installs all missing extras, if there are several."""
    messages, command = with_one_command([problem.message for problem in problems])
    if command is None:
        return problems
    shorter = [evolve(problem, message=message) for problem, message in zip(problems, messages, strict=True)]
    return [*shorter, Problem(f"to install the missing extras: {command}")]


def _follows(fault: Fault, unread: Container[str | None]) -> bool:
    """Return True if *fault* only results from a value at one of the paths *unread* that could not be read."""
    above = (dotted(fault.path[:end]) for end in range(1, len(fault.path) + 1))
    return any(path in unread for path in above) or any(part is MISSING for part in parts(fault.value))


def _problem(document: Document, fault: Fault) -> Problem:
    path = fault.path if fault.key is None else (*fault.path, fault.key)
    place = document.place(path, key=fault.key is not None)
    return Problem(
        fault.message + _empty_variables(document, fault),
        place.file,
        place.line,
        place.column,
        dotted(visible_steps(fault.path)) or None,
        fault.value,
        fault.hint,
    )


def _empty_variables(document: Document, fault: Fault) -> str:
    """Return the names of the empty variables in the value of *fault*, or in the options of the value that its message names."""
    size = len(fault.path)
    names = dict.fromkeys(
        name
        for path, variables in document.empty.items()
        if path[:size] == fault.path
        and (len(path) == size or re.search(rf"\b{re.escape(str(path[-1]))}\b", fault.message))
        for name in variables
    )
    if not names:
        return ""
    return f"; the environment variable{'s' * (len(names) > 1)} {', '.join(names)} {'is' if len(names) == 1 else 'are'} empty"
