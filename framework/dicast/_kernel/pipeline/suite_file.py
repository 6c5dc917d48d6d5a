"""A suite: one file, several experiments, each of them the file with variables and options of its own."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from ..classes import evolve, frozen
from ..values.errors import ConfigError, Problem
from ..values.names import nearest
from .overrides import put
from .yaml_nodes import Node, dotted, kind

SECTION = "experiments"
KEYS = ("variables", "set")
OWN = "experiment"
"""The variable that names the experiment."""

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_USED = re.compile(rf"\$\{{({_VARIABLE.pattern})")


@frozen
class Experiment:
    """One of a suite: *variables* take the place of ``${NAME}`` before the environment's, *changes* that of values, by path."""

    name: str
    variables: Mapping[str, str]
    changes: Mapping[str, Node]

    def laid_on(self, root: Node, problems: list[Problem]) -> Node:
        """The pipeline of this experiment, whose suite is *root*; what is wrong is added to *problems*."""
        assert isinstance(root.value, dict)  # a pipeline is a mapping
        root = evolve(root, value={key: node for key, node in root.value.items() if key != SECTION})
        for path, node in self.changes.items():
            try:
                root = put(root, path, node)
            except ConfigError as error:
                at = (SECTION, self.name, "set", path)
                problems += [node.place.problem(found.message, at, path, found.hint) for found in error.problems]
        return root


def experiments(root: Node, section: Node, problems: list[Problem]) -> dict[str, Experiment]:
    """The experiments that *section* of the suite *root* names; what is wrong is added to *problems*."""
    if not isinstance(section.value, dict) or not section.value:
        message = f"experiments is a mapping of names to {{variables: {{}}, set: {{}}}}, not {kind(section.value)}"
        problems.append(section.place.problem(message, (SECTION,)))
        return {}
    used = {name for text in root.texts() for name in _USED.findall(text)}
    return {name: _experiment(name, node, used, problems) for name, node in section.value.items()}


def _experiment(name: str, node: Node, used: Collection[str], problems: list[Problem]) -> Experiment:
    at = (SECTION, name)
    if not _NAME.fullmatch(name):
        message = f"the name {name!r} of an experiment has other characters than letters, digits, '_', '-' and '.'"
        problems.append((node.key or node.place).problem(message, at, name))
    given = {} if node.value is None else node.value
    if not isinstance(given, dict) or not set(given) <= set(KEYS):
        wrong = [key for key in given if key not in KEYS] if isinstance(given, dict) else [kind(given)]
        message = f"an experiment has 'variables' (names with texts) and 'set' (paths with values), not {wrong[0]!r}"
        problems.append(node.place.problem(message, at))
        given = given if isinstance(given, dict) else {}
    variables, changes = (_mapping(given.get(key), (*at, key), problems) for key in KEYS)
    return Experiment(name, {OWN: name, **_texts(variables, (*at, KEYS[0]), used, problems)}, changes)


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
        if not _VARIABLE.fullmatch(name) or name == OWN:
            message = f"{name!r} is no name for a variable" + ("; it names the experiment" if name == OWN else "")
            problems.append((node.key or node.place).problem(message, (*at, name), name))
        elif name not in used:
            message = f"nothing in the pipeline uses the variable {name}: no ${{{name}}} is there"
            problems.append((node.key or node.place).problem(message, (*at, name), name, nearest(name, used)))
        elif isinstance(node.value, str | int | float):
            value = node.value
            texts[name] = str(value).lower() if isinstance(value, bool) else str(value)
        else:
            message = f"a variable is a text or a number, not {kind(node.value)}"
            problems.append(node.place.problem(message, (*at, name)))
    return texts
