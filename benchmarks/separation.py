"""Measure how well scores of sessions separate conversations that reached their goal from the rest.

``uv run python benchmarks/separation.py [FOLDER]`` judges the recorded airline conversations of the outside data, whose
``reward`` is the environment's own check of the final state: did the agent book what it was asked to, and nothing else. It
prints, for the score of the session and for what it is made of, the AUC: how often a conversation with reward 1 has the
higher value of a pair with one of reward 0, ties counted half.

The interval is 95 %, by the percentiles of 5,000 bootstrap samples of tasks, not of conversations: two are about one task, and
are more alike than others. *Within a task* counts only pairs of conversations about the same task, so that what merely tells
hard tasks from easy ones is left out.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import sys
import tempfile
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean, quantiles
from typing import Any

import dicast
from dicast import Verdict

DATA = "tau_bench_airline.jsonl.gz"
ID = "{{ task_id }}-{{ trial }}"
SAMPLES, SEED = 5000, 7
PIPELINE = """\
source:
  traces/messages: {{path: "{path}", id: "{id}", tool_error: "^Error", subjects: [tool_cycle, turn, session]}}
judges: [heuristic/tool_cycle, heuristic/turn, heuristic/session]
ledger: {{ledger/sqlite: {{path: "{ledger}"}}}}
"""

Row = Mapping[str, Any]
"""A conversation: ``task``, ``reward``, and what it is told by."""

NOT_FEATURES = ("id", "task", "reward")


def rewards(path: Path) -> Iterator[tuple[str, str, float]]:
    """The session's id, its task and its reward."""
    with gzip.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            record = json.loads(line)
            yield f"{record['task_id']}-{record['trial']}", str(record["task_id"]), record["reward"]


def judged(path: Path) -> Sequence[Verdict]:
    """The verdicts on all tool cycles, turns and sessions."""
    with tempfile.TemporaryDirectory(prefix="dicast-separation-") as folder:
        file = Path(folder, "separation.yaml")
        file.write_text(PIPELINE.format(path=path, id=ID, ledger=Path(folder, "ledger.db")), encoding="utf-8")
        return dicast.run(file).verdicts


def rows(path: Path) -> list[Row]:
    """A row a conversation, with everything that its verdicts say in numbers."""
    children: dict[str | None, list[Verdict]] = defaultdict(list)
    sessions: dict[str, Verdict] = {}
    for verdict in judged(path):
        children[verdict.parent_eval_id].append(verdict)
        if verdict.subject_kind == "session":
            sessions[verdict.subject_id] = verdict
    return [
        {"id": id, "task": task, "reward": reward, **features(sessions[id], children)}
        for id, task, reward in rewards(path)
    ]


def features(session: Verdict, children: Mapping[str | None, Sequence[Verdict]]) -> dict[str, float]:
    """Return the session's scores, each oriented so that more is better."""
    turns = children[session.eval_id]
    cycles = [cycle for turn in turns for cycle in children[turn.eval_id]]
    bad = [flag for turn in turns for flag in turn.signals["flags_negative"]]
    bad_cycles = [flag for cycle in cycles for flag in cycle.signals["flags_negative"]]
    return {
        "session score": session.score,
        "mean turn score": session.signals["mean_turn_score"],
        "min turn score": session.signals["min_turn_score"],
        "last turn's score": turns[-1].score,
        "mean tool cycle score": fmean(cycle.score for cycle in cycles) if cycles else 1.0,
        "fewer tool failures": -bad_cycles.count("tool_failed"),
        "fewer turns with a tool failure": -bad.count("tool_failed"),
        "fewer turns in which a tool returned failure": -bad.count("tool_returned_failure"),
        "fewer identical calls at once": -bad_cycles.count("immediate_re_call_same_input"),
        "fewer calls that thrash": -bad_cycles.count("thrash_in_window"),
        "fewer turns that end without text": -bad.count("stop_reason_unclean"),
        "fewer refusals": -bad.count("assistant_refusal_detected"),
        "fewer empty answers": -bad.count("empty_assistant_response"),
        "fewer tool calls": -len(cycles),
        "fewer turns": -len(turns),
    }


def auc(good: Sequence[float], bad: Sequence[float]) -> float:
    """The chance that a value of *good* is above one of *bad*, ties counted half (Mann-Whitney)."""
    ordered = sorted(bad)
    wins = sum(bisect_left(ordered, value) + bisect_right(ordered, value) for value in good)
    return wins / 2 / (len(good) * len(bad))


def within(found: Sequence[Row], feature: str) -> tuple[float, int]:
    """As :func:`auc`, of the pairs that are about one task alone; and how many pairs these are."""
    pairs = [
        (good[feature], bad[feature])
        for good in found
        for bad in found
        if good["reward"] == 1 > bad["reward"] and good["task"] == bad["task"]
    ]
    return fmean((good > bad) + (good == bad) / 2 for good, bad in pairs), len(pairs)


def interval(found: Sequence[Row], feature: str, samples: Sequence[Sequence[str]]) -> tuple[float, float]:
    """The 95 % interval of the AUC of *feature*, over *samples* of tasks."""
    of_task: dict[str, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for row in found:
        of_task[row["task"]][row["reward"] < 1].append(row[feature])
    drawn = []
    for sample in samples:
        good = [value for task in sample for value in of_task[task][0]]
        bad = [value for task in sample for value in of_task[task][1]]
        if good and bad:
            drawn.append(auc(good, bad))
    cuts = quantiles(drawn, n=40, method="inclusive")
    return cuts[0], cuts[-1]


def separation(found: Sequence[Row], count: int = SAMPLES) -> Iterator[tuple[str, float, float, float, float, int]]:
    """The feature, its AUC with both ends of the interval, that within a task, and how many different values it has."""
    tasks = sorted({row["task"] for row in found})
    chance = random.Random(SEED)
    samples = [chance.choices(tasks, k=len(tasks)) for _ in range(count)]
    for feature in (name for name in found[0] if name not in NOT_FEATURES):
        good, bad = ([row[feature] for row in found if (row["reward"] == 1) is wanted] for wanted in (True, False))
        own, _ = within(found, feature)
        yield feature, auc(good, bad), *interval(found, feature, samples), own, len({*good, *bad})


def table(found: Sequence[Row]) -> str:
    """Return the figures as Markdown."""
    good = sum(row["reward"] == 1 for row in found)
    tasks = len({row["task"] for row in found})
    _, pairs = within(found, "session score")
    lines = [
        f"There are {len(found)} conversations of {tasks} tasks, {good} with reward 1 and {len(found) - good} with reward 0.",
        f"{pairs} pairs of conversations with different rewards are about the same task.",
        "",
        "| signal | AUC | 95 % interval | within a task | values |",
        "|---|---|---|---|---|",
    ]
    lines += [
        f"| {name} | {value:.2f} | {low:.2f} to {high:.2f} | {own:.2f} | {values} |"
        for name, value, low, high, own, values in separation(found)
    ]
    return "\n".join(lines)


def main() -> int:
    default = os.environ.get("DICAST_OUTSIDE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data")
    path = Path(sys.argv[1] if len(sys.argv) > 1 else default, DATA).absolute()
    if not path.exists():
        print(f"{DATA} is not in {path.parent}; name its folder, or set DICAST_OUTSIDE_DATA", file=sys.stderr)
        return 2
    print(table(rows(path)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
