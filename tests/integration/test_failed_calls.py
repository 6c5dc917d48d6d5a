"""Failed calls of a chat model: the parameters that its endpoint refused, and whether the task or a judge asked."""

from __future__ import annotations

import re

import pytest

MODEL = 'define: {m: {openai/chat: {base_url: "%s", model: m-1, price: free, retries: 0}}}\n'
TASK = 'task: {prompt/chat: {model: m, user: "{{ id }}", retries: 0}}\n'
PARTS = {
    "judge": ("judges: [{llm/judge: {as: j, model: m}}]\n", "j"),
    "task": (TASK + "metrics: [check/contains: {value: Lima}]\n", "task"),
    "task without metrics": (TASK + "sinks: [jsonl/rows: {path: o.jsonl}]\n", "task"),
}


@pytest.fixture
def model(shop, chat_server):
    """Two rows; the endpoint refuses two parameters, and its replies are empty."""

    def answer(request):
        for name in ("max_tokens", "temperature"):
            if name in request.body:
                message = f"Unsupported parameter: '{name}' is not supported with this model."
                error = {"message": message, "param": name, "code": "unsupported_parameter"}
                return chat_server.raw({"error": error}, status=400)
        return chat_server.reply("", finish_reason="length")

    chat_server.answer = answer
    shop.rows("a", "b")
    return chat_server


@pytest.mark.parametrize("part", PARTS)
def test_adaptations_are_reported_although_all_calls_failed(shop, model, part):
    text, label = PARTS[part]
    done = shop.run(MODEL % model.url + text)
    assert done.json["failed"] == 2
    assert done.json["adapted"] == {label: ["max_tokens", "temperature"]}
    line = f"adapted: [max_tokens, temperature] (refused by the endpoint of {label}"
    summary = " ".join(shop.dicast("run", "p.yaml").out.split())
    assert line in summary
    assert line in " ".join(shop.dicast("show", "r0").out.split())
    assert '"adapted"' in shop.dicast("verdicts", "--failed", "--json").out


def test_a_warning_about_cut_replies_of_a_task_names_the_task(shop, model):
    judge = "judges: [{llm/judge: {as: j, model: m}}]\n"
    done = shop.run(MODEL % model.url + TASK + "metrics: [check/contains: {value: Lima}]\n" + judge)
    (cut,) = [entry for entry in done.json["warnings"] if entry["kind"] == "cut_replies"]
    assert (cut["label"], cut["judgments"], cut["failed"]) == ("task", 2, 2)
    assert cut["message"] == (
        "the token limit cut replies of the task's model: no output of 2 rows; "
        "raise max_output_tokens of prompt/chat, or max_reasoning_tokens of its model"
    )
    assert {entry["origin"] for entry in done.json["failed_subjects"]} == {"task"}
    summary = " ".join(shop.dicast("run", "p.yaml").out.split())
    assert re.search(r"task: reply is invalid: row r\d: ", summary)
    assert "metrics: judge_output_invalid" not in " ".join(shop.dicast("show", "r0").out.split())


def test_a_model_that_reasons_unannounced_names_the_option_that_projects_it(shop, chat_server):
    chat_server.answer = lambda _: chat_server.reply(
        "Lima",
        usage={
            "prompt_tokens": 10,
            "completion_tokens": 9000,
            "completion_tokens_details": {"reasoning_tokens": 8990},
        },
    )
    shop.rows("a")
    text = MODEL.replace("price: free", "price: {input_per_mtok: 1, output_per_mtok: 1}") % chat_server.url + TASK
    shop.run(text + "metrics: [check/contains: {value: Lima}]\nbudget: {run: 1.00 usd}\n")
    summary = " ".join(shop.dicast("run", "p.yaml").out.split())
    message = "calls of prompt/chat that cost more than projected: 1; raise its estimate; if its model reasons, set max_reasoning_tokens"
    assert f"warning: {message}" in summary
