"""Taking a workload's file apart, with everything that is wrong with it found at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal

from dicast import Cost, InvalidCost, nearest

from .documents import Address, Fault, dotted


class Section:
    """A mapping in a workload's file. Each method returns one value, None if it is absent or null, or reports its fault."""

    def __init__(self, path: Address, data: object, faults: list[Fault]) -> None:
        self._path, self._faults = path, faults
        self.data: Mapping[str, object] = data if isinstance(data, Mapping) else {}
        if data is not None and not isinstance(data, Mapping):
            faults.append(Fault(path, f"{self._named()} is a mapping, not {data!r:.80}", data))

    def only(self, keys: Sequence[str], noun: str) -> None:
        """Refuse all other keys as ``unknown {noun} keys``."""
        unknown = sorted(key for key in self.data if key not in keys)
        if unknown:
            hint = nearest(unknown[0], keys)
            message = f"unknown {noun} keys: {unknown}"
            self._faults.append(Fault((*self._path, unknown[0]), message, unknown[0], hint, at_key=True))

    def text(self, key: str) -> str | None:
        """Return the text at *key*."""
        value = self.data.get(key)
        if value is None or isinstance(value, str):
            return value
        self._refuse(key, "a text")
        return None

    def texts(self, key: str) -> list[str] | None:
        """Return the list of texts at *key*. An empty text is refused."""
        value = self.data.get(key)
        if value is None:
            return None
        if isinstance(value, list) and all(isinstance(text, str) and text for text in value):
            return value
        self._refuse(key, "a list of texts that are not empty")
        return None

    def choice(self, key: str, choices: Sequence[str]) -> str | None:
        """Return the value at *key*, which must be one of *choices*."""
        value = self.data.get(key)
        if value is None or (isinstance(value, str) and value in choices):
            return value
        hint = nearest(value, choices) if isinstance(value, str) else None
        self._refuse(key, " or ".join(map(repr, choices)), hint)
        return None

    def count(self, key: str) -> int | None:
        """Return the whole number at *key*, 0 or more."""
        value = self.data.get(key)
        if value is None or (isinstance(value, int) and not isinstance(value, bool) and value >= 0):
            return value
        self._refuse(key, "a whole number, 0 or more")
        return None

    def number(self, key: str) -> float | None:
        """Return the number at *key*, 0 or more."""
        value = self.data.get(key)
        if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and value >= 0):
            return value
        self._refuse(key, "a number, 0 or more")
        return None

    def flag(self, key: str) -> bool | None:
        """Return the boolean at *key*."""
        value = self.data.get(key)
        if value is None or isinstance(value, bool):
            return value
        self._refuse(key, "true or false")
        return None

    def amount(self, key: str) -> Decimal | None:
        """Return the amount of money at *key*, a number or a decimal text, with its written digits instead of the binary float's."""
        value = self.data.get(key)
        try:
            return Cost(Decimal(repr(value)) if isinstance(value, float) else value).amount
        except InvalidCost:
            self._refuse(key, "an amount in usd, 0 or more")
            return None

    def section(self, key: str) -> Section:
        """Return the mapping at *key*, or an empty mapping."""
        return Section((*self._path, key), self.data.get(key), self._faults)

    def sections(self, key: str) -> list[Section]:
        """Return the mappings of the list at *key*."""
        value = self.data.get(key)
        if value is not None and not isinstance(value, list):
            self._refuse(key, "a list")
        items = value if isinstance(value, list) else []
        return [Section((*self._path, key, number), item, self._faults) for number, item in enumerate(items)]

    def _refuse(self, key: str, expected: str, hint: str | None = None) -> None:
        value = self.data[key]
        message = f"{key} is {expected}, not {value!r:.80}"
        self._faults.append(Fault((*self._path, key), message, value, hint))

    def _named(self) -> str:
        return dotted(self._path) or "the file"
