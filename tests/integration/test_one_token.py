"""Verdicts in one token through ``openai/chat``: scores by probabilities, endpoints without them, cost, cache and resume."""

from __future__ import annotations

import math
import sys

import pytest

MODEL = (
    'openai/chat: {base_url: "${JUDGE_URL}", model: m-1, price: {input_per_mtok: 1, output_per_mtok: 2}, retries: 0}'
)
JUDGE = "{model: model, form: yes_no}"


def pipeline(judge=JUDGE, model=f"{{{MODEL}}}", name="llm/judge"):
    return f"define: {{model: {model}}}\njudges: [{name}: {judge}]\n"


def tokens(server, *top, **choice):
    """A completion of one token; *top* are (text, probability)."""
    listed = [{"token": text, "logprob": math.log(share), "bytes": [*text.encode()]} for text, share in top]
    content = {"content": [{**listed[0], "top_logprobs": listed}]}
    message = {"role": "assistant", "content": top[0][0]}
    usage = {"prompt_tokens": 100, "completion_tokens": 1, "total_tokens": 101}
    result = {"index": 0, "message": message, "finish_reason": "length", "logprobs": content, **choice}
    return server.answer_type(
        body={"id": "x", "object": "chat.completion", "model": "m-1", "choices": [result], "usage": usage}
    )


@pytest.fixture
def model(shop, chat_server, monkeypatch):
    monkeypatch.setenv("JUDGE_URL", chat_server.url)
    chat_server.answer_type = sys.modules[type(chat_server).__module__].Answer
    shop.rows("one", "two")
    return chat_server


def scores(shop):
    return [event["payload"]["score"] for event in shop.events("eval.completed")]


def test_the_probability_of_yes_is_the_score_and_one_token_is_paid_for(shop, model):
    model.answer = tokens(model, (" Yes", 0.6), ("no", 0.2), ("I", 0.1))
    done = shop.run(pipeline())
    assert done.code == 0, done.err
    assert scores(shop) == [pytest.approx(0.75), pytest.approx(0.75)]
    assert done.json["cost"]["usd"] == "0.000204"
    body = model.requests[0].body
    assert (body["logprobs"], body["top_logprobs"]) == (True, 20)
    assert 1 in (body.get("max_tokens"), body.get("max_completion_tokens"))
    assert done.json["warnings"] == []


@pytest.mark.parametrize(
    ("choice", "lacks"),
    [
        ({"logprobs": None}, "log probabilities (logprobs)"),
        ({"logprobs": {"content": None}}, "log probabilities (logprobs)"),
        ({"logprobs": {"content": [{"token": "yes", "logprob": -0.1}]}}, "most probable tokens (top_logprobs)"),
        ({"logprobs": {"content": [{"token": "yes", "logprob": -0.1, "top_logprobs": []}]}}, "(top_logprobs)"),
    ],
    ids=["null", "null content", "no top", "empty top"],
)
def test_an_endpoint_that_replies_without_probabilities_ends_the_run_and_names_the_option(shop, model, choice, lacks):
    model.answer = tokens(model, ("yes", 0.9), **choice)
    done = shop.run(pipeline())
    assert done.code == 2
    assert scores(shop) == []
    assert done.json["stopped"]["reason"] == "unsupported_by_model"
    assert done.json["cost"]["usd"] != "0"
    assert "llm/judge with form: yes_no needs the probabilities of tokens" in str(done.json["stopped"])
    assert lacks in str(done.json["stopped"])
    assert model.count <= 2


def test_an_endpoint_that_refuses_the_parameter_ends_the_run_and_names_it(shop, model):
    model.answer = model.error(400, "Unsupported parameter: 'logprobs' is not supported with this model.")
    done = shop.run(pipeline())
    assert (done.code, scores(shop)) == (2, [])
    assert "logprobs" in str(done.json["stopped"])


def test_the_summary_claims_no_verdicts_where_none_was_made(shop, model):
    model.answer = model.error(400, "Unsupported parameter: 'logprobs' is not supported with this model.")
    out = shop.dicast("run", shop.pipeline(pipeline()).name).out
    assert ("stopped: " in out, "judge the remaining subjects" in out, "verdicts are recorded" in out) == (
        True,
        True,
        False,
    ), out


def test_an_endpoint_that_gives_fewer_tokens_is_asked_for_fewer(shop, model):
    def answer(request):
        if request.body.get("top_logprobs", 0) > 5:
            return model.error(400, "Invalid value for 'top_logprobs': must be at most 5.")
        return tokens(model, ("yes", 0.6), ("no", 0.4))

    model.answer = answer
    done = shop.run(pipeline())
    assert done.code == 0, done.err
    assert scores(shop) == [pytest.approx(0.6), pytest.approx(0.6)]


def test_without_either_word_the_subject_fails_and_names_the_tokens(shop, model):
    model.answer = tokens(model, ("<think>", 0.9), ("Well", 0.05))
    done = shop.run(pipeline())
    assert done.json["failures"] == {"judge_output_invalid": 2}
    (failed, *_) = shop.events("eval.failed")
    assert "'<think>' 0.90" in failed["payload"]["error_message"]
    assert done.json["cost"]["usd"] == "0.000204"


def test_reasons_before_cost_two_calls_within_the_reservation(shop, model):
    model.answer = lambda request: (
        tokens(model, ("yes", 0.6), ("no", 0.4)) if request.body.get("logprobs") else "It fits."
    )
    done = shop.run(pipeline("{model: model, form: yes_no, reasoning: before}") + "budget: {run: 1 usd}\n")
    assert done.code == 0, done.err
    assert model.count == 4
    assert done.json["cost"]["usd"] == "0.000484"  # 2 x (100 + 40, and 100 + 2)
    assert done.json["overruns"] == 0
    (event, _) = shop.events("eval.completed")
    assert event["payload"]["signals"]["rationale_redacted"] == "It fits."


def test_a_cache_gives_the_probabilities_again_for_nothing(shop, model):
    model.answer = tokens(model, ("yes", 0.6), ("no", 0.4))
    kept = pipeline(model=f"{{cache/chat: {{path: replies.db, model: {{{MODEL}}}}}}}")
    first, second = shop.run(kept), shop.run(kept)
    assert (first.code, second.code, model.count) == (0, 0, 2)
    assert (first.json["cost"]["usd"], second.json["cost"]["usd"]) == ("0.000204", "0")
    assert scores(shop) == [pytest.approx(0.6)] * 4


def test_a_cache_gives_both_calls_again(shop, model):
    model.answer = lambda request: (
        tokens(model, ("yes", 0.6), ("no", 0.4)) if request.body.get("logprobs") else "It fits."
    )
    kept = pipeline(
        "{model: model, form: yes_no, reasoning: before}",
        f"{{cache/chat: {{path: replies.db, model: {{{MODEL}}}}}}}",
    )
    first, second = shop.run(kept), shop.run(kept)
    assert (first.code, second.code, model.count) == (0, 0, 4)
    assert (first.json["cost"]["usd"], second.json["cost"]["usd"]) == ("0.000484", "0")


def test_a_resumed_run_asks_only_about_the_subject_that_failed_after_its_reasons(shop, model):
    def answer(request):
        if not request.body.get("logprobs"):
            return "It fits."
        return model.error(500, "down") if model.count == 4 else tokens(model, ("yes", 0.6), ("no", 0.4))

    model.answer = answer
    item = "executor: {dicast/async: {concurrency: 1}}\n"
    done = shop.run(pipeline("{model: model, form: yes_no, reasoning: before}") + item)
    assert (done.json["scored"], done.json["failures"], model.count) == (1, {"judge_call_failed": 1}, 4)
    again = shop.dicast("run", "p.yaml", "--json", "--resume", "--retry-failed")
    assert (again.code, again.json["scored"], model.count) == (0, 2, 6), again.err
    assert shop.verified()


def test_letters_are_asked_for_in_both_orders(shop, model):
    def answer(request):
        says_a = request.prompt.index("mine") < request.prompt.index("theirs")
        return tokens(model, ("A", 0.8 if says_a else 0.6), ("B", 0.2 if says_a else 0.4))

    model.answer = answer
    shop.write("data.jsonl", [{"id": "1", "input": "?", "output": "mine", "reference": "theirs"}])
    done = shop.run(pipeline("{model: model, form: letter}", name="llm/pairwise"))
    assert done.code == 0, done.err
    odds = (math.log(0.8 / 0.2) - math.log(0.6 / 0.4)) / 2
    assert scores(shop) == [pytest.approx(1 / (1 + math.exp(-odds)))]
    assert model.count == 2
