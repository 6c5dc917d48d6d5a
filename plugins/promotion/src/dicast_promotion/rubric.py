"""Reading of gates from a rubric."""

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
    """Return the gates of *rubric*, which has a mapping of requirements for each of the three states.

    :raises ConfigError: with every fault of the rubric.
    """
    reading = _Reading(rubric.id)
    data = reading.mapping(rubric.data, "", (*ABOUT, *GATES))
    for name in GATES:
        if name not in data:
            reading.fault(f"there is no gate {name!r}; write {name}: {{}} for a gate that always passes", name)
    options: dict[str, Any] = {name: reading.gate(data[name], name) for name in GATES if name in data}
    if "tie_margin" in data:
        options["tie_margin"] = reading.number(data["tie_margin"], "tie_margin")
    if reading.problems:
        raise ConfigError(reading.problems)
    return Gates(**options)


@attrs.frozen
class _Reading:
    rubric: str
    problems: list[Problem] = attrs.field(factory=list)

    def fault(self, message: str, path: str, value: object = None, hint: str | None = None) -> None:
        self.problems.append(Problem(f"rubric {self.rubric}: {message}", path=path, value=value, hint=hint))

    def mapping(self, value: object, path: str, keys: Collection[str] = ()) -> Mapping[str, Any]:
        """Return *value* if it is a mapping, else record a fault and return an empty one. Keys outside *keys* are faults."""
        if not isinstance(value, Mapping):
            self.fault(f"expected a mapping, got {value!r:.60}", path)
            return {}
        for key in value:
            if keys and key not in keys:
                self.fault(f"unknown key {key!r}", f"{path}.{key}".lstrip("."), key, nearest(key, keys))
        return value

    def gate(self, value: object, path: str) -> Gate:
        data = self.mapping(value, path, KEYS)
        options = {key: self._option(key, data[key], f"{path}.{key}") for key in KEYS if key in data}
        return Gate() if self.problems else Gate(**options)

    def _option(self, key: str, value: object, path: str) -> Any:
        if key in LABELLED:
            labels = self.mapping(value, path)
            return {label: self.number(number, f"{path}.{label}", key) for label, number in labels.items()}
        if key == "manual_approval":
            return self._checked(value, isinstance(value, bool), "true or false", path)
        if key == "custom":
            is_list = isinstance(value, list) and all(isinstance(name, str) for name in value)
            return tuple(self._checked(value, is_list, "a list of names", path) or ())
        if key == "min_samples":
            is_count = type(value) is int and value >= 0
            return self._checked(value, is_count, "a whole number of 0 or more", path)
        return self.number(value, path, key)

    def number(self, value: object, path: str, key: str = "tie_margin") -> Any:
        """Return *value* if it is a number in the range of *key*: a difference of scores, a share, or hours."""
        low, high = (-1, 1) if key == "beat_baseline" else (0, 1) if key in SHARES else (0, 1e9)
        is_valid = type(value) in (int, float) and low <= value <= high  # type: ignore[operator]  # a number by the first test
        return self._checked(value, is_valid, f"a number from {low:g} to {high:g}", path)

    def _checked(self, value: object, is_valid: bool, expected: str, path: str) -> Any:
        if not is_valid:
            self.fault(f"expected {expected}, got {value!r:.60}", path, value)
        return value if is_valid else None
