"""Rules to compare the arguments of two calls."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from typing import Any, Literal, get_args

import attrs

from dicast.toolkit.json_values import MISSING

from .calls import UNKNOWN, Call

Scope = Literal["exact", "subset", "ignore"]
Rule = Literal["exact", "ignore", "numeric", "regex", "similarity"]
RULES: tuple[Rule, ...] = get_args(Rule)


class UnusableReference(ValueError):
    """A reference call that cannot be compared under its rule."""


@attrs.frozen
class ArgumentRules:
    """Rules to compare arguments.

    *scope* is one rule for all arguments, or a rule for each named field; other fields are compared exactly. Two numbers are equal
    within the relative tolerance *rel_tol*, two texts with a similarity of *min_similarity* or more.
    """

    scope: Scope | Mapping[str, Rule]
    rel_tol: float
    min_similarity: float

    def equal(self, call: Call, reference: Call) -> bool:
        """Return whether *call* equals *reference* under the rules.

        :raises UnusableReference: if the rule of a field does not fit the reference's value.
        """
        return call.name == reference.name and not self.differences(call.arguments, reference.arguments)

    def differences(self, arguments: Any, expected: Any) -> list[str]:
        """Return the difference of each field of *arguments*, in words; a reference with :data:`UNKNOWN` arguments fits any."""
        if self.scope == "ignore" or expected is UNKNOWN:
            return []
        if not isinstance(arguments, Mapping) or not isinstance(expected, Mapping):
            is_equal = equal_json(arguments, expected)
            return [] if is_equal else [f"arguments {_short(arguments)}, not {_short(expected)}"]
        if self.scope == "subset":
            return _lacking(arguments, expected, "")
        rules: Mapping[str, Rule] = self.scope if isinstance(self.scope, Mapping) else {}
        differences = []
        for field in dict.fromkeys((*expected, *arguments)):
            value, required, rule = (
                arguments.get(field, MISSING),
                expected.get(field, MISSING),
                rules.get(field, "exact"),
            )
            if not self._is_equal(value, required, rule, field):
                differences.append(_difference(field, value, required))
        return differences

    def _is_equal(self, value: Any, expected: Any, rule: Rule, field: str) -> bool:
        if rule == "ignore":
            return True
        if value is MISSING or expected is MISSING:
            return False
        match rule:
            case "exact":
                return equal_json(value, expected)
            case "numeric":
                number, required = _number(value), _number(expected)
                if required is None:
                    raise UnusableReference(
                        f"{field} is compared as a number, and the reference has {_short(expected)}"
                    )
                return number is not None and math.isclose(number, required, rel_tol=self.rel_tol)
            case "regex":
                return (
                    _expression(expected, field).search(value if isinstance(value, str) else _json(value)) is not None
                )
            case "similarity":
                if not isinstance(expected, str):
                    raise UnusableReference(
                        f"{field} is compared by similarity, and the reference has {_short(expected)}"
                    )
                return isinstance(value, str) and similarity(value, expected) >= self.min_similarity


def equal_json(first: Any, second: Any) -> bool:
    """Return whether two JSON values are equal. 1 equals 1.0, but not true."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(equal_json(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(equal_json, first, second))
    return bool(first == second)


def similarity(first: str, second: str) -> float:
    """Return the similarity of two texts by Ratcliff and Obershelp, from 0 to 1, without regard to white space and case."""
    first, second = (" ".join(text.split()).casefold() for text in (first, second))
    return SequenceMatcher(None, first, second, autojunk=False).ratio()


def _lacking(arguments: Any, expected: Any, path: str) -> list[str]:
    """Return the parts of *expected* that *arguments* lacks. Objects may have more keys; other values must be equal."""
    if isinstance(expected, Mapping) and isinstance(arguments, Mapping):
        return [
            line
            for key, value in expected.items()
            for line in _lacking(arguments.get(key, MISSING), value, f"{path}.{key}" if path else key)
        ]
    return (
        [] if arguments is not MISSING and equal_json(arguments, expected) else [_difference(path, arguments, expected)]
    )


def _difference(field: str, value: Any, expected: Any) -> str:
    if value is MISSING:
        return f"{field} is missing"
    return f"{field} {_short(value)}" + (" is extra" if expected is MISSING else f", not {_short(expected)}")


def _expression(pattern: object, field: str) -> re.Pattern[str]:
    if not isinstance(pattern, str):
        raise UnusableReference(f"{field} is compared by a regular expression, and the reference has {_short(pattern)}")
    try:
        return re.compile(pattern)
    except re.error as error:
        raise UnusableReference(f"{field}: {_short(pattern)} is no regular expression: {error}") from error


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _json(value: object) -> str:
    import orjson  # rarely needed: most values under a regular expression are texts

    return orjson.dumps(value).decode()


def _short(value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        value = list(value)
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
