"""A run that stops early: subjects in progress end, and at most ``concurrency - 1`` rows start after the row that stopped it."""

from __future__ import annotations

import json
import os
import re
import signal
from collections import Counter

import pytest

from .conftest import finish, wait_for

FIRED = 3
MODEL = 'define: {model: {openai/chat: {base_url: "${JUDGE_URL}", model: m-1, price: free, retries: 0}}}\n'
TASK = MODEL + (
    "name: shop\n"
    'task: {prompt/chat: {model: model, criteria: {one: {user: "{{ id }} one"}, two: {user: "{{ id }} two"}}}}\n'
    "extractors: [score_extractor/scores]\n"
    f"early_stop: [stats/threshold: {{metric: scores.one, threshold: {FIRED}}}]\n"
)
JUDGED = "judges: [llm/judge: {model: model, criteria: [it is polite]}]\n"


def concurrency(count):
    return f"executor: {{dicast/async: {{concurrency: {count}}}}}\n"


def row(request):
    """The row that a task asks about; None where a judge asks."""
    result = re.fullmatch(r"r(\d+) (one|two)", request.prompt)
    return None if result is None else int(result[1])


@pytest.fixture
def model(shop, chat_server, monkeypatch):
    """The chat server, which gives row r0 a 0, r1 a 1 …; r2 and the row that stops the run are late; judged outputs get a verdict."""
    monkeypatch.setenv("JUDGE_URL", chat_server.url)

    def answer(request):
        number = row(request)
        if number is None:
            return chat_server.sealed(score=0.8, confidence=0.9)
        return chat_server.Answer(json.dumps({"score": number}), delay=0.1 if number in (2, FIRED) else 0.0)

    chat_server.answer = answer
    shop.rows(*["An output."] * 40)
    return chat_server


def made(model):
    """The rows that a task was asked about."""
    return {number for request in model.requests if (number := row(request)) is not None}


def nothing_is_open(shop):
    eval_ids = [event["payload"]["eval_id"] for event in shop.events("eval.started")]
    ends = [event["payload"]["eval_id"] for type_ in ("eval.completed", "eval.failed") for event in shop.events(type_)]
    return Counter(eval_ids) == Counter(ends)


@pytest.mark.parametrize("at_once", [1, 2, 8])
@pytest.mark.parametrize("extra", ["", "scoring: {rollouts: 2}\nmetrics: [proxy/length: {max: 12}]\n", JUDGED])
def test_no_more_rows_are_made_than_may_be_under_way(shop, model, at_once, extra):
    done = shop.run(TASK + extra + concurrency(at_once))
    assert done.json["stopped"]["row_index"] == FIRED
    assert made(model) == set(range(FIRED + at_once))
    counted = done.json["scored"], done.json["subjects"], len(shop.events("record.completed"))
    assert counted == (FIRED + at_once,) * 3
    assert nothing_is_open(shop)
    assert (done.code, done.json["failed"], done.json["coverage"]) == (0, 0, 1)


def test_slow_def_metric_of_a_row_that_was_begun_ends(shop, model, plugin):
    busy = """
    import time

    @metric(tier="proxy")
    def busy(subject) -> Score:
        end = time.monotonic() + (0.05 if subject.id != "r0" else 0)
        while time.monotonic() < end:
            pass
        return Score(1.0)

    @hookimpl
    def dicast_metrics():
        return [busy]
    """
    plugin("busy", busy)
    done = shop.run(TASK + "metrics: [busy/busy]\n" + concurrency(4))
    assert (done.json["scored"], done.json["failed"]) == (FIRED + 4, 0)
    assert nothing_is_open(shop)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kill -9 is POSIX")
def test_rows_that_were_begun_end_when_the_run_is_taken_up_again(shop, model):
    usual = model.answer
    model.answer = lambda calls: model.Answer(fault="hang") if (row(calls) or 0) > FIRED else usual(calls)
    process = shop.start("run", shop.pipeline(TASK + JUDGED + concurrency(4)).name, "--json")
    wait_for(lambda: len(shop.events("eval.completed")) == FIRED + 1)
    process.send_signal(signal.SIGKILL)
    finish(process)
    model.answer = usual
    resumed = shop.dicast("run", "p.yaml", "--json", "--resume", "--set", "executor.dicast/async.concurrency=1")
    assert resumed.json["stopped"]["row_index"] == FIRED
    assert (resumed.code, resumed.json["scored"]) == (0, FIRED + 4)
    assert made(model) == set(range(FIRED + 4))
    assert nothing_is_open(shop)
    calls = model.count
    again = shop.dicast("run", "p.yaml", "--json", "--resume", resumed.json["run_id"], "--retry-failed")
    assert (again.json["scored"], model.count) == (FIRED + 4, calls)


def test_stop_seen_in_the_resumed_part_begins_no_row_more(shop, model):
    usual = model.answer
    model.answer = lambda request: 401 if row(request) == FIRED else usual(request)
    assert shop.run(TASK + concurrency(2)).json["stopped"]["reason"] == "refused_by_provider"
    model.answer = usual
    resumed = shop.dicast("run", "p.yaml", "--json", "--resume")
    assert resumed.json["stopped"]["reason"] == "early_stop"
    assert made(model) <= set(range(FIRED + 2))
    assert resumed.json["scored"] == resumed.json["subjects"] == FIRED + 2
