"""Scores that other tools wrote into a file, as :class:`~dicast.RecordedScore`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import isfinite
from typing import Any

import attrs
import orjson

from dicast import Basis, RecordedScore


@attrs.define
class ScoreScales:
    """Scales of the scores in an input, by name.

    If a name has a number outside [0, 1], all its numbers are raw. The first pass finds these names, so use one object for all passes of an input.
    """

    raw: set[str] = attrs.field(factory=set)
    _values: set[str] = attrs.field(factory=set)

    @property
    def has_changed(self) -> bool:
        """True if a name got a number as a value before its first number outside [0, 1]: the next pass has other scores."""
        return not self.raw.isdisjoint(self._values)

    def score(
        self, name: str, answer: object, *, basis: Basis = "recorded", reason: object = None, by: object = None
    ) -> RecordedScore | None:
        """Return the score *name* with the *answer* of the tool; None if there is no answer.

        A boolean becomes 1 or 0, and a finite number a value or a raw number. Any other answer is a category with its text.
        """
        name = name.strip() or "score"
        details: dict[str, Any] = {"basis": basis, "reason": _text(reason), "by": _text(by)}
        if answer is None:
            return None
        if isinstance(answer, bool):
            return RecordedScore(name, float(answer), **details)
        if not isinstance(answer, int | float) or not isfinite(_float(answer)):
            return RecordedScore(name, text=_text(answer) or '""', **details)
        number = _float(answer)
        if name in self.raw or not 0 <= number <= 1:
            self.raw.add(name)
            return RecordedScore(name, raw=number, **details)
        self._values.add(name)
        return RecordedScore(name, number, **details)


def with_unique_names(scores: Iterable[RecordedScore | None]) -> Iterator[RecordedScore]:
    """Yield the *scores* of one subject without None; the second score with the name ``a`` gets the name ``a#2``."""
    uses: dict[str, int] = {}
    for score in scores:
        if score is None:
            continue
        name, number = score.name, 1
        while name in uses:
            number = uses[score.name] = uses[score.name] + 1
            name = f"{score.name}#{number}"
        uses[name] = 1
        yield score if name == score.name else attrs.evolve(score, name=name)


def _float(number: float) -> float:
    try:
        return float(number)
    except OverflowError:
        return float("inf")


def _text(value: object) -> str | None:
    """Return *value* as a text; None for None and for a blank text."""
    if value is None:
        return None
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    text = value if isinstance(value, str) else orjson.dumps(value, default=str).decode()
    return text if text.strip() else None
