"""Endpoints that are slow, busy, broken or closed, and exhausted caps: whole runs against a scripted endpoint."""

from __future__ import annotations

import csv
import json
import os
import signal
from decimal import Decimal

import pytest

from .conftest import finish, wait_for

CALL = Decimal("0.00014")  # 100 tokens in at 1 usd a million, 20 out at 2
GRADER = """\
define:
  grader: {{openai/chat: {{base_url: "${{JUDGE_URL}}", model: m-1, price: {{input_per_mtok: 1, output_per_mtok: 2}}{0}}}}}
"""
JUDGED = GRADER + "judges: [{{llm/judge: {{model: grader{1}}}}}]\n"
ALONE = "executor: {dicast/async: {concurrency: 1}}\n"
CASCADE = """\
source: {traces/messages: {path: chats.jsonl, id: "{{ id }}", tool_error: "^Error"}}
judges:
  - hybrid/cascade: {as: turn, stages: [heuristic/turn, {llm/judge: {model: grader, evidence: summary}}]}
sinks: [csv/rows: {path: rows.csv}]
executor: {dicast/async: {concurrency: 1}}
"""


@pytest.fixture
def judge(shop, chat_server, monkeypatch):
    """``judge(text, …)``: run a pipeline against the chat server, with --json."""
    monkeypatch.setenv("JUDGE_URL", chat_server.url)

    def run(text, *arguments):
        return shop.dicast("run", shop.pipeline(text).name, "--json", *arguments)

    return run


def judged(model="", options=""):
    return JUDGED.format(model and f", {model}", options and f", {options}")


def failures(shop):
    return shop.dicast("verdicts", "--failed", "--json").json["failures"]


def planned(shop):
    """The kinds of judges that ``eval.started`` announces."""
    return {event["payload"]["judge_kind_planned"] for event in shop.events("eval.started")}


def verdicts(shop, *arguments):
    return shop.dicast("verdicts", *arguments, "--json").json["verdicts"]


@pytest.mark.slow
@pytest.mark.parametrize("dated", [False, True])
def test_retry_after_is_kept_and_no_re_ask_of_the_judge(shop, chat_server, judge, dated):
    shop.rows("An answer.")
    wait = chat_server.http_date(2) if dated else 1
    chat_server.script(lambda asked: chat_server.error(429, retry_after=wait))
    done = judge(judged(options="retries: 0"))
    assert (done.code, done.json["scored"], done.err) == (0, 1, "")
    first, second = chat_server.requests
    assert (0.9 if dated else 1) <= second.time - first.time < (3 if dated else 2)
    (verdict,) = verdicts(shop)
    assert verdict["signals"]["attempts"] == 1
    assert Decimal(verdict["judge_cost_usd"]) == CALL


def test_lasting_500_is_four_calls_and_then_a_failure_that_cost_nothing(shop, chat_server, judge):
    shop.rows("An answer.")
    chat_server.answer = 500
    done = judge(judged())
    assert done.code == 3
    assert done.json["failures"] == {"judge_call_failed": 1}
    assert chat_server.count == 4
    (failure,) = failures(shop)
    assert "HTTP 500: set to fail (4 tries)" in failure["error_message"]
    assert done.json["cost"]["usd"] == "0"
    assert len(shop.events("spend.reserved")) == len(shop.events("spend.released")) == 1


@pytest.mark.parametrize(("tries", "count"), [(0, 1), (1, 2)])
def test_lasting_500_is_tried_again_as_often_as_the_model_says(shop, chat_server, judge, tries, count):
    shop.rows("An answer.")
    chat_server.answer = 503
    done = judge(judged(f"retries: {tries}"))
    assert (done.json["failures"], chat_server.count) == ({"judge_call_failed": 1}, count)


@pytest.mark.parametrize(("model", "options"), [("timeout: 0.5", ""), ("", "timeout: 0.5")])
def test_model_that_hangs_is_a_timeout_and_may_have_been_paid_for(shop, chat_server, judge, model, options):
    shop.rows("An answer.")
    chat_server.answer = chat_server.Answer(fault="hang")
    done = judge(judged(model, options))
    assert (done.code, done.json["failures"], chat_server.count) == (3, {"timeout": 1}, 1)
    (reserved,) = shop.events("spend.reserved")
    spent = Decimal(done.json["cost"]["usd"]) + Decimal(done.json["spend_lost"]["usd"])
    assert 0 < spent <= Decimal(reserved["payload"]["amount"])


def test_calls_that_hang_cost_no_more_than_was_reserved_for_them(shop, chat_server, judge):
    shop.rows(*[f"Answer {number}." for number in range(24)])
    chat_server.answer = chat_server.Answer(fault="hang")
    done = judge(judged("timeout: 0.5", "retries: 0"))
    assert done.json["failures"] == {"timeout": 24}
    reserved = sum(Decimal(event["payload"]["amount"]) for event in shop.events("spend.reserved"))
    assert Decimal(done.json["cost"]["usd"]) <= reserved
    assert done.json["overruns"] == 0


@pytest.mark.parametrize(("options", "calls"), [("", 2), ("retries: 0", 1), ("retries: 3", 4)])
def test_replies_of_no_use_are_asked_for_again_and_paid_for(shop, chat_server, judge, options, calls):
    shop.rows("An answer.")
    chat_server.answer = "I would give it 7 out of 10."
    done = judge(judged(options=options))
    assert (done.code, done.json["failures"]) == (3, {"judge_output_invalid": 1})
    assert len({asked.seal for asked in chat_server.requests}) == chat_server.count == calls
    assert Decimal(done.json["cost"]["usd"]) == calls * CALL
    (failure,) = failures(shop)
    assert "7 out of" not in failure["error_message"]


def test_second_reply_counts_where_the_first_was_of_no_use(shop, chat_server, judge):
    shop.rows("An answer.")
    chat_server.script(chat_server.reply('{"seal": "$SEAL", "score": 0.9', finish_reason="length"))
    done = judge(judged())
    (verdict,) = verdicts(shop)
    assert (verdict["score"], verdict["signals"]["attempts"]) == (0.5, 2)
    assert Decimal(done.json["cost"]["usd"]) == 2 * CALL


def test_refusal_of_the_model_is_not_asked_again(shop, chat_server, judge):
    shop.rows("An answer.")
    chat_server.answer = chat_server.reply("", message={"refusal": "I will not judge this."})
    done = judge(judged())
    assert (done.json["failures"], chat_server.count) == ({"refused": 1}, 1)
    assert Decimal(done.json["cost"]["usd"]) == CALL


@pytest.mark.parametrize("status", [401, 403, 404])
def test_refused_access_ends_the_run_at_once(shop, chat_server, judge, status):
    shop.rows(*["An answer."] * 200)
    chat_server.answer = chat_server.error(status, "no such key")
    chat_server.latency = 0.05
    done = judge(judged() + "executor: {dicast/async: {concurrency: 4}}\n")
    assert done.code == 2
    assert done.json["stopped"]["reason"] == "refused_by_provider"
    assert f"HTTP {status}: no such key" in json.dumps(done.json["stopped"])
    assert chat_server.count <= 4
    assert (done.json["scored"], done.json["cost"]["usd"]) == (0, "0")
    assert shop.events("eval.completed", "spend.settled") == []
    assert shop.verified()


def test_refused_access_after_something_was_spent_is_3_and_keeps_it(shop, chat_server, judge):
    shop.rows(*["An answer."] * 50)
    chat_server.script(*[chat_server.sealed(score=0.8, confidence=0.9)] * 3)
    chat_server.answer = 401
    done = judge(judged() + ALONE)
    assert done.code == 3
    assert done.json["stopped"]["reason"] == "refused_by_provider"
    assert (done.json["scored"], chat_server.count) == (3, 4)
    assert Decimal(done.json["cost"]["usd"]) == 3 * CALL
    assert [verdict["subject_id"] for verdict in verdicts(shop)] == ["r0", "r1", "r2"]


TASK = GRADER.format("") + 'task: {prompt/chat: {model: grader, user: "Say so."}}\nmetrics: [fake/act]\n'


JURORS = GRADER.format("") + "judges: [{llm/jury: {judges: [{llm/judge: {model: grader}}, {fake/opinion: {}}]}}]\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("pipeline", "content"),
    [
        (judged(), "I would give it 7 out of 10."),
        (JURORS, "I would give it 7 out of 10."),
        (judged(), None),
        (JURORS, None),
        (TASK, None),
    ],
    ids=["judge", "juror", "judge's model", "juror's model", "task's model"],
)
def test_what_a_call_did_cost_before_it_was_refused_access_is_settled(shop, chat_server, judge, pipeline, content):
    """The reply before the refusal was billed, after a retry of the judge or of the model."""
    shop.rows("An answer.")
    body = {"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20}}
    chat_server.script(chat_server.reply(content) if content else chat_server.raw(body))
    chat_server.answer = 401
    done = judge(pipeline)
    assert (done.code, done.json["stopped"]["reason"], chat_server.count) == (3, "refused_by_provider", 2)
    assert Decimal(done.json["cost"]["usd"]) == CALL
    assert Decimal(done.json["spend_lost"]["usd"]) == 0
    (settled,) = shop.events("spend.settled")
    assert (Decimal(settled["payload"]["amount"]), settled["payload"]["overrun"]) == (CALL, False)
    asked = 2 if content else 1  # by the judge; each ask is reserved by itself
    assert (len(shop.events("spend.reserved")), len(shop.events("spend.released"))) == (asked, asked - 1)
    assert shop.dicast("run", "p.yaml", "--json", "--resume").json["cost"]["usd"] == str(CALL)  # and is not forgotten


WAITING = {
    "judge": "judges: [{llm/judge: {model: grader, timeout: 1.5}}]\n",
    "juror": "judges: [{llm/jury: {judges: [{llm/judge: {model: grader}}, {fake/opinion: {}}], timeout: 1.5}}]\n",
    "stage": "judges: [{hybrid/cascade: {stages: [{fake/opinion: {}}, {llm/judge: {model: grader}}],"
    " escalation_threshold: 1, timeout: 1.5}}]\n",
    "metric": "metrics: [{llm/judge: {model: grader, timeout: 1.5}}]\n",
    "task": 'task: {prompt/chat: {model: grader, user: "Say so.", timeout: 1.5}}\nmetrics: [fake/act]\n',
    "cached": "judges: [{llm/judge: {model: {cache/chat: {model: grader, path: c.db}}, timeout: 1.5}}]\n",
    "recorded": "judges: [{llm/judge: {model: {replay/chat: {record: grader, path: r.jsonl}}, timeout: 1.5}}]\n",
}
"""What asks an endpoint that gives a paid answer of no use and then has too much for a minute."""


def useless(chat_server):
    return chat_server.raw({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20}})


def billed(document):
    """Return the amount spent in *document*, and True if a part of it was reserved for requests without a reply."""
    lost = Decimal(document["spend_lost"]["usd"])
    return Decimal(document["cost"]["usd"]) + lost, lost > 0


@pytest.mark.slow
@pytest.mark.parametrize("text", WAITING.values(), ids=WAITING)
def test_try_that_was_paid_counts_when_the_time_is_over_before_the_next(shop, chat_server, judge, text):
    shop.rows("An answer.")
    chat_server.script(useless(chat_server))
    chat_server.answer = chat_server.error(503, retry_after=60)
    spent, lost = billed(judge(GRADER.format("") + text).json)
    assert spent > CALL if lost else spent == CALL  # lost where the machine was so slow that a request was under way
    settled, lost = shop.events("spend.settled"), shop.events("spend.lost")
    assert len(settled) + len(lost) == len(shop.events("spend.reserved")) - len(shop.events("spend.released"))


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
@pytest.mark.parametrize("kind", ["judge", "juror", "task"])
def test_try_that_was_paid_counts_once_when_the_run_is_interrupted_before_the_next(
    shop, chat_server, kind, monkeypatch
):
    monkeypatch.setenv("JUDGE_URL", chat_server.url)
    shop.rows("An answer.")
    chat_server.script(useless(chat_server))
    chat_server.answer = chat_server.error(503, retry_after=60)
    shop.pipeline(GRADER.format("") + WAITING[kind].replace("timeout: 1.5", "timeout: 50"))
    process = shop.start("run", "p.yaml", "--json")
    wait_for(lambda: chat_server.count == 2)
    process.send_signal(signal.SIGINT)
    done = finish(process)
    spent, lost = billed(done.json)
    assert done.code == 130
    assert spent > CALL if lost else spent == CALL  # lost where the second request was still under way
    chat_server.answer = chat_server.sealed(score=0.8, confidence=0.9)
    resumed = shop.dicast("run", "p.yaml", "--json", "--resume")
    assert (resumed.json["stopped"], billed(resumed.json)[0]) == (None, spent + CALL)


def test_try_that_a_juror_has_paid_counts_when_another_is_refused_access(shop, chat_server, judge):
    shop.rows("An answer.")
    chat_server.script(useless(chat_server))
    chat_server.answer = 401
    jurors = "{llm/judge: {model: grader, criteria: [x]}}, {llm/judge: {model: grader}}"
    done = judge(GRADER.format("") + f"judges: [llm/jury: {{judges: [{jurors}]}}]\n")
    spent, lost = billed(done.json)
    assert (done.code, done.json["stopped"]["reason"]) == (3, "refused_by_provider")
    assert spent > CALL if lost else spent == CALL


def test_run_that_was_refused_is_resumed_with_a_better_key(shop, chat_server, judge):
    shop.rows(*["An answer."] * 6)
    chat_server.script(*[chat_server.sealed(score=0.8, confidence=0.9)] * 2, 401)
    refused = judge(judged() + ALONE)
    assert (refused.code, chat_server.count) == (3, 3)
    resumed = shop.dicast("run", "p.yaml", "--json", "--resume")
    assert (resumed.code, resumed.json["scored"]) == (0, 6)
    assert chat_server.count == 7
    assert resumed.json["run_id"] == refused.json["run_id"]
    assert Decimal(resumed.json["cost"]["usd"]) == 6 * CALL


def test_summary_of_a_refused_run_says_so_without_json(shop, chat_server, judge):
    shop.rows("An answer.")
    chat_server.answer = chat_server.error(403, "your plan has ended")
    done = shop.process("run", shop.pipeline(judged()).name)
    assert done.code == 2
    assert "HTTP 403: your plan has ended" in done.out + done.err
    assert "Traceback" not in done.out + done.err


@pytest.mark.parametrize("price", ["", ", price: null"])
def test_price_that_is_not_known_is_an_error_with_its_place(shop, chat_server, judge, price):
    shop.rows("An answer.")
    text = 'define:\n  grader: {openai/chat: {base_url: "${JUDGE_URL}", model: m-1, api_key: none' + price + "}}\n"
    done = judge(f"source: {{rows/jsonl: {{path: data.jsonl}}}}\n{text}judges: [llm/judge: {{model: grader}}]\n")
    assert (done.code, chat_server.count) == (2, 0)
    assert f"no price is listed for 'm-1' at {chat_server.url}; write price: free" in done.json["error"]["message"]
    (error,) = done.json["error"]["errors"]
    assert (error["file"], error["line"]) == ("p.yaml", 3)
    assert error["column"] == (text.index("price: null") - text.index("\n") + len("price: ") if price else 25)
    assert not (shop / ".dicast").exists()


def test_requests_per_minute_space_the_calls(shop, chat_server, judge):
    shop.rows(*["An answer."] * 8)
    done = judge(judged("requests_per_minute: 300"))
    assert done.json["scored"] == 8
    times = [asked.time for asked in chat_server.requests]
    assert times[-1] - times[0] >= 7 * 0.2 - 0.05
    assert min(later - earlier for earlier, later in zip(times, times[1:], strict=False)) > 0.1


def test_disabled_asks_nobody_and_writes_nothing(shop, chat_server, judge, monkeypatch):
    shop.rows("An answer.")
    monkeypatch.setenv("DICAST_DISABLED", "1")
    done = judge(judged())
    assert (done.code, done.json["disabled"], chat_server.count) == (0, True, 0)
    assert not (shop / ".dicast").exists()


JURY = """\
define:
  one: {openai/chat: {base_url: "${JUDGE_URL}", model: one, price: free}}
  two: {openai/chat: {base_url: "${JUDGE_URL}", model: two, price: {input_per_mtok: 1, output_per_mtok: 2}}}
  three: {openai/chat: {base_url: "${JUDGE_URL}", model: three, price: free, retries: 0}}
judges:
  - llm/jury:
      judges: [{llm/judge: {model: one}}, {llm/judge: {model: two}}, {llm/judge: {model: three}}]
"""
SCORES = {"one": 0.4, "two": 0.8}


def by_model(chat_server, down):
    def answer(asked):
        name = asked.body["model"]
        return 500 if name in down else chat_server.sealed(score=SCORES[name], confidence=0.9)

    return answer


def test_jury_with_one_model_down_judges_with_the_others(shop, chat_server, judge):
    shop.rows("An answer.", "Another.")
    chat_server.answer = by_model(chat_server, {"three"})
    done = judge(JURY)
    assert (done.code, done.json["scored"]) == (0, 2)
    verdict = verdicts(shop)[0]
    assert (verdict["judge_kind"], verdict["score"]) == ("jury", pytest.approx(0.6))
    assert planned(shop) == {"jury"}
    assert verdict["confidence"] == pytest.approx(0.9 * 0.6)  # .9, times 1 - 2 x the deviation of .4 and .8
    voted = [(vote.get("score"), vote.get("judge_model"), vote.get("failure")) for vote in verdict["signals"]["votes"]]
    assert voted == [(0.4, "one", None), (0.8, "two", None), (None, None, "judge_call_failed")]
    assert Decimal(verdict["judge_cost_usd"]) == CALL
    assert Decimal(done.json["cost"]["usd"]) == 2 * CALL


def test_jury_with_two_models_down_has_no_verdict_and_is_paid_for(shop, chat_server, judge):
    shop.rows("An answer.")
    chat_server.answer = by_model(chat_server, {"one", "three"})
    done = judge(JURY.replace("model: one,", "model: one, retries: 0,"))
    assert (done.code, done.json["failures"]) == (3, {"judge_call_failed": 1})
    assert Decimal(done.json["cost"]["usd"]) == CALL
    assert "2 of 3 judges failed (2 x judge_call_failed)" in failures(shop)[0]["error_message"]


def prefers(chat_server, text):
    """A model that prefers the output with *text* in either position, else the first output."""

    def answer(asked):
        first = asked.prompt.index("The right")
        other = asked.prompt.index("The wrong")
        winner = "first" if text is None or (first < other) == (text == "The right") else "second"
        return chat_server.sealed(winner=winner, confidence=0.8)

    return answer


@pytest.mark.parametrize(
    ("text", "score", "confidence", "flipped"),
    [("The right", 1.0, 0.8, False), ("The wrong", 0.0, 0.8, False), (None, 0.5, 0.4, True)],
)
def test_pairwise_asks_in_both_orders(shop, chat_server, judge, text, score, confidence, flipped):
    row = {"id": "r0", "input": "Which?", "output": "The right one.", "reference": "The wrong one."}
    shop.write("data.jsonl", [row])
    chat_server.answer = prefers(chat_server, text)
    done = judge(GRADER.format("") + "judges: [llm/pairwise: {model: grader}]\n")
    assert (done.code, chat_server.count) == (0, 2)
    places = {asked.prompt.index("The right") < asked.prompt.index("The wrong") for asked in chat_server.requests}
    assert places == {True, False}
    (verdict,) = verdicts(shop)
    assert (verdict["score"], verdict["confidence"]) == (score, pytest.approx(confidence))
    assert verdict["signals"]["flipped"] is flipped
    assert verdict["judge_kind"] == "llm"
    assert planned(shop) == {"llm"}
    assert Decimal(verdict["judge_cost_usd"]) == 2 * CALL


# Caps


def chats(shop, *sessions):
    """Conversations with a failing tool in every turn (confidence .55), and the given numbers of turns."""
    call = [{"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}]
    turn = [
        {"role": "user", "content": "Where is my bag?"},
        {"role": "assistant", "content": None, "tool_calls": call},
        {"role": "tool", "tool_call_id": "c", "content": "Error: no such bag"},
        {"role": "assistant", "content": "It is in Canberra."},
    ]
    shop.write("chats.jsonl", [{"id": f"s{n}", "messages": turn * turns} for n, turns in enumerate(sessions)])


def projected(shop, judge):
    """Return the projected cost of one call of the cascade's judge."""
    ledger = shop / "first.db"
    judge(GRADER.format("") + CASCADE + f"ledger: {{ledger/sqlite: {{path: {ledger}}}}}\n", "--limit", "1")
    lines = shop.dicast("ledger", "export", "--ledger", ledger).out.splitlines()
    reserved = next(event for event in map(json.loads, lines) if event["type"] == "spend.reserved")
    return Decimal(reserved["payload"]["amount"])


def capped(shop):
    """Of every turn, why it was not judged by the model (None where it was)."""
    return [verdict["signals"].get("throttled_reason") for verdict in verdicts(shop, "--run", "last")]


@pytest.mark.parametrize(
    ("scope", "reason", "judged", "sessions"),
    [("run", "run_cap", 2, [5]), ("session", "session_cap", 4, [5, 5]), ("day", "daily_cap", 2, [3, 3])],
)
def test_cap_leaves_the_heuristic_where_the_model_has_no_room(
    shop, chat_server, judge, scope, reason, judged, sessions
):
    chats(shop, *sessions)
    room = projected(shop, judge) + CALL * Decimal("1.5")  # for a call when none or one was paid, not when two were
    before, turns = chat_server.count, sum(sessions)
    done = judge(GRADER.format("") + CASCADE + f"budget: {{{scope}: {room} usd}}\n")
    assert (done.code, done.json["scored"], done.json["failed"]) == (0, turns, 0)
    assert chat_server.count - before == judged
    assert sorted(map(str, capped(shop))) == sorted(["None"] * judged + [reason] * (turns - judged))
    for verdict in verdicts(shop):
        throttled = "throttled_reason" in verdict["signals"]
        assert verdict["judge_kind"] == ("heuristic" if throttled else "hybrid")
        assert verdict["signals"].get("escalation_skipped") == ("budget_exhausted" if throttled else None)
        assert verdict["signals"].get("escalated") is (None if throttled else True)
        assert Decimal(verdict["judge_cost_usd"]) == (0 if throttled else CALL)
    assert done.json["judges"]["turn"]["escalated"] == judged
    assert done.json["throttled"] == {reason: turns - judged}
    assert len(shop.events("budget.throttled")) == turns - judged
    assert Decimal(done.json["cost"]["usd"]) == judged * CALL
    with open(shop / "rows.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert sum(Decimal(row["cost_usd"]) for row in rows) == judged * CALL
    assert [row["judge_turn_kind"] for row in rows].count("heuristic") == turns - judged


def test_what_a_run_has_spent_counts_against_the_day_of_the_next(shop, chat_server, judge):
    chats(shop, 2)
    room = projected(shop, judge) + CALL * Decimal("1.5")
    before = chat_server.count
    text = GRADER.format("") + CASCADE + f"budget: {{day: {room} usd}}\n"
    assert judge(text).json["throttled"] == {}
    again = judge(text)
    assert (again.code, again.json["throttled"], again.json["cost"]["usd"]) == (0, {"daily_cap": 2}, "0")
    assert chat_server.count - before == 2
    assert capped(shop) == ["daily_cap"] * 2


@pytest.mark.parametrize(("fallback", "code"), [(", fallback: fake/opinion", 0), ("", 5)])
def test_judge_alone_under_a_cap_needs_a_fallback(shop, chat_server, judge, fallback, code):
    shop.rows(0.25, 0.75)
    done = judge(JUDGED.format("", fallback) + "budget: {run: 0 usd}\n")
    assert (done.code, chat_server.count) == (code, 0)
    if fallback:
        assert [(verdict["score"], verdict["judge_kind"]) for verdict in verdicts(shop)] == [
            (0.25, "heuristic"),
            (0.75, "heuristic"),
        ]
        assert capped(shop) == ["run_cap"] * 2
    else:
        assert done.json["failures"] == {"throttled_no_heuristic": 2}
