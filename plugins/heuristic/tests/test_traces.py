"""Tool cycles, turns and sessions of one trace, judged together in whole runs."""

from __future__ import annotations

import json

import pytest

from dicast import ConfigError
from dicast.testing import run_pipeline

ALL = """\
source: {traces/events: {path: trace.jsonl, subjects: [tool_cycle, turn, session]}}
judges: [heuristic/tool_cycle, heuristic/turn, heuristic/session]
"""


def event(kind, turn=None, **payload):
    return {"type": kind, "session_id": "s", "turn_id": turn, "payload": payload}


def completed(turn, stop="end_turn"):
    return event("turn.completed", turn, stop_reason=stop, tool_call_count=0)


def retry(about, turn=None):
    return event("feedback.implicit", turn, type="retry", subject_turn_id=about)


def thumb(direction, about=None, scope="turn"):
    return event("feedback.explicit", None, scope=scope, subject_turn_id=about, rating=f"thumbs_{direction}")


def use(id, turn, hash="h", success=True):
    tool = {"tool_use_id": id, "tool_name": "search"}
    return [event("tool.called", turn, **tool, input_hash=hash), event("tool.completed", turn, **tool, success=success)]


SESSION_END = event("session.ended", disposition="completed")


@pytest.fixture
def judged(tmp_path, monkeypatch):
    """Return a function that runs a pipeline over the trace of some events, and returns the run and the verdicts by judge and subject."""
    monkeypatch.chdir(tmp_path)

    def run(*events, text=ALL):
        (tmp_path / "trace.jsonl").write_text("".join(json.dumps(event_) + "\n" for event_ in events), encoding="utf-8")
        done = run_pipeline(text)
        return done, {(verdict.judge, verdict.subject_id): verdict for verdict in done.verdicts}

    return run


def test_tool_cycles_name_the_verdict_on_their_turn_and_turns_that_on_their_session(judged):
    _, verdicts = judged(
        *use("u1", "t1"), *use("u2", "t1", "i"), completed("t1"), completed("t2"), completed("t3"), SESSION_END
    )
    turn, session = verdicts["heuristic/turn", "t1"], verdicts["heuristic/session", "s"]
    for cycle in ("u1", "u2"):
        assert verdicts["heuristic/tool_cycle", cycle].parent_eval_id == turn.eval_id
    assert turn.parent_eval_id == session.eval_id
    turns = [verdicts["heuristic/turn", f"t{number}"].eval_id for number in (1, 2, 3)]
    assert session.signals["child_eval_ids"] == turns
    assert session.parent_eval_id is None


def test_tool_cycle_names_no_verdict_where_its_turn_is_not_judged(judged):
    _, verdicts = judged(*use("u1", "t1"), completed("t1"), text=ALL.replace("heuristic/turn, heuristic/session", ""))
    assert verdicts["heuristic/tool_cycle", "u1"].parent_eval_id is None


def test_bad_tool_cycle_is_counted_by_its_turn(judged):
    _, verdicts = judged(*use("u1", "t1", success=False), *use("u2", "t1"), completed("t1"))
    assert verdicts["heuristic/tool_cycle", "u1"].score == 0.0
    assert verdicts["heuristic/tool_cycle", "u2"].score == 1.0
    turn = verdicts["heuristic/turn", "t1"]
    assert turn.signals["tool_cycles_with_score_below_threshold"] == 1
    assert turn.score == pytest.approx(1 / 1.5)


def test_feedback_that_comes_later_reaches_its_turn_and_its_session(judged):
    events = [completed("t1"), completed("t2"), completed("t3"), retry("t1", "t2"), thumb("down", "t2"), SESSION_END]
    _, verdicts = judged(*events, thumb("up", scope="session"))
    assert [round(verdicts["heuristic/turn", f"t{number}"].score, 6) for number in (1, 2, 3)] == [
        0.428571,
        0.157895,
        1.0,
    ]
    session = verdicts["heuristic/session", "s"].signals
    assert session["turns_with_explicit_thumbs_down"] == 1
    assert "explicit_thumbs_up" in session["flags"]
    assert verdicts["heuristic/session", "s"].score > 0.5


@pytest.mark.parametrize(("later", "counts"), [(0, True), (5, True), (6, False)])
def test_retry_counts_within_the_next_five_turns(judged, later, counts):
    _, verdicts = judged(completed("t0"), *[completed(f"t{number + 1}") for number in range(later)], retry("t0"))
    assert (verdicts["heuristic/turn", "t0"].score < 0.5) is counts
    text = ALL.replace("heuristic/turn,", "heuristic/turn: {lookahead_messages: 6},")
    assert judged(completed("t0"), *[completed(f"t{n + 1}") for n in range(later)], retry("t0"), text=text)[1][
        "heuristic/turn", "t0"
    ].score < 0.5  # fmt: skip


TWO = """\
source: {traces/events: {path: trace.jsonl, subjects: [turn, session]}}
judges:
  - heuristic/turn: {as: first}
  - heuristic/turn: {as: second, lookahead_messages: 0}
"""


@pytest.mark.parametrize(("children", "label"), [("", "second"), (": {children: first}", "first")])
def test_session_reads_the_verdicts_of_one_judge(judged, children, label):
    text = f"{TWO}  - heuristic/session{children}\n"
    _, verdicts = judged(completed("t1"), completed("t2"), retry("t1"), SESSION_END, text=text)
    expected = [verdicts[label, turn].eval_id for turn in ("t1", "t2")]
    assert verdicts["heuristic/session", "s"].signals["child_eval_ids"] == expected


def test_label_that_nobody_has_is_refused(judged):
    with pytest.raises(ConfigError, match="did you mean 'second'"):
        judged(completed("t1"), SESSION_END, text=f"{TWO}  - heuristic/session: {{children: secnd}}\n")


def test_what_is_planned_is_what_comes(judged):
    done, verdicts = judged(*use("u1", "t1"), completed("t1"), SESSION_END)
    planned = {
        (started_.payload["judge"], started_.payload["subject_id"]): (
            started_.payload["rubric_id"],
            started_.payload["judge_kind_planned"],
        )
        for started_ in done.of("eval.started")
    }
    assert planned == {key: (verdict.rubric_id, verdict.judge_kind) for key, verdict in verdicts.items()}
    assert sorted(planned.values()) == [
        ("session-aggregate-v1", "heuristic"),
        ("tool-cycle-heuristic-v1", "heuristic"),
        ("turn-heuristic-v1", "heuristic"),
    ]
