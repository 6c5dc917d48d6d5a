"""Rows with real texts and four cheap checks each, next to the floor of ``throughput``: CPU and bytes of the ledger for a row.

The texts are the outside data: tasks and solutions of HumanEval, pairs of answers of LLMBar, and the replies of its recorded judges.
"""

from __future__ import annotations

import gzip
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median
from typing import Any

import throughput
import workload
from processes import HERE, Figure

ROWS = 20_000
FILES = ("human_eval.jsonl.gz", "llmbar_natural.jsonl.gz")


def measure(folder: Path, count: int | None, repeats: int) -> Iterator[Figure]:
    """Measure *count* rows. The real rows are repeated, and a number makes each of their texts different."""
    data = Path(os.environ.get("DICAST_OUTSIDE_DATA", HERE.parents[1] / "shared" / "data")).absolute()
    missing = [name for name in FILES if not (data / name).exists()]
    if missing:
        print(f"texts: not measured: {data} has no {', '.join(missing)}; set DICAST_OUTSIDE_DATA", file=sys.stderr)
        yield Figure("texts.cpu_ratio", None, "x the floor")
        return
    real = list(_rows(data))
    yield Figure("texts.real_rows", len(real), "rows")
    yield Figure("texts.characters", mean(_length(row) for row in real), "characters a row")
    (folder / "pipeline.yaml").write_text(workload.PIPELINE, encoding="utf-8")
    _write(folder, real, len(real))
    throughput.dicast_run(folder, len(real))
    yield Figure("texts.ledger_bytes", (folder / "ledger.db").stat().st_size / len(real), "bytes a row", "<= 600")
    count = count or ROWS
    _write(folder, real, count)
    pairs = [(throughput.floor_run(folder), throughput.dicast_run(folder, count)) for _ in range(repeats)]
    yield Figure(f"texts.{count}.floor_cpu", median(floor.cpu for floor, _ in pairs), "s")
    yield Figure(f"texts.{count}.dicast_cpu", median(dicast.cpu for _, dicast in pairs), "s")
    yield Figure(f"texts.{count}.cpu_ratio", median(dicast.cpu / floor.cpu for floor, dicast in pairs), "x the floor")
    yield Figure(f"texts.{count}.cpu_per_row", median(dicast.cpu for _, dicast in pairs) / count * 1e6, "µs")


def _rows(data: Path) -> Iterator[dict[str, str]]:
    for task in _lines(data / FILES[0]):
        yield {"input": task["prompt"], "output": task["canonical_solution"], "reference": task["test"]}
    for pair in _lines(data / FILES[1]):
        yield {"input": pair["input"], "output": pair["output_1"], "reference": pair["output_2"]}
        replies = {reply["completion"] for judge in pair["judgments"].values() for reply in judge.values()}
        best = pair[f"output_{pair['label']}"]
        for reply in sorted(text for text in replies if isinstance(text, str) and text.strip()):
            yield {"input": pair["input"], "output": reply, "reference": best}


def _lines(path: Path) -> Iterator[Any]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        yield from map(json.loads, file)


def _length(row: dict[str, str]) -> int:
    return sum(map(len, row.values()))


def _write(folder: Path, real: list[dict[str, str]], count: int) -> None:
    with (folder / "rows.jsonl").open("w", encoding="utf-8") as file:
        for number in range(count):
            copy, place = divmod(number, len(real))
            row = real[place]
            texts = {name: f"{text} ({copy})" for name, text in row.items()} if copy else row
            file.write(json.dumps({"id": f"row-{number}", **texts}) + "\n")
