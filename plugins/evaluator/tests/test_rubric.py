"""``evaluator/rubric``: the prompts of the skill and the judge, and the scores from dimensions."""

from __future__ import annotations

import asyncio
import json
import re
from typing import ClassVar

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from dicast import Cost, Failure, Judgment, Reply, RequestError, Rubric, Subject
from dicast.testing import FakeChatModel, JudgeConformance, run_pipeline
from dicast_evaluator import RubricJudge

WEIGHTS = {"correctness": 0.2, "completeness": 0.15, "clarity": 0.15, "consistency": 0.1, "use": 0.2, "safety": 0.2}
NUMBERS = dict(zip(WEIGHTS, (8, 7, 9, 8, 7, 8), strict=True))


def rubric(weights=WEIGHTS, scale="1-10", **fields):
    dimensions = [
        {"name": name, "weight": weight, "scale": scale, "criteria": name} for name, weight in weights.items()
    ]
    return {
        "name": "quality",
        "dimensions": dimensions,
        "target_score": 0.8,
        "max_iterations": 20,
        "plateau_window": 5,
    } | fields


def verdict(**fields):
    def reply(request):
        seal = re.search(r"^seal: ([0-9a-f]{12})$", request.messages[-1].content, re.MULTILINE)[1]
        return json.dumps({"seal": seal, **fields})

    return reply


def good(request):
    return verdict(**NUMBERS)(request)


@pytest.fixture
def ask(tmp_path):
    """Return ``ask(subject, reply, answer)``, which returns the judge's answer, and the requests to the skill's model and to the judge's."""
    (tmp_path / "SKILL.md").write_text("---\nname: greeter\n---\nYou greet people.")

    def run(subject, reply=good, answer="Hello!", **options):
        data = options.pop("data", rubric())
        model, judge = FakeChatModel(answer, cost=Cost("0.03")), FakeChatModel(reply, model="j", cost=Cost("0.01"))
        skilled = {"skill": tmp_path / "SKILL.md", "model": model} if answer is not None else {}
        rubric_judge = RubricJudge(rubric=Rubric("quality", "1", "", data), judge_model=judge, **skilled, **options)
        return asyncio.run(rubric_judge.judge(subject, ())), model.asked, judge.asked

    return run


class TestContract(JudgeConformance):
    judge = "evaluator/rubric"
    options: ClassVar = {"model": "skilled", "judge_model": "grader", "skill": "SKILL.md", "rubric": "rubric.yaml"}
    components: ClassVar = {"grader": FakeChatModel(good), "skilled": FakeChatModel("Hello!")}
    files: ClassVar = {"SKILL.md": "You greet.", "rubric.yaml": yaml.safe_dump(rubric())}


def test_the_skill_answers_the_case_and_the_answer_is_judged(ask):
    answer, (skill_request,), (judge_request,) = ask(Subject("row", "1", "Greet Ann.", "not this", "Good day, Ann."))
    assert [message.content for message in skill_request.messages] == [
        "---\nname: greeter\n---\nYou greet people.",
        "Greet Ann.",
    ]
    assert skill_request.messages[0].role == "system"
    prompt = judge_request.messages[1].content
    for title, text in (("CASE", "Greet Ann."), ("OUTPUT", "Hello!"), ("REFERENCE", "Good day, Ann.")):
        assert re.search(rf"^{title}:\n<<<data (\w+)\n{text}\ndata \1>>>$", prompt, re.MULTILINE)
    assert "not this" not in prompt
    assert "- clarity, 1 to 10: clarity" in judge_request.messages[0].content
    assert answer.score == pytest.approx(0.78)
    assert (answer.signals["dimensions"], answer.judge_model, answer.cost) == (NUMBERS, "j", Cost("0.04"))


@given(st.lists(st.tuples(st.integers(1, 100), st.floats(0, 10)), min_size=1, max_size=8))
def test_the_score_is_the_sum_of_shares_by_weight(items):
    total = sum(weight for weight, _ in items)
    weights = {f"d{n}": weight / total for n, (weight, _) in enumerate(items)}
    numbers = {f"d{n}": number for n, (_, number) in enumerate(items)}
    judge = RubricJudge(
        rubric=Rubric("q", "1", "", rubric(weights, "0-10")), judge_model=FakeChatModel(verdict(**numbers))
    )
    answer = asyncio.run(judge.judge(Subject("row", "1", output="x"), ()))
    assert answer.score == pytest.approx(sum(numbers[name] / 10 * weights[name] for name in weights))


@pytest.mark.parametrize(
    "changed",
    [
        {"clarity": None},
        {"clarity": 0},
        {"clarity": 11},
        {"clarity": "11"},
        {"clarity": "high"},
        {"clarity": float("nan")},
    ],
)
def test_a_dimension_that_is_missing_or_not_on_its_scale_is_never_credit(ask, changed):
    fields = {name: value for name, value in (NUMBERS | changed).items() if value is not None}
    answer, _, judge_requests = ask(Subject("row", "1", "Greet."), verdict(**fields))
    assert isinstance(answer, Failure)
    assert (answer.kind, answer.cost, len(judge_requests)) == ("judge_output_invalid", Cost("0.05"), 2)
    assert "clarity" in answer.message


def test_numeric_text_is_a_number_and_the_signals_say_so(ask):
    answer, _, _ = ask(Subject("row", "1", "Greet."), verdict(**NUMBERS | {"clarity": "8.5"}))
    assert isinstance(answer, Judgment), answer
    assert (answer.signals["dimensions"]["clarity"], answer.signals["coerced"]) == (8.5, True)


def test_without_a_skill_the_output_itself_is_judged(ask):
    answer, _, (judge_requests,) = ask(Subject("row", "1", "Greet.", "Hi."), answer=None)
    assert isinstance(answer, Judgment)
    assert re.search(r"OUTPUT:\n<<<data \w+\nHi\.\n", judge_requests.messages[1].content)
    answer, _, (judge_requests,) = ask(Subject("row", "1", output="Hi."), answer=None)
    assert "CASE" not in judge_requests.messages[1].content
    answer, _, judge_requests = ask(Subject("row", "1", "Greet."), answer=None)
    assert (answer.kind, judge_requests) == ("missing_input", [])


def test_the_case_may_be_a_file(ask, tmp_path):
    (tmp_path / "case.md").write_text("Greet Bob.")
    _, (skilled,), _ = ask(Subject("row", "1", "not this", context={"case": str(tmp_path / "case.md")}))
    assert skilled.messages[1].content == "Greet Bob."
    for case in ("missing.md", str(tmp_path), 3):
        answer, skill_requests, _ = ask(Subject("row", "1", context={"path": case}))
        assert (answer.kind, skill_requests) == ("missing_input", [])
    assert ask(Subject("row", "1"))[0].kind == "missing_input"


def test_a_skill_that_fails_is_not_judged(ask):
    answer, _, judge_requests = ask(
        Subject("row", "1", "Greet."), answer=Failure("judge_call_failed", "no", cost=Cost("0.02"))
    )
    assert (answer.kind, answer.cost, judge_requests) == ("judge_call_failed", Cost("0.02"), [])
    answer, _, judge_requests = ask(Subject("row", "1", "Greet."), answer=Reply("Hel", "m", "length"))
    assert (answer.kind, judge_requests) == ("judge_output_invalid", [])
    assert "not whole" in answer.message


def test_the_answer_is_kept_where_that_is_asked_for(ask):
    assert ask(Subject("row", "1", "Greet."), keep_output=True)[0].signals["output"] == "Hello!"
    assert "output" not in ask(Subject("row", "1", "Greet."))[0].signals


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (rubric(WEIGHTS | {"use": 0.3}), "the weights of the dimensions sum to 1.1, they must sum to 1"),
        (rubric(scale="10-1"), r"dimensions\[0\]\.scale is '10-1', it must be its lowest and its highest number"),
        (rubric(dimensions=[]), "it must be a list of"),
        ({"id": "x", "version": "1"}, "rubric x has no dimensions"),
    ],
)
def test_a_wrong_rubric_is_refused_with_its_place(tmp_path, monkeypatch, data, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rubric.yaml").write_text(yaml.safe_dump(data))
    with pytest.raises(RequestError, match=message):
        run_pipeline(
            "judges: [evaluator/rubric: {rubric: rubric.yaml, judge_model: it}]", components={"it": FakeChatModel(good)}
        )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("model: it", "skill and model belong together"),
        ("skill: SKILL.md", "skill and model belong together"),
        ("skill: none.md, model: it", "none.md"),
        ("skill: empty.md, model: it", "empty.md is empty"),
    ],
)
def test_a_skill_that_cannot_be_used_is_refused_before_anything_is_judged(tmp_path, monkeypatch, options, message):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rubric.yaml").write_text(yaml.safe_dump(rubric()))
    (tmp_path / "SKILL.md").write_text("You greet.")
    (tmp_path / "empty.md").write_text("\n")
    model = FakeChatModel(good)
    with pytest.raises(RequestError, match=message):
        run_pipeline(
            f"judges: [evaluator/rubric: {{rubric: rubric.yaml, judge_model: it, {options}}}]", components={"it": model}
        )
    assert model.asked == []


def test_a_rubric_of_dimensions_needs_no_id_and_no_version(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rubric.yaml").write_text(yaml.safe_dump(rubric()))
    subjects = [Subject("row", "1", "Greet.", "Hi.")]
    judges = "judges: [evaluator/rubric: {rubric: rubric.yaml, judge_model: it}]"
    (verdict,) = run_pipeline(judges, subjects=subjects, components={"it": FakeChatModel(good)}).verdicts
    assert (verdict.rubric_id, len(verdict.rubric_version), verdict.score) == ("quality", 12, pytest.approx(0.78))


def test_both_models_may_be_behind_http(chat_server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rubric.yaml").write_text(yaml.safe_dump(rubric()))
    (tmp_path / "SKILL.md").write_text("You greet.")
    chat_server.script(chat_server.reply("Hello Ann!"), chat_server.sealed(**NUMBERS))
    model = {"openai/chat": {"base_url": chat_server.url, "model": "m", "price": "free"}}
    options = {"rubric": "rubric.yaml", "skill": "SKILL.md", "model": model, "judge_model": model}
    done = run_pipeline(
        json.dumps({"judges": [{"evaluator/rubric": options}]}), subjects=[Subject("row", "1", "Greet Ann.")]
    )
    assert done.document["judges"]["evaluator/rubric"]["mean"] == pytest.approx(0.78)
    skilled, judged = chat_server.requests
    assert (skilled.system, skilled.prompt) == ("You greet.", "Greet Ann.")
    assert "Hello Ann!" in judged.prompt
