"""Values that replace values of the pipeline file: ``--set metrics.helpful.timeout=5``."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import attrs

from ...toolkit.yaml.reader import MAX_DEPTH, Composer
from ..contract.kinds import SLOT_KEYS
from ..contract.registry import Registry
from ..plan.sections import Scoring
from ..values.errors import ConfigError, PluginError, Problem
from ..values.names import nearest
from . import types as hints
from .clause import clause_keys
from .yaml_nodes import Address, Node, Place, dotted, from_data, kind, split, to_data

FLAG = "--set"
"""Text that messages show in place of a file for a value from an override."""

_UNREADABLE = ("not valid YAML: ", "a key must be text")
"""Starts of messages about a text that is probably no YAML, such as a template."""

ANOTHER = "+"
"""Index of a new item at the end of a list: ``--set 'sinks.+={csv/rows: {path: out.csv}}'``."""


_LISTS = ("metrics", "judges")
"""Sections whose items have options of their own, and labels."""

_GATE = "gate"
"""Section whose items are clauses, each about a label."""

SUITE = "experiments"
"""Section with the experiments of a suite."""

_SET = "set"
"""Key of an experiment with the paths that it changes."""

_SECTIONS = ("scoring", _GATE)
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
    _check_experiment(root, names, value)
    return _put(root, names, value)


def override_form(address: Address, value: Node) -> str:
    """Return ``--set PATH=VALUE``, quoted for a shell, with *value* at *address*."""
    return f"{FLAG} {shlex.quote(f'{dotted(address)}={json.dumps(to_data(value), ensure_ascii=False)}')}"


def _check_experiment(root: Node, names: Sequence[str], value: Node) -> None:
    """Refuse *names* below an experiment that the suite lacks, and several names below ``set`` without a key of it.

    :raises ConfigError: with the nearest experiment, or with the form of a key with dots.
    """
    section = root.value.get(SUITE) if names[0] == SUITE and len(names) > 2 and isinstance(root.value, dict) else None
    if section is None or not isinstance(section.value, dict):
        return
    if _known_key(section.value, names[1:]) is None:
        form = f"{FLAG} {shlex.quote(f'{dotted(tuple(names[:2]))}={{set: {{…}}}}')}"
        message = (
            f"the suite has no experiment {names[1]!r}; it has {', '.join(section.value)}; to add it, write {form}"
        )
        raise ConfigError(value.place.problem(message, hint=nearest(names[1], section.value)))
    if names[1] not in section.value or names[2] != _SET or len(names) < 5:
        return
    content = section.value[names[1]].value
    changes = content.get(_SET) if isinstance(content, dict) else None
    if changes is None or not isinstance(changes.value, dict) or _known_key(changes.value, names[3:]) is None:
        form = override_form((*names[:3], dotted(tuple(names[3:]))), value)
        message = f"{dotted(tuple(names[:3]))} has no key {names[3]!r}; a path is one key, in quotes: write {form}"
        raise ConfigError(value.place.problem(message))


def _known_key(members: Mapping[str, Node], names: Sequence[str]) -> str | None:
    """Return the key of *members* that is the first of *names*, or several of them with dots; None without one."""
    return next((key for end in range(1, len(names) + 1) if (key := ".".join(names[:end])) in members), None)


def _misplaced(root: Node, names: Sequence[str]) -> str | None:
    """Return the message for *names* of an option that is set at each metric or judge, such as ``scoring.pass_at.LABEL``; None for other names."""
    below = [*names[1:]] if names[0] in _SECTIONS else [*names]
    options = {key for field in hints.fields(Scoring) for key in hints.keys(field)} - {*SLOT_KEYS}
    if len(below) != 2 or below[0] in options or not {*SLOT_KEYS, *_SECTIONS} & {below[0], names[0]}:
        return None
    option, label = below if below[0] in SLOT_KEYS else reversed(below)
    if names[0] == _GATE and option in clause_keys():
        return None
    labels = [(section, label) for section in _LISTS for label in _labels(root, section, option)]
    written = dotted(tuple(names))
    paths = [dotted((section, label, option)) for section, name in labels if name == label]
    if paths:
        return f"{written} does not exist; {option} is set at each metric or judge: {' or '.join(paths)}"
    if option not in SLOT_KEYS or not labels:
        return None
    choices = ", ".join(dotted((section, name, option)) for section, name in labels)
    return f"{written} does not exist, and no metric or judge is called {label!r}; the pipeline has {choices}"


def _labels(root: Node, section: str, option: str) -> Iterator[str]:
    """Yield the labels of the items of *section* that have *option*."""
    items = root.value.get(section) if isinstance(root.value, dict) else None
    for item in items.value if items and isinstance(items.value, list) else ():
        if (label := _label(item)) and (option in SLOT_KEYS or _has_option(item, option)):
            yield label


def _has_option(item: Node, option: str) -> bool:
    """Return whether the component of *item* has *option*; False for a component that cannot be loaded, whose error is reported later."""
    try:
        component = Registry().find(item.component() or "", ("metric", "judge"))
    except PluginError:
        return False
    return option in {key for field in hints.fields(component.cls) for key in hints.keys(field)}


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
        index = _index(node.value, names, value.place, path)
        item = _put(node.value[index], names[1:], value, (*path, index))
        return attrs.evolve(node, value=[*node.value[:index], item, *node.value[index + 1 :]])
    members, names = _members(node, _in_clause(node, names, value.place, path), value.place, path)
    key = _known_key(members, names) or names[0]
    if key != names[0]:
        _put(members[key], names[key.count(".") + 1 :], value, (*path, key))  # the form is accepted
        form = override_form((*path, key, *names[key.count(".") + 1 :]), value)
        raise ConfigError(value.place.problem(f"{key} is one key of {dotted(path) or 'the pipeline'}; write {form}"))
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


def _in_clause(node: Node, names: Sequence[str], place: Place, path: Address) -> Sequence[str]:
    """Return *names* without the label of a clause, if *node* is the only clause of the gate and is about the label.

    :raises ConfigError: for another label.
    """
    if path[-1:] != (_GATE,) or len(names) < 2 or not isinstance(node.value, dict) or names[1] not in clause_keys():
        return names
    label, (name, option) = _clause_label(node), names[:2]
    if name == label:
        return names[1:]
    about = "without on" if label is None else f"about {label}"
    form = f"gate: [{{on: {label or 'LABEL'}, …}}, {{on: {name}, {option}: …}}]"
    message = f"{dotted((*path, name, option))} does not exist: the gate has one clause, {about}; write {dotted((*path, option))}, or a list of clauses in the file, {form}"
    raise ConfigError(place.problem(message))


def _index(items: list[Node], names: Sequence[str], place: Place, path: Address) -> int:
    """Return the position of the first of *names* in *items*: an index, a label (``as``, or ``on`` of a clause) or a component's name.

    Of several clauses about the label, the clause with the option is meant.
    """
    name = names[0]
    if name.isdecimal() and int(name) < len(items):
        return int(name)
    is_gate = path[-1:] == (_GATE,)
    texts = (
        [[_clause_label(item) for item in items]]
        if is_gate
        else [[_label(item) for item in items], [item.component() for item in items]]
    )
    for labels in texts:
        places = [index for index, label in enumerate(labels) if label == name]
        with_option = [index for index in places if is_gate and names[1:2] and _has_key(items[index], names[1])]
        if len(with_option or places) == 1:
            return (with_option or places)[0]
        if places:
            paths = ", ".join(dotted((*path, index)) for index in with_option or places)
            raise ConfigError(place.problem(f"{name!r} could be {paths}; use the index"))
    if is_gate and name in clause_keys():
        paths = " or ".join(_clause_paths(items, name, path))
        raise ConfigError(
            place.problem(
                f"{dotted((*path, name))} does not exist, because the gate has {len(items)} clauses; write {paths}"
            )
        )
    known = dict.fromkeys(label for item in items if (label := _clause_label(item) if is_gate else _label(item)))
    hint = nearest(name, known)
    choices = f"; it has {', '.join(known)}" if known else ""
    raise ConfigError(place.problem(f"{dotted(path)} has {len(items)} items, but no {name!r}{choices}", hint=hint))


def _clause_paths(items: list[Node], option: str, path: Address) -> Iterator[str]:
    """Yield the path of *option* in each clause that has it, else in each clause: by the label, if the label names the clause, and by the index."""
    having = [index for index, item in enumerate(items) if _has_key(item, option)]
    places = having or [*range(len(items))]
    labels = [_clause_label(items[index]) for index in places]
    for index, label in zip(places, labels, strict=True):
        is_unique = label is not None and labels.count(label) == 1 and not label.isdecimal()
        yield dotted((*path, str(label) if is_unique else index, option))


def _has_key(item: Node, key: str) -> bool:
    return isinstance(item.value, dict) and key in item.value


def _clause_label(item: Node) -> str | None:
    """Return the label of a clause of the gate, ``on``; None without one."""
    label = item.value.get("on") if isinstance(item.value, dict) else None
    return label.value if label is not None and isinstance(label.value, str) else None


def _label(item: Node) -> str | None:
    """Return an item's ``as``, or else its component's name."""
    if isinstance(item.value, str):
        return item.value
    if not isinstance(item.value, dict) or len(item.value) != 1:
        return None
    name, options = next(iter(item.value.items()))
    label = options.value.get("as") if isinstance(options.value, dict) else None
    return label.value if label and isinstance(label.value, str) else name
