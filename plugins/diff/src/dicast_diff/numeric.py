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
    """1 when the output is the reference's number within a tolerance, else 0.

    Two numbers are close when they differ by at most ``abs_tol``, or by at most ``rel_tol`` times the one that is larger
    without its sign, as in Python's ``math.isclose``, but exactly, however many digits they have. Two integers, written without
    point and exponent, are close when they are equal, unless a tolerance is given. A number of JSON with a fraction was read
    as a double; a text keeps all its digits. A text counts when all of it,
    white space around it aside, is a number: digits with at most one point, an exponent perhaps, and commas between groups
    of three digits (``-1,234.5e3``); "42 kg" is no number. Truth values, NaN, infinity, and what is too large or too small for double
    precision are none either: such an output scores 0, such a reference is a Failure.

    :param abs_tol: how far apart two numbers may be, from 0 on.
    :param rel_tol: how far apart they may be as a share of the larger one, from 0 on; 1e-9 by default, and 0 for two integers.
    :param field: compare only this place in the output, a dotted path (``steps.0.total``) or a JSON pointer
        (``/steps/0/total``), with the whole reference; text is read as JSON to get there. A missing field scores 0.
    :param references: how the output is compared with a list of references: ``any``, the best score counts; ``all``, the mean of their
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
        found = sides(subject, self.field, "diff/numeric")
        if not isinstance(found, Sides):
            return found
        return compare_sides(found, self.references, self._compare)

    def _compare(self, found: Sides) -> Score | Failure:
        wanted = _number(found.reference)
        if wanted is None:
            return found.unusable(f"is no number but {excerpt(found.reference)}")
        number = _number(found.output)
        if number is None:
            details = f"no number but {excerpt(found.output)}"
            return Score(0.0, details=details, signals={"is_number": False, "reference": float(wanted)})
        signals = {"is_number": True, "number": float(number), "reference": float(wanted)}
        if number == wanted or self._close(number, wanted, _is_integer(found.output) and _is_integer(found.reference)):
            return Score(1.0, signals={**signals, "close": True})
        away = abs(float(number) - float(wanted)) or float(abs(Fraction(number) - Fraction(wanted)))
        apart = f", {away:.6g} away" if math.isfinite(away) else ""
        return Score(0.0, details=f"{_shown(number)}, not {_shown(wanted)}{apart}", signals={**signals, "close": False})

    def _close(self, number: Decimal, wanted: Decimal, integers: bool) -> bool:
        """Whether they are within the tolerance, in exact arithmetic."""
        one, other = Fraction(number), Fraction(wanted)
        share = self.rel_tol if self.rel_tol is not None else 0.0 if integers else _SHARE
        allowed = max(Fraction(repr(share)) * max(abs(one), abs(other)), Fraction(repr(self.abs_tol)))
        return abs(one - other) <= allowed


def _is_integer(value: object) -> bool:
    return isinstance(value, int) or (isinstance(value, str) and not set(value) & set(".eE"))


def _shown(number: Decimal) -> str:
    return f"{number:.17g}" if len(number.as_tuple().digits) <= 17 else str(number)[:40]


def _number(value: object) -> Decimal | None:
    """The finite number that *value* is, or all of a text says; None for anything else."""
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
