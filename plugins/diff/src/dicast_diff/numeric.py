"""Is the output the reference's number, give or take?"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from typing import Any

import attrs

from dicast import ConfigError, Failure, Score, Subject
from dicast.toolkit.json_values import check_field
from dicast.toolkit.references import References

from .excerpts import excerpt
from .sides import Sides, compare_sides, sides

_LONGEST = 1000
_SHARE = 1e-9
_LEAST = -400  # a number of so few digits before the point is none to a double
_NUMBER = re.compile(
    r"[-+\N{MINUS SIGN}]?(?:[0-9]{1,3}(?:,[0-9]{3})++|[0-9]++)?(?:\.[0-9]*+)?(?:[eE][-+]?[0-9]++)?",
)


def _check_tolerance(_: object, attribute: attrs.Attribute[Any], value: float | None) -> None:
    if value is not None and not 0 <= value < math.inf:
        raise ConfigError(f"{attribute.name} is {value:g}; a tolerance is a finite number from 0 on")


@attrs.frozen
class Numeric:
    """1 if the output is the reference's number within a tolerance, else 0.

    Two numbers are close if they differ by at most ``abs_tol``, or by at most ``rel_tol`` times the number that is larger
    without its sign, as in Python's ``math.isclose``, but exactly, for any number of digits. Two integers, written without
    point and exponent, are close if they are equal, unless a tolerance is given. A number of JSON with a fraction was read
    as a double; a text keeps all its digits. A text counts if it is a number as a whole,
    white space around it aside: digits with at most one point, perhaps an exponent, and commas between groups
    of three digits (``-1,234.5e3``); "42 kg" is no number. Booleans, NaN, infinity, and numbers outside of double
    precision do not count: such an output scores 0, such a reference is a Failure.

    :param abs_tol: the largest difference of two close numbers, from 0 on.
    :param rel_tol: their largest difference as a share of the larger number, from 0 on; 1e-9 by default, and 0 for two integers.
    :param field: compare only this place in the output, a dotted path (``steps.0.total``) or a JSON pointer
        (``/steps/0/total``), with the whole reference; text is read as JSON to get there. A missing field scores 0.
    :param references: the comparison with a list of references: ``any``, the best score counts; ``all``, the mean of their
        scores; ``whole``, the list is one value. Next to an output that is a list, the list is one value. Blank references in a list are
        left out.
    """

    name = "numeric"
    tier = "truth"

    abs_tol: float = attrs.field(default=0.0, validator=_check_tolerance)
    rel_tol: float | None = attrs.field(default=None, validator=_check_tolerance)
    field: str | None = attrs.field(default=None, validator=check_field)
    references: References = attrs.field(default="any", metadata={"later": True})

    def score(self, subject: Subject) -> Score | Failure:
        """Compare the number that the output of *subject* is with its reference's."""
        sides_ = sides(subject, self.field, "diff/numeric")
        if not isinstance(sides_, Sides):
            return sides_
        return compare_sides(sides_, self.references, self._compare)

    def _compare(self, sides_: Sides) -> Score | Failure:
        expected = _number(sides_.reference)
        if expected is None:
            return sides_.unusable(f"is no number but {excerpt(sides_.reference)}")
        number = _number(sides_.output)
        if number is None:
            details = f"no number but {excerpt(sides_.output)}"
            return Score(0.0, details=details, signals={"is_number": False, "reference": float(expected)})
        signals = {"is_number": True, "number": float(number), "reference": float(expected)}
        if number == expected or self._close(
            number, expected, _is_integer(sides_.output) and _is_integer(sides_.reference)
        ):
            return Score(1.0, signals={**signals, "close": True})
        away = abs(float(number) - float(expected)) or float(abs(Fraction(number) - Fraction(expected)))
        distance = f", {away:.6g} away" if math.isfinite(away) else ""
        return Score(
            0.0,
            details=f"{_formatted(number)}, not {_formatted(expected)}{distance}",
            signals={**signals, "close": False},
        )

    def _close(self, number: Decimal, expected: Decimal, integers: bool) -> bool:
        """Return True if they are within the tolerance, in exact arithmetic."""
        number_, other = Fraction(number), Fraction(expected)
        share = self.rel_tol if self.rel_tol is not None else 0.0 if integers else _SHARE
        allowed = max(Fraction(repr(share)) * max(abs(number_), abs(other)), Fraction(repr(self.abs_tol)))
        return abs(number_ - other) <= allowed


def _is_integer(value: object) -> bool:
    return isinstance(value, int) or (isinstance(value, str) and not set(value) & set(".eE"))


def _formatted(number: Decimal) -> str:
    return f"{number:.17g}" if len(number.as_tuple().digits) <= 17 else str(number)[:40]


def _number(value: object) -> Decimal | None:
    """Return the finite number of *value*, or of a whole text; None for any other value."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str):
        text = value.strip()
        if len(text) > _LONGEST or not _NUMBER.fullmatch(text) or not any(map(str.isdigit, text.lower().split("e")[0])):
            return None
        value = text.replace(",", "").replace("\N{MINUS SIGN}", "-")
    try:
        if not math.isfinite(float(value)):
            return None
        number = Decimal(repr(value) if isinstance(value, float) else value)
    except (ArithmeticError, ValueError):  # an integer too large for a double, an exponent too long for a decimal
        return None
    if not number:
        return Decimal(0)
    return number if number.adjusted() > _LEAST else None
