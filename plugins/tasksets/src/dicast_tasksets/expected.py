"""The metric that compares an output with the expectations of its task."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import attrs
import orjson

from dicast import Failure, Score, Subject
from dicast.toolkit.json_values import MISSING, check_field, locate, read_json

from .patterns import occurs
from .reading import dotted
from .shape import is_number
from .tasks import EXPECTED

_MAX_SHOWN = 5


@attrs.frozen
class Expected:
    """The share of a task's expectations that its output meets; 0 if the output has a forbidden pattern.

    The expectations are in the context, under ``expected``, where ``tasksets/files`` puts them: ``fields`` by their place in the
    output, each with ``value``, ``type``, ``min``, ``max`` or ``pattern``; ``required_patterns`` and ``forbidden_patterns``, which
    are searched in the output's text. Patterns are regular expressions of RE2. Each expectation has the same share; ``signals`` has the result of
    each. ``pass_commands`` are not run here: ``signals.pass_commands`` counts them. A subject without expectations
    or without an output is a failure ``missing_input``.

    :param field: search this place in the output for the patterns, a dotted path (``steps.0.code``) or a JSON pointer
        (``/steps/0/code``); text is read as JSON to get there. Without it a text is searched as it is, and an object's strings, a
        line each. A missing field has no text.
    """

    name = "expected"
    tier = "truth"

    field: str | None = attrs.field(default=None, validator=check_field)

    def score(self, subject: Subject) -> Score | Failure:
        """Compare the output of *subject* with the expectations in its context."""
        expected: Any = subject.context.get("expected")
        faults = [] if expected is None else list(EXPECTED(expected, ("expected",)))
        if faults:
            place = dotted(("context", *faults[0].path))
            return Failure(
                "missing_input", f"the expectations of {subject.id!r} cannot be read: {faults[0].message} ({place})"
            )
        if not expected or not any(
            expected.get(name) for name in ("fields", "required_patterns", "forbidden_patterns")
        ):
            only = ", beside commands to run" if expected and expected.get("pass_commands") else ""
            return Failure("missing_input", f"nothing is expected of {subject.id!r}{only}")
        if subject.output is None:
            return Failure("missing_input", f"{subject.kind} {subject.id!r} has no output")
        return _score(expected, subject.output, self._text(subject))

    def _text(self, subject: Subject) -> str:
        return _texts(subject.output if self.field is None else locate(subject.output, self.field))


def _score(expected: Mapping[str, Any], output: object, text: str) -> Score:
    holds = dict(_fields(expected.get("fields") or {}, _parsed(output)))
    holds |= {f"required[{i}]": occurs(p, text) for i, p in enumerate(expected.get("required_patterns") or ())}
    forbidden = {f"forbidden[{i}]": not occurs(p, text) for i, p in enumerate(expected.get("forbidden_patterns") or ())}
    signals: dict[str, object] = {**holds, **forbidden}
    if expected.get("pass_commands"):
        signals["pass_commands"] = len(expected["pass_commands"])
    wrong = [name for name, good in (holds | forbidden).items() if not good]
    if not wrong:
        return Score(1.0, signals=signals)
    value = sum(holds.values()) / len(holds) if all(forbidden.values()) else 0.0
    rest = f" and {len(wrong) - _MAX_SHOWN} more" if len(wrong) > _MAX_SHOWN else ""
    return Score(value, details=f"not as expected: {', '.join(wrong[:_MAX_SHOWN])}{rest}", signals=signals)


def _fields(fields: Mapping[str, Any], output: object) -> Iterator[tuple[str, bool]]:
    for name, field_conditions in fields.items():
        value = locate(output, name) if name else MISSING
        conditions = {condition: limit for condition, limit in field_conditions.items() if limit is not None}
        for condition, limit in (conditions or {"value": None}).items():
            yield f"fields.{name}.{condition}", value is not MISSING and _CONDITIONS[condition](value, limit)


def _parsed(output: object) -> object:
    """Return the JSON value of a text, once for all fields; any other output is unchanged."""
    try:
        return read_json(output) if isinstance(output, str) else output
    except orjson.JSONDecodeError:
        return output


def _equal(value: object, expected: object) -> bool:
    """Return True if two JSON values are equal. In JSON, unlike in Python, true is not 1."""
    pairs = [(value, expected)]
    while pairs:
        left, right = pairs.pop()
        if isinstance(left, Mapping) and isinstance(right, Mapping) and left.keys() == right.keys():
            pairs += [(left[key], right[key]) for key in left]
        elif isinstance(left, list | tuple) and isinstance(right, list | tuple) and len(left) == len(right):
            pairs += zip(left, right, strict=True)
        elif isinstance(left, bool) is not isinstance(right, bool) or left != right:
            return False
    return True


_IS: Mapping[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "number": is_number,
    "integer": lambda value: is_number(value) and value == int(value),
    "boolean": lambda value: isinstance(value, bool),
    "array": lambda value: isinstance(value, list | tuple),
    "object": lambda value: isinstance(value, Mapping),
    "null": lambda value: value is None,
}

_CONDITIONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "value": _equal,
    "type": lambda value, name: _IS[name](value),
    "expected_type": lambda value, name: _IS[name](value),
    "min": lambda value, least: is_number(value) and value >= least,
    "max": lambda value, most: is_number(value) and value <= most,
    "pattern": lambda value, pattern: isinstance(value, str) and occurs(pattern, value),
}


def _texts(value: object) -> str:
    """Return the strings of *value*, a line each: the value, every string inside it, other scalars as JSON. Any depth of nesting works."""
    if isinstance(value, str):
        return value
    texts: list[str] = []
    left: list[object] = [] if value is MISSING else [value]
    while left:
        item = left.pop()
        if isinstance(item, Mapping | list | tuple):
            left.extend(reversed([*(item.values() if isinstance(item, Mapping) else item)]))
        elif item is not None:
            item = item.decode(errors="replace") if isinstance(item, bytes) else item
            texts.append(item if isinstance(item, str) else json.dumps(item, default=repr))
    return "\n".join(texts)
