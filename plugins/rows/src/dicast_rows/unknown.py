"""Values that JSON cannot hold: an error, or a visible marker in their place."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, Literal

import attrs

from dicast import Problem

Unknown = Literal["error", "mark"]
"""The treatment of a value that JSON cannot hold."""

_STEP = re.compile(r"\[([0-9]+)\]|\.?([^.\[]+)")
_TAG = re.compile(r"the tag (\S+) does not fit here")
_MAX_SHOWN = 40


@attrs.define(eq=False)
class Marker:
    """Replaces values that JSON cannot hold by visible texts, and counts them by kind; it replaces none unless it *is_on*."""

    is_on: bool
    counts: Counter[str] = attrs.field(factory=Counter)

    @classmethod
    def of(cls, unknown: Unknown) -> Marker:
        """Return the marker of the option *unknown*."""
        return cls(unknown == "mark")

    def mark(self, kind: str, text: str) -> str:
        """Count a value of *kind*, and return its marker with *text*."""
        self.counts[kind] += 1
        return f"[{text}]"

    def number(self, digits: str) -> str:
        """Mark a number that needs more than 64 bits."""
        return self.mark("number", f"number {digits if len(digits) <= _MAX_SHOWN else f'{digits[:_MAX_SHOWN]}…'}")

    def data(self, data: bytes) -> str:
        """Mark bytes by their type and size."""
        from dicast.toolkit.media import sniffed  # imported late: few rows have bytes

        kind = sniffed(data) or "bytes"
        size = f"{len(data):,} B" if len(data) < 1000 else f"{round(len(data) / 1000):,} kB"
        return self.mark(kind, f"{kind}, {size}")

    def yaml(self, row: Any, problems: Sequence[Problem]) -> bool:
        """Mark in *row* the values of YAML that *problems* are about; False if one of them is about something else."""
        marked = [(problem, _kind(problem)) for problem in problems]
        if not self.is_on or any(kind is None or not problem.path for problem, kind in marked):
            return False
        return all(_put(row, problem.path or "", kind, problem.value, self) for problem, kind in marked)


def _kind(problem: Problem) -> str | None:
    if "64 bits" in problem.message:
        return "number"
    if "is not a finite number" in problem.message:
        return "not finite"
    match = _TAG.match(problem.message)
    return match and f"tag {match[1]}"


def _put(row: Any, path: str, kind: str | None, value: object, marker: Marker) -> bool:
    """Put the marker of *value* into *row* at *path*; False if the path leads nowhere."""
    steps = [int(index) if index else name for index, name in _STEP.findall(path)]
    inside = row
    for step in steps[:-1]:
        if not isinstance(inside, dict | list):
            return False
        try:
            inside = inside[step]
        except (KeyError, IndexError, TypeError):
            return False
    last = steps[-1]
    is_there = last in inside if isinstance(inside, dict) else isinstance(inside, list) and isinstance(last, int)
    if not is_there:
        return False
    shortened = str(value)[:_MAX_SHOWN]
    text = (
        marker.number(shortened)
        if kind == "number"
        else marker.mark(str(kind), shortened if kind == "not finite" else f"{kind} {shortened}")
    )
    inside[last] = text
    return True
