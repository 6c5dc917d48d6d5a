"""The event stream: one order, one terminal event per subject and judge, and nothing when switched off."""

from __future__ import annotations

import hashlib
import json
import os

import pytest

JUDGING = """
metrics: [fake/act, fake/wait: {jitter: 0.005}]
judges: [fake/opinion: {as: second}]
"""
TRACE_IDS = ("id", "time", "run_id", "payload")


def order(events):
    """The stream without ids and times."""
    return [
        (event["type"], event["session_id"], event["turn_id"], event["subject_kind"], event["subject_id"])
        for event in events
    ]


def test_the_order_is_the_same_whatever_the_concurrency(shop):
    shop.rows(*[n / 150 if n % 7 else "raise" for n in range(150)], sessions=5)
    streams = []
    for concurrency in (1, 4, 32):
        executor = f"executor: {{dicast/async: {{concurrency: {concurrency}}}}}\ngate: {{min_coverage: 0}}\n"
        done = shop.run(f"{JUDGING}{executor}ledger: {{ledger/sqlite: {{path: l{len(streams)}.db}}}}\n")
        assert done.code == 0
        lines = shop.dicast("ledger", "export", "--ledger", f"l{len(streams)}.db").out.splitlines()
        streams.append(order(map(json.loads, lines)))
    terminal = [event for event in streams[0] if event[0] in ("eval.completed", "eval.failed")]
    assert streams[0] == streams[1] == streams[2]
    assert [event[4] for event in terminal[::2]] == [f"r{n}" for n in range(150)]


def test_every_start_has_exactly_one_end_under_its_eval_id(shop):
    shop.rows(*[n / 40 if n % 3 else "raise" for n in range(40)])
    shop.run(JUDGING)
    events = shop.events()
    started = {event["payload"]["eval_id"]: event for event in events if event["type"] == "eval.started"}
    ends = [event for event in events if event["type"] in ("eval.completed", "eval.failed")]
    assert sorted(started) == sorted(event["payload"]["eval_id"] for event in ends)
    units = {(event["subject_id"], event["payload"]["judge"]) for event in ends}
    assert len(units) == len(ends) == 80
    for event in ends:
        start = started[event["payload"]["eval_id"]]
        assert (start["subject_id"], start["payload"]["judge"]) == (event["subject_id"], event["payload"]["judge"])
        assert start["seq"] < event["seq"]
    ids = [event["id"] for event in events]
    assert len(set(ids)) == len(ids)
    assert len({len(id) for id in ids}) == 1


def test_the_stream_begins_and_ends_with_the_run(shop):
    shop.rows(1)
    shop.run(JUDGING)
    types = [event["type"] for event in shop.events()]
    assert types == [
        "run.started", "subject.read", "eval.started", "eval.started", "eval.completed", "eval.completed", "run.completed"
    ]  # fmt: skip


def test_the_payloads_of_the_eval_events(shop):
    shop.rows(1, "raise")
    shop.run(JUDGING)
    started, *_ = shop.events("eval.started")
    assert started["payload"].keys() >= {
        "eval_id", "subject_kind", "subject_id", "rubric_id", "rubric_version", "judge_kind_planned", "trigger"
    }  # fmt: skip
    assert started["payload"]["trigger"] == "batch"
    completed, *_ = shop.events("eval.completed")
    assert completed["payload"].keys() >= {
        "eval_id", "subject_kind", "subject_id", "score", "confidence", "judge_kind", "judge_model", "judge_cost_usd",
        "judge_pricing_version", "judge_latency_ms", "rubric_id", "rubric_version", "signals", "parent_eval_id",
    }  # fmt: skip
    assert isinstance(completed["payload"]["judge_cost_usd"], str)
    assert isinstance(completed["payload"]["judge_latency_ms"], int)
    failed, *_ = shop.events("eval.failed")
    assert failed["payload"].keys() >= {
        "eval_id", "subject_kind", "subject_id", "failure_mode", "error_message", "judge_latency_ms"
    }  # fmt: skip
    for event in (started, completed, failed):
        assert event["payload"]["subject_id"] == event["subject_id"]
        assert event["sensitivity"] == "pseudonymous"


def test_a_captured_rationale_alone_lifts_the_sensitivity(shop):
    shop.rows(1)
    shop.run("judges: [fake/opinion: {as: plain}, fake/opinion: {as: open, rationale: because}]\n")
    result = {event["payload"]["judge"]: event["sensitivity"] for event in shop.events("eval.completed")}
    assert result == {"plain": "pseudonymous", "open": "user_controlled"}
    assert {event["sensitivity"] for event in shop.events("eval.started")} == {"pseudonymous"}


def test_a_subject_is_told_with_its_digest_and_content(shop):
    shop.write(
        "data.jsonl",
        [{"id": "a", "input": "q", "output": {"b": 1, "a": "ä"}, "reference": "x", "session_id": "s", "more": 1}],
    )
    shop.run("metrics: [proxy/format]\n")
    (read,) = shop.events("subject.read")
    content = {"context": {"more": 1}, "input": "q", "output": {"b": 1, "a": "ä"}, "reference": "x"}
    assert read["payload"]["content"] == content
    canonical = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    assert read["payload"]["digest"] == hashlib.sha256(canonical.encode()).hexdigest()
    assert (read["session_id"], read["sensitivity"]) == ("s", "user_controlled")


CHAT = [
    {
        "messages": [
            {"role": "user", "content": f"question {n}"},
            {"role": "assistant", "content": None, "tool_calls": [
                {"id": f"call-{n}", "type": "function", "function": {"name": "look", "arguments": "{}"}}
            ]},
            {"role": "tool", "tool_call_id": f"call-{n}", "content": "found"},
            {"role": "assistant", "content": "answer"},
            {"role": "user", "content": "another"},
            {"role": "assistant", "content": "well"},
        ]
    }
    for n in range(3)
]  # fmt: skip


@pytest.mark.parametrize("kinds", ["[turn]", "[turn, tool_cycle, session]"])
def test_trace_events_are_told_once(shop, kinds):
    shop.write("chat.jsonl", CHAT)
    done = shop.run(f"source: {{traces/messages: {{path: chat.jsonl, subjects: {kinds}}}}}\njudges: [heuristic/turn]\n")
    assert done.code == 0
    assert done.json["scored"] == 6
    events = shop.events()
    reports = [event for event in events if event["type"].split(".")[0] in ("turn", "tool", "session")]
    assert len([event for event in reports if event["type"] == "turn.completed"]) == 6
    assert len([event for event in reports if event["type"] == "tool.called"]) == 3
    assert len([event for event in reports if event["type"] == "tool.completed"]) == 3
    assert len({event["id"] for event in events}) == len(events)
    assert all(event["session_id"] for event in reports)
    turns = [event["turn_id"] for event in reports if event["type"] == "turn.completed"]
    assert turns == [f"{session}/{turn}" for session in (1, 2, 3) for turn in (1, 2)]


def test_a_turn_verdict_carries_session_and_turn(shop):
    shop.write("chat.jsonl", CHAT)
    shop.run("source: {traces/messages: {path: chat.jsonl}}\njudges: [heuristic/turn]\n")
    first, *_ = shop.events("eval.completed")
    assert (first["subject_kind"], first["subject_id"], first["turn_id"], first["session_id"]) == (
        "turn",
        "1/1",
        "1/1",
        "1",
    )


@pytest.mark.parametrize("switch", ["variable", "file", "budget"])
def test_the_kill_switch_leaves_no_trace(shop, monkeypatch, switch):
    shop.rows(1)
    text = (
        "metrics: [fake/act: {journal: calls}]\nsinks: [csv/rows: {path: out.csv}, jsonl/events: {path: out.jsonl}]\n"
    )
    if switch == "variable":
        monkeypatch.setenv("DICAST_DISABLED", "1")
        shop.pipeline(text)
        (shop / "data.jsonl").write_text("this would be refused if it were read")
    else:
        text += "disabled: true\n" if switch == "file" else "budget: {disabled: true}\n"
    done = shop.run(text)
    assert done.code == 0
    assert done.json["disabled"] is True
    assert (done.json["subjects"], done.json["scored"]) == (0, 0)
    assert sorted(os.listdir(shop.folder)) == ["data.jsonl", "p.yaml"]
    assert "disabled" in shop.dicast("run", "p.yaml").out


def test_the_kill_switch_is_off_at_0(shop, monkeypatch):
    shop.rows(1)
    monkeypatch.setenv("DICAST_DISABLED", "0")
    assert shop.run("metrics: [fake/act]\n").json["scored"] == 1


def test_spending_is_told_in_full(shop):
    shop.rows(1, 1)
    shop.run("judges: [fake/paid_judge]\nbudget: {run: 0.01 usd}\n")
    reserved, *_ = shop.events("spend.reserved")
    assert reserved["payload"].keys() >= {"reservation_id", "scopes", "amount", "unit", "lease_until"}
    (settled,) = shop.events("spend.settled")
    assert settled["payload"].keys() >= {
        "reservation_id", "amount", "unit", "pricing_version", "model", "tokens", "eval_id"
    }  # fmt: skip
    assert (settled["payload"]["amount"], settled["payload"]["unit"]) == ("0.01", "usd")
    assert settled["payload"]["reservation_id"] == reserved["payload"]["reservation_id"]
    assert settled["payload"]["eval_id"] in {event["payload"]["eval_id"] for event in shop.events("eval.completed")}
    (throttled,) = shop.events("budget.throttled")
    assert throttled["payload"]["reason"] == "run_cap"


def test_caps_hold_over_runs_of_a_day(shop):
    shop.rows(*[1] * 4)
    text = "judges: [fake/paid_judge: {journal: calls}]\nbudget: {day: 0.06 usd}\ngate: {min_coverage: 0}\n"
    assert shop.run(text).json["scored"] == 4
    second = shop.run(text)
    assert (second.code, second.json["scored"], second.json["throttled"]) == (0, 2, {"daily_cap": 2})
    assert shop.run(text).code == 5
    assert len((shop / "calls").read_text().split()) == 6


def test_a_session_cap_holds_for_each_session(shop):
    shop.rows(*[1] * 6, sessions=2)
    text = "judges: [fake/paid_judge]\nbudget: {session: 0.02 usd, day: 5 usd}\ngate: {min_coverage: 0}\n"
    done = shop.run(text)
    assert (done.json["scored"], done.json["throttled"]) == (4, {"session_cap": 2})
