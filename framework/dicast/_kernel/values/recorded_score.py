"""Scores that another tool gave to a subject."""

from __future__ import annotations

from ..classes import frozen
from .basis import Basis
from .errors import InvalidScore
from .score import finite_number, is_text

RECORDED = "recorded"
"""Kind of the judge, and default basis, of a verdict that was made from the score of another tool."""

RECORDED_PREFIX = f"{RECORDED}/"
"""Start of the label of such a verdict. No component may have such a label."""

_BASES = ("truth", "model", "human", RECORDED)


@frozen
class RecordedScore:
    """A score of a subject, as another tool recorded it. It becomes a verdict with the label ``recorded/NAME``.

    Exactly one of *value*, *raw* and *text* is set.

    :param name: the tool's name of the score, such as ``accuracy``.
    :param value: in [0, 1], higher is better.
    :param raw: a finite number on another scale. All scores of a name in one file have the same scale.
    :param text: a category without a value.
    :param basis: ``truth``, ``model`` or ``human`` if the format states it; otherwise ``recorded``.
    :param reason: the recorded reason.
    :param by: the author: a model, a person or a program.
    :raises InvalidScore: if a value is invalid, or *name* is empty.
    """

    name: str
    value: float | None = None
    raw: float | None = None
    text: str | None = None
    basis: Basis = "recorded"
    reason: str | None = None
    by: str | None = None

    def __attrs_post_init__(self) -> None:
        if not is_text(self.name) or not self.name.strip():
            raise InvalidScore(f"the name of a recorded score is a text that is not empty, got {self.name!r:.100}")
        if sum(answer is not None for answer in (self.value, self.raw, self.text)) != 1:
            raise InvalidScore(f"the recorded score {self.name!r:.100} needs one of value, raw and text")
        for field in ("value", "raw"):
            number = getattr(self, field)
            if number is not None:
                object.__setattr__(self, field, finite_number(number, f"{field} of recorded/{self.name:.100}"))
        if self.value is not None and not 0 <= self.value <= 1:
            raise InvalidScore(f"value of recorded/{self.name:.100} must be in [0, 1], got {self.value!r}; use raw")
        for field in ("text", "reason", "by"):
            answer = getattr(self, field)
            if answer is not None and not is_text(answer):
                raise InvalidScore(f"{field} of recorded/{self.name:.100} is a text, got {answer!r:.100}")
        if self.basis not in _BASES:
            bases = ", ".join(_BASES)
            raise InvalidScore(f"basis of recorded/{self.name:.100} is one of {bases}, got {self.basis!r:.100}")

    @property
    def label(self) -> str:
        """The label of the verdict."""
        return RECORDED_PREFIX + self.name
