"""Reader of a rubric's figures, which reports every fault at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

import attrs

from dicast import ConfigError, Problem, Rubric, nearest

from .places import place_of

_NAMES = ("id", "version")


@attrs.frozen
class Confidence:
    """A line of the confidence table: *value* for at most *max_negative* and at least *min_positive* flags."""

    value: float
    max_negative: float
    min_positive: int


class Section:
    """A mapping in a rubric with a fixed set of keys. Each method returns a value, or reports its fault.

    The absence of a whole section is reported once. *origin* is the rubric.
    """

    def __init__(self, path: str, data: object, keys: Sequence[str], problems: list[Problem], origin: Rubric) -> None:
        self._path, self._problems, self._origin = path, problems, origin
        self._silent = not isinstance(data, Mapping)
        self._data: Mapping[str, Any] = data if isinstance(data, Mapping) else {}
        for key in self._data:
            if key not in keys:
                path, hint = self._at(str(key)), nearest(str(key), keys)
                self._add(Problem(f"unknown key {key!r} in the rubric", path=path, hint=hint), unknown=True)

    def number(self, key: str, high: float = float("inf"), default: float | None = None) -> float:
        """Return the finite number at *key*, from 0 to *high*."""
        value = self._data.get(key, default)
        if _is_number(value) and value <= high:
            return float(value)
        self._report(key, value, "a number from 0 to 1" if high == 1 else "a number, 0 or more")
        return 0.0

    def side(self, key: str, *, above: bool) -> float:
        """Return the number at *key*, from 0 to 1, above or below 0.5."""
        value = self._data.get(key)
        if _is_number(value) and (0.5 < value <= 1 if above else value < 0.5):
            return float(value)
        self._report(key, value, "a number above 0.5, 1 at most" if above else "a number below 0.5, 0 at least")
        return 0.0

    def count(self, key: str, default: int | None = None, most: int | None = None) -> int:
        """Return the whole number at *key*, from 0 to *most*."""
        value = self._data.get(key, default)
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= (value if most is None else most):
            return value
        self._report(key, value, "a whole number, 0 or more" if most is None else f"a whole number from 0 to {most}")
        return 0

    def texts(self, key: str) -> tuple[str, ...]:
        """Return the list of non-empty texts at *key*."""
        value = self._data.get(key)
        if isinstance(value, list) and all(isinstance(text, str) and text for text in value):
            return tuple(value)
        self._report(key, value, "a list of texts that are not empty")
        return ()

    def choice(self, key: str, choices: Sequence[str]) -> str:
        """Return the value at *key*, which must be among *choices*."""
        value = self._data.get(key)
        if isinstance(value, str) and value in choices:
            return value
        self._report(key, value, " or ".join(choices))
        return choices[0]

    def ranges(self, key: str) -> Mapping[str, tuple[float, float]]:
        """Return the mapping at *key* of names to ``[lowest, highest]``, two numbers of 0 or more."""
        value = self._data.get(key)
        if not isinstance(value, Mapping):
            self._report(key, value, "a mapping of names to [lowest, highest]")
            return {}
        for name, pair in value.items():
            if not _is_range(pair):
                self._report(f"{key}.{name}", pair, "[lowest, highest], two numbers, 0 or more")
        return {str(name): (float(pair[0]), float(pair[1])) for name, pair in value.items() if _is_range(pair)}

    def section(self, key: str, keys: Sequence[str]) -> Section:
        """Return the mapping at *key*."""
        data = self._data.get(key)
        if not isinstance(data, Mapping):
            self._report(key, data, "a mapping")
        return Section(self._at(key), data, keys, self._problems, self._origin)

    def optional(self, key: str, keys: Sequence[str]) -> Section:
        """Return the mapping at *key*; it is empty if the rubric has none."""
        return self.section(key, keys) if key in self._data else Section(key, {}, keys, self._problems, self._origin)

    def confidence(self, key: str) -> tuple[Confidence, ...]:
        """Return the confidence table at *key*; its last line must have no conditions."""
        value = self._data.get(key)
        if not isinstance(value, list) or not value:
            self._report(key, value, "a list of lines")
            return ()
        keys = ("value", "max_negative", "min_positive")
        for place, line in enumerate(value):
            if not isinstance(line, Mapping):
                self._report(f"{key}[{place}]", line, "a mapping")
        lines = [
            Section(f"{self._at(key)}[{place}]", line, keys, self._problems, self._origin)
            for place, line in enumerate(value)
        ]
        table = tuple(line._confidence() for line in lines)  # noqa: SLF001  # an object of this class
        if table[-1].max_negative != float("inf") or table[-1].min_positive:
            self._report(f"{key}[{len(value) - 1}]", value[-1], "a line without conditions, so that one always holds")
        return table

    def _confidence(self) -> Confidence:
        limit = float(self.count("max_negative")) if "max_negative" in self._data else float("inf")
        return Confidence(self.number("value", 1), limit, self.count("min_positive", 0))

    def _at(self, key: str) -> str:
        return f"{self._path}.{key}".strip(".")

    def _report(self, key: str, value: object, expected: str) -> None:
        fault = "is missing; it is" if value is None else f"is {value!r}, it must be"
        path = self._at(key)
        if not self._silent:
            self._add(Problem(f"the rubric's {path} {fault} {expected}", path=path, value=value))

    def _add(self, problem: Problem, *, unknown: bool = False) -> None:
        place = place_of(self._origin.text, str(problem.path), key=unknown)
        where = "" if place is None else f"{self._origin.id}:{place[0]}:{place[1]}: "
        self._problems.append(attrs.evolve(problem, message=where + problem.message))


def _is_number(value: object) -> TypeGuard[int | float]:
    """Return whether *value* is a finite number of 0 or more."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < float("inf")


def _is_range(value: object) -> TypeGuard[Sequence[float]]:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_number, value)) and value[0] <= value[1]


def open_rubric(rubric: object, keys: Sequence[str]) -> tuple[Section, list[Problem]]:
    """Return the content of *rubric*, and the list for its problems.

    :raises ConfigError: if the rubric has no figures, or fewer than half of *keys*, as a rubric of another judge.
    """
    if not isinstance(rubric, Rubric):
        raise ConfigError(Problem(f"the rubric must be a dicast.Rubric, not {rubric!r:.80}", path="rubric"))
    names = [str(key) for key in rubric.data if key not in _NAMES]
    if not names or rubric.text.startswith("---"):  # Markdown: a text for a model
        raise ConfigError(Problem(f"the rubric {rubric.id!r} has no figures; it must be YAML", path="rubric"))
    present = [key for key in keys if key in rubric.data]
    if 2 * len(present) < len(keys):
        has, needs = ", ".join(names), ", ".join(keys)
        raise ConfigError(
            Problem(f"the rubric {rubric.id!r} is for another judge: it has {has}; needed are {needs}", path="rubric")
        )
    problems: list[Problem] = []
    return Section("", rubric.data, (*_NAMES, *keys), problems, rubric), problems
