"""An experiment over rows: prompts for three criteria each, to an endpoint on loopback, compared with the answers' own time."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from judges import endpoint, stats, write_rows
from processes import DICAST, Figure, Wrong, clear, run

ROWS, AT_ONCE, LATENCY = 1_000, 50, 0.05
CRITERIA = ("clarity", "depth", "truth")
TARGET = "<= 1.3"
PRICES = {"free": "free", "priced": "{input_per_mtok: 1, output_per_mtok: 2}"}

PIPELINE = """\
name: benchmark
source: {{rows/jsonl: {{path: rows.jsonl}}}}
task:
  prompt/chat:
    model: {{openai/chat: {{base_url: {url}, model: m, price: {price}}}}}
    user: "{{{{ input }}}}"
    criteria: {{{criteria}}}
extractors: [score_extractor/scores: {{threshold: 0.5}}]
aggregates: [stats/score_stats]
sinks: [csv/rows: {{path: rows.csv}}]
budget: {{run: 1000 usd, day: 1000 usd}}
executor: {{dicast/async: {{concurrency: {at_once}}}}}
ledger: {{ledger/sqlite: {{path: ledger.db}}}}
"""


def measure(folder: Path, count: int | None, repeats: int) -> Iterator[Figure]:
    """Measure wall time of whole processes and of their calls, as multiples of the endpoint's delay."""
    rows = count or ROWS
    write_rows(folder, rows)
    ideal = rows * len(CRITERIA) * LATENCY / AT_ONCE
    for name, price in PRICES.items():
        runs = [_run(folder, rows, price) for _ in range(repeats)]
        wall, calls, cpu = (median(figures) for figures in zip(*runs, strict=True))
        yield Figure(f"experiments.{name}_wall_ratio", wall / ideal, "x the ideal, the whole process", TARGET)
        yield Figure(f"experiments.{name}_calls_ratio", calls / ideal, "x the ideal, from first call to last", TARGET)
        yield Figure(f"experiments.{name}_cpu_per_call", cpu / (rows * len(CRITERIA)) * 1e3, "ms")


def _run(folder: Path, rows: int, price: str) -> tuple[float, float, float]:
    """Wall seconds of the process, of its calls, and its CPU seconds."""
    clear(folder, "ledger.db*", "rows.csv")
    with endpoint(folder, latency=LATENCY) as url:
        criteria = ", ".join(f"{name}: {{user: '{name}? {{{{ input }}}}'}}" for name in CRITERIA)
        text = PIPELINE.format(url=url, price=price, criteria=criteria, at_once=AT_ONCE)
        (folder / "pipeline.yaml").write_text(text, encoding="utf-8")
        done = run([DICAST, "run", "pipeline.yaml", "--json"], folder)
        asked = stats(url)
    document = json.loads(done.output)
    if document["scored"] != rows or asked["count"] != rows * len(CRITERIA):
        raise Wrong(f"{document['scored']} of {rows} rows, {asked['count']} calls")
    return done.wall, asked["last"] - asked["first"], done.cpu
