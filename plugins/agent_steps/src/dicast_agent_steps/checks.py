"""A check that was made, the score that checks add up to, and the checks that several metrics make."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import fsum

import attrs

from dicast import Score

from .values import shown

_NUMBER = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_DIGITS = 64


@attrs.frozen
class Check:
    """A check and its *weight* in the score; *problem* is what it found, empty when there is no more to say than the name."""

    name: str
    weight: float
    passed: bool
    problem: str = ""

    @classmethod
    def of(cls, name: str, weight: float, problem: str | None) -> Check:
        """The check that found *problem*; None when it passed."""
        return cls(name, weight, problem is None, problem or "")


def grade(checks: Sequence[Check], unread: str = "") -> Score:
    """The sum of the weights of the checks that passed, each named in the signals; *unread* is why none could be made."""
    value = fsum(check.weight for check in checks if check.passed)
    return Score(value, details=unread or problems(checks), signals=results(checks))


def problems(checks: Sequence[Check]) -> str:
    """What the checks found, each problem once."""
    return "; ".join(dict.fromkeys(check.problem for check in checks if check.problem))


def results(checks: Sequence[Check]) -> dict[str, object]:
    """Whether each check passed, by its name."""
    return {check.name: check.passed for check in checks}


def truth_value_problem(values: Mapping[str, object], name: str) -> str | None:
    """What keeps *name* from being a truth value; the texts "true" and "false" are, in any case."""
    value = values.get(name)
    if isinstance(value, bool) or (isinstance(value, str) and value[:6].lower() in {"true", "false"}):
        return None
    return absent(values, name) or f"{name} is {shown(value)}, not true or false"


def text_problem(values: Mapping[str, object], name: str, least: int) -> str | None:
    """What keeps *name* from being text of *least* bytes of UTF-8, blanks around it not counted."""
    value = values.get(name)
    if not isinstance(value, str):
        return absent(values, name) or f"{name} is {shown(value)}, not text"
    # A character is at least a byte: more than the first need not be looked at.
    size = len(value.strip()[:least].encode("utf-8", "surrogatepass"))
    return None if size >= least else f"{name} has {size} bytes, fewer than {least}"


def fraction_problem(values: Mapping[str, object], name: str) -> str | None:
    """What keeps *name* from being a number in [0, 1], or the text of one."""
    value = values.get(name)
    number = _number(value)
    if number is not None and 0 <= number <= 1:
        return None
    return absent(values, name) or f"{name} is {shown(value)}, not a number from 0 to 1"


def absent(values: Mapping[str, object], name: str) -> str | None:
    """That *name* is missing, if it is."""
    return None if name in values else f"{name} is missing"


def _number(value: object) -> float | None:
    if isinstance(value, str):
        return float(value) if len(value) <= _DIGITS and _NUMBER.fullmatch(value) else None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None
