"""Values that replace values of the pipeline file: ``--set metrics.helpful.timeout=5``."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from ...toolkit.yaml.reader import MAX_DEPTH, Composer
from ..contract.kinds import SLOT_KEYS
from ..plan.sections import Scoring
from ..values.errors import ConfigError, Problem
from ..values.names import nearest
from . import types as hints
from .yaml_nodes import Address, Node, Place, dotted, from_data, kind, split

FLAG = "--set"
"""Text that messages show in place of a file for a value from an override."""

_UNREADABLE = ("not valid YAML: ", "a key must be text")
"""Starts of messages about a text that is probably no YAML, such as a template."""

ANOTHER = "+"
"""Index of a new item at the end of a list: ``--set 'sinks.+={csv/rows: {path: out.csv}}'``."""


_LISTS = ("metrics", "judges")
"""Sections whose items have options of their own, and labels."""

_SECTIONS = ("scoring", "gate")
"""Sections about all labels, below which an option of one label is written by mistake."""


def apply(root: Node, overrides: Mapping[str, object] | Sequence[str], problems: list[Problem]) -> Node:
    """Return *root* with all *overrides* in place; a later override wins. Errors are added to *problems*."""
    place = Place(FLAG, None, None, Path.cwd())
    for path, new_value in _pairs(overrides, place, problems):
        errors: list[Problem] = []
        try:
            value = (
                from_data(new_value, place)
                if isinstance(overrides, Mapping)
                else _parsed(path, new_value, place, errors)
            )
            root = put(root, path, value)
        except ConfigError as error:
            errors.extend(error.problems)
        problems.extend(attrs.evolve(problem, path=path, value=new_value) for problem in errors)
    return root


def put(root: Node, path: str, value: Node) -> Node:
    """Return *root* with *value* at the dotted *path*.

    :raises ConfigError: when there is no such place.
    """
    names = _names(path, value.place)
    if (message := _misplaced(root, names)) is not None:
        raise ConfigError(value.place.problem(message))
    return _put(root, names, value)


def _misplaced(root: Node, names: Sequence[str]) -> str | None:
    """Return the message for *names* of an option that is set at each metric or judge, such as ``scoring.pass_at.LABEL``; None for other names."""
    below = [*names[1:]] if names[0] in _SECTIONS else [*names]
    options = {key for field in hints.fields(Scoring) for key in hints.keys(field)} - {*SLOT_KEYS}
    if len(below) != 2 or below[0] in options or not {*SLOT_KEYS, *_SECTIONS} & {below[0], names[0]}:
        return None
    option, label = below if below[0] in SLOT_KEYS else reversed(below)
    labels = [(section, label) for section in _LISTS for label in _labels(root, section)]
    written = dotted(tuple(names))
    paths = [dotted((section, label, option)) for section, name in labels if name == label]
    if paths:
        return f"{written} does not exist; {option} is set at each metric or judge: {' or '.join(paths)}"
    if option not in SLOT_KEYS or not labels:
        return None
    choices = ", ".join(dotted((section, name, option)) for section, name in labels)
    return f"{written} does not exist, and no metric or judge is called {label!r}; the pipeline has {choices}"


def _labels(root: Node, section: str) -> list[str]:
    items = root.value.get(section) if isinstance(root.value, dict) else None
    return [
        label for item in (items.value if items and isinstance(items.value, list) else ()) if (label := _label(item))
    ]


def _pairs(
    overrides: Mapping[str, object] | Sequence[str], place: Place, problems: list[Problem]
) -> Iterator[tuple[str, object]]:
    if isinstance(overrides, Mapping):
        yield from overrides.items()
        return
    for text in overrides:
        path, equals, value = text.partition("=")
        if equals:
            yield path.strip(), value
        else:
            message = f"{text!r} has no '='; write PATH=VALUE, as scoring.threshold=0.7"
            problems.append(place.problem(message, value=text))


def _parsed(path: str, text: object, place: Place, problems: list[Problem]) -> Node:
    """Return *text* as YAML. A text that is no YAML is a problem with the form in which the text is a value.

    :raises ConfigError: if nothing can be read.
    """
    errors: list[Problem] = []
    try:
        node = Composer(place, errors).compose(str(text))
    except ConfigError as error:
        raise ConfigError([_as_text(problem, path, str(text)) for problem in error.problems]) from error
    problems.extend(_as_text(problem, path, str(text)) for problem in errors)
    return node


def _as_text(problem: Problem, path: str, text: str) -> Problem:
    """Return *problem*, with the form in which *text* is the text at *path* if YAML cannot read it."""
    if not problem.message.startswith(_UNREADABLE):
        return problem
    reason = problem.message.removeprefix(_UNREADABLE[0]).partition("; ")[0]
    form = shlex.quote(f"{path}={json.dumps(text, ensure_ascii=False)}")
    return attrs.evolve(
        problem, message=f"{text!r:.100} is not valid YAML: {reason}; if it is text, write --set {form}"
    )


def _names(path: str, place: Place) -> tuple[str, ...]:
    try:
        names = split(path)
    except ValueError as error:
        message = f"cannot read the path {path!r}: write it as metrics[1].proxy/format.field"
        raise ConfigError(place.problem(message)) from error
    if len(names) > MAX_DEPTH:
        raise ConfigError(place.problem(f"the path has {len(names):,} names: nested deeper than {MAX_DEPTH} levels"))
    if names[0] == "include":
        raise ConfigError(place.problem("include cannot be set by an override; write it in the pipeline file"))
    return names


def _put(node: Node, names: Sequence[str], value: Node, path: Address = ()) -> Node:
    """Return *node* with *value* at *names* below it; *path* is the path of *node* itself."""
    if not names:
        return attrs.evolve(value, key=node.key)
    if names[0] == ANOTHER and (node.value is None or isinstance(node.value, list)):
        new_item = _put(Node(None, value.place, value.place), names[1:], value, (*path, ANOTHER))
        return attrs.evolve(node, value=[*(node.value or ()), new_item])
    if isinstance(node.value, list):
        index = _index(node.value, names[0], value.place, path)
        item = _put(node.value[index], names[1:], value, (*path, index))
        return attrs.evolve(node, value=[*node.value[:index], item, *node.value[index + 1 :]])
    members, names = _members(node, names, value.place, path)
    child = members.get(names[0], Node(None, value.place, value.place))
    return attrs.evolve(node, value={**members, names[0]: _put(child, names[1:], value, (*path, names[0]))})


def _members(node: Node, names: Sequence[str], place: Place, path: Address) -> tuple[dict[str, Node], Sequence[str]]:
    """Return the content of *node* as a mapping, and *names* with the component's name if the user left it out."""
    component = node.component()
    if component and names[0] != component:
        if "/" in names[0]:
            example = f"{dotted(path)}={{{names[0]}: {{}}}}"
            message = f"{dotted(path)} is {component}, not {names[0]}; to replace it, write all of it: {example}"
            raise ConfigError(place.problem(message))
        names = (component, *names)
    if component and isinstance(node.value, str):
        return {component: Node(None, node.place, node.place)}, names
    if isinstance(node.value, dict):
        return node.value, names
    if node.value is None:
        return {}, names
    raise ConfigError(place.problem(f"{dotted(path)} is {kind(node.value)}: {node.value!r} has no {names[0]!r}"))


def _index(items: list[Node], name: str, place: Place, path: Address) -> int:
    """Return the position of the item *name*: its index, its label (``as``) or its component's name."""
    if name.isdecimal() and int(name) < len(items):
        return int(name)
    for names in ([_label(item) for item in items], [item.component() for item in items]):
        if names.count(name) > 1:
            places = ", ".join(dotted((*path, index)) for index, other in enumerate(names) if other == name)
            raise ConfigError(place.problem(f"{name!r} could be {places}; use the index"))
        if name in names:
            return names.index(name)
    labels = [label for item in items if (label := _label(item))]
    hint = nearest(name, labels)
    choices = f"; it has {', '.join(labels)}" if labels else ""
    raise ConfigError(place.problem(f"{dotted(path)} has {len(items)} items, but no {name!r}{choices}", hint=hint))


def _label(item: Node) -> str | None:
    """Return an item's ``as``, or else its component's name."""
    if isinstance(item.value, str):
        return item.value
    if not isinstance(item.value, dict) or len(item.value) != 1:
        return None
    name, options = next(iter(item.value.items()))
    label = options.value.get("as") if isinstance(options.value, dict) else None
    return label.value if label and isinstance(label.value, str) else name
