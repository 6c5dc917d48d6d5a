"""The output and its reference: how both are read, and how they are shown."""

from __future__ import annotations

import json
from collections.abc import Sequence

from dicast import Failure, Score, Subject
from dicast.toolkit.json_values import MISSING, locate
from dicast.toolkit.references import missing_reference

_MAX_SHOWN = 60
_LISTED = 10


def judged(subject: Subject, field: str | None) -> object:
    """Return the output of *subject*, or its *field*; a Score of 0 if it is missing, a Failure if it is no JSON value."""
    output = subject.output if field is None else locate(subject.output, field)
    if output is MISSING:
        missing = f"the output has no field {field!r}"
        return Score(0.0, details=missing, feedback=f"Give the field {field!r}.", signals={"found": False})
    if output is None:
        return Score(0.0, details="there is no output", feedback="Give an output.", signals={"found": False})
    place = "output" if field is None else f"output's field {field!r}"
    return _fault(output, f"the {place} of {subject.id!r}") or output


def reference(subject: Subject, metric: str) -> object:
    """Return the reference that *metric* compares with the output of *subject*; a Failure without a reference."""
    if (missing := missing_reference(subject, metric)) is not None:
        return missing
    return _fault(subject.reference, f"the reference of {subject.id!r}") or subject.reference


def parsed(value: object) -> object:
    """Return *value*; the text of an object or list is read as JSON."""
    if not isinstance(value, str) or not value.lstrip().startswith(("{", "[")):
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):  # too deep is no list either
        return value


def text(value: object) -> str:
    """*value* as text: a text as it is, any other as JSON with sorted keys; whole numbers are written alike (7.0 as 7)."""
    if isinstance(value, str):
        return value
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if type(value) is int:
        return str(value)  # lists may have millions of them
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def cut(value: object, most: int = _MAX_SHOWN) -> str:
    """*value* as text that is short, and can be written."""
    full = text(value)
    short = full if len(full) <= most else f"{full[:most]}…"
    return short.encode("utf-8", "backslashreplace").decode()  # a lone surrogate cannot


def shorten(value: object) -> str:
    """*value* for a reader: short, quoted, on one line."""
    return repr(cut(value))


def listed(values: Sequence[object]) -> str:
    """Return the first of *values*, for a reader."""
    rest = f" and {len(values) - _LISTED:,} more" if len(values) > _LISTED else ""
    return f"{', '.join(map(shorten, values[:_LISTED]))}{rest}"


def _fault(value: object, place: str) -> Failure | None:
    """Return a Failure if *value* at *place* is no JSON value, which is possible only for a subject made in Python."""
    if isinstance(value, str | float | bool):
        return None
    try:
        json.dumps(value, sort_keys=True)
    except (TypeError, ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        return Failure("missing_input", f"{place} is no JSON value: {why}")
    return None
