"""Calibration of probabilities: Brier score and skill, Cox's slope and intercept, the expected calibration error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[Any]

BINS = 10
SIMULATIONS = 1_000

FIELDS = ("n", "base_rate", "brier", "skill", "slope", "intercept", "ece", "ece_calibrated")


def calibration(chances: Numbers, outcomes: Numbers, seed: int = 0) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the figures that compare *chances* in [0, 1] with *outcomes* in [0, 1], and the reason of each figure that is null.

    - ``brier`` (G. W. Brier, 1950) is the mean squared error. ``skill`` is 1 minus the ratio of ``brier`` to the error of a constant forecast of the base rate.
    - ``slope`` and ``intercept`` are the coefficients of the logistic regression of outcomes on the log odds of the chances (D. R. Cox, Biometrika 45, 1958, 562-565):
      1 and 0 if the chances are calibrated. A chance of 0 or 1 has no log odds: it counts as half a case in *n* + 1.
    - ``ece`` is the mean difference of chance and outcome in 10 bins of equal counts. It is above 0 for a calibrated judge too: ``ece_calibrated`` is its
      95 % quantile in simulations of a calibrated judge.
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
    reasons = {} if spread else {"skill": "all outcomes are equal: the base rate makes no error"}
    if drawn is None:
        reasons["ece_calibrated"] = "not simulated above 10,000 labels"
    line = _cox(chances, outcomes) if spread else None
    if line is None:
        return figures, {**reasons, "slope": "all chances are equal, or they separate the outcomes without an error"}
    return {**figures, "intercept": line[0], "slope": line[1]}, reasons


def _bins(chances: Numbers) -> Numbers:
    """Return the bin of each chance: ten bins of equal counts, in the order of the chances."""
    import numpy as np

    places = np.empty(len(chances), np.intp)
    places[np.argsort(chances, kind="stable")] = np.arange(len(chances)) * min(BINS, len(chances)) // len(chances)
    return places


def _ece(chances: Numbers, outcomes: Numbers, bins: Numbers) -> Any:
    """Return the expected calibration error of each row of *outcomes*."""
    import numpy as np

    marks = (bins[:, None] == np.arange(int(bins.max()) + 1)).astype(float)
    return abs((outcomes - chances) @ marks).sum(1) / len(chances)


def _cox(chances: Numbers, outcomes: Numbers) -> tuple[float, float] | None:
    """Return intercept and slope, or None if the likelihood has no maximum."""
    import numpy as np
    from scipy.special import logit as log_odds  # type: ignore[import-untyped]  # no types

    from .regression import logit

    edge = 0.5 / (len(chances) + 1)
    inside = np.where(chances <= 0, edge, np.where(chances >= 1, 1 - edge, chances))
    odds = log_odds(inside)
    regression = logit(np.column_stack([np.ones(len(odds)), odds]), outcomes, range(len(odds)))
    return None if regression is None else (float(regression.coefficients[0]), float(regression.coefficients[1]))
