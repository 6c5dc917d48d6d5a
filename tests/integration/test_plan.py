"""A run that costs money: the plan before it, its cost, and the comparison at its end."""

from __future__ import annotations

import shlex
from decimal import Decimal

import pytest

PIPELINE = """
name: shop
define:
  model: {openai/chat: {base_url: "${JUDGE_URL}", model: m-1, price: {input_per_mtok: 100, output_per_mtok: 200}}}
source: {rows/jsonl: {path: data.jsonl, shuffle: 2}}
judges: [llm/judge: {model: model, criteria: [it is polite]}]
budget: {session: 100 usd, day: 100 usd}
"""


@pytest.fixture
def shop(shop, chat_server, monkeypatch):
    monkeypatch.setenv("JUDGE_URL", chat_server.url)

    def answer(asked):
        return chat_server.sealed(score=0.4 + 0.1 * (len(asked.prompt) % 6), confidence=0.9)

    chat_server.answer = answer
    shop.rows(*["word " * (5 + 37 * at % 400) for at in range(60)])
    (shop / "p.yaml").write_text(PIPELINE)
    return shop


def test_the_plan_of_a_pilot_holds_what_the_run_then_costs(shop, chat_server):
    bound = shop.dicast("plan", "p.yaml", "--json").json
    assert (bound["cost"]["usd"]["from"], chat_server.requests) == ("bound", [])
    found = shop.dicast("plan", "p.yaml", "--pilot", "20", "--json").json
    assert len(chat_server.requests) == 20
    cost = {key: Decimal(found["cost"]["usd"][key]) for key in ("low", "mid", "high", "settled", "projected")}
    assert 0 < cost["settled"] < cost["low"] <= cost["mid"] <= cost["high"] <= cost["projected"]
    assert found["calls"]["mid"] == 40
    done = shop.dicast("run", "p.yaml", "--resume", found["run_id"], "--json").json
    assert len(chat_server.requests) == 60
    assert cost["settled"] * 2 < Decimal(done["cost"]["usd"]) <= cost["projected"]
    assert done["plan"]["cost"]["usd"]["spent"] == done["cost"]["usd"]
    told = shop.dicast("show", found["run_id"]).out
    assert "plan: " in told


def test_the_plan_of_a_pilot_prints_the_command_that_resumes_it(shop):
    lines = shop.dicast("plan", "p.yaml", "--pilot", "10", "--set", "gate.min_score=0.1").out.splitlines()
    command = next(line for line in lines if line.startswith("next: ")).removeprefix("next: ")
    assert command.startswith("dicast run p.yaml --set gate.min_score=0.1 --resume ")
    run_id = command.rpartition(" ")[2]
    done = shop.dicast(*shlex.split(command)[1:], "--json").json
    assert (done["run_id"], done["subjects"]) == (run_id, 60)
    assert 0.1 in [clause["line"] for clause in done["gate"]["clauses"]]


def test_a_budget_says_how_many_subjects_it_is_for(shop):
    found = shop.dicast("plan", "p.yaml", "--pilot", "20", "--solve", "n", "--budget", "100 usd", "--json").json
    assert found["solve"]["subjects"] > 60
    assert found["solve"]["enough"] is False
    cost = Decimal(found["solve"]["cost"]["usd"]["high"])
    assert Decimal(99) < cost <= Decimal("100.01")


def test_a_budget_that_is_no_amount_is_refused(shop):
    done = shop.dicast("plan", "p.yaml", "--solve", "n", "--budget", "five")
    assert done.code == 2
    assert "not an amount of money" in done.err


def test_the_rows_of_a_baseline_say_which_difference_more_rows_can_show(shop):
    free = PIPELINE.replace(
        "judges: [llm/judge: {model: model, criteria: [it is polite]}]", "metrics: [proxy/length: {max: MOST}]"
    )
    (shop / "p.yaml").write_text(free.replace("MOST", "20"))
    assert shop.dicast("run", "p.yaml").code == 0
    (shop / "p.yaml").write_text(free.replace("MOST", "900") + "baseline: {run: last}\n")
    assert shop.dicast("run", "p.yaml").code == 0
    power = shop.dicast("plan", "p.yaml", "--difference", "0.05", "--json").json["power"]
    assert (power["n"], power["difference"], power["power"]) == (60, 0.05, 0.8)
    assert power["subjects"] > 60
    assert 0 < power["mde"] < 1
