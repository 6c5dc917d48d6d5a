"""Values of ``--set`` that an experiment of the suite replaces."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..classes import frozen
from ..values.errors import ConfigError, Problem
from .overrides import FLAG, SUITE, override_form, put
from .suite_file import Experiment
from .yaml_nodes import Address, Node, dotted, to_data

KIND = "override_replaced"
"""Kind of the warning in the document of a run."""

_MOST = 3
"""The most experiments whose form of ``--set`` a message has."""


@frozen
class LostOverride:
    """The value at *address* of the pipeline, from ``--set``, that the experiment replaces by its value of the path *change*.

    *form* sets the value in the experiment: a shell word; None if no ``--set`` can.
    """

    address: Address
    change: str
    form: str | None


def lost_overrides(root: Node, experiment: Experiment) -> Iterator[LostOverride]:
    """Yield the values of ``--set`` in the suite *root* that *experiment* replaces by other values.

    A value of the experiment that is itself from ``--set`` replaces nothing, because the user set both.
    """
    for path, node in experiment.changes.items():
        if node.place.file == FLAG:
            continue
        try:
            changed = put(root, path, node)
        except ConfigError:  # the document of the experiment reports it
            continue
        start = _address(changed, node)
        for address, value in _overrides(root.find(start), start) if _has(root, start) else ():
            if not _has(changed, address) or to_data(changed.find(address)) != to_data(value):
                form = _form(root, (SUITE, experiment.name, "set", path, *map(str, address[len(start) :])), value)
                yield LostOverride(address, path, form)


def _address(root: Node, value: Node, path: Address = ()) -> Address:
    """Return the address of the node with the content and the place of *value*, which is below *root*; the root's without one."""
    return next((at for at, node in _walk(root, path) if node.value is value.value and node.place is value.place), path)


def _walk(node: Node, path: Address) -> Iterator[tuple[Address, Node]]:
    yield path, node
    for step, child in _children(node):
        yield from _walk(child, (*path, step))


def _children(node: Node) -> Iterator[tuple[str | int, Node]]:
    if isinstance(node.value, dict):
        yield from node.value.items()
    elif isinstance(node.value, list):
        yield from enumerate(node.value)


def _overrides(node: Node, path: Address) -> Iterator[tuple[Address, Node]]:
    """Yield the topmost values of ``--set`` in *node*, which is at *path*."""
    if node.place.file == FLAG:
        yield path, node
        return
    for step, child in _children(node):
        yield from _overrides(child, (*path, step))


def _has(root: Node, address: Address) -> bool:
    """Return whether *root* has a value at *address*."""
    return not address or any(step == address[-1] for step, _ in _children(root.find(address[:-1])))


def _form(root: Node, address: Address, value: Node) -> str | None:
    """Return ``--set PATH=VALUE`` with *value* at *address* for a shell; None if *root* has no such place."""
    try:
        put(root, dotted(address), value)
    except ConfigError:
        return None
    return override_form(address, value)


def check_overrides(
    root: Node, judged: Mapping[str, Experiment], experiment: str
) -> tuple[list[Problem], list[tuple[str, str]]]:
    """Return problems for values of ``--set`` that every experiment in *judged* replaces, and warnings for values that *experiment* replaces."""
    problems, warnings = [], []
    for lost in lost_overrides(root, judged[experiment]):
        losses = {name: _lost_at(root, item, lost.address) for name, item in judged.items()}
        replaced = {name: loss for name, loss in losses.items() if loss is not None}
        names = ", ".join(dotted((SUITE, name, "set", loss.change)) for name, loss in replaced.items())
        forms = [loss.form for loss in replaced.values() if loss.form is not None][:_MOST]
        fix = f"write {' '.join(forms)}" if forms else f"change {names} in the file"
        message = f"{names} replace{'s' * (len(replaced) == 1)} this value"
        if len(replaced) == len(judged):
            value = root.find(lost.address)
            text = f"{message}, so no run would use it; {fix}"
            problems.append(value.place.problem(text, lost.address, to_data(value)))
        else:
            text = f"{FLAG} {dotted(lost.address)}: {message}, so it has no effect on {', '.join(replaced)}; {fix}"
            warnings.append((KIND, text))
    return problems, warnings


def _lost_at(root: Node, experiment: Experiment, address: Address) -> LostOverride | None:
    """Return the value of ``--set`` at *address* that *experiment* replaces; None if it does not."""
    return next((lost for lost in lost_overrides(root, experiment) if lost.address == address), None)
