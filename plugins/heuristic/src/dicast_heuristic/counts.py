"""Counts of passed and failed tests in the output of test runners."""

from __future__ import annotations

import re

import attrs

_NUMBER = r"([0-9]{1,9})"  # a longer number is not a count
_LINE = re.compile(rf"\b(?:PASS|FAIL)\s+{_NUMBER}\s*/\s*{_NUMBER}\b", re.IGNORECASE)
_WORDS = {
    name: re.compile(rf"\b{_NUMBER}\s+{word}\b", re.IGNORECASE)
    for name, word in {"passed": "passed", "failed": "failed", "errors": "errors?"}.items()
}


@attrs.frozen
class Counts:
    """Number of *passed* tests and of all tests; *total* is 1 or more."""

    passed: int
    total: int

    @property
    def ratio(self) -> float:
        """The share of passed tests, in [0, 1]."""
        return min(1.0, self.passed / self.total)

    @classmethod
    def read(cls, text: str) -> Counts | None:
        """Return the last counts in *text*, or None without counts.

        ``PASS 2/4`` and ``FAIL 2/4``, both with 2 passed tests, take precedence over pytest's form (``1 passed, 3 failed``). Skipped
        tests do not count.
        """
        lines = _LINE.findall(text)
        if lines:
            passed, total = map(int, lines[-1])
        else:
            numbers = {name: int((pattern.findall(text) or ["0"])[-1]) for name, pattern in _WORDS.items()}
            passed, total = numbers["passed"], sum(numbers.values())
        return cls(passed, total) if total else None
