"""A metric for dicast: the school grade at which a text can be read."""

from __future__ import annotations

import re
from typing import Any

from dicast import Failure, Score, Subject, hookimpl, metric

__all__ = ["automated_readability_index", "readable"]

_END = re.compile(r"[.!?]+(?=\s|$)")


def automated_readability_index(text: str) -> float:
    """Return the school grade of an English *text*: 4.71 letters per word + 0.5 words per sentence - 21.43.

    :raises ValueError: when *text* has no letter.
    """
    letters = sum(text.count(character) for character in set(text) if character.isalnum())
    if not letters:
        raise ValueError("the text has no letter")
    words = len(text.split())
    sentences = max(1, len(_END.findall(text)))
    return 4.71 * letters / words + 0.5 * words / sentences - 21.43


@metric(tier="proxy")
def readable(subject: Subject, *, grade: float = 8.0) -> Score | Failure:
    """Score 1.0 for a text of up to a school grade, and less for a text of a higher grade.

    :param grade: the highest school grade that scores 1.0; above 0.
    """
    if grade <= 0:
        return Failure("crashed", f"grade is {grade}, it must be above 0")
    try:
        index = automated_readability_index(subject.text)
    except ValueError as error:
        return Failure("missing_input", str(error))
    return Score(1.0 if index <= grade else grade / index, details=f"grade {index:.1f}")


@hookimpl
def dicast_metrics() -> list[type[Any]]:
    """Offer ``grade_level/readable``."""
    return [readable]
