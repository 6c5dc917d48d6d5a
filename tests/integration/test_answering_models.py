"""Runs of one pipeline that different models answered: they are not alike, and say so."""

from __future__ import annotations

import json

import attrs
import pytest

MODEL = 'model: {openai/chat: {base_url: "${JUDGE_URL}", model: asked, price: free}}'
JUDGE = f"{{llm/judge: {{{MODEL}}}}}"
COMPARED = "baseline: {run: last, compare: [stats/paired]}\n"
PIPELINES = {
    "j": f"judges: [{{llm/judge: {{as: j, {MODEL}}}}}]\n",
    "m": f"metrics: [{{llm/judge: {{as: m, {MODEL}}}}}]\n",
    "jury.judges[0]": f"judges: [{{llm/jury: {{as: jury, judges: [{JUDGE}, {JUDGE}]}}}}]\n",
}


def answering(chat_server, model):
    """Let the endpoint say that *model* answered."""
    chat_server.answer = lambda request: attrs.evolve(chat_server.sealed(score=0.5, confidence=0.9), model=model)


@pytest.fixture
def model(shop, chat_server, monkeypatch):
    monkeypatch.setenv("JUDGE_URL", chat_server.url)
    shop.rows(*["0.5"] * 3)
    return chat_server


@pytest.mark.slow
@pytest.mark.parametrize("label", PIPELINES)
def test_run_that_another_model_answered_is_not_like_its_baseline(shop, model, label):
    runs = []
    for name in ("old", "old", "new"):
        answering(model, name)
        runs.append(shop.run("name: p\n" + PIPELINES[label] + COMPARED).json)
    assert runs[0]["models"][label] == ["old"]
    assert runs[1]["baseline"]["differs"] == []
    named = f"the model that answered {label} (new, not old)"
    assert named in runs[2]["baseline"]["differs"]
    assert f"NOT COMPARABLE: the runs differ in {named}" in " ".join(shop.dicast("show", "last").out.split())
    alike, other = (shop.dicast("compare", runs[0]["run_id"], item["run_id"], "--json") for item in runs[1:])
    assert (alike.code, alike.json["differs"]) == (0, [])
    assert other.code == 2
    assert named in other.json["error"]["message"]


@pytest.mark.slow
def test_cascade_that_needed_its_model_in_one_run_alone_is_the_same_judge(shop, model):
    text = (
        f"name: p\njudges: [{{hybrid/cascade: {{as: c, stages: [fake/opinion, {JUDGE}], escalation_threshold: 0}}}}]\n"
    )
    first = shop.run(text)
    answering(model, "new")
    again = shop.run(text.replace("threshold: 0", "threshold: 1") + COMPARED)
    assert (first.json["models"], again.json["models"]) == ({}, {"c.stages[1]": ["new"]})
    assert json.dumps(again.json["baseline"]["differs"]).count("model") == 0
