"""The turn heuristic over 100 recorded conversations, against an oracle that shares no code with it."""

from __future__ import annotations

import csv
import json
import os
import runpy
import statistics
from collections import defaultdict
from contextlib import closing
from pathlib import Path

import pytest

import dicast
from dicast._kernel.cli import main
from dicast_ledger import connect
from dicast_traces import Messages

ROOT = Path(__file__).parents[2]
ORACLE = runpy.run_path(str(ROOT / "tests" / "oracle_turns.py"))


@pytest.fixture
def airline():
    path = Path(os.environ.get("DICAST_OUTSIDE_DATA", ROOT.parent / "shared" / "data"), "tau_bench_airline.jsonl.gz")
    if not path.exists():
        pytest.skip(f"{path.name} is not in {path.parent}; DICAST_OUTSIDE_DATA names the folder that has it")
    return path


PIPELINE = """
source: {{traces/messages: {{path: {path}, id: "{{{{ task_id }}}}-{{{{ trial }}}}"{tool_error}}}}}
metrics:
  - proxy/format
  - proxy/length: {{max: 800}}
  - proxy/keywords: {{required: [reservation], weight: 2}}
judges: [heuristic/turn]
gate: {{on: heuristic/turn}}
sinks: [csv/rows: {{path: rows.csv}}]
ledger: {{ledger/sqlite: {{path: ledger.db}}}}
"""


@pytest.fixture(params=[None, "^Error"])
def run(airline, request, tmp_path):
    """A finished run over all conversations, with its folder and the oracle's expectations."""
    tool_error = "" if request.param is None else f', tool_error: "{request.param}"'
    file = tmp_path / "airline.yaml"
    file.write_text(PIPELINE.format(path=airline, tool_error=tool_error))
    return dicast.run(file), tmp_path, ORACLE["expected"](airline, request.param)


@pytest.mark.outside_data
def test_every_turn_scores_what_the_oracle_says(run):
    done, _, expected = run
    verdicts = {verdict.subject_id: verdict for verdict in done.verdicts if verdict.judge == "heuristic/turn"}
    assert len(expected) == 681
    assert list(verdicts) == list(expected)
    for turn_id, (score, confidence, flags) in expected.items():
        got = verdicts[turn_id]
        assert got.score == pytest.approx(score, abs=1e-12), turn_id
        assert (got.confidence, got.signals["flags_negative"]) == (confidence, flags), turn_id


@pytest.mark.outside_data
def test_document_csv_and_ledger_say_the_same_of_every_turn(run, capsys):
    done, folder, expected = run
    assert (done.subjects, done.scored, done.failed, done.skipped) == (681, 681, 0, 0)
    assert main(["verdicts", "--ledger", str(folder / "ledger.db"), "--run", "last", "--json"]) == 0
    listed = {(v["subject_id"], v["judge"]): v for v in json.loads(capsys.readouterr().out)["verdicts"]}
    assert len(listed) == 2 * 681
    with (folder / "rows.csv").open(newline="") as file:
        rows = {row["subject_id"]: row for row in csv.DictReader(file)}
    with closing(connect(folder / "ledger.db")) as ledger:
        completed = ledger.execute("SELECT payload FROM events WHERE type = 'eval.completed'").fetchall()
    stored = {(p["subject_id"], p["judge"]): p for p in (json.loads(text) for (text,) in completed)}
    assert rows.keys() == expected.keys()
    for turn_id, row in rows.items():
        turn, combined = listed[turn_id, "heuristic/turn"], listed[turn_id, "metrics"]
        assert float(row["score"]) == turn["score"] == stored[turn_id, "heuristic/turn"]["score"]
        assert combined["score"] == stored[turn_id, "metrics"]["score"]
        values = {item["metric"]: item["value"] * item["weight"] for item in combined["scores"]}
        assert combined["score"] == pytest.approx(sum(values.values()) / 4)
        assert float(row["metric_proxy_keywords"]) * 2 == values["proxy/keywords"]
    scores = [listed[turn_id, "heuristic/turn"]["score"] for turn_id in expected]
    assert done.score["mean"] == pytest.approx(statistics.fmean(scores), abs=1e-12)
    assert done.score["aggregate"] == statistics.median(scores)
    assert done.judges["heuristic/turn"]["mean"] == pytest.approx(done.score["mean"])
    sessions = defaultdict(float)
    for turn_id in expected:
        sessions[turn_id.rpartition("/")[0]] += listed[turn_id, "heuristic/turn"]["score"] - done.score["mean"]
    variance = 100 / 99 * sum(residual**2 for residual in sessions.values()) / 681**2
    assert len(sessions) == 100
    assert done.score["ci_low"] == pytest.approx(done.score["mean"] - 1.959963984540054 * variance**0.5)


@pytest.mark.outside_data
def test_conversations_make_turns_tool_cycles_and_sessions_with_unique_ids(airline):
    source = Messages(airline, id="{{ task_id }}-{{ trial }}", subjects=["turn", "tool_cycle", "session"])
    source.check()
    found = [(subject.kind, subject.id) for subject in source.subjects()]
    assert len(set(found)) == len(found)
    kinds = [kind for kind, _ in found]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {"turn": 681, "tool_cycle": 572, "session": 100}
