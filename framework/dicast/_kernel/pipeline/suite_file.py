"""Experiments of a suite: one file, with variables and options for each experiment."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from ..classes import evolve, frozen
from ..values.errors import ConfigError, Problem
from ..values.names import nearest
from .overrides import SUITE, put
from .yaml_nodes import Node, dotted, kind

KEYS = ("variables", "set")
NAME_VARIABLE = "experiment"
"""Variable with the experiment's name."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_USED = re.compile(rf"\$\{{({_VARIABLE.pattern})")


@frozen
class Experiment:
    """One experiment of a suite. *variables* replace ``${NAME}`` before the environment; *changes* replace values, by path."""

    name: str
    variables: Mapping[str, str]
    changes: Mapping[str, Node]

    def apply_to(self, root: Node, problems: list[Problem]) -> Node:
        """Return the pipeline of this experiment of the suite *root*; errors are added to *problems*."""
        assert isinstance(root.value, dict)  # a pipeline is a mapping
        root = evolve(root, value={key: node for key, node in root.value.items() if key != SUITE})
        for path, node in self.changes.items():
            try:
                root = put(root, path, node)
            except ConfigError as error:
                at = (SUITE, self.name, "set", path)
                problems += [node.place.problem(problem.message, at, path, problem.hint) for problem in error.problems]
        return root


def experiments(root: Node, section: Node, problems: list[Problem]) -> dict[str, Experiment]:
    """Return the experiments in *section* of the suite *root*; errors are added to *problems*."""
    if not isinstance(section.value, dict) or not section.value:
        message = f"experiments is a mapping of names to {{variables: {{}}, set: {{}}}}, not {kind(section.value)}"
        problems.append(section.place.problem(message, (SUITE,)))
        return {}
    used = {name for text in root.texts() for name in _USED.findall(text)}
    return {name: _experiment(name, node, used, problems) for name, node in section.value.items()}


def _experiment(name: str, node: Node, used: Collection[str], problems: list[Problem]) -> Experiment:
    at = (SUITE, name)
    if not _NAME.fullmatch(name):
        message = f"the name {name!r} of an experiment may contain only letters, digits, '_', '-' and '.'"
        problems.append((node.key or node.place).problem(message, at, name))
    content = {} if node.value is None else node.value
    if not isinstance(content, dict) or not set(content) <= set(KEYS):
        unexpected = [key for key in content if key not in KEYS] if isinstance(content, dict) else [kind(content)]
        message = (
            f"an experiment has 'variables' (names with texts) and 'set' (paths with values), not {unexpected[0]!r}"
        )
        message += f"; write set: {{{unexpected[0]}: ...}}" if isinstance(content, dict) else ""
        problems.append(node.place.problem(message, at))
        content = content if isinstance(content, dict) else {}
    variables, changes = (_mapping(content.get(key), (*at, key), problems) for key in KEYS)
    return Experiment(name, {NAME_VARIABLE: name, **_texts(variables, (*at, KEYS[0]), used, problems)}, changes)


def _mapping(node: Node | None, at: tuple[str, ...], problems: list[Problem]) -> dict[str, Node]:
    if node is None or node.value is None:
        return {}
    if isinstance(node.value, dict):
        return node.value
    problems.append(node.place.problem(f"{dotted(at)} is a mapping, not {kind(node.value)}", at))
    return {}


def _texts(
    variables: Mapping[str, Node], at: tuple[str, ...], used: Collection[str], problems: list[Problem]
) -> dict[str, str]:
    texts = {}
    for name, node in variables.items():
        if not _VARIABLE.fullmatch(name) or name == NAME_VARIABLE:
            message = f"{name!r} is no valid name of a variable" + (
                "; it is the experiment's name" if name == NAME_VARIABLE else ""
            )
            problems.append((node.key or node.place).problem(message, (*at, name), name))
        elif name not in used:
            message = f"the pipeline does not use the variable {name}: it has no ${{{name}}}"
            problems.append((node.key or node.place).problem(message, (*at, name), name, nearest(name, used)))
        elif isinstance(node.value, str | int | float):
            value = node.value
            texts[name] = str(value).lower() if isinstance(value, bool) else str(value)
        else:
            message = f"a variable must be text or a number, not {kind(node.value)}"
            problems.append(node.place.problem(message, (*at, name)))
    return texts
