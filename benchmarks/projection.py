"""How tight a projection is: what a judge's call was reserved for, beside what it did cost by the endpoint's own count of tokens.

``uv run python benchmarks/projection.py [FOLDER] [--rows 40]`` lets Gemma 3 270M, behind an OpenAI-compatible server on loopback, judge
questions of several lengths, or LLMBar's pairs where FOLDER has them, at 0.15 and 0.60 usd per million tokens. It prints the least and
the median ratio, once with Gemma's tokenizer and once with the estimate from bytes. The least has to be 1 or more.
"""

from __future__ import annotations

import argparse
import gzip
import json
import statistics
import sys
from collections.abc import Iterator, Sequence
from decimal import Decimal
from pathlib import Path

from dicast import Subject
from dicast.testing import run_pipeline

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from model_server import ModelServer

DATA = "llmbar_natural.jsonl.gz"
TEXT = "The committee met on Tuesday, read the report and asked for two changes before it agreed to print it. "
NAMES = {"with the tokenizer": "gemma-3-270m", "from bytes": "some-model"}
PRICE = {"input_per_mtok": 0.15, "output_per_mtok": 0.60}


def rows_of(folder: Path | None, count: int) -> Iterator[Subject]:
    """Questions with answers of 1 to 60 sentences, or LLMBar's with their first answers."""
    if folder is None:
        for number in range(count):
            yield Subject("row", str(number), "Sum this up. " + TEXT * 3, TEXT * (1 + number * 60 // count))
        return
    with gzip.open(folder / DATA, "rt", encoding="utf-8") as lines:
        for number, line in zip(range(count), lines, strict=False):
            pair = json.loads(line)
            yield Subject("row", str(number), pair["input"], pair["output_1"])


def ratios(name: str, url: str, rows: Sequence[Subject]) -> list[float]:
    """Of every call, what was reserved for it to what it did cost."""
    model = {"openai/chat": {"base_url": url, "model": name, "price": PRICE, "timeout": 300}}
    judge = {"llm/judge": {"model": model, "seal": False, "retries": 0}}
    ready = json.dumps({"judges": [judge], "executor": {"dicast/async": {"concurrency": 2}}})
    held, found = dict[str, Decimal](), list[float]()
    for event in run_pipeline(ready, subjects=rows).events:
        said = event.payload
        if event.type == "spend.reserved":
            held[str(said["reservation_id"])] = Decimal(str(said["amount"]))
        elif event.type == "spend.settled":
            found.append(float(held[str(said["reservation_id"])] / Decimal(str(said["amount"]))))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--rows", type=int, default=40)
    options = parser.parse_args()
    rows = list(rows_of(options.folder, options.rows))
    server = ModelServer("--context", 8192)
    try:
        for words, name in NAMES.items():
            found = ratios(name, server.base_url, rows)
            print(f"{words:>20}: {len(found)} calls, least {min(found):.3f}, median {statistics.median(found):.2f}")
            if min(found) < 1:
                raise SystemExit(f"{words}: a call cost more than its projection")
    finally:
        server.stop()


if __name__ == "__main__":
    main()
