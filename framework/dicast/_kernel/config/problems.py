"""What is wrong with a pipeline file, with the places where it is."""

from __future__ import annotations

from collections.abc import Sequence

from ..converter import Fault, shown
from ..errors import ConfigError, PluginError, Problem
from .reader import Document, dotted


def refusal(document: Document, faults: Sequence[Fault]) -> ConfigError | PluginError:
    """The error that names everything in *faults*, in the order of the file."""
    problems = list({str(problem): problem for problem in (_problem(document, fault) for fault in faults)}.values())
    problems.sort(
        key=lambda problem: (problem.file != document.file, problem.file or "", problem.line or 0, problem.column or 0)
    )
    return (PluginError if all(fault.plugin for fault in faults) else ConfigError)(problems)


def _problem(document: Document, fault: Fault) -> Problem:
    path = fault.path if fault.key is None else (*fault.path, fault.key)
    place = document.place(path, key=fault.key is not None)
    return Problem(
        fault.message, place.file, place.line, place.column, dotted(shown(fault.path)) or None, fault.value, fault.hint
    )
