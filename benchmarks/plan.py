"""Measure how often the range of ``dicast plan`` contains the cost of the rest, at level .9.

    python benchmarks/plan.py [--runs 4000] [--seed 1]

Every row of a cascade has a cheap stage. A share of the rows is escalated to an expensive stage, at *price* times the cost. Both
stages have log-normal costs. The target is 86 to 94 % from 20 pilot rows, with a quarter escalated.
"""

from __future__ import annotations

import argparse

import numpy as np

from dicast_trust.plan.cost import from_rows, from_size
from dicast_trust.statistics.moments import Moments

CASES = [(10, 0.25, 10), (20, 0.25, 10), (20, 0.25, 30), (20, 0.5, 10), (40, 0.25, 10), (40, 0.1, 10), (20, 1.0, 10)]
ROWS = 1000


def moments(xs: np.ndarray, ys: np.ndarray | None = None) -> Moments:
    """Of *xs*, or of pairs."""
    found = Moments()
    for at, x in enumerate(xs.tolist()):
        found.add(x, 0.0 if ys is None else float(ys[at]))
    return found


def by_rows(rng: np.random.Generator, pilot: int, share: float, price: float) -> bool:
    """Whether the range from a pilot's mean has the rest of a cascade."""
    costs = rng.lognormal(0, 0.3, ROWS) + (rng.random(ROWS) < share) * price * rng.lognormal(0, 0.4, ROWS)
    found = from_rows(moments(costs[:pilot]), ROWS - pilot, 0.9)
    return bool(found.low <= costs[pilot:].sum() <= found.high)


def by_size(rng: np.random.Generator, pilot: int) -> bool:
    """Whether the range from rows' sizes has the rest of a judge whose cost grows with them."""
    sizes = rng.lognormal(6, 0.8, ROWS)
    costs = 200 + sizes * rng.lognormal(0, 0.15, ROWS)
    found = from_size(moments(sizes[:pilot], costs[:pilot]), moments(sizes[pilot:]), 0.9)
    found = found or from_rows(moments(costs[:pilot]), ROWS - pilot, 0.9)
    return bool(found.low <= costs[pilot:].sum() <= found.high)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    print(f"{'pilot':>5} {'escalated':>9} {'price':>5} {'held':>7}")
    for pilot, share, price in CASES:
        rng = np.random.default_rng([asked.seed, pilot, int(share * 100), price])
        rate = np.mean([by_rows(rng, pilot, share, price) for _ in range(asked.runs)])
        print(f"{pilot:>5} {share:>9.0%} {price:>5} {rate:>7.1%}", flush=True)
    rng = np.random.default_rng([asked.seed, 7])
    print(f"{20:>5} {'by size':>9} {'':>5} {np.mean([by_size(rng, 20) for _ in range(asked.runs)]):>7.1%}")


if __name__ == "__main__":
    main()
