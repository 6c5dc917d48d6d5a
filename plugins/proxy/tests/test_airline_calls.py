"""Every tool call of 100 recorded conversations, against an oracle that shares no code with the metrics."""

from __future__ import annotations

import json
import os
import runpy
from collections import defaultdict
from pathlib import Path

import pytest

import dicast

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[2]
ORACLE = runpy.run_path(str(FOLDER / "oracle_tool_calls.py"))
PIPELINE = """\
source:
  traces/messages:
    path: {path}
    id: "{{{{ task_id }}}}-{{{{ trial }}}}"
    subjects: [{kind}]
    history: {history}
metrics:
  - proxy/was_repeated: {{as: new}}
  - proxy/tool_params_schema: {{as: valid, tools: tools.json}}
ledger: {{ledger/sqlite: {{path: ledger.db}}}}
"""


@pytest.fixture(scope="module")
def airline():
    path = Path(os.environ.get("DICAST_OUTSIDE_DATA", ROOT.parent / "shared" / "data"), "tau_bench_airline.jsonl.gz")
    if not path.exists():
        pytest.skip(f"{path.name} is not in {path.parent}; DICAST_OUTSIDE_DATA names the folder that has it")
    return path


@pytest.fixture(scope="module")
def expected(airline):
    return ORACLE["expected"](airline)


def judged(airline, folder, kind, history="false"):
    (folder / "tools.json").write_text(json.dumps(ORACLE["TOOLS"]), encoding="utf-8")
    file = folder / "airline.yaml"
    file.write_text(PIPELINE.format(path=airline, kind=kind, history=history), encoding="utf-8")
    done = dicast.run(file)
    assert done.failed == 0
    return {verdict.subject_id: {metric["metric"]: metric for metric in verdict.scores} for verdict in done.verdicts}


@pytest.mark.outside_data
def test_every_tool_cycle_is_new_and_valid_where_the_oracle_says_so(airline, expected, tmp_path):
    results = judged(airline, tmp_path, "tool_cycle", "true")
    assert len(expected) == 572
    assert {id: (metric["new"]["value"], metric["valid"]["value"]) for id, metric in results.items()} == {
        id: verdict[1:] for id, verdict in expected.items()
    }
    figures = [sum(column) for column in zip(*(verdict[1:] for verdict in expected.values()), strict=True)]
    assert all(0 < figure < 572 for figure in figures)  # else the agreement would say little


@pytest.mark.outside_data
def test_a_session_scores_the_share_of_its_calls_step_by_step(airline, expected, tmp_path):
    sessions = defaultdict(list)
    for session, *verdict in expected.values():
        sessions[session].append(verdict)
    results = judged(airline, tmp_path, "session")
    assert len(results) == 100
    for id, metric in results.items():
        calls = sessions[id]
        for label, column in (("new", 0), ("valid", 1)):
            share = sum(verdict[column] for verdict in calls) / len(calls) if calls else 1.0
            assert metric[label]["value"] == pytest.approx(share, abs=1e-12), (id, label)
