"""The kinds of runs that ``kill.py`` kills: their files, their commands, and how many replies each needs."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from pathlib import Path

import workload
from kill_places import BucketPlace, FolderPlace, Place, PostgresPlace
from kill_ray import RayPlace
from processes import DICAST

AT_ONCE = 6
"""The executor's ``concurrency``."""
ROWS = 36
PLAIN_ROWS = 1_500
MERGED_ROWS = 1_000
MERGED_SHARDS = 3

RUN = (DICAST, "run", "pipeline.yaml", "--json")
WATCH = (DICAST, "watch", "pipeline.yaml", "--once", "--json")
SHARDS = tuple(
    (*RUN, "--shard", f"{number}/{MERGED_SHARDS}", "--ledger", f"{{ledger/sqlite: {{path: shard-{number}.db}}}}")
    for number in range(1, MERGED_SHARDS + 1)
)
MERGE = (DICAST, "merge", *(f"shard-{number}.db" for number in range(1, MERGED_SHARDS + 1)), "--json")

MODEL = """\
define: {{grader: {{openai/chat: {{base_url: {url}, model: m, price: {{input_per_mtok: 1, output_per_mtok: 2}}}}}}}}
budget: {{run: {cap} usd, day: 1000 usd, session: 100 usd}}
"""
PAID = """\
source: {{rows/jsonl: {{path: rows.jsonl}}}}
sinks: [csv/rows: {{path: rows.csv}}]
"""
ASYNC = "executor: {{dicast/async: {{concurrency: {at_once}}}}}\n"
JUDGE = "judges: [llm/judge: {{model: grader}}]\n"
JURY = """\
judges:
  - llm/jury:
      judges:
        - llm/judge: {{model: grader, criteria: [is right]}}
        - llm/judge: {{model: grader, criteria: [is brief]}}
        - llm/judge: {{model: grader, criteria: [is kind]}}
"""
TASK = """\
task:
  prompt/chat:
    model: grader
    system: "${{SYSTEM:-You rate notes.}}"
    criteria: {{clarity: {{user: "How clear is this? {{{{ output }}}}"}}, tone: {{user: "How kind is this? {{{{ output }}}}"}}}}
extractors: [score_extractor/scores: {{threshold: 0.5}}]
aggregates: [stats/score_stats]
source: {{rows/jsonl: {{path: rows.jsonl}}}}
sinks: [csv/rows: {{path: "${{experiment:-rows}}.csv"}}]
executor: {{dicast/async: {{concurrency: {at_once}}}}}
"""
SUITE = """\
include: task.yaml
experiments: {{plain: {{}}, strict: {{variables: {{SYSTEM: "You rate notes, and you are strict."}}}}}}
"""
WATCHED = """\
source: {{traces/events: {{path: trace.jsonl, subjects: [tool_cycle, turn, session]}}}}
judges:
  - heuristic/tool_cycle
  - hybrid/cascade: {{as: turn, stages: [heuristic/turn, {{llm/judge: {{model: grader}}}}], escalation_threshold: 1}}
  - heuristic/session
executor: {{dicast/async: {{concurrency: {at_once}}}}}
"""
WORKERS = """\
source: {{rows/jsonl: {{path: rows.jsonl}}}}
metrics: [proxy/format, {{proxy/length: {{min: 1, max: 1000}}}}, {{llm/judge: {{model: grader}}}}]
sinks: [csv/rows: {{path: rows.csv}}]
executor: {{dicast/processes: {{workers: 2, concurrency: 3}}}}
"""
MERGED = """\
metrics: [proxy/format]
aggregates: [stats/score_stats]
executor: {{dicast/async: {{concurrency: 48}}}}
"""


@dataclass(frozen=True)
class Kind:
    """One kind of run. *replies* are bought by an undisturbed run; *files* puts its input into a folder.

    The commands in *shards* run once, before all runs. Then a run merges their ledgers, and buys nothing.
    With *cap*, the run may buy some of the replies only: *cap* is its budget in usd, and *parts* the number of parts of this budget.
    """

    name: str
    pipeline: str
    replies: int
    files: Callable[[Path], object]
    begin: tuple[str, ...] = RUN
    resume: tuple[str, ...] = (*RUN, "--resume")
    at_once: int = AT_ONCE
    place: type[Place] = Place
    cap: Decimal | None = None
    parts: int = 1
    shards: tuple[tuple[str, ...], ...] = ()

    def write(self, place: Place, url: str) -> None:
        """Put the pipeline, which asks the endpoint at *url* and records in *place*, and its input into the folder of *place*."""
        folder = place.folder
        self.files(folder)
        values = {"url": url, "at_once": AT_ONCE, "cap": self.cap or 1000}
        if self.name == "plain":
            text = self.pipeline
        elif self.name == "suite":
            (folder / "task.yaml").write_text((MODEL + TASK).format(**values) + place.text, encoding="utf-8")
            text = self.pipeline.format()
        else:
            text = (MODEL + self.pipeline).format(**values) + place.text
        (folder / "pipeline.yaml").write_text(text, encoding="utf-8")


def _plain(folder: Path) -> None:
    workload.write(folder, PLAIN_ROWS, sessions=PLAIN_ROWS // 10)


def _rows(count: int) -> Callable[[Path], object]:
    def write(folder: Path) -> None:
        rows = [
            {"id": f"row-{number}", "input": f"Summarise note {number}.", "output": f"Note {number} is short."}
            for number in range(count)
        ]
        (folder / "rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")

    return write


def _trace(folder: Path) -> None:
    """Sessions of three turns each, with a tool call in each turn."""
    events = []
    for number in range(ROWS):
        session, turn = f"s{number // 3}", f"s{number // 3}/{number % 3}"
        call = {"tool_use_id": f"{turn}/c", "tool_name": "f"}
        texts = {"user_prompt_text": f"Summarise note {number}.", "final_response_text": f"Note {number} is short."}
        done = {"stop_reason": "end_turn", "tool_call_count": 1, "signals_extra": texts}
        told = [("tool.called", turn, {**call, "input_hash": "a"}), ("tool.completed", turn, {**call, "success": True})]
        told.append(("turn.completed", turn, done))
        if number % 3 == 2:
            told.append(("session.ended", None, {"disposition": "completed"}))
        for type_, about, payload in told:
            time = f"2026-03-02T09:{number:02}:{len(events) % 60:02}Z"
            events.append({"type": type_, "time": time, "session_id": session, "turn_id": about, "payload": payload})
    (folder / "trace.jsonl").write_text("".join(f"{json.dumps(event)}\n" for event in events), encoding="utf-8")


KINDS = (
    Kind("plain", workload.PIPELINE + workload.CSV_SINK, 0, _plain),
    Kind("paid", PAID + ASYNC + JUDGE, ROWS, _rows(ROWS)),
    Kind("jury", PAID + ASYNC + JURY, ROWS // 2 * 3, _rows(ROWS // 2)),
    Kind("task", TASK, ROWS // 2 * 2, _rows(ROWS // 2)),
    Kind("suite", SUITE, ROWS // 3 * 4, _rows(ROWS // 3)),
    Kind("watch", WATCHED, ROWS, _trace, WATCH, WATCH),
    Kind("workers", WORKERS, ROWS, _rows(ROWS)),
)

CAP = Decimal("0.0155")
CAPPED = "gate: {{min_coverage: 0}}\n"
"""No coverage is too low for a run under a tight budget."""

_PLACES = (
    Kind("segments", PAID + ASYNC + JUDGE, ROWS, _rows(ROWS), place=FolderPlace),
    Kind("s3", PAID + ASYNC + JUDGE, ROWS, _rows(ROWS), place=BucketPlace),
    Kind("postgres", PAID + ASYNC + JUDGE, ROWS, _rows(ROWS), place=PostgresPlace),
    Kind("ray", PAID + JUDGE, ROWS, _rows(ROWS), place=RayPlace, parts=4),
)
_MERGE = Kind("merge", PAID + MERGED + JUDGE, MERGED_ROWS, _rows(MERGED_ROWS), MERGE, MERGE, at_once=0, shards=SHARDS)
PLACES = (
    *(
        kind
        for plain in _PLACES
        for kind in (plain, replace(plain, name=f"{plain.name}-cap", pipeline=plain.pipeline + CAPPED, cap=CAP))
    ),
    _MERGE,
    replace(_MERGE, name="merge-segments", place=FolderPlace),
    replace(_MERGE, name="merge-postgres", place=PostgresPlace),
)
"""Kinds of runs past one machine: their ledgers are elsewhere, or they are merged from shards. Other processes than that of the run are killed too."""

ALL = {kind.name: kind for kind in (*KINDS, *PLACES)}
