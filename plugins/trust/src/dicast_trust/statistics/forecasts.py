"""Whether probabilities come true: Brier score and skill, Cox's slope and intercept, the expected calibration error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[Any]

BINS = 10
SIMULATIONS = 1_000

FIELDS = ("n", "base_rate", "brier", "skill", "slope", "intercept", "ece", "ece_calibrated")


def calibration(chances: Numbers, outcomes: Numbers, seed: int = 0) -> tuple[dict[str, Any], dict[str, str]]:
    """How well *chances* in [0, 1] foretell *outcomes*, which are 0, 1 or between; and why a figure is null.

    - ``brier`` (G. W. Brier, 1950) is the mean squared error, ``skill`` 1 less its ratio to that of always saying the base rate.
    - ``slope`` and ``intercept``: those of the logistic regression of outcomes on the log odds of the chances (D. R. Cox, Biometrika 45, 1958, 562-565); 1 and 0
      where they come true. A chance of 0 or 1 has no log odds: it stands for half a case in *n* + 1.
    - ``ece``: the mean difference of chance and outcome in 10 bins of equal counts. A judge that is calibrated has one too: ``ece_calibrated`` is what it stays below in 95 %
      of simulations.
    """
    import numpy as np

    n = len(chances)
    figures: dict[str, Any] = dict.fromkeys(FIELDS) | {"n": n}
    if not n:
        return figures, {"brier": "there is no label to compare with"}
    base, brier = float(outcomes.mean()), float(((chances - outcomes) ** 2).mean())
    spread = float(((outcomes - base) ** 2).mean())
    figures |= {"base_rate": base, "brier": brier, "skill": 1 - brier / spread if spread else None}
    bins = _bins(chances)
    figures["ece"] = _ece(chances, outcomes[None, :], bins)[0]
    drawn = np.random.default_rng(seed).random((SIMULATIONS, n)) < chances if n <= 10_000 else None
    if drawn is not None:
        figures["ece_calibrated"] = float(np.quantile(_ece(chances, drawn.astype(float), bins), 0.95))
    reasons = {} if spread else {"skill": "all outcomes are alike: the base rate makes no error"}
    if drawn is None:
        reasons["ece_calibrated"] = "more than 10,000 labels are not simulated: the error is what it is"
    found = _cox(chances, outcomes) if spread else None
    if found is None:
        return figures, {**reasons, "slope": "the chances are all alike, or tell the outcomes apart without an error"}
    return {**figures, "intercept": found[0], "slope": found[1]}, reasons


def _bins(chances: Numbers) -> Numbers:
    """The bin of each chance: ten of equal counts, in the order of the chances."""
    import numpy as np

    places = np.empty(len(chances), np.intp)
    places[np.argsort(chances, kind="stable")] = np.arange(len(chances)) * min(BINS, len(chances)) // len(chances)
    return places


def _ece(chances: Numbers, outcomes: Numbers, bins: Numbers) -> Any:
    """The error of each row of *outcomes*."""
    import numpy as np

    marks = (bins[:, None] == np.arange(int(bins.max()) + 1)).astype(float)
    return abs((outcomes - chances) @ marks).sum(1) / len(chances)


def _cox(chances: Numbers, outcomes: Numbers) -> tuple[float, float] | None:
    """Intercept and slope; None where there is no likeliest pair."""
    import numpy as np
    from scipy.special import logit as log_odds  # type: ignore[import-untyped]  # no types

    from .regression import logit

    edge = 0.5 / (len(chances) + 1)
    inside = np.where(chances <= 0, edge, np.where(chances >= 1, 1 - edge, chances))
    odds = log_odds(inside)
    found = logit(np.column_stack([np.ones(len(odds)), odds]), outcomes, range(len(odds)))
    return None if found is None else (float(found.coefficients[0]), float(found.coefficients[1]))
