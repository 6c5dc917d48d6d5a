"""``dicast plan --labels --rates``: the number of labels that a calibration needs at given error rates of a stage."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

from dicast import ConfigError, Problem

from ..calibration.labels_needed import ENOUGH, MOST, least_n
from ..calibration.ladder import RungTest

SIMULATIONS = 2_000
"""Number of simulations. A calibration uses a tenth of it for each of its forty forecasts."""

Rates = list[tuple[float, float]]


def read_rates(text: str | None) -> Rates:
    """Parse ``share:error,…`` into pairs of a share of subjects and the stage's error rate there, in descending order of confidence.

    :raises ConfigError: if a pair is invalid, or the shares do not add up to 1.
    """
    if not text:
        raise ConfigError(
            Problem(
                "--rates is missing: add share:error,… such as 0.5:0.02,0.5:0.2, in descending order of confidence",
                path="--rates",
            )
        )
    rates: Rates = []
    for part in text.split(","):
        share, _, error = part.partition(":")
        try:
            rates.append((float(share), float(error)))
        except ValueError as wrong:
            raise ConfigError(
                Problem(f"{part!r} is not share:error, such as 0.5:0.02", path="--rates", value=part)
            ) from wrong
    if not all(0 <= number <= 1 for pair in rates for number in pair):
        raise ConfigError(Problem("shares and errors are numbers from 0 to 1", path="--rates", value=text))
    total = math.fsum(share for share, _ in rates)
    if abs(total - 1) > 1e-6:
        raise ConfigError(Problem(f"the shares add up to {total:g}, not to 1", path="--rates", value=text))
    return rates


def labels_document(text: str | None, target: float = 0.9, alpha: float = 0.1, seed: int = 0) -> dict[str, Any]:
    """Return the forecast as JSON data: ``labels`` is the number of labels needed at these rates, null if 6,000 are not enough.

    With so many labels, 80 % of simulated calibrations find a threshold that keeps at least 30 % of subjects.
    """
    import numpy as np

    rates, test = read_rates(text), RungTest(1 - target, alpha)
    shares, errors = np.array(rates).T
    needed = least_n(shares, errors, test, test.least, np.random.default_rng(seed), SIMULATIONS)
    request = {"rates": [{"share": share, "error": error} for share, error in rates], "target": target, "alpha": alpha}
    return {**request, "labels": needed, "least": test.least, "most": MOST, "chance": ENOUGH}


def labels_lines(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the document in lines."""
    threshold = f"a threshold whose verdicts are right {document['target']:.0%} of the time".replace("%", " %")
    if document["labels"] is None:
        yield f"labels: {document['most']:,} are not enough at these rates for {threshold}"
    else:
        chance = f"{document['chance']:.0%}".replace("%", " %")
        yield f"labels: about {document['labels']:,} at these rates for {threshold}, in {chance} of calibrations"
    yield "  real rates are uncertain: plan for half as many again"
