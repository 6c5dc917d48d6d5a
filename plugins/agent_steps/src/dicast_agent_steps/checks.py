"""Results of checks, the score of several checks, and checks that several metrics share."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import fsum

import attrs

from dicast import Score

from .values import shorten

_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_DIGITS = 64


@attrs.frozen
class Check:
    """Result of a check. *weight* is its share of the score; *problem* is empty if the check's name is explanation enough."""

    name: str
    weight: float
    passed: bool
    problem: str = ""

    @classmethod
    def of(cls, name: str, weight: float, problem: str | None) -> Check:
        """Return the result of a check with *problem*; a check without a problem passed."""
        return cls(name, weight, problem is None, problem or "")


def grade(checks: Sequence[Check], unread: str = "") -> Score:
    """Return the sum of the weights of the passed checks, with each result in the signals.

    *unread* is the reason why the checks could not read their input.
    """
    value = fsum(check.weight for check in checks if check.passed)
    return Score(value, details=unread or problems(checks), signals=results(checks))


def problems(checks: Sequence[Check]) -> str:
    """Return the distinct problems of *checks* in one line."""
    return "; ".join(dict.fromkeys(check.problem for check in checks if check.problem))


def results(checks: Sequence[Check]) -> dict[str, object]:
    """Return for each name of a check whether it passed."""
    return {check.name: check.passed for check in checks}


def truth_value_problem(values: Mapping[str, object], name: str) -> str | None:
    """Return the reason why the value of *name* is not a boolean, else None. "true" and "false" count, in any case."""
    value = values.get(name)
    if isinstance(value, bool) or (isinstance(value, str) and value[:6].lower() in {"true", "false"}):
        return None
    return absent(values, name) or f"{name} is {shorten(value)}, not true or false"


def text_problem(values: Mapping[str, object], name: str, least: int) -> str | None:
    """Return the reason why the value of *name* is not text of at least *least* bytes of UTF-8 without surrounding blanks."""
    value = values.get(name)
    if not isinstance(value, str):
        return absent(values, name) or f"{name} is {shorten(value)}, not text"
    # A character has at least one byte, so the first *least* characters suffice.
    size = len(value.strip()[:least].encode("utf-8", "surrogatepass"))
    return None if size >= least else f"{name} has {size} bytes, fewer than {least}"


def fraction_problem(values: Mapping[str, object], name: str) -> str | None:
    """Return the reason why the value of *name* is not a number in [0, 1] or the text of such a number, else None."""
    value = values.get(name)
    number = _number(value)
    if number is not None and 0 <= number <= 1:
        return None
    return absent(values, name) or f"{name} is {shorten(value)}, not a number from 0 to 1"


def absent(values: Mapping[str, object], name: str) -> str | None:
    """Return a message if *name* is missing, else None."""
    return None if name in values else f"{name} is missing"


def _number(value: object) -> float | None:
    if isinstance(value, str):
        return float(value) if len(value) <= _DIGITS and _NUMBER.fullmatch(value) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
