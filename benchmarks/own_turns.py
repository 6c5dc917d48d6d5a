"""Print each heuristic judge's time for each subject of recorded conversations, as JSON: ``python own_turns.py FILE``.

A subject is judged a few times and the least counts, so that what else the machine does is left out.
"""

from __future__ import annotations

import json
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import dicast
from dicast import Subject, Verdict
from dicast_heuristic import Session, ToolCycle, Turn, Workload
from dicast_traces import Messages

TIMES = 7

PIPELINE = """\
source: {{traces/messages: {{path: "{path}", id: "{id}", tool_error: "^Error", subjects: [tool_cycle, turn, session]}}}}
judges: [heuristic/tool_cycle, heuristic/turn, heuristic/session]
ledger: {{ledger/sqlite: {{path: ledger.db}}}}
"""
ID = "{{ task_id }}-{{ trial }}"


def main(path: Path) -> None:
    """Print ``{turns: [[events, seconds of its turn and its tool cycles]], judge: [seconds of a subject]}``."""
    file = Path("turns.yaml")
    file.write_text(PIPELINE.format(path=path, id=ID), encoding="utf-8")
    children: dict[str | None, list[Verdict]] = defaultdict(list)
    for verdict in dicast.run(file).verdicts:
        children[verdict.parent_eval_id].append(verdict)
    by_subject = {(verdict.subject_kind, verdict.subject_id): verdict for own in children.values() for verdict in own}
    judges: dict[str, Any] = {
        "tool_cycle": ToolCycle(dicast.rubric("tool-cycle-heuristic-v1")),
        "turn": Turn(dicast.rubric("turn-heuristic-v1")),
        "session": Session(dicast.rubric("session-aggregate-v1")),
        "workload": Workload(
            figures=dicast.rubric("workload-heuristic-v1"), grounding_tokens=["flight", "reservation"]
        ),
    }
    found: dict[str, Any] = {kind: [] for kind in judges} | {"turns": []}
    cycles = 0.0
    for subject in Messages(path, id=ID, tool_error="^Error", subjects=("tool_cycle", "turn", "session")).subjects():
        own = children[by_subject[subject.kind, subject.id].eval_id]
        spent = least(judges[subject.kind], subject, own)
        found[subject.kind].append(spent)
        if subject.kind == "tool_cycle":
            cycles += spent
        elif subject.kind == "turn":
            found["turns"].append((len(subject.events), spent + cycles))
            cycles = 0.0
            run = Subject("workload", subject.id, output=subject.output, context={"per_turn_scores": [1.0]})
            found["workload"].append(least(judges["workload"], run, ()))
    print(json.dumps(found))


def least(judge: Any, subject: Subject, children: Sequence[Verdict]) -> float:
    spent = []
    for _ in range(TIMES):
        began = time.thread_time_ns()
        judge.judge(subject, children)
        spent.append(time.thread_time_ns() - began)
    return min(spent) / 1e9


if __name__ == "__main__":
    main(Path(sys.argv[1]))
