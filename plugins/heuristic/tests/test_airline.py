"""Tool cycles and sessions of 100 recorded conversations, against an oracle that shares no code with the judges."""

from __future__ import annotations

import os
import runpy
import statistics
import time
from collections import defaultdict
from pathlib import Path

import pytest

import dicast
from dicast import Subject, TraceEvent
from dicast_heuristic import Session, ToolCycle, Turn

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[2]
ORACLE = runpy.run_path(str(FOLDER / "oracle_cycles.py"))
PIPELINE = """\
source:
  traces/messages:
    path: {path}
    id: "{{{{ task_id }}}}-{{{{ trial }}}}"
    tool_error: "^Error"
    subjects: [tool_cycle, turn, session]
judges: [heuristic/tool_cycle, heuristic/turn, heuristic/session]
ledger: {{ledger/sqlite: {{path: ledger.db}}}}
"""


@pytest.fixture(scope="module")
def airline():
    path = Path(os.environ.get("DICAST_OUTSIDE_DATA", ROOT.parent / "shared" / "data"), "tau_bench_airline.jsonl.gz")
    if not path.exists():
        pytest.skip(f"{path.name} is not in {path.parent}; DICAST_OUTSIDE_DATA names the folder that has it")
    return path


@pytest.fixture(scope="module")
def verdicts(airline, tmp_path_factory):
    file = tmp_path_factory.mktemp("airline") / "airline.yaml"
    file.write_text(PIPELINE.format(path=airline), encoding="utf-8")
    done = dicast.run(file)
    assert done.failed == 0
    return done.verdicts


@pytest.mark.outside_data
def test_every_tool_cycle_scores_what_the_oracle_says(airline, verdicts):
    expected = ORACLE["expected"](airline, "^Error")
    results = {verdict.subject_id: verdict for verdict in verdicts if verdict.subject_kind == "tool_cycle"}
    assert len(expected) == 572
    assert results.keys() == expected.keys()
    for id, (score, confidence, flags) in expected.items():
        assert results[id].score == pytest.approx(score, abs=1e-12), id
        assert (results[id].confidence, results[id].signals["flags_negative"]) == (confidence, flags), id


@pytest.mark.outside_data
def test_every_session_scores_what_its_turns_say(verdicts):
    turns, cycles = defaultdict(list), defaultdict(list)
    for verdict in verdicts:
        if verdict.subject_kind == "turn":
            turns[verdict.parent_eval_id].append(verdict)
        if verdict.subject_kind == "tool_cycle":
            cycles[verdict.parent_eval_id].append(verdict.score)
    sessions = [verdict for verdict in verdicts if verdict.subject_kind == "session"]
    assert len(sessions) == 100
    for session in sessions:
        scores = [turn.score for turn in turns[session.eval_id]]
        assert session.signals["child_eval_ids"] == [turn.eval_id for turn in turns[session.eval_id]]
        assert session.score == pytest.approx(0.5 * statistics.fmean(scores) + 0.3 * min(scores) + 0.2, abs=1e-12)
        assert session.confidence == 0.7
        for turn in turns[session.eval_id]:
            low = sum(score < 0.5 for score in cycles[turn.eval_id])
            assert turn.signals.get("tool_cycles_with_score_below_threshold", 0) == low


def test_a_turn_of_twenty_events_takes_less_than_a_millisecond():
    text = {"query": "a question about nothing in particular, and then some more of it", "limit": 10}
    tools = [
        {"tool_use_id": f"u{number}", "tool_name": "search", "input": {**text, "page": number}} for number in range(9)
    ]
    work = [event for tool in tools for event in (TraceEvent("tool.called", tool), TraceEvent("tool.completed", tool))]
    thumb = TraceEvent("feedback.explicit", {"scope": "turn", "rating": "thumbs_up"})
    events = (*work, TraceEvent("turn.completed", {"stop_reason": "end_turn", "tool_call_count": 9}), thumb)
    turn, session = Turn(dicast.rubric("turn-heuristic-v1")), Session(dicast.rubric("session-aggregate-v1"))
    cycle = ToolCycle(dicast.rubric("tool-cycle-heuristic-v1"))

    def judge_all():
        began = time.thread_time()
        turn.judge(Subject("turn", "t", events=events), ())
        session.judge(Subject("session", "s", events=events), ())
        cycle.judge(Subject("tool_cycle", "u0", events=events), ())
        return time.thread_time() - began

    assert min(judge_all() for _ in range(20)) < 0.001
