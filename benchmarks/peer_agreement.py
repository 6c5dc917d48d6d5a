"""Alpha and kappa of the tables on standard input, by the packages krippendorff and scikit-learn."""

from __future__ import annotations

import json
import sys
import warnings
from itertools import combinations

import krippendorff
import numpy as np
from sklearn.metrics import cohen_kappa_score


def alpha(rows: list[list[float | None]]) -> float | None:
    data = np.array([[np.nan if score is None else score for score in row] for row in rows]).T
    try:
        found = krippendorff.alpha(reliability_data=data, level_of_measurement="interval")
    except ValueError:  # a single value, or no pair
        return None
    return None if np.isnan(found) else float(found)


def kappas(rows: list[list[float | None]]) -> list[list[object]]:
    found: list[list[object]] = []
    for one, other in combinations(range(len(rows[0])), 2):
        both = [(row[one] >= 0.5, row[other] >= 0.5) for row in rows if None not in (row[one], row[other])]
        if both:
            kappa = cohen_kappa_score(*zip(*both, strict=True))
            found.append([one, other, None if np.isnan(kappa) else float(kappa)])
    return found


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # both divide by zero where nothing is defined
    print(json.dumps([{"alpha": alpha(rows), "kappa": kappas(rows)} for rows in json.load(sys.stdin)]))
