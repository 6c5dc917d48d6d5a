"""How often two runs of one system differ by chance: false answers of ``compare``, and failures of a gate with a baseline.

    DICAST_OUTSIDE_DATA=DATA uv run --extra stats python benchmarks/changes.py            # 1,000 pairs of runs, about five minutes of CPU
    DICAST_OUTSIDE_DATA=DATA uv run --extra stats python benchmarks/changes.py --pairs 100 --seed 4 --json

The data are 50 tasks of tau-bench airline, each with two recorded trials of one agent. For each pair of runs, 50 tasks are drawn with replacement,
and a coin puts each trial of a task into one of the two runs. So the system is the same in both, and each "worse" is false. The labels are
the environment's reward, which gates, and five words that the agent writes in some trials. Each run is a whole run into a ledger.
"""

from __future__ import annotations

import argparse
import gzip
import json
import logging
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

try:
    import dicast
    from dicast_stats.compare.command import read_comparison
except ModuleNotFoundError as error:
    sys.exit(f"there is no {error.name}: uv run --extra stats python benchmarks/changes.py")

TARGET = 0.05
"""Largest share of pairs with a false answer."""

PER_LEDGER = 5
"""Number of pairs in one ledger."""

WORDS = ("unfortunately", "transfer", "$", "confirm", "assist you further")
"""Words of the agent that change from trial to trial, each a label."""

METRICS = [
    {"check/contains": {"as": "reward", "value": "reward 1"}},
    *({"check/icontains": {"as": word, "value": word, "weight": 0}} for word in WORDS),
]
GATE = [{"on": "reward", "baseline": "before", "max_drop": 0.02}]

Trials = Sequence[Mapping[str, Any]]


def main() -> int:
    """Print the shares; exit code 2 if the data are not there."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--pairs", type=int, default=1_000, help="the number of pairs of runs")
    parser.add_argument("--seed", type=int, default=38, help="the seed of the draws")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    options = parser.parse_args()
    path = Path(os.environ.get("DICAST_OUTSIDE_DATA", ""), "tau_bench_airline.jsonl.gz")
    if not path.is_file():
        sys.stderr.write(f"no recorded runs at {path}: DICAST_OUTSIDE_DATA names the folder of {path.name}\n")
        return 2
    logging.disable(logging.WARNING)
    cpu = time.process_time()
    shares = count_answers(read_tasks(path), options.pairs, random.Random(options.seed))
    document = {"pairs": options.pairs, "seed": options.seed, "cpu_seconds": time.process_time() - cpu, **shares}
    if options.json:
        sys.stdout.write(json.dumps(document) + "\n")
        return 0
    for name, share in shares.items():
        mark = "" if name.startswith("better") else f" ({TARGET:.0%}) {'ok' if share <= TARGET else 'MISSED'}"
        sys.stdout.write(f"{name}: {share:.1%}{mark}\n")
    return 0


def read_tasks(path: Path) -> list[Trials]:
    """Return the trials of each task that has two."""
    tasks: dict[int, list[Mapping[str, Any]]] = {}
    with gzip.open(path) as file:
        for trial in map(json.loads, file):
            tasks.setdefault(trial["task_id"], []).append(trial)
    return [trials for trials in tasks.values() if len(trials) == 2]


def count_answers(tasks: Sequence[Trials], pairs: int, draw: random.Random) -> dict[str, float]:
    """Return the share of labels with the answer, and the shares of pairs: for the gate's label, by the exit codes, and over all labels."""
    counts, labels = Counter[str](), 0
    for first in range(0, pairs, PER_LEDGER):
        with tempfile.TemporaryDirectory() as name:
            for _ in range(min(PER_LEDGER, pairs - first)):
                answers, exit_code = judge_pair(Path(name), tasks, draw)
                labels += len(answers)
                counts.update(f"{answer}, a label" for answer in answers.values())
                counts.update({f"{answer}, any label" for answer in answers.values()})
                counts.update([f"{answers['reward']}, gate's label", *(["gate: exit code not 0"] if exit_code else [])])
    names = ("worse, gate's label", "gate: exit code not 0", "worse, any label", "better, any label")
    return {"worse, a label": counts["worse, a label"] / labels, **{name: counts[name] / pairs for name in names}}


def judge_pair(folder: Path, tasks: Sequence[Trials], draw: random.Random) -> tuple[dict[str, str], int]:
    """Judge two runs of the same system; return the answer of each label, and the exit code of the gate."""
    sides: tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]] = [], []
    for trials in draw.choices(tasks, k=len(tasks)):
        for side, trial in zip(sides, draw.sample(trials, 2), strict=True):
            side.append(trial)
    before = judge(folder, "before", sides[0], None)
    after = judge(folder, "after", sides[1], GATE)
    runs = {"a": str(before.run_id), "b": str(after.run_id)}
    document = dicast.read_ledger(
        folder / "ledger.db", lambda live: read_comparison(live, **runs, compare=("score_delta",))
    )
    return {label: answer["answer"] for label, answer in document["answers"].items()}, after.exit_code


def judge(folder: Path, name: str, trials: Trials, gate: object) -> Any:
    """Return the run over *trials*."""
    with (folder / f"{name}.jsonl").open("w", encoding="utf-8") as file:
        for number, trial in enumerate(trials):
            texts = [message["content"] for message in trial["messages"] if message["role"] == "assistant"]
            output = "\n".join([*filter(None, texts), f"reward {trial['reward']:.0f}"])
            row = {"id": str(number), "input": f"task {trial['task_id']}", "output": output}
            file.write(json.dumps(row) + "\n")
    pipeline = {
        "name": name,
        "source": {"rows/jsonl": {"path": str(folder / f"{name}.jsonl")}},
        "metrics": METRICS,
        "ledger": {"ledger/sqlite": {"path": str(folder / "ledger.db")}},
        **({} if gate is None else {"gate": gate}),
    }
    return dicast.run(pipeline)


if __name__ == "__main__":
    sys.exit(main())
