"""Gates as a rubric says them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import attrs

from dicast import ConfigError, Problem, Rubric, nearest

from .gates import GATES, Gate, Gates

RUBRIC = "promotion-gates-v1"
ABOUT = ("id", "version", "tie_margin")
KEYS = tuple(field.name for field in attrs.fields(Gate))
LABELLED = ("min_score", "beat_baseline")
SHARES = ("min_score", "min_win_rate", "tie_margin")


def read_gates(rubric: Rubric) -> Gates:
    """The gates that *rubric* has: a mapping of requirements for each state, all three of them.

    :raises ConfigError: with everything that is wrong.
    """
    reading = _Reading(rubric.id)
    data = reading.mapping(rubric.data, "", (*ABOUT, *GATES))
    for name in GATES:
        if name not in data:
            reading.fault(f"there is no gate {name!r}; one that lets all pass is {{}}", name)
    made: dict[str, Any] = {name: reading.gate(data[name], name) for name in GATES if name in data}
    if "tie_margin" in data:
        made["tie_margin"] = reading.number(data["tie_margin"], "tie_margin")
    if reading.problems:
        raise ConfigError(reading.problems)
    return Gates(**made)


@attrs.frozen
class _Reading:
    rubric: str
    problems: list[Problem] = attrs.field(factory=list)

    def fault(self, message: str, path: str, value: object = None, hint: str | None = None) -> None:
        self.problems.append(Problem(f"rubric {self.rubric}: {message}", path=path, value=value, hint=hint))

    def mapping(self, value: object, path: str, known: Collection[str] = ()) -> Mapping[str, Any]:
        """*value*, if it is a mapping; with *known* keys it may have no other."""
        if not isinstance(value, Mapping):
            self.fault(f"expected a mapping, got {value!r:.60}", path)
            return {}
        for key in value:
            if known and key not in known:
                self.fault(f"unknown key {key!r}", f"{path}.{key}".lstrip("."), key, nearest(key, known))
        return value

    def gate(self, value: object, path: str) -> Gate:
        given = self.mapping(value, path, KEYS)
        read = {key: self._option(key, given[key], f"{path}.{key}") for key in KEYS if key in given}
        return Gate() if self.problems else Gate(**read)

    def _option(self, key: str, value: object, path: str) -> Any:
        if key in LABELLED:
            return {label: self.number(one, f"{path}.{label}", key) for label, one in self.mapping(value, path).items()}
        if key == "manual_approval":
            return self._checked(value, isinstance(value, bool), "true or false", path)
        if key == "custom":
            names = isinstance(value, list) and all(isinstance(one, str) for one in value)
            return tuple(self._checked(value, names, "a list of names", path) or ())
        if key == "min_samples":
            whole = type(value) is int and value >= 0
            return self._checked(value, whole, "a whole number from 0 on", path)
        return self.number(value, path, key)

    def number(self, value: object, path: str, key: str = "tie_margin") -> Any:
        """*value*, a number: a share from 0 to 1, what a difference of these can be, or hours."""
        low, high = (-1, 1) if key == "beat_baseline" else (0, 1) if key in SHARES else (0, 1e9)
        right = type(value) in (int, float) and low <= value <= high  # type: ignore[operator]  # a number, if it comes to that
        return self._checked(value, right, f"a number from {low:g} to {high:g}", path)

    def _checked(self, value: object, right: bool, expected: str, path: str) -> Any:
        if not right:
            self.fault(f"expected {expected}, got {value!r:.60}", path, value)
        return value if right else None
