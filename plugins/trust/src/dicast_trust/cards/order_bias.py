"""Preferences of a judge apart from quality: for the first position, for longer texts, for texts of its own family of models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import log
from typing import Any, NamedTuple

from dicast.toolkit.intervals import Z_95

from ..statistics.binomial import share_interval
from ..statistics.chance_agreement import newcombe
from ..statistics.regression import linear, logit, p_value

LEAST_EFFECT = 0.05
"""Effect on the mean above which a preference is a warning."""

OUTPUT, OPPONENT = "output", "opponent"

NO_MODEL = "the judge asks no model"
"""Reason why there is no family; it is not a defect."""

_FAMILIES = {
    "openai": r"gpt|chatgpt|o[1-9](?:-|$)|davinci|text-embedding",
    "anthropic": r"claude",
    "google": r"gemini|gemma|palm|bard",
    "meta": r"llama",
    "alibaba": r"qwen|qwq",
    "mistral": r"mistral|mixtral|ministral|codestral|magistral",
    "deepseek": r"deepseek",
    "xai": r"grok",
    "cohere": r"command|cohere|aya",
    "microsoft": r"phi-",
}
"""Patterns of the beginning of model names, after a provider's prefix, by the trainer of the models."""


class Pair(NamedTuple):
    """Pair judged in both orders: the winner of each order, the label of the output, and the lengths of both texts."""

    winners: tuple[str, str]
    gold: float | None
    output: int | None
    opponent: int | None


class Graded(NamedTuple):
    """Score with its label, the length of the judged text, and the session."""

    score: float
    gold: float
    length: int | None
    session: object


def order_flips(pairs: Iterable[Pair]) -> dict[str, Any]:
    """Return how often the winner changes with the order, with Wilson's interval."""
    flips = [len(set(pair.winners)) > 1 for pair in pairs]
    ends = share_interval(sum(flips), len(flips))
    low, high = ends or (None, None)
    value = sum(flips) / len(flips) if flips else None
    return {"value": value, "low": low, "high": high, "flipped": sum(flips), "n": len(flips)}


def both_orders(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Return the share of orders in which the judge names the better output, and the share of pairs with the same winner in both orders.

    Only pairs with a label that is not a tie count.
    """
    labeled = [pair for pair in pairs if pair.gold is not None and pair.gold != 0.5]
    better = [OUTPUT if (pair.gold or 0) > 0.5 else OPPONENT for pair in labeled]
    is_right = [winner == best for pair, best in zip(labeled, better, strict=True) for winner in pair.winners]
    is_consistent = [len(set(pair.winners)) == 1 for pair in labeled]
    if not labeled:
        return {"accuracy": None, "agreement": None, "n": 0}
    return {
        "accuracy": sum(is_right) / len(is_right),
        "agreement": sum(is_consistent) / len(is_consistent),
        "n": len(labeled),
    }


def preferences(pairs: Sequence[Pair]) -> tuple[dict[str, Any], dict[str, str]]:
    """Return ``position`` and ``length`` from one logistic regression over both orders of labeled pairs, and the reasons of null figures.

    The outcome is a win of the first output, with a tie as half a win. The columns are 1, the label (+1 if the first output is better, -1 if the second is) and
    the logarithm of the first length over the second. Standard errors are by pair.
    """
    import numpy as np

    labeled = [(place, pair) for place, pair in enumerate(pairs) if pair.gold is not None]
    if not labeled:
        reason = "no labeled pair was judged in both orders"
        return {"position": None, "length": None}, {"position": reason, "length": reason}
    rows = [(place, *row) for place, pair in labeled for row in _orders(pair)]
    has_lengths = all(row[3] is not None for row in rows)
    columns = np.array([[1.0, gold, size or 0.0] for _, _, gold, size in rows])
    outcomes = np.array([won for _, won, _, _ in rows])
    use_length = has_lengths and bool(np.ptp(columns[:, 2]))
    design = columns if use_length else columns[:, :2]
    fit = logit(design, outcomes, [row[0] for row in rows])
    if fit is None:
        reason = "too few labeled pairs, or labels that predict every winner: the effect cannot be estimated"
        return {"position": None, "length": None}, {"position": reason, "length": reason}
    figures = {"position": _coefficient(fit, design, 0), "length": _coefficient(fit, design, 2) if use_length else None}
    missing = "the ledger does not have both texts of every pair, so their lengths are not known"
    equal = "all texts have one length"
    return figures, {} if use_length else {"length": equal if has_lengths else missing}


def _orders(pair: Pair) -> Iterable[tuple[float, float, float | None]]:
    """Yield for each order: whether the first output won, its label, and the logarithm of its length over the other's."""
    assert pair.gold is not None  # checked by the caller
    label = float(pair.gold > 0.5) - float(pair.gold < 0.5)
    size = log(pair.output / pair.opponent) if pair.output and pair.opponent else None
    for winner, first, sign in zip(pair.winners, (OUTPUT, OPPONENT), (1, -1), strict=True):
        won = 1.0 if winner == first else 0.0 if winner in (OUTPUT, OPPONENT) else 0.5
        yield won, sign * label, None if size is None else sign * size


def _coefficient(fit: Any, design: Any, place: int) -> dict[str, Any] | None:
    """Return a coefficient with its z, its p-value, and its effect on the mean: how much more often the first, or the longer, output wins."""
    import numpy as np
    from scipy.special import expit  # type: ignore[import-untyped]  # no types

    z = fit.z(place)
    if z is None:
        return None
    value, odds = float(fit.coefficients[place]), design @ fit.coefficients
    sides = np.sign(design[:, place])
    effect = float((sides * (expit(odds) - expit(odds - value * design[:, place]))).mean())
    return _effect(value, float(fit.errors[place]), z, effect)


def _effect(value: float, error: float, z: float, effect: float) -> dict[str, Any]:
    ends = {"low": value - Z_95 * error, "high": value + Z_95 * error}
    return {"value": value, **ends, "z": z, "p_value": p_value(z), "effect": effect}


def score_by_length(graded: Sequence[Graded]) -> tuple[dict[str, Any] | None, str | None]:
    """Return the growth of scores with the logarithm of the length, given the label, or the reason why it is null.

    It is the slope of a least squares fit, with errors by session. Its ``effect`` on the mean is the effect of one standard deviation of the logarithm.
    """
    import numpy as np

    if not graded or not all(item.length for item in graded):
        return None, "the ledger does not have the text of every labeled subject, so lengths are not known"
    sizes = np.log([float(item.length or 0) for item in graded])
    design = np.column_stack([np.ones(len(graded)), [item.gold for item in graded], sizes])
    fit = linear(design, np.array([item.score for item in graded]), [item.session for item in graded])
    if fit is None or (z := fit.z(2)) is None:
        return None, "too few labeled subjects, or all of one length or one label"
    return _effect(
        float(fit.coefficients[2]), float(fit.errors[2]), z, float(fit.coefficients[2]) * float(sizes.std(ddof=1))
    ), None


def family(model: str | None) -> str | None:
    """Return the trainer of the *model*, judging by its name, or None."""
    name = (model or "").lower().rpartition("/")[2]
    return next((trainer for trainer, begins in _FAMILIES.items() if re.match(begins, name)), None)


def self_preference(rights: Sequence[tuple[str, bool]], judge: str | None) -> tuple[dict[str, Any] | None, str | None]:
    """Return how much more often the model *judge* is right on outputs of its own family, or the reason why it is null.

    :param rights: for each labeled subject, the model that wrote the output, and whether the verdict is right.
    """
    judge_family = family(judge)
    if judge_family is None:
        return None, "the judge's model is of no known family" if judge else NO_MODEL
    sides = {
        is_own_family: [is_right for author, is_right in rights if (family(author) == judge_family) is is_own_family]
        for is_own_family in (True, False)
    }
    counts = [(sum(side), len(side)) for side in (sides[True], sides[False])]
    difference = newcombe(counts[0], counts[1]) if all(n for _, n in counts) else None
    if difference is None:
        return (
            None,
            "the ledger names the model behind the output of too few labeled subjects; name its column with --author",
        )
    value, (low, high) = difference
    groups = [{"n": n, "accuracy": hits / n} for hits, n in counts]
    z = value / ((high - low) / (2 * Z_95)) if high > low else 0.0
    figures = {"value": value, "low": low, "high": high, "own": groups[0], "others": groups[1], "family": judge_family}
    return {**figures, "p_value": p_value(z), "effect": value}, None
