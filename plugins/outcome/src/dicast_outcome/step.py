"""Outcome of a step, and its reader."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice

import attrs

from dicast import DataError, Problem, nearest

UTILITY, NORM = "step_utility", "step_utility_norm"
TESTS = ("tests_before", "tests_after")
KEYS = (UTILITY, NORM, *TESTS, "verification_delta", "was_repeated", "params_valid")
"""The keys of a step; null counts as absent."""

_EXACT = 2**53
_TOLERANCE = 0.01
_MAX_SHOWN = 40
_LOOKED_AT = 100


@attrs.frozen
class Step:
    """Outcome of a tool call.

    *utility* is its contribution to the goal, in [-1, 1]. *delta* is the change in the number of passing tests.
    *was_repeated* is true if the agent made the same call before. *params_valid* is true if the parameters match their schema.
    *tests_before* and *tests_after* are numbers of passing tests, None if unknown.
    """

    utility: float
    delta: int
    was_repeated: bool
    params_valid: bool
    tests_before: int | None = None
    tests_after: int | None = None

    @classmethod
    def read(cls, record: Mapping[str, object]) -> Step:
        """Return the step of *record*.

        :raises DataError: (without a place) with every value that is missing, of the wrong type, out of range or contradictory.
        """
        reader = _Reader(record)
        utility, (before, after) = reader.utility(), [reader.count(name) for name in TESTS]
        delta = reader.delta(before, after)
        was_repeated, params_valid = (reader.truth_value(name) for name in ("was_repeated", "params_valid"))
        if reader.problems:
            raise DataError(reader.problems)
        return cls(utility, delta, was_repeated, params_valid, before, after)


class _Reader:
    """Reader of *record*. Its results are valid only if there are no *problems*."""

    def __init__(self, record: Mapping[str, object]) -> None:
        self.record = record
        self.problems: list[Problem] = []

    def utility(self) -> float:
        canonical, norm = self._number(UTILITY, -1), self._number(NORM, 0)
        if canonical is None and norm is None:
            if self.record.get(UTILITY) is None and self.record.get(NORM) is None:
                self._fault(UTILITY, f"{UTILITY} is missing, and so is {NORM}")
            return 0.0
        if canonical is None or norm is None:
            return 2 * norm - 1 if norm is not None else canonical or 0.0
        if abs((canonical + 1) / 2 - norm) > _TOLERANCE:
            self._fault(NORM, f"{NORM} is {norm:g}, but {UTILITY} {canonical:g} makes {(canonical + 1) / 2:g}")
        return canonical

    def count(self, name: str) -> int | None:
        value = self.record.get(name)
        number = _whole_number(value)
        if value is not None and (number is None or number < 0):
            self._fault(name, f"{name} is {shorten(value)}, not a number of tests")
        return number

    def delta(self, before: int | None, after: int | None) -> int:
        name = "verification_delta"
        value, counted = self.record.get(name), None if before is None or after is None else after - before
        number = counted if value is None else _whole_number(value)
        if number is None and value is not None:
            self._fault(name, f"{name} is {shorten(value)}, not a whole number")
        elif number is None:
            self._fault(name, f"{name} is missing, and so are {' and '.join(TESTS)}, from which it is computed")
        elif counted is not None and number != counted:
            self._fault(name, f"{name} is {number}, but {after} tests after {before} make {counted}")
        return number or 0

    def truth_value(self, name: str) -> bool:
        value = self.record.get(name)
        if not isinstance(value, bool):
            wrong = "missing" if value is None else f"{shorten(value)}, not true or false"
            self._fault(name, f"{name} is {wrong}")
        return value is True

    def _number(self, name: str, low: int) -> float | None:
        value = self.record.get(name)
        if value is None:
            return None
        if isinstance(value, int | float) and not isinstance(value, bool) and low <= value <= 1:
            return float(value)
        self._fault(name, f"{name} is {shorten(value)}, not a number from {low} to 1")
        return None

    def _fault(self, name: str, message: str) -> None:
        unknown = [str(key)[:_MAX_SHOWN] for key in islice(self.record, _LOOKED_AT) if key not in KEYS]
        hint = nearest(name, unknown) if self.record.get(name) is None else None
        self.problems.append(Problem(message, path=name, hint=hint))


def _whole_number(value: object) -> int | None:
    """Return *value* as a whole number if every JSON reader reads it exactly, else None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not -_EXACT <= value <= _EXACT:
        return None
    return int(value) if value == int(value) else None


def shorten(value: object) -> str:
    """Return a short form of *value* for a message; the content of lists and objects is left out."""
    if isinstance(value, str):
        return repr(value if len(value) <= _MAX_SHOWN else f"{value[:_MAX_SHOWN]}…")
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    if isinstance(value, int | float):
        return str(value) if isinstance(value, float) or abs(value) < 10**20 else "a huge number"
    if isinstance(value, Mapping):
        return "an object"
    return "a list" if isinstance(value, list | tuple) else type(value).__name__
