"""Print CPU seconds of the aggregates of ``dicast-stats`` as JSON: ``python own_stats.py RECORDS NAME…``."""

from __future__ import annotations

import asyncio
import json
import random
import resource
import sys
import time
from pathlib import Path
from typing import Any

import dicast_stats
from dicast import RunContext

CRITERIA = ("clarity", "accuracy", "tone", "brevity", "safety")
DIFFERENT = 1_000
"""How many different records there are; they are given again and again."""

AGGREGATES = {
    one.name: one()
    for one in (
        dicast_stats.ScoreStats,
        dicast_stats.Recommendation,
        dicast_stats.VariantRanking,
        dicast_stats.CostSummary,
        dicast_stats.LatencySummary,
        dicast_stats.Agreement,
        dicast_stats.Power,
        dicast_stats.Distribution,
        dicast_stats.PassRate,
        dicast_stats.RationaleAnalysis,
        dicast_stats.Leaderboard,
    )
}


def record(draw: random.Random) -> dict[str, Any]:
    """A record as a run has it: five criteria, each with a response, a score and a flag; one in fifty scores is missing."""
    scores = {name: None if draw.random() < 0.02 else draw.random() for name in CRITERIA}
    reported = {
        name: {"prompt_tokens": draw.randint(50, 900), "completion_tokens": draw.randint(5, 200), "cost": draw.random()}
        for name in CRITERIA
    }
    responses = {
        name: {"content": "{}", "metrics": one | {"latency_seconds": draw.random()}} for name, one in reported.items()
    }
    flags = {name: score is not None and score > 0.5 for name, score in scores.items()}
    metrics = {**responses["safety"]["metrics"], "scores": scores, "score_flags": flags}
    return {"row": {"id": "1"}, "response": responses["clarity"], "responses": responses, "metrics": metrics}


async def taken(count: int, names: list[str]) -> dict[str, float]:
    """Return ``{cpu, peak}``: CPU seconds, and the process's peak memory in MB."""
    draw, context = random.Random(5), RunContext("01KDZ3W5Z0000000000000TEST", "benchmark", Path())
    records = [record(draw) for _ in range(DIFFERENT)]
    opened = [AGGREGATES[name].open(context) for name in names]
    live = [await one.__aenter__() for one in opened]
    begun = time.process_time()
    for _ in range(count // DIFFERENT):
        for one in records:
            for aggregate in live:
                aggregate.add(one)
    found = [aggregate.finish() for aggregate in live]
    cpu = time.process_time() - begun
    json.dumps(found, allow_nan=False)
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return {"cpu": cpu, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit}


if __name__ == "__main__":
    print(json.dumps(asyncio.run(taken(int(sys.argv[1]), sys.argv[2:]))))
