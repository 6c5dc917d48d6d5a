"""The turn heuristic over 100 recorded conversations, against an oracle that shares no code with it."""

from __future__ import annotations

import importlib.resources
import os
import runpy
from pathlib import Path

import pytest
import yaml

from dicast import Rubric
from dicast_heuristic import Turn
from dicast_traces import Messages

ROOT = Path(__file__).parents[2]
ORACLE = runpy.run_path(str(ROOT / "tests" / "oracle_turns.py"))


@pytest.fixture
def airline():
    path = Path(os.environ.get("DICAST_OUTSIDE_DATA", ROOT.parent / "shared" / "data"), "tau_bench_airline.jsonl.gz")
    if not path.exists():
        pytest.skip(f"{path.name} is not in {path.parent}; DICAST_OUTSIDE_DATA names the folder that has it")
    return path


def turn_judge():
    text = importlib.resources.files("dicast_rubrics").joinpath("turn-heuristic-v1.yaml").read_text(encoding="utf-8")
    data = yaml.safe_load(text)
    return Turn(Rubric(data["id"], data["version"], text, data))


@pytest.mark.outside_data
@pytest.mark.parametrize("tool_error", [None, "^Error"])
def test_every_turn_scores_what_the_oracle_says(airline, tool_error):
    judge = turn_judge()
    source = Messages(airline, id="{{ task_id }}-{{ trial }}", tool_error=tool_error)
    source.check()
    judgments = {subject.id: judge.judge(subject, ()) for subject in source.subjects()}
    expected = ORACLE["expected"](airline, tool_error)
    assert len(judgments) == 681
    assert list(judgments) == list(expected)
    for turn_id, (score, confidence, flags) in expected.items():
        got = judgments[turn_id]
        assert got.score == pytest.approx(score, abs=1e-12), turn_id
        assert (got.confidence, got.signals["flags_negative"]) == (confidence, flags), turn_id


@pytest.mark.outside_data
def test_conversations_make_turns_tool_cycles_and_sessions_with_unique_ids(airline):
    source = Messages(airline, id="{{ task_id }}-{{ trial }}", subjects=["turn", "tool_cycle", "session"])
    source.check()
    found = [(subject.kind, subject.id) for subject in source.subjects()]
    assert len(set(found)) == len(found)
    kinds = [kind for kind, _ in found]
    assert {kind: kinds.count(kind) for kind in set(kinds)} == {"turn": 681, "tool_cycle": 572, "session": 100}
