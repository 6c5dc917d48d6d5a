"""What a judge prefers beside what is good: the place that is shown first, the longer text, the texts of its own family of models."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import log
from typing import Any, NamedTuple

from ..statistics.binomial import Z, wilson
from ..statistics.chance_agreement import newcombe
from ..statistics.regression import linear, logit, p_value

LEAST_EFFECT = 0.05
"""An effect on the mean up to this is no warning."""

OUTPUT, OPPONENT = "output", "opponent"

NO_MODEL = "the judge asks no model"
"""Why there is no family, which is no lack."""

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
"""By who trained them, how the names of models begin, after a provider's prefix."""


class Pair(NamedTuple):
    """A pair that was judged in both orders: who won in each, the label of the output, and the lengths of both texts."""

    winners: tuple[str, str]
    gold: float | None
    output: int | None
    opponent: int | None


class Graded(NamedTuple):
    """A score with its label, the length of what was judged, and the session."""

    score: float
    gold: float
    length: int | None
    session: object


def order_flips(pairs: Iterable[Pair]) -> dict[str, Any]:
    """How often the winner changes with the order, with Wilson's interval."""
    flips = [len(set(pair.winners)) > 1 for pair in pairs]
    ends = wilson(sum(flips), len(flips))
    low, high = ends or (None, None)
    value = sum(flips) / len(flips) if flips else None
    return {"value": value, "low": low, "high": high, "flipped": sum(flips), "n": len(flips)}


def both_orders(pairs: Sequence[Pair]) -> dict[str, Any]:
    """Of labeled pairs: in how many orders the judge names the better one, each order counted, and how often both orders name the same one."""
    known = [pair for pair in pairs if pair.gold is not None and pair.gold != 0.5]
    better = [OUTPUT if (pair.gold or 0) > 0.5 else OPPONENT for pair in known]
    right = [winner == best for pair, best in zip(known, better, strict=True) for winner in pair.winners]
    same = [len(set(pair.winners)) == 1 for pair in known]
    if not known:
        return {"accuracy": None, "agreement": None, "n": 0}
    return {"accuracy": sum(right) / len(right), "agreement": sum(same) / len(same), "n": len(known)}


def preferences(pairs: Sequence[Pair]) -> tuple[dict[str, Any], dict[str, str]]:
    """``position`` and ``length`` of one logistic regression over both orders of labeled pairs, and why one is null.

    That the first one wins is explained by 1, the label (+1 where the first one is the better, -1 where the second is) and the logarithm of the length of the first over that of
    the second; a tie is half a win. Standard errors are by pair.
    """
    import numpy as np

    known = [(place, pair) for place, pair in enumerate(pairs) if pair.gold is not None]
    if not known:
        why = "there is no labeled pair that was judged in both orders"
        return {"position": None, "length": None}, {"position": why, "length": why}
    rows = [(place, *row) for place, pair in known for row in _orders(pair)]
    sized = all(row[3] is not None for row in rows)
    columns = np.array([[1.0, gold, size or 0.0] for _, _, gold, size in rows])
    outcomes = np.array([won for _, won, _, _ in rows])
    use_length = sized and bool(np.ptp(columns[:, 2]))
    design = columns if use_length else columns[:, :2]
    fit = logit(design, outcomes, [row[0] for row in rows])
    if fit is None:
        why = "too few labeled pairs, or winners that the labels tell without an error: there is no likeliest effect"
        return {"position": None, "length": None}, {"position": why, "length": why}
    shown = {"position": _shown(fit, design, 0), "length": _shown(fit, design, 2) if use_length else None}
    missing = "the ledger does not have both texts of every pair, so that their lengths are not known"
    alike = "all texts are of one length"
    return shown, {} if use_length else {"length": alike if sized else missing}


def _orders(pair: Pair) -> Iterable[tuple[float, float, float | None]]:
    """Of each order: whether the first one won, the label of the first one, and the logarithm of its length over the other's."""
    assert pair.gold is not None  # the caller has looked
    label = float(pair.gold > 0.5) - float(pair.gold < 0.5)
    size = log(pair.output / pair.opponent) if pair.output and pair.opponent else None
    for winner, first, sign in zip(pair.winners, (OUTPUT, OPPONENT), (1, -1), strict=True):
        won = 1.0 if winner == first else 0.0 if winner in (OUTPUT, OPPONENT) else 0.5
        yield won, sign * label, None if size is None else sign * size


def _shown(fit: Any, design: Any, place: int) -> dict[str, Any] | None:
    """A coefficient with its z, its p, and its effect on the mean: how much more often the first, or the longer one, wins by it."""
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
    ends = {"low": value - Z * error, "high": value + Z * error}
    return {"value": value, **ends, "z": z, "p_value": p_value(z), "effect": effect}


def score_by_length(graded: Sequence[Graded]) -> tuple[dict[str, Any] | None, str | None]:
    """How scores grow with the logarithm of the length, given the label: the slope of a least squares fit, with errors by session; or why it is null.

    Its ``effect`` on the mean is that of one standard deviation of the logarithm.
    """
    import numpy as np

    if not graded or not all(one.length for one in graded):
        return None, "the ledger does not have the text of every labeled subject, so that lengths are not known"
    sizes = np.log([float(one.length or 0) for one in graded])
    design = np.column_stack([np.ones(len(graded)), [one.gold for one in graded], sizes])
    fit = linear(design, np.array([one.score for one in graded]), [one.session for one in graded])
    if fit is None or (z := fit.z(2)) is None:
        return None, "too few labeled subjects, or all of one length or one label"
    return _effect(
        float(fit.coefficients[2]), float(fit.errors[2]), z, float(fit.coefficients[2]) * float(sizes.std(ddof=1))
    ), None


def family(model: str | None) -> str | None:
    """Who trained the *model*, as far as its name tells; None where it does not."""
    name = (model or "").lower().rpartition("/")[2]
    return next((who for who, begins in _FAMILIES.items() if re.match(begins, name)), None)


def self_preference(rights: Sequence[tuple[str, bool]], judge: str | None) -> tuple[dict[str, Any] | None, str | None]:
    """How much more often the model *judge* is right on outputs of its own family than on others, or why that is not known.

    *rights* are, of labeled subjects, the model that wrote the output, and whether the verdict is right.
    """
    mine = family(judge)
    if mine is None:
        return None, "the judge's model is of no known family" if judge else NO_MODEL
    sides = {own: [right for author, right in rights if (family(author) == mine) is own] for own in (True, False)}
    counts = [(sum(side), len(side)) for side in (sides[True], sides[False])]
    found = newcombe(counts[0], counts[1]) if all(n for _, n in counts) else None
    if found is None:
        return (
            None,
            "the ledger names the model that wrote the output of too few labeled subjects; --author names the column that has it",
        )
    value, (low, high) = found
    told = [{"n": n, "accuracy": right / n} for right, n in counts]
    z = value / ((high - low) / (2 * Z)) if high > low else 0.0
    figures = {"value": value, "low": low, "high": high, "own": told[0], "others": told[1], "family": mine}
    return {**figures, "p_value": p_value(z), "effect": value}, None
