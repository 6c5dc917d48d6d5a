"""Signs of good and bad work, and what they come to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from .reading import Confidence


@attrs.frozen
class Sign:
    """One thing that was seen: the *flag* that stands for it, whether it is *good*, and its *weight* in the score."""

    flag: str
    good: bool
    weight: float


Pair = tuple[Sign, Sign]
"""The bad and the good form of a sign, so that ``pair[fired]`` is the one that was seen."""


def pair(name: str, negative: str, weight: float) -> Pair:
    """The two forms of the signal *name*, whose flag is *negative* where it does not fire."""
    return Sign(negative, False, weight), Sign(name, True, weight)


def seen(pairs: Mapping[str, Pair], fired: Mapping[str, bool]) -> list[Sign]:
    """The signs of what did and did not fire, in the order of *fired*."""
    return [pairs[name][good] for name, good in fired.items()]


def share(signs: Sequence[Sign]) -> float:
    """The weight of the good ones among all, in [0, 1].

    At least one has a weight.
    """
    good = every = 0.0
    for sign in signs:
        every += sign.weight
        if sign.good:
            good += sign.weight
    return good / every


def flags(signs: Sequence[Sign]) -> tuple[list[str], list[str]]:
    """The flags of the good and of the bad ones."""
    return [sign.flag for sign in signs if sign.good], [sign.flag for sign in signs if not sign.good]


def confidence(table: Sequence[Confidence], positive: Sequence[str], negative: Sequence[str]) -> float:
    """The value of the first line of *table* that holds for so many flags."""
    bad, good = len(negative), len(positive)
    return next(line.value for line in table if bad <= line.max_negative and good >= line.min_positive)
