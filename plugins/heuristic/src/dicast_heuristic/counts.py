"""Counts of passed and failed tests, as test runners and their scripts print them."""

from __future__ import annotations

import re

import attrs

_NUMBER = r"([0-9]{1,9})"  # more digits are no count
_LINE = re.compile(rf"\b(?:PASS|FAIL)\s+{_NUMBER}\s*/\s*{_NUMBER}\b", re.IGNORECASE)
_WORDS = {
    what: re.compile(rf"\b{_NUMBER}\s+{word}\b", re.IGNORECASE)
    for what, word in {"passed": "passed", "failed": "failed", "errors": "errors?"}.items()
}


@attrs.frozen
class Counts:
    """How many tests *passed* of how many; *total* is 1 or more."""

    passed: int
    total: int

    @property
    def ratio(self) -> float:
        """The share that passed, in [0, 1]."""
        return min(1.0, self.passed / self.total)

    @classmethod
    def read(cls, text: str) -> Counts | None:
        """The counts that *text* tells last, None where it tells none.

        ``PASS 2/4`` and ``FAIL 2/4``, of which 2 passed either way, come before what pytest prints (``1 passed, 3 failed``),
        where skipped tests do not count.
        """
        lines = _LINE.findall(text)
        if lines:
            passed, total = map(int, lines[-1])
        else:
            numbers = {what: int((pattern.findall(text) or ["0"])[-1]) for what, pattern in _WORDS.items()}
            passed, total = numbers["passed"], sum(numbers.values())
        return cls(passed, total) if total else None
