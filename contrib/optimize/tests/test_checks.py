"""``dicast optimize validate`` and ``score-check``."""

from __future__ import annotations

import json

import pytest

from dicast import ConfigError

JUDGES = [{"heuristic/turn": {"as": "one"}}, {"heuristic/turn": {"as": "two"}}]


def test_several_judges_say_how_far_they_agree_and_one_that_fails_does_not_count(folder, model):
    model.replies = ['{"score": 0.5, "confidence": 0.9, "rationale": "so so"}']
    judge = {"llm/judge": {"model": model.component, "seal": False, "retries": 0, "system_prompt": "Judge it."}}
    named = [{"llm/judge": {**judge["llm/judge"], "as": name}} for name in ("one", "two")]
    code, document = folder.dicast("validate", folder.spec(model={"judges": named}))
    assert code == 0, document
    assert {verdict["judge"] for verdict in document["judges"]} == {"one", "two"}
    assert (document["mean"], document["stddev"], document["min"], document["max"], document["failed"]) == (
        0.5,
        0.0,
        0.5,
        0.5,
        0,
    )
    model.answer = lambda request: (400, {})
    code, document = folder.dicast("validate", folder.spec(model={"judges": named}))
    assert (code, document["ok"], document["mean"], document["stddev"], document["failed"]) == (1, False, None, None, 2)
    assert "400" in document["judges"][0]["error"]


def test_the_protocols_judge_gets_the_objective_and_the_intake_of_the_spec(folder, model):
    model.replies = ['{"dimensions": {"a": 1.0, "b": 0.0}, "hard_constraints_satisfied": true, "confidence": 0.9}']
    judges = [{"evaluator/judge": {"as": name, "model": model.component}} for name in ("one", "two")]
    intake = {"quality_dimensions": {"a": 3, "b": 1}, "hard_constraints": ["no insults"]}
    spec = folder.spec(model={"judges": judges}, intake=intake, optimization={"objective": "Greet the reader."})
    folder.dicast("validate", spec)
    text = json.dumps([request["messages"] for request in model.requests])
    assert "Greet the reader." in text
    assert "no insults" in text


def test_validate_needs_two_judges(folder):
    with pytest.raises(ConfigError, match="two or more"):
        folder.dicast("validate", folder.spec(model={"judges": JUDGES[:1]}))


def test_a_score_may_be_a_hundredth_below_its_baseline(folder, evaluator):
    spec = folder.spec(optimization={"name": "greeting"})
    evaluator.answer = lambda request: {"score": 0.5}
    code, document = folder.dicast("score-check", spec, "--baseline", "b.json", "--update")
    assert (code, document["checks"][0]["passed"], document["checks"][0]["baseline"]) == (0, True, None)
    for score, exit_code in ((0.491, 0), (0.489, 1)):
        evaluator.answer = lambda request, score=score: {"score": score}
        code, document = folder.dicast("score-check", spec, "--baseline", "b.json")
        assert (code, document["ok"], document["checks"][0]["baseline"]) == (exit_code, exit_code == 0, 0.5)


def test_baselines_are_updated_with_a_history_only_where_nothing_failed(folder, evaluator):
    first_spec, second_spec = (
        folder.spec(f"{name}.yaml", optimization={"name": name, "seed": name}) for name in ("one", "two")
    )
    evaluator.answer = lambda request: {"score": 0.6}
    folder.dicast("score-check", first_spec, second_spec, "--baseline", "b.json", "--update")
    before = json.loads((folder.path / "b.json").read_text())
    evaluator.answer = lambda request: (500, {}) if request["candidate"] == "two" else {"score": 0.9}
    code, document = folder.dicast("score-check", first_spec, second_spec, "--baseline", "b.json", "--update")
    assert (code, document["updated"]) == (1, False)
    assert "HTTP 500" in document["checks"][1]["error"]
    assert json.loads((folder.path / "b.json").read_text()) == before
    evaluator.answer = lambda request: {"score": 0.9}
    folder.dicast("score-check", first_spec, second_spec, "--baseline", "b.json", "--update")
    after = json.loads((folder.path / "b.json").read_text())["one"]
    assert (after["baseline"], [entry["score"] for entry in after["history"]]) == (0.9, [0.6, 0.9])


@pytest.mark.parametrize("text", ["[]", "{", '{"one": {"baseline": "high"}}'])
def test_a_file_that_is_no_baselines_is_refused(folder, text):
    (folder.path / "b.json").write_text(text)
    with pytest.raises(ConfigError, match=r"b\.json"):
        folder.dicast("score-check", folder.spec(), "--baseline", "b.json")
