"""How often ``trust/anytime`` decides wrongly at the line, compared with a t interval that is read after every row.

    python benchmarks/anytime.py [--runs 2000] [--looks 2000] [--seed 1]

At the line each side may be wrong in alpha = 5 % of runs. ``file`` is compared with what its whole mean says. Sessions have 5 rows and an intraclass
correlation of .3.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

import numpy as np

from dicast_trust.statistics.betting import BettingTest

ALPHA = 0.05


def population(rng: np.random.Generator, looks: int, mean: float) -> tuple[bool, bool]:
    """Whether a run at the line decided ``above``, and ``below``."""
    found = BettingTest(mean, alpha=ALPHA).observe_all((rng.random(looks) < mean).astype(float))
    return found == "above", found == "below"


def file(rng: np.random.Generator, looks: int, mean: float) -> tuple[bool, bool]:
    """Whether a run of a file decided otherwise than its whole mean does."""
    values = (rng.random(looks) < mean).astype(float)
    found = BettingTest(mean, alpha=ALPHA, total=looks).observe_all(values)
    truth = "above" if values.mean() >= mean - 1e-9 else "below"
    return found == "above" != truth, found == "below" != truth


def sessions(rng: np.random.Generator, looks: int, mean: float) -> tuple[bool, bool]:
    """The same as *population*, by sessions."""
    weight = 1 / 0.3 - 1
    chance = rng.beta(mean * weight, (1 - mean) * weight, looks // 5)
    test = BettingTest(mean, alpha=ALPHA, longest=5)
    for scores in (rng.random((looks // 5, 5)) < chance[:, None]).astype(float).tolist():
        if test.observe_session(scores) is not None:
            break
    return test.decision == "above", test.decision == "below"


def repeated_t(rng: np.random.Generator, looks: int, mean: float) -> tuple[bool, bool]:
    """Return whether a 95 % interval, checked after every row from the tenth on, lies above or below *mean* once."""
    values = (rng.random(looks) < mean).astype(float)
    n = np.arange(1, looks + 1)
    means = values.cumsum() / n
    error = 1.96 * np.sqrt(np.maximum(means * (1 - means), 1e-12) / n)
    above, below = means - error > mean, means + error < mean
    return bool(above[9:].any()), bool(below[9:].any())


CASES = [(population, 0.5), (population, 0.9), (file, 0.8), (sessions, 0.5), (sessions, 0.9), (repeated_t, 0.5)]


def lines(runs: int, looks: int, seed: int) -> Iterator[str]:
    """A line for each case."""
    yield f"{'case':<12} {'line':>5} {'above':>7} {'below':>7} {'either':>7}"
    for case, mean in CASES:
        rng = np.random.default_rng([seed, int(100 * mean), len(case.__name__)])
        found = np.array([case(rng, looks, mean) for _ in range(runs)])
        above, below = found.mean(axis=0)
        yield f"{case.__name__:<12} {mean:>5} {above:>7.2%} {below:>7.2%} {found.any(axis=1).mean():>7.2%}"


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--looks", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    for line in lines(asked.runs, asked.looks, asked.seed):
        print(line, flush=True)


if __name__ == "__main__":
    main()
