"""The ledger alone: appends of paid replies, reads of verdicts, the check, and the bytes of rows with real texts."""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import workload
from processes import DICAST, HERE, Figure, clear, run

REPLIES = 5_000
VERDICTS = 100_000
FILES = ("llmbar_natural.jsonl.gz", "human_eval.jsonl.gz")


def measure(folder: Path, count: int | None) -> Iterator[Figure]:
    """Measure the ledger; *count* verdicts are read in place of :data:`VERDICTS`."""
    paid = _own(folder, "append", REPLIES)
    yield Figure("storage.append", paid["append"], "µs CPU an append of two events", "<= 70")
    yield Figure("storage.reserve", paid["reserve"], "µs CPU, with up to 64 open reservations")
    yield Figure("storage.append_floor", paid["floor"], "µs CPU a row in a transaction")
    read = _own(folder, "columns", count or VERDICTS)
    yield Figure(f"storage.{read['verdicts']}.read", read["read"], "µs CPU a verdict", "<= 0.1")
    yield Figure(f"storage.{read['verdicts']}.verify", read["verify"], "µs CPU an event", "<= 3")
    yield from _texts(folder)


def _own(folder: Path, what: str, count: int) -> dict[str, Any]:
    clear(folder, "*.db*")
    found: dict[str, Any] = json.loads(
        run([sys.executable, HERE / "own_storage.py", what, folder, str(count)], folder).output
    )
    return found


def _texts(folder: Path) -> Iterator[Figure]:
    data = Path(os.environ.get("DICAST_OUTSIDE_DATA", HERE.parents[1] / "shared" / "data"))
    if missing := [name for name in FILES if not (data / name).exists()]:
        print(
            f"storage.texts: not measured: {', '.join(missing)} not in {data}; DICAST_OUTSIDE_DATA names the folder",
            file=sys.stderr,
        )
        yield Figure("storage.texts.bytes", None, "bytes a row", "<= 600")
        return
    rows = []
    for name in FILES:
        with gzip.open(data / name, "rt", encoding="utf-8") as file:
            rows += _rows(map(json.loads, file))
    workload.write(folder, 0)
    with (folder / "rows.jsonl").open("w", encoding="utf-8") as file:
        file.writelines(json.dumps({"id": str(number), **row}) + "\n" for number, row in enumerate(rows))
    clear(folder, "ledger.db*")
    run([DICAST, "run", "pipeline.yaml", "--json"], folder)
    size = sum(part.stat().st_size for part in folder.glob("ledger.db*"))
    yield Figure("storage.texts.rows", len(rows))
    yield Figure(
        "storage.texts.text",
        sum(map(len, (text for row in rows for text in row.values()))) / len(rows),
        "characters a row",
    )
    yield Figure("storage.texts.bytes", size / len(rows), "bytes a row", "<= 600")


def _rows(items: Iterator[dict[str, Any]]) -> Iterator[dict[str, str]]:
    """Yield rows of an instruction and a text: outputs with the replies of the recorded judges, or programs."""
    for item in items:
        if "prompt" in item:
            yield {"input": item["prompt"], "output": item["canonical_solution"], "reference": item["test"]}
            continue
        texts = [item["output_1"], item["output_2"]]
        for orders in item["judgments"].values():
            texts += [order["completion"] for order in orders.values()]
        for text in dict.fromkeys(text for text in texts if text):
            yield {"input": item["input"], "output": text, "reference": item["output_1"]}
