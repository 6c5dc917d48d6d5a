"""Pipelines whose screens ``tests/test_screens.py`` compares with pictures: runs with many labels, failures, kinds of subjects and other results."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

CITIES = ("Paris", "Madrid", "Rome", "Lima", "Oslo", "Bern", "Cairo", "Quito", "Accra", "Hanoi", "Delhi", "Seoul")
COMMANDS = {
    "gate-failed": ("run", "gate-failed.yaml"),
    "no-gate": ("run", "no-gate.yaml"),
    "many-labels": ("run", "many-labels.yaml"),
    "many-failures": ("run", "many-failures.yaml"),
    "early-stop": ("run", "early-stop.yaml"),
    "kinds": ("run", "kinds.yaml"),
    "against-baseline": ("run", "against-baseline.yaml"),
    "suite": ("run", "suite.yaml"),
    "head": ("run", "no-gate.yaml", "--head", "3"),
    "missing-extras": ("check", "missing-extras.yaml"),
    "refused-file": ("run", "refused-file.yaml"),
    "refused-data": ("run", "refused-data.yaml"),
}
"""Commands by the names of their screens."""

SESSIONS = Path(__file__).parents[1] / "examples" / "claude-code" / "sessions"
_KINDS = """
name: kinds
source: {transcripts/claude_code: {path: sessions, subjects: [tool_cycle, turn, session]}}
judges: [heuristic/tool_cycle, heuristic/turn, heuristic/session]
gate: {on: heuristic/turn, min_score: 0.5}
"""
_QUESTIONS = "source: {rows/jsonl: {path: questions.jsonl}}\n"
_PIPELINES = {
    "gate-failed": """
metrics: [proxy/format, diff/match: {as: correct}, diff/similarity: {as: close}]
gate: [{on: correct, min_pass_rate: 0.9}, {on: close, min_score: 0.5, min_coverage: 0.9}]
""",
    "no-gate": """
metrics: [diff/match: {as: correct}]
""",
    "many-labels": "metrics:\n"
    + "".join(f"  - proxy/keywords: {{as: avoids_{city.lower()}, forbidden: [{city}]}}\n" for city in CITIES)
    + "gate: [{on: avoids_seoul, min_pass_rate: 0.5}, {on: avoids_oslo, min_pass_rate: 0.5}]\n",
    "many-failures": """
metrics: [shaky/fragile, diff/match: {as: correct}]
gate: [{on: correct, min_pass_rate: 0.2, min_coverage: 0.2}]
""",
    "early-stop": """
metrics: [diff/match: {as: correct}]
early_stop: [stats/threshold: {metric: score, threshold: 0.9, min_rows: 3, as: enough}]
executor: {dicast/async: {concurrency: 1}}
gate: {min_pass_rate: 0.5}
""",
    "against-baseline": """
metrics: [diff/match: {as: correct}, diff/similarity: {as: close}]
gate: [{on: correct, baseline: gate-failed, max_drop: 0.02}, {on: close, min_score: 0.5}]
baseline: {run: gate-failed, compare: [stats/paired]}
""",
    "suite": """
metrics: [diff/match: {as: correct}]
gate: {min_pass_rate: 0.7}
experiments:
  plain: {}
  strict: {set: {metrics: [{diff/match: {as: correct}}, {proxy/length: {as: long, min: 5}}]}}
  lenient: {set: {gate.min_pass_rate: 0.5}}
""",
    "missing-extras": """
define: {grader: {openai/chat: {model: m-1, base_url: "http://127.0.0.1:9/v1"}}}
metrics: [check/contains: {value: Rome}, unheard/of]
judges: [llm/judge: {model: grader}, promtp/chat: {model: grader}]
sinks: [parquet/rows: {path: out.parquet}, report/html]
""",
    "refused-file": """
metrics: [diff/match: {as: correct, ignore_cases: true}, prox/format]
gate: {on: corect, min_pass_rate: 90}
limits: {day: 5 usd}
""",
    "refused-data": """
metrics: [diff/match: {as: correct}]
""",
}
_PLUGIN = '''
from dicast import Score, hookimpl, metric

@metric(tier="proxy")
def fragile(subject):
    """Score of the output's length; short outputs raise errors."""
    number = int(subject.id.removeprefix("q"))
    if number % 3 == 0:
        raise ValueError(f"no length for {subject.output!r}")
    if number % 5 == 0:
        return Score(7.0)
    return Score(0.5 if number % 2 else 1.0)

@hookimpl
def dicast_metrics():
    return [fragile]
'''


def write_cases(folder: Path) -> None:
    """Write the pipelines and their data into *folder*."""
    rows = [
        {"id": f"q{number}", "input": f"Which city is {city}?", "output": city, "reference": city}
        for number, city in enumerate(CITIES)
    ]
    rows[2]["output"], rows[5]["output"], rows[7]["output"] = "Milan", "Zurich", ""
    _write_rows(folder / "questions.jsonl", rows)
    for name, text in _PIPELINES.items():
        (folder / f"{name}.yaml").write_text(f"name: {name}\n{_QUESTIONS}{text}", encoding="utf-8")
    refused = (folder / "refused-data.yaml").read_text(encoding="utf-8")
    (folder / "refused-data.yaml").write_text(refused.replace("questions", "broken"), encoding="utf-8")
    (folder / "broken.jsonl").write_text(
        '{"id": "a", "output": "x"}\n{"id": "a", "output": "y"}\n{"id": \n', encoding="utf-8"
    )
    info = folder / "site" / "dicast_shaky-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dicast-shaky\nVersion: 1.0\n", encoding="utf-8")
    (info / "entry_points.txt").write_text("[dicast]\nshaky = dicast_shaky\n", encoding="utf-8")
    (folder / "site" / "dicast_shaky.py").write_text(_PLUGIN, encoding="utf-8")
    shutil.copytree(SESSIONS, folder / "sessions")
    (folder / "kinds.yaml").write_text(_KINDS, encoding="utf-8")


def _write_rows(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
