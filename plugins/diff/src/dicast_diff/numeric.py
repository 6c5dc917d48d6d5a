"""Is the output the reference's number, give or take?"""

from __future__ import annotations

import math
import re
from typing import Any

import attrs

from dicast import ConfigError, Failure, Score, Subject, check_field

from .excerpts import excerpt
from .sides import Sides, sides

_LONGEST = 1000
_NUMBER = re.compile(
    r"[-+\N{MINUS SIGN}]?(?:[0-9]{1,3}(?:,[0-9]{3})++|[0-9]++)?(?:\.[0-9]*+)?(?:[eE][-+]?[0-9]++)?",
)


def _check_tolerance(_: object, attribute: attrs.Attribute[Any], value: float) -> None:
    if not 0 <= value < math.inf:
        raise ConfigError(f"{attribute.name} is {value:g}; a tolerance is a finite number from 0 on")


@attrs.frozen
class Numeric:
    """1 when the output is the reference's number within a tolerance, else 0.

    Two numbers are close when they differ by at most ``abs_tol``, or by at most ``rel_tol`` times the one that is larger
    without its sign, as in Python's ``math.isclose``. They are compared in double precision. A text counts when all of it,
    white space around it aside, is a number: digits with at most one point, an exponent perhaps, and commas between groups
    of three digits (``-1,234.5e3``); "42 kg" is no number. Truth values, NaN, infinity, and what is too large for double precision are
    none either: such an output scores 0, such a reference is a Failure.

    :param abs_tol: how far apart two numbers may be, from 0 on.
    :param rel_tol: how far apart they may be as a share of the larger one, from 0 on.
    :param field: compare only this place in the output, a dotted path (``steps.0.total``) or a JSON pointer
        (``/steps/0/total``), with the whole reference; text is read as JSON to get there. A missing field scores 0.
    """

    name = "numeric"
    tier = "truth"

    abs_tol: float = attrs.field(default=0.0, validator=_check_tolerance)
    rel_tol: float = attrs.field(default=1e-9, validator=_check_tolerance)
    field: str | None = attrs.field(default=None, validator=check_field)

    def score(self, subject: Subject) -> Score | Failure:
        """Compare the number that the output of *subject* is with its reference's."""
        found = sides(subject, self.field, "diff/numeric")
        if not isinstance(found, Sides):
            return found
        wanted = _number(found.reference)
        if wanted is None:
            return found.unusable(f"is no number but {excerpt(found.reference)}")
        number = _number(found.output)
        if number is None:
            details = f"no number but {excerpt(found.output)}"
            return Score(0.0, details=details, signals={"is_number": False, "reference": wanted})
        signals = {"is_number": True, "number": number, "reference": wanted}
        if math.isclose(number, wanted, rel_tol=self.rel_tol, abs_tol=self.abs_tol):
            return Score(1.0, signals={**signals, "close": True})
        away = abs(number - wanted)
        apart = f", {away:.6g} away" if math.isfinite(away) else ""
        return Score(0.0, details=f"{number:.17g}, not {wanted:.17g}{apart}", signals={**signals, "close": False})


def _number(value: object) -> float | None:
    """The finite number that *value* is, or all of a text says; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str):
        text = value.strip()
        if len(text) > _LONGEST or not _NUMBER.fullmatch(text) or not any(map(str.isdigit, text.lower().split("e")[0])):
            return None
        value = text.replace(",", "").replace("\N{MINUS SIGN}", "-")
    try:
        number = float(value)
    except OverflowError:  # an integer
        return None
    return number if math.isfinite(number) else None
