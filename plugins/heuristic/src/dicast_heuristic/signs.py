"""Signs of good and bad work, and their score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import attrs

from .reading import Confidence


@attrs.frozen
class Sign:
    """An observation: its *flag*, whether it is *good*, and its *weight* in the score."""

    flag: str
    good: bool
    weight: float


Pair = tuple[Sign, Sign]
"""The bad and the good form of a sign: ``pair[fired]`` is the observation."""


def pair(name: str, negative: str, weight: float) -> Pair:
    """Return the two forms of the signal *name*; *negative* is its flag if the signal does not fire."""
    return Sign(negative, False, weight), Sign(name, True, weight)


def seen(pairs: Mapping[str, Pair], fired: Mapping[str, bool]) -> list[Sign]:
    """Return the sign of each signal, in the order of *fired*."""
    return [pairs[name][good] for name, good in fired.items()]


def share(signs: Sequence[Sign]) -> float:
    """Return the weight of the good signs divided by the weight of all signs, in [0, 1].

    At least one sign must have a weight.
    """
    good = total = 0.0
    for sign in signs:
        total += sign.weight
        if sign.good:
            good += sign.weight
    return good / total


def flags(signs: Sequence[Sign]) -> tuple[list[str], list[str]]:
    """Return the flags of the good signs and of the bad signs."""
    return [sign.flag for sign in signs if sign.good], [sign.flag for sign in signs if not sign.good]


def confidence(table: Sequence[Confidence], positive: Sequence[str], negative: Sequence[str]) -> float:
    """Return the value of the first line of *table* whose conditions the numbers of flags meet."""
    bad, good = len(negative), len(positive)
    return next(line.value for line in table if bad <= line.max_negative and good >= line.min_positive)
