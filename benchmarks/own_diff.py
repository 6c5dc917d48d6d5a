"""Print the least CPU seconds of ``diff/json`` on two documents of a megabyte, as JSON."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable

from dicast import Score, Subject
from dicast_diff import Json

TIMES = 5
BYTES = 1_000_000


def record(number: int, draw: random.Random) -> dict[str, object]:
    """About 150 bytes."""
    tags = [draw.choice(("new", "paid", "late", "gift")) for _ in range(4)]
    at = {"x": round(draw.random(), 6), "y": round(draw.random(), 6), "exact": draw.random() < 0.5, "note": None}
    return {"id": number, "name": f"name {draw.randrange(10**6)}", "tags": tags, "at": at}


def document() -> list[dict[str, object]]:
    """Records that take a megabyte as JSON."""
    draw, records, size = random.Random(5), list[dict[str, object]](), 0
    while size < BYTES:
        records.append(record(len(records), draw))
        size += len(json.dumps(records[-1])) + 2
    return records


def values(value: object) -> int:
    """How many values there are in *value*, itself counted."""
    inside = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(values, inside))


def least(work: Callable[[], object]) -> float:
    """The fewest CPU seconds that *work* takes."""
    spent = []
    for _ in range(TIMES):
        begun = time.process_time()
        work()
        spent.append(time.process_time() - begun)
    return min(spent)


def compare(metric: Json, output: str, reference: str, differences: int) -> float:
    """The seconds of *metric*, which is to find so many *differences*; reading both texts is part of it."""
    subject = Subject("row", "1", output=output, reference=reference)
    score = metric.score(subject)
    if not isinstance(score, Score) or score.signals.get("differences", 0) != differences:
        raise SystemExit(f"there are {differences} differences, and the answer is {score}")
    return least(lambda: metric.score(subject))


def main() -> dict[str, float]:
    """``{bytes, values, read, ordered, unordered}``."""
    records = document()
    reference = json.dumps(records)
    records[7]["name"], records[-7]["tags"] = "another", []
    changed = json.dumps(records)
    random.Random(7).shuffle(records)
    return {
        "bytes": len(reference),
        "values": values(records),
        "read": least(lambda: (json.loads(changed), json.loads(reference))),
        "ordered": compare(Json(), changed, reference, 5),
        "unordered": compare(Json(ignore_order=True), json.dumps(records), reference, 4),
    }


if __name__ == "__main__":
    print(json.dumps(main()))
