"""The two sides of ``agreement`` that are not the command line: ``python own_agreement.py WHAT …``.

``write FOLDER COUNT`` makes a ledger in which two judges have scored COUNT rows, and a file of labels for them; ``time COUNT``
takes the figures of COUNT pairs that are in memory; ``values`` prints them for the tables on standard input.
"""

from __future__ import annotations

import asyncio
import json
import random
import resource
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from dicast import Event
from dicast_ledger import Sqlite
from dicast_quality.reliability import Tally

BATCH = 10_000
WINDOW = 0.15
TIME = "2026-03-01T12:00:00.000Z"
ENDED = {
    "judge_latency_ms": 0,
    "judge_cost_usd": "0",
    "judge_cost_msat": "0",
    "fingerprint": "0" * 64,
    "judge_pricing_version": None,
    "parent_eval_id": None,
    "confidence": 0.9,
    "judge_kind": "heuristic",
    "judge_model": None,
    "rubric_id": "turn-heuristic-v1",
    "rubric_version": "1.2.0",
    "signals": {
        "flags": ["stop_reason_clean", "no_llm_failure", "no_tool_failure"],
        "flags_negative": [],
        "tool_call_count": 1,
    },
    "scores": [],
    "tier": "truth",
    "truth_reason": None,
    "skipped": [],
    "propensity": None,
}
"""What a verdict of a heuristic judge says besides its subject and score."""


def pairs(count: int) -> Iterator[tuple[float, float]]:
    """Scores of two raters who mostly agree; hardly two pairs are equal."""
    draw = random.Random(7)
    for _ in range(count):
        score = draw.random()
        yield score, min(1.0, max(0.0, score + draw.gauss(0, 0.1)))


def events(count: int) -> Iterator[Event]:
    """The verdicts of two judges on *count* rows."""
    number = 0
    for row, scores in enumerate(pairs(count)):
        subject = {"subject_kind": "row", "subject_id": f"row-{row}"}
        for judge, score in zip("ab", scores, strict=True):
            number += 1
            payload = {"eval_id": f"V{number:025d}", **subject, "judge": judge, "score": score, **ENDED}
            yield Event(f"E{number:025d}", "eval.completed", TIME, "R", payload, **subject)


async def write(folder: Path, count: int) -> None:
    async with Sqlite(folder / "ledger.db").open() as ledger:
        batch = []
        for event in events(count):
            batch.append(event)
            if len(batch) == BATCH:
                ledger.append(batch)
                batch = []
        ledger.append(batch)
    with (folder / "gold.jsonl").open("w") as file:
        for row, (score, _) in enumerate(pairs(count)):
            file.write(json.dumps({"subject_id": f"row-{row}", "score": score}) + "\n")


def take(count: int) -> dict[str, float]:
    """CPU seconds and growth of the peak memory, from pairs in memory to all figures, the interval among them."""
    ratings = [dict(enumerate(pair)) for pair in pairs(count)]
    peak, began = _peak(), time.process_time()
    tally = Tally(WINDOW)
    for each in ratings:
        tally.add(each)
    found = tally.n, tally.within, tally.alpha, tally.interval(), tally.pairs, tally.raters
    cpu = time.process_time() - began
    assert found[0] == count
    assert None not in found
    return {"cpu": cpu, "grown": _peak() - peak}


def values(tables: list[list[list[float | None]]]) -> list[dict[str, object]]:
    """Alpha of each table, and kappa of each pair of its columns."""
    found = []
    for rows in tables:
        tally = Tally(WINDOW)
        for row in rows:
            tally.add({rater: score for rater, score in enumerate(row) if score is not None})
        found.append({"alpha": tally.alpha, "kappa": [[*pair.raters, pair.kappa] for pair in tally.pairs]})
    return found


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["write", folder, count]:
            asyncio.run(write(Path(folder), int(count)))
        case ["time", count]:
            print(json.dumps(take(int(count))))
        case _:
            print(json.dumps(values(json.load(sys.stdin))))
