"""Messages about keys that a file, a section or a component does not have."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping

from ..contract.kinds import SLOT_KEYS, Component
from ..plan.sections import Budget, Scoring, Slot, SlotOptions, SourceOptions
from . import types as hints

_SECTIONS: Mapping[str, type] = {"scoring": Scoring, "budget": Budget}
_SLOT_CLASSES: Mapping[str, type] = {"a metric or a judge": SlotOptions, "the source": SourceOptions}
_LONGEST = 40


def unknown_option(key: str, owner: str, options: Iterable[str] = ()) -> str:
    """Return the message that *owner* has no option *key*, with its *options* to choose from."""
    if key in SLOT_KEYS:
        advice = "; it belongs to the outermost judge or metric"
    else:
        advice = f"; the options are {', '.join(options)}" if options else ""
    return f"unknown option {key!r} of {owner}{advice}"


def right_place(key: str, value: object, executor: Slot | None, clause_keys: Container[str]) -> str | None:
    """Return advice where to write *key* with its *value*.

    Return None if *key* is no option of *executor*, of a section or of a slot, and not among the *clause_keys* of the gate.
    """
    text = f"{key}: {_written(value)}"
    if executor is not None and key in _options(type(executor.component)):
        return f"write it as executor: {{{executor.name}: {{{text}}}}}"
    for section, cls in _SECTIONS.items():
        if key in _options(cls):
            return f"write it as {section}: {{{text}}}"
    if key in clause_keys:
        return f"write it as gate: {{{text}}}"
    for owner, cls in _SLOT_CLASSES.items():
        if key in _options(cls):
            return f"write it among the options of {owner}, as in NAME: {{{text}}}"
    return None


def place_of_options(
    section: str, options: Mapping[str, object], offered: Iterable[Component], default: str
) -> tuple[str, str]:
    """Return *options* as the file has them in *section*, and the first of them as after ``--set``.

    Their component is the first of *offered* that has them, else *default*.
    """
    names = [component.name for component in offered if {*options} <= _options(component.cls)]
    name = default if not options or default in names or not names else names[0]
    texts = [f"{key}: {_written(value)}" for key, value in options.items()] or ["OPTION: VALUE"]
    path = texts[0].replace(": ", "=", 1)
    return f"{section}: {{{name}: {{{', '.join(texts)}}}}}", f"{section}.{name}.{path}"


def _options(cls: type) -> set[str]:
    return {key for field in hints.fields(cls) for key in hints.keys(field)}


def _written(value: object) -> str:
    """Return *value* as the file has it, if it is short and scalar."""
    text = (
        {None: "null", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else str(value)
    )
    return "…" if isinstance(value, Mapping | list) or len(text) > _LONGEST else text
