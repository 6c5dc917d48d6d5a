"""Requirements of judges, the cascade and the budget, in whole runs. tests/test_spec_001.py has the list."""

from __future__ import annotations

import asyncio
import json
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicast import Cost, Event, Failure, Judgment, Query, Subject, TraceEvent
from dicast.testing import FakeChatModel, FakeJudge, MemoryLedger, run_pipeline
from dicast_ledger.accounts import Accounts

FOUR_MILLS, CENT = Cost("0.004"), Cost("0.01")
GOOD = Judgment(0.3, 0.9, "llm", "m-1", FOUR_MILLS)
TRACED = """\
source: {traces/events: {path: trace.jsonl}}
judges: [{hybrid/cascade: {stages: [heuristic/turn, half/judge], escalation_threshold: 1}}]
"""
HALF = """\
from dicast import Cost, Judgment, hookimpl, judge

@judge(cost="0.01 usd")
async def judge(subject):
    return Judgment(0.5, 0.5, "llm", "m-1", Cost("0.007"))

@hookimpl
def dicast_judges():
    return [judge]
"""
GROUPS = ("model", "judge", "rubric", "session", "day")


def turn(*, failed=False, id="t-1"):
    """A turn that went well, or one in which a tool failed (confidence .9, or .55)."""
    texts = {"user_prompt_text": "Where is it?", "final_response_text": "In Canberra."}
    ends = {"stop_reason": "end_turn", "tool_call_count": 1, "signals_extra": texts}
    tool = {"tool_use_id": f"{id}-use", "tool_name": "look"}
    work = TraceEvent("tool.failed", {**tool, "error": "503"}) if failed else None
    events = (TraceEvent("tool.called", tool), *([work] if work else []), TraceEvent("turn.completed", ends))
    return Subject("turn", id, "Where is it?", "In Canberra.", events=events, session_id="s-1")


CLEAN, MESSY = turn(), turn(failed=True)


def cascade(*subjects, grader=None, threshold=0.7, text="", **components):
    """Run the turn heuristic, then *grader*, over *subjects*."""
    file = f"judges: [{{hybrid/cascade: {{stages: [heuristic/turn, grader], escalation_threshold: {threshold}}}}}]\n"
    ready = {"grader": grader or FakeJudge(GOOD, cost=Cost("0.006")), **components}
    return run_pipeline(file + text, subjects=subjects, components=ready)


def says(score=0.3, confidence=0.9, **options):
    """A script for a chat model: it answers in the form it is asked for."""

    def reply(request):
        requests = "\n".join(message.content for message in request.messages)
        (seal,) = set(re.findall(r"^seal: (\w+)$", requests, re.MULTILINE))
        return json.dumps(
            {"seal": seal, "rationale": "It says where.", "score": score, "confidence": confidence, **options}
        )

    return reply


def llm(model, *subjects, options="", text=""):
    """Run ``llm/judge`` over *subjects*."""
    file = f"judges: [{{llm/judge: {{model: scripted{options}}}}}]\n"
    return run_pipeline(file + text, subjects=subjects, components={"scripted": model})


def spent(amount, *scopes):
    """A ledger in which *amount* was spent in *scopes*: sessions, ``today`` or ``yesterday``."""
    ledger, now = MemoryLedger(), datetime.now(UTC)
    days = {"today": f"day:{now.date()}", "yesterday": f"day:{now.date() - timedelta(days=1)}"}
    scopes = [days.get(scope, f"session:{scope}") for scope in scopes]
    money = {"reservation_id": "r-0", "amount": amount, "unit": "usd"}
    payloads = {"spend.reserved": {**money, "scopes": scopes, "lease_until": None, "eval_id": "V0"}}
    payloads["spend.settled"] = {**money, "pricing_version": None, "eval_id": "V0", "judge": "j", "reply": None}
    events = [Event(type_, type_, now.isoformat(), "R0", payload) for type_, payload in payloads.items()]

    async def append():
        async with ledger.open() as live:
            live.append(events)

    asyncio.run(append())
    return ledger


# 14.1


def test_heuristic_verdict_is_bounded_and_costs_nothing():
    done = run_pipeline("judges: [heuristic/turn]", subjects=[CLEAN])
    (completed,) = done.of("eval.completed")
    assert completed.payload["judge_kind"] == "heuristic"
    assert Decimal(completed.payload["judge_cost_usd"]) == 0
    assert completed.payload["judge_pricing_version"] is None
    assert completed.payload["judge_model"] is None
    assert 0 <= completed.payload["score"] <= 1
    assert (completed.payload["rubric_id"], completed.payload["subject_id"]) == ("turn-heuristic-v1", "t-1")


def test_doubtful_turn_gets_the_verdict_of_the_model():
    model = FakeChatModel(says(), "m-1", cost=FOUR_MILLS)
    text = "judges: [{hybrid/cascade: {stages: [heuristic/turn, {llm/judge: {model: scripted}}]}}]"
    done = run_pipeline(text, subjects=[MESSY], components={"scripted": model})
    (verdict,) = done.verdicts
    assert (verdict.judge_kind, verdict.judge_model) == ("hybrid", "m-1")
    assert (verdict.score, verdict.confidence) == (0.3, 0.9)
    assert (verdict.rubric_id, verdict.rubric_version) == ("turn-hybrid-v1", "1.0.0")
    assert verdict.judge_cost_usd == Decimal("0.004")
    assert verdict.signals["escalated"] is True
    assert (round(verdict.signals["heuristic_score"], 6), verdict.signals["heuristic_confidence"]) == (0.833333, 0.55)
    assert verdict.signals["heuristic_flags_negative"] == ["tool_failed"]
    assert "rationale_hash" in verdict.signals
    assert done.document["judges"]["hybrid/cascade"]["escalated"] == 1
    model.assert_all_asked()


def test_clear_turn_keeps_the_heuristic_verdict_and_asks_nobody():
    grader = FakeJudge(GOOD, cost=FOUR_MILLS)
    done = cascade(CLEAN, grader=grader, threshold=0.5)
    (verdict,) = done.verdicts
    assert (verdict.judge_kind, verdict.judge_cost_usd, verdict.judge_model) == ("heuristic", 0, None)
    assert (verdict.score, verdict.rubric_id) == (1.0, "turn-heuristic-v1")
    assert "escalated" not in verdict.signals
    assert grader.asked == []
    assert done.of("spend.reserved") == []


@pytest.mark.parametrize(("scope", "reason"), [("session", "session_cap"), ("day", "daily_cap"), ("run", "run_cap")])
def test_cap_leaves_the_heuristic_verdict_and_is_named(scope, reason):
    grader = FakeJudge(GOOD, cost=FOUR_MILLS)
    done = cascade(MESSY, grader=grader, text=f"budget: {{{scope}: 0 usd}}")
    (verdict,) = done.verdicts
    assert verdict.judge_kind == "heuristic"
    assert (verdict.score, verdict.judge_cost_usd) == (pytest.approx(0.833333, abs=1e-6), 0)
    assert verdict.signals["throttled_reason"] == reason
    assert verdict.signals["escalation_skipped"] == "budget_exhausted"
    assert "escalated" not in verdict.signals
    assert grader.asked == []
    assert (done.document["scored"], done.document["failed"], done.exit_code) == (1, 0, 0)
    assert done.document["throttled"] == {reason: 1}


def test_judging_again_is_a_new_verdict_and_the_newest_counts(shop):
    shop.rows("0.25")
    first = shop.run("judges: [fake/opinion]")
    second = shop.run("judges: [fake/opinion]")
    both = shop.dicast("verdicts", "--json").json["verdicts"]
    assert [verdict["run_id"] for verdict in both] == [first.json["run_id"], second.json["run_id"]]
    assert both[0]["eval_id"] < both[1]["eval_id"]
    assert shop.dicast("verdicts", "--latest", "--json").json["verdicts"] == [both[1]]


def test_turn_that_is_not_there_fails_and_has_no_verdict():
    done = run_pipeline("judges: [heuristic/turn]", subjects=[Subject("turn", "nobody", session_id="s-1")])
    (failed,) = done.of("eval.failed")
    assert (failed.payload["failure_mode"], failed.payload["subject_id"]) == ("subject_not_found", "nobody")
    assert done.verdicts == ()


@pytest.mark.parametrize(
    "reply",
    [
        "I would say 0.9.",
        "",
        '{"seal": "made up", "rationale": "", "score": 1, "confidence": 1}',
        says(1.5),
        says("high"),
    ],
)
def test_reply_of_no_use_is_a_failure_after_one_more_try(reply):
    model = FakeChatModel(reply, cost=FOUR_MILLS)
    done = llm(model, CLEAN)
    (failed,) = done.of("eval.failed")
    assert failed.payload["failure_mode"] == "judge_output_invalid"
    assert failed.payload["eval_id"] == done.of("eval.started")[0].payload["eval_id"]
    assert done.verdicts == ()
    assert len(model.asked) == 2
    assert failed.payload["judge_cost_usd"] == done.document["cost"]["usd"] == "0.008"


def test_reply_of_no_use_leaves_a_cascade_with_its_heuristic():
    text = "judges: [{hybrid/cascade: {stages: [heuristic/turn, {llm/judge: {model: scripted}}]}}]"
    model = FakeChatModel("no", cost=FOUR_MILLS)
    done = run_pipeline(text, subjects=[MESSY], components={"scripted": model})
    (verdict,) = done.verdicts
    assert (verdict.judge_kind, verdict.signals["escalation_skipped"]) == ("heuristic", "judge_output_invalid")
    assert verdict.judge_cost_usd == Decimal("0.008")


@pytest.mark.parametrize(("captured", "sensitivity"), [(True, "user_controlled"), (False, "pseudonymous")])
def test_only_a_captured_rationale_lifts_the_sensitivity(captured, sensitivity):
    done = llm(FakeChatModel(says()), CLEAN, options=f", capture_rationale: {str(captured).lower()}")
    (completed,) = done.of("eval.completed")
    assert completed.sensitivity == sensitivity
    assert ("rationale_redacted" in completed.payload["signals"]) is captured
    assert ("It says where." in json.dumps([str(event) for event in done.events])) is captured


@pytest.fixture
def agent(shop):
    """A trace whose agent has spent money, in a folder."""
    lines = []
    for number, usd in enumerate(("0.02", "0.03")):
        of = {"session_id": "s-1", "turn_id": f"t-{number}", "time": "2026-03-01T12:00:00Z"}
        usage = {"input_tokens": 100, "output_tokens": 10}
        call = {"model": f"m-{number}", "stop_reason": "end_turn", "usage": usage, "cost_usd": usd}
        lines.append({"type": "llm.call_completed", **of, "payload": call})
        lines.append({"type": "turn.completed", **of, "payload": {"stop_reason": "end_turn", "tool_call_count": 0}})
    shop.write("trace.jsonl", lines)
    shop.write("data.jsonl", [])
    return shop


def test_include_eval_adds_exactly_what_the_verdicts_cost(agent, install):
    install("dicast-half", "1.0", {"dicast": {"half": "dicast_half"}}, dicast_half=HALF)
    ran = agent.run(TRACED)
    assert ran.json["cost"]["usd"] == "0.014"
    agents, everything = (agent.dicast("cost", *flags, "--json").json for flags in ((), ("--include-eval",)))
    verdicts = agent.dicast("verdicts", "--json").json["verdicts"]
    judges = sum(Decimal(verdict["judge_cost_usd"]) for verdict in verdicts)
    assert agents["total_usd"] == "0.05"
    assert Decimal(everything["total_usd"]) - Decimal(agents["total_usd"]) == judges == Decimal("0.014")
    assert {row["model"]: row["usd"] for row in agents["data"]} == {"m-0": "0.02", "m-1": "0.03"}
    assert {row["model"]: row["usd"] for row in everything["data"]} == {"m-0": "0.02", "m-1": "0.044"}


def test_ledger_verdicts_and_document_agree_on_what_was_spent(shop):
    shop.rows("0.1", "0.9", "0.4", "wrong", sessions=2)
    ran = shop.run(
        "metrics: [fake/paid]\n"
        "judges: [fake/paid_judge, {hybrid/cascade: {stages: [fake/opinion, fake/paid_judge], escalation_threshold: 1}}]\n"
        "gate: {on: metrics}\n"
    )
    assert Decimal(ran.json["cost"]["usd"]) == Decimal("0.09")
    verdicts = shop.dicast("verdicts", "--json").json["verdicts"]
    of_judge = {label: Decimal(0) for label in ("metrics", "fake/paid_judge", "hybrid/cascade")}
    for verdict in verdicts:
        of_judge[verdict["judge"]] += Decimal(verdict["judge_cost_usd"])
    for group in GROUPS:
        output = shop.dicast("cost", "--include-eval", "--group-by", group, "--run", "last", "--json").json
        assert output["total_usd"] == ran.json["cost"]["usd"]
        assert sum(Decimal(row["usd"]) for row in output["data"]) == Decimal(output["total_usd"])
        assert output["lost_usd"] == ran.json["spend_lost"]["usd"]
        if group == "judge":
            assert {row["judge"]: Decimal(row["usd"]) for row in output["data"]} == of_judge


# 14.2


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(prices=st.lists(st.integers(0, 9), min_size=1, max_size=4))
def test_judging_again_never_lowers_what_was_spent(prices):
    ledger, total, last = MemoryLedger(), Decimal(0), Decimal(0)
    for price in sorted(prices):
        cost = Cost(price)
        judge = FakeJudge(Judgment(0.5, cost=cost), cost=cost)
        text = "judges: [costly]\nledger: book\nbudget: {session: 100 usd, day: 100 usd}\n"
        run_pipeline(text, subjects=[CLEAN], components={"costly": judge, "book": ledger})

        async def everything():
            async with ledger.open() as live:
                return [entry.event for entry in live.read(Query(types=("spend.settled",)))]

        subjects = Accounts("judge").read(asyncio.run(everything())).total.usd.amount
        assert subjects - total == price >= last
        total, last = subjects, price


# The cases


def test_threshold_0_never_escalates():
    done = cascade(MESSY, threshold=0)
    assert [(verdict.judge_kind, verdict.judge_cost_usd) for verdict in done.verdicts] == [("heuristic", 0)]


def test_threshold_point_9_on_a_messy_turn_takes_the_dear_verdict():
    (verdict,) = cascade(MESSY, threshold=0.9).verdicts
    assert (verdict.judge_kind, verdict.score, verdict.signals["escalated"]) == ("hybrid", 0.3, True)


def test_provider_fault_leaves_the_heuristic_and_its_cost_is_counted():
    down = Failure("judge_call_failed", "HTTP 500", cost=Cost("0.001"))
    done = cascade(MESSY, grader=FakeJudge(down, cost=FOUR_MILLS))
    (verdict,) = done.verdicts
    assert (verdict.judge_kind, verdict.signals["escalation_skipped"]) == ("heuristic", "judge_call_failed")
    assert str(verdict.judge_cost_usd) == done.document["cost"]["usd"] == "0.001"


@pytest.mark.parametrize(
    ("amount", "scopes", "budget", "projected", "reason"),
    [
        ("0.005", ["s-1"], "session: 0.01 usd", "0.006", "session_cap"),
        ("0.005", ["s-1"], "session: 0.01 usd", "0.005", None),
        ("0.005", ["s-2"], "session: 0.01 usd", "0.006", None),
        ("0.005", ["today"], "day: 0.01 usd", "0.006", "daily_cap"),
        ("0.005", ["yesterday"], "day: 0.01 usd", "0.006", None),
        ("0.005", ["s-1", "today"], "session: 0 usd, day: 0 usd, run: 0 usd", "0", None),
        ("0.005", ["s-1", "today"], "session: 0.01 usd, day: 0.01 usd", "0.006", "session_cap"),
    ],
)
def test_caps_count_what_was_spent_in_their_scope_today(amount, scopes, budget, projected, reason):
    grader = FakeJudge(Judgment(0.3, 0.9, "llm", cost=Cost(projected)), cost=Cost(projected))
    done = cascade(MESSY, grader=grader, text=f"ledger: book\nbudget: {{{budget}}}\n", book=spent(amount, *scopes))
    (verdict,) = done.verdicts
    assert verdict.signals.get("throttled_reason") == reason
    assert verdict.judge_kind == ("hybrid" if reason is None else "heuristic")
