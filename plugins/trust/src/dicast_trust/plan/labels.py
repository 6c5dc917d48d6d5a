"""``dicast plan --labels --rates``: how many labels a calibration needs, where it is known how often a stage is wrong."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from dicast import ConfigError, Problem

from ..calibration.labels_needed import ENOUGH, MOST, least_n
from ..calibration.ladder import RungTest

SIMULATIONS = 2_000
"""Ten times those of a calibration, which makes forty such forecasts at once."""

Rates = list[tuple[float, float]]


def read_rates(text: str | None) -> Rates:
    """Pairs of a share of subjects and how often the stage is wrong there, the surest subjects first, of ``share:error,…``.

    :raises ConfigError: where they are none, or the shares do not add up to 1.
    """
    if not text:
        raise ConfigError(
            Problem("add --rates: share:error,… such as 0.5:0.02,0.5:0.2, the surest first", path="--rates")
        )
    found: Rates = []
    for part in text.split(","):
        share, _, error = part.partition(":")
        try:
            found.append((float(share), float(error)))
        except ValueError as wrong:
            raise ConfigError(
                Problem(f"{part!r} is not share:error, such as 0.5:0.02", path="--rates", value=part)
            ) from wrong
    if not all(0 <= number <= 1 for pair in found for number in pair):
        raise ConfigError(Problem("shares and errors are numbers from 0 to 1", path="--rates", value=text))
    total = math.fsum(share for share, _ in found)
    if abs(total - 1) > 1e-6:
        raise ConfigError(Problem(f"the shares add up to {total:g}, not to 1", path="--rates", value=text))
    return found


def labels_document(text: str | None, target: float = 0.9, alpha: float = 0.1, seed: int = 0) -> dict[str, Any]:
    """How many labels are needed at these rates, for a threshold that keeps 30 % of subjects: None where 6,000 do not do."""
    import numpy as np

    rates, test = read_rates(text), RungTest(1 - target, alpha)
    shares, errors = np.array(rates).T
    needed = least_n(shares, errors, test, test.least, np.random.default_rng(seed), SIMULATIONS)
    told = {"rates": [{"share": share, "error": error} for share, error in rates], "target": target, "alpha": alpha}
    return {**told, "labels": needed, "least": test.least, "most": MOST, "chance": ENOUGH}


def labels_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """The document in lines."""
    what = f"a threshold whose verdicts are right {found['target']:.0%} of the time".replace("%", " %")
    if found["labels"] is None:
        yield f"labels: {found['most']:,} do not do at these rates for {what}"
    else:
        yield f"labels: about {found['labels']:,} at these rates for {what}, in {found['chance']:.0%} of calibrations"
    yield "  real labels say the rates only so well: plan for half as many again"
