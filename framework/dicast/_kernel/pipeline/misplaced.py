"""Advice for an option that is written among the sections of a file."""

from __future__ import annotations

from collections.abc import Mapping

from ..plan.sections import Budget, Scoring, Slot, SlotOptions, SourceOptions
from . import types as hints
from .clause import clause_keys

_SECTIONS: Mapping[str, type] = {"scoring": Scoring, "budget": Budget}
_SLOT_CLASSES: Mapping[str, type] = {"a metric or a judge": SlotOptions, "the source": SourceOptions}
_LONGEST = 40


def right_place(key: str, value: object, executor: Slot | None) -> str | None:
    """Return advice where to write *key* with its *value*; None if *key* is no option of *executor*, of a section or of a slot."""
    text = f"{key}: {_written(value)}"
    if executor is not None and key in _options(type(executor.component)):
        return f"write it as executor: {{{executor.name}: {{{text}}}}}"
    for section, cls in _SECTIONS.items():
        if key in _options(cls):
            return f"write it as {section}: {{{text}}}"
    if key in clause_keys():
        return f"write it as gate: {{{text}}}"
    for owner, cls in _SLOT_CLASSES.items():
        if key in _options(cls):
            return f"write it among the options of {owner}, as in NAME: {{{text}}}"
    return None


def _options(cls: type) -> set[str]:
    return {key for field in hints.fields(cls) for key in hints.keys(field)}


def _written(value: object) -> str:
    """Return *value* as the file has it, if it is short and scalar."""
    text = (
        {None: "null", True: "true", False: "false"}[value] if value is None or isinstance(value, bool) else str(value)
    )
    return "…" if isinstance(value, Mapping | list) or len(text) > _LONGEST else text
