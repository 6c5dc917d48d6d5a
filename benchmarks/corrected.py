"""How often ``score.corrected`` has the true mean in its interval, and how often the plain gate's interval has it.

    python benchmarks/corrected.py [--runs 2000] [--seed 1]

Subjects have a skill; a proxy of it gates, the truth is 0 or 1, or between. Each line is one population: how many subjects, how many of those that
were held back are audited, whether subjects share sessions. The target of the corrected interval is 93 to 97 %.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from dicast_trust.audits.corrected import Corrected

CASES = [
    (n, audits, kind, sessions)
    for n, audits in ((100, 10), (100, 30), (400, 12), (1000, 20), (1000, 100))
    for kind, sessions in (("0/1", False), ("scores", False), ("scores", True))
]


def subjects(
    rng: np.random.Generator, n: int, kind: str, *, sessions: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Proxies, truths and sessions: of three subjects each, whose skills have a correlation of .3."""
    group = np.arange(n) // 3 if sessions else np.arange(n)
    shared, own = rng.normal(size=group[-1] + 1)[group], rng.normal(size=n)
    skill = shared * math.sqrt(0.3) + own * math.sqrt(0.7) if sessions else own
    truth = (
        (skill + rng.normal(0, 0.5, n) > 0).astype(float)
        if kind == "0/1"
        else 1 / (1 + np.exp(-skill - rng.normal(0, 0.5, n)))
    )
    proxy = 1 / (1 + np.exp(-skill - 0.4 - rng.normal(0, 0.8, n)))
    return proxy, truth, group


def one(
    rng: np.random.Generator, n: int, audits: int, kind: str, *, sessions: bool
) -> tuple[float, float, float, float]:
    """The ends of the corrected interval and of the plain one."""
    proxy, truth, group = subjects(rng, n, kind, sessions=sessions)
    passed = proxy >= 0.5
    score = np.where(passed, truth, proxy)
    held = np.flatnonzero(~passed)
    audited = set(rng.choice(held, min(audits, len(held)), replace=False).tolist())
    live = Corrected(["metrics"], audits / len(held))
    live.add(
        {
            "session_id": str(group[at]) if sessions else None,
            "state": "passed" if passed[at] else "audited" if at in audited else "held",
            "score": float(score[at]),
            "truths": {"metrics": float(truth[at])} if passed[at] or at in audited else {},
            "costs": [],
        }
        for at in range(n)
    )
    found = live.finish({"metrics": float(score.mean())})["corrected"]["metrics"]
    sums = np.bincount(group, score - score.mean())
    half = 1.96 * math.sqrt(len(sums) / (len(sums) - 1) * (sums**2).sum()) / n
    return found["ci_low"], found["ci_high"], score.mean() - half, score.mean() + half


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    print(f"{'n':>5} {'audits':>6}  {'truths':<7} {'sessions':<8} {'corrected':>9} {'width':>7} {'plain':>7}")
    for n, audits, kind, sessions in CASES:
        rng = np.random.default_rng([asked.seed, n, audits, sessions, len(kind)])
        truth = subjects(rng, 1_000_000, kind, sessions=sessions)[1].mean()
        found = np.array([one(rng, n, audits, kind, sessions=sessions) for _ in range(asked.runs)])
        hit, plain = ((found[:, at] <= truth) & (truth <= found[:, at + 1]) for at in (0, 2))
        width = (found[:, 1] - found[:, 0]).mean()
        print(
            f"{n:>5} {audits:>6}  {kind:<7} {'of 3' if sessions else '-':<8} {hit.mean():>9.1%} {width:>7.3f} {plain.mean():>7.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
