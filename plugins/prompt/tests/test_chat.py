"""Requests to the model, the results of its replies, and their costs."""

from __future__ import annotations

import asyncio
import json

import pytest

from dicast import Answered, Cost, Failure, Reply, Subject, Usage, estimate
from dicast.testing import FakeChatModel, run_pipeline
from dicast_prompt import Chat
from dicast_prompt.criterion import Criterion

ROWS = [
    Subject("row", "q1", input="2 + 2?", reference="4", context={"category": "math"}, session_id="s1"),
    Subject("row", "q2", input="3 + 3?", reference="6", context={"category": "math"}),
]
CRITERIA = {
    "clarity": Criterion(user="Clear? {{ input }}"),
    "depth": Criterion(system="Be deep.", user="Deep? {{ input }}"),
}


def produce(task, subject=ROWS[0]):
    answer = task.produce(subject)
    return answer if isinstance(answer, Failure) else asyncio.run(_awaited(answer))


async def _awaited(answer):
    return await answer


def without_time(response):
    metrics = dict(response["metrics"])
    assert metrics.pop("latency_seconds") >= 0
    return {**response, "metrics": metrics}


# one row


def test_the_reply_is_the_output_and_what_the_model_reports_its_metrics():
    reply = Reply("4", "qwen", usage=Usage(12, 3), cost=Cost("0.25"), metrics={"score": 0.5, "seed": 1})
    row = produce(Chat(FakeChatModel(reply), user="{{ input }}"))
    assert isinstance(row, Answered)
    assert row.output == "4"
    assert (row.id, row.input, row.session_id) == ("q1", "2 + 2?", "s1")
    assert without_time(row.responses["default"]) == {
        "content": "4",
        "metrics": {
            "prompt_tokens": 12,
            "completion_tokens": 3,
            "total_tokens": 15,
            "cost": 0.25,
            "model": "qwen",
            "stop_reason": "end_turn",
            "score": 0.5,
            "seed": 1,
        },
    }


def test_criteria_are_asked_one_after_the_other_and_missing_templates_are_the_tasks():
    model = FakeChatModel(["yes", "no"])
    row = produce(Chat(model, system="Be brief.", criteria=CRITERIA))
    assert [request.label for request in model.asked] == ["clarity", "depth"]
    assert [[message.content for message in request.messages] for request in model.asked] == [
        ["Be brief.", "Clear? 2 + 2?"],
        ["Be deep.", "Deep? 2 + 2?"],
    ]
    assert {name: response["content"] for name, response in row.responses.items()} == {"clarity": "yes", "depth": "no"}
    assert row.output == "yes"


def test_the_options_of_a_reply_are_asked_for():
    model = FakeChatModel("yes")
    produce(Chat(model, user="x", temperature=None, max_output_tokens=7))
    assert (model.asked[0].temperature, model.asked[0].max_output_tokens) == (None, 7)
    assert [message.role for message in model.asked[0].messages] == ["user"]


def test_what_is_not_known_is_absent():
    row = produce(Chat(FakeChatModel(Reply("x", stop_reason=None, cost=Cost.unknown())), user="x"))
    assert without_time(row.responses["default"])["metrics"] == {}
    row = produce(Chat(FakeChatModel(Reply("x", cost=Cost(7, "msat"))), user="x"))
    assert row.responses["default"]["metrics"]["cost_msat"] == 7.0
    assert "cost" not in row.responses["default"]["metrics"]


def test_an_empty_reply_is_asked_for_again_and_all_tries_are_counted():
    empty = Reply(" \n", "m", usage=Usage(10, 1), cost=Cost("0.10"))
    model = FakeChatModel([empty, Reply("4", "m", usage=Usage(10, 2), cost=Cost("0.20"))])
    response = produce(Chat(model, user="x")).responses["default"]
    assert [request.attempt for request in model.asked] == [0, 1]
    assert response["retry"] == {
        "attempts": 2,
        "max_attempts": 2,
        "history": [{"attempt": 1, "error": "the model's reply is empty (stop reason 'end_turn')"}],
    }
    assert [response["metrics"][name] for name in ("prompt_tokens", "total_tokens", "cost")] == [20, 23, 0.3]


def test_a_model_that_says_nothing_fails_the_row():
    model = FakeChatModel(Reply("", stop_reason="max_tokens", cost=Cost("0.10")))
    failure = produce(Chat(model, criteria=CRITERIA, retries=2))
    assert (failure.kind, len(model.asked)) == ("judge_output_invalid", 3)
    assert (
        failure.message
        == "criterion clarity: the model's reply is empty (stop reason 'max_tokens'); raise max_output_tokens"
    )
    assert failure.cost == Cost("0.30")
    assert failure.retry["attempts"] == failure.retry["max_attempts"] == len(failure.retry["history"]) == 3


def test_a_reply_that_was_cut_is_an_output_and_says_so():
    row = produce(Chat(FakeChatModel(Reply("4 because", stop_reason="max_tokens")), user="x"))
    assert row.output == "4 because"
    assert row.responses["default"]["metrics"]["stop_reason"] == "max_tokens"


@pytest.mark.parametrize(("text", "expected"), [("I will not.", "I will not."), ("", "refused")])
def test_a_refusal_is_an_output_when_it_has_words(text, expected):
    model = FakeChatModel(Reply(text, stop_reason="refusal"))
    row = produce(Chat(model, user="x"))
    assert expected == (row.kind if isinstance(row, Failure) else row.output)
    assert len(model.asked) == 1


def test_a_failure_of_the_model_is_the_rows_and_is_not_asked_for_again():
    model = FakeChatModel(["yes", Failure("judge_call_failed", "HTTP 500", retryable=True, cost=Cost("0.10"))])
    failure = produce(Chat(model, criteria=CRITERIA, retries=5))
    assert (failure.kind, failure.message) == ("judge_call_failed", "criterion depth: HTTP 500")
    assert (failure.cost, failure.retryable) == (Cost("0.10"), True)
    assert failure.retry == {"attempts": 1, "max_attempts": 6, "history": [{"attempt": 1, "error": "HTTP 500"}]}


def tried(*errors, most=4, answered=True):
    """Return the retry record of a model that failed with *errors* and then answered."""
    history = [{"attempt": number, "error": error} for number, error in enumerate(errors, 1)]
    return {"attempts": len(errors) + answered, "max_attempts": most, "history": history}


NOTHING = "the model's reply is empty (stop reason 'end_turn')"
DOWN = Failure("judge_call_failed", "500 (4 tries)", retry=tried(*["500"] * 4, answered=False))
REFUSED = Failure("judge_call_failed", "400", retry=tried("400", answered=False))


@pytest.mark.parametrize(
    ("answers", "attempts", "most", "errors"),
    [
        ([Reply("4", retry=tried("500", "429"))], 3, 4, ["500", "429"]),
        ([Reply(""), Reply("4", retry=tried("500"))], 3, 5, [NOTHING, "500"]),
        ([Reply("", retry=tried("500")), Reply("4")], 3, 4, ["500", NOTHING]),
        ([Reply("", retry=tried("500")), Reply(""), Reply("")], 4, 4, ["500", *[NOTHING] * 3]),
        ([DOWN], 4, 4, ["500"] * 4),
        ([Reply(""), DOWN], 5, 5, [NOTHING, *["500"] * 4]),
        ([REFUSED], 1, 4, ["400"]),
    ],
    ids=["passing", "after an empty one", "before an empty one", "empty for ever", "down", "empty and down", "refused"],
)
def test_the_models_own_tries_are_counted_with_the_tasks(answers, attempts, most, errors):
    row = produce(Chat(FakeChatModel(answers), user="x", retries=2))
    retry = row.retry if isinstance(row, Failure) else row.responses["default"]["retry"]
    history = retry["history"]
    assert (retry["attempts"], retry["max_attempts"]) == (attempts, most)
    assert [attempt["error"] for attempt in history] == errors
    assert [attempt["attempt"] for attempt in history] == [*range(1, len(errors) + 1)]


def test_a_row_that_lacks_a_name_is_not_asked_about():
    model = FakeChatModel("yes")
    task = Chat(model, criteria={"a": Criterion(user="x"), "b": Criterion(user="{{ hint }}")})
    failure = produce(task)
    assert failure.kind == "missing_input"
    assert failure.message.startswith("template criteria.b.user: the row has no 'hint'")
    assert model.asked == []


def test_the_estimate_is_for_all_criteria_with_their_retries(live):
    asker = live(Chat(FakeChatModel("yes", cost=Cost("0.10")), criteria=CRITERIA, retries=2))
    assert estimate(asker, ROWS[0]) == Cost("0.60")
    assert estimate(live(Chat(FakeChatModel("yes"), user="{{ hint }}")), ROWS[0]) == Cost.zero()
    assert estimate(live(Chat(FakeChatModel("x", cost=Cost(1)), user="{{ hint }}")), ROWS[0]) == Cost.zero()


@pytest.fixture
def live(tmp_path):
    """Open a task, as a run does."""
    from dicast import RunContext

    async def opened(task):
        async with task.open(RunContext("run", "test", tmp_path)) as asker:
            return asker

    return lambda task: asyncio.run(opened(task))


# a run


def test_a_run_makes_records_in_the_documents_shape(chat_server, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ask.j2").write_text("How clear is {{ input }} ({{ category }})?\n")
    chat_server.answer = lambda request: json.dumps({"score": 0.72 if "clear" in request.prompt else 0.65})
    done = run_pipeline(
        f"""
name: shape
define:
  answerer: {{openai/chat: {{base_url: "{chat_server.url}", model: m, price: {{input_per_mtok: 1000, output_per_mtok: 1000}}}}}}
task:
  prompt/chat:
    model: answerer
    security_level: official
    determinism_level: low
    criteria: {{clarity: {{user: {{file: ask.j2}}}}, depth: {{user: "Deep? {{{{ input }}}}"}}}}
extractors: [score_extractor/scores: {{threshold: 0.7}}]
budget: {{run: 10 usd, session: 10 usd, day: 10 usd}}
""",
        subjects=ROWS,
    )
    assert done.exit_code == 0
    assert done.document["cost"]["usd"] == "0.48"
    assert chat_server.requests[0].prompt == "How clear is 2 + 2? (math)?\n"
    first, _ = (event.payload for event in done.of("record.completed"))
    assert first["row"] == {
        "id": "q1", "session_id": "s1", "input": "2 + 2?", "reference": "4", "category": "math"
    }  # fmt: skip
    assert list(first["responses"]) == ["clarity", "depth"]
    assert first["response"] == first["responses"]["clarity"]
    assert first["response"]["content"] == '{"score": 0.72}'
    assert first["metrics"]["scores"] == {"clarity": 0.72, "depth": 0.65}
    assert first["metrics"]["score_flags"] == {"clarity": True, "depth": False}
    assert (first["metrics"]["cost"], first["metrics"]["prompt_tokens"]) == (0.12, 100)
    assert (first["security_level"], first["determinism_level"]) == ("official", "low")


def test_a_row_that_cannot_be_asked_about_is_a_failed_record(chat_server):
    done = run_pipeline(
        f"""
define: {{answerer: {{openai/chat: {{base_url: "{chat_server.url}", model: m, price: free}}}}}}
task: {{prompt/chat: {{model: answerer, user: "{{{{ input }}}} {{{{ session_id }}}}"}}}}
metrics: [proxy/format]
gate: {{min_coverage: 0.4}}
""",
        subjects=ROWS,
    )
    assert (done.document["scored"], done.document["failed"], done.document["failures"]) == (1, 1, {"missing_input": 1})
    (failed,) = done.of("record.failed")
    assert "the row has no 'session_id'" in failed.payload["error"]
    assert failed.payload["row"]["id"] == "q2"
    assert chat_server.count == 1


def test_a_row_whose_replies_stay_empty_says_how_it_was_tried(chat_server):
    chat_server.answer = chat_server.reply("")
    done = run_pipeline(
        f"""
define: {{answerer: {{openai/chat: {{base_url: "{chat_server.url}", model: m, price: free}}}}}}
task: {{prompt/chat: {{model: answerer, user: "{{{{ input }}}}", retries: 2}}}}
""",
        subjects=ROWS[:1],
    )
    (failed,) = done.of("record.failed")
    assert (done.exit_code, done.document["failures"]) == (3, {"judge_output_invalid": 1})
    assert failed.payload["retry"]["attempts"] == 3
    assert chat_server.count == 3


def test_a_template_without_end_fails_its_rows_and_not_the_run():
    done = run_pipeline(
        """
task: {prompt/chat: {model: answerer, user: "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}"}}
metrics: [proxy/format]
""",
        subjects=ROWS[:1],
        components={"answerer": FakeChatModel("yes")},
    )
    assert done.document["failures"] == {"crashed": 1}


@pytest.mark.slow
def test_a_real_model_answers_the_rows(model_server):
    done = run_pipeline(
        f"""
define:
  answerer:
    openai/chat: {{base_url: "{model_server.base_url}", model: "{model_server.model}", price: {{input_per_mtok: 1, output_per_mtok: 2}}}}
task:
  prompt/chat:
    model: answerer
    system: You answer in one short sentence.
    criteria: {{capital: {{user: "What is the capital of {{{{ country }}}}?"}}, sea: {{user: "Is {{{{ country }}}} by the sea?"}}}}
    max_output_tokens: 24
metrics: [proxy/format]
aggregates: [stats/cost_summary]
""",
        subjects=[Subject("row", "1", context={"country": "France"})],
    )
    (record,) = (event.payload for event in done.of("record.completed"))
    assert set(record) - {"retry"} == {"row", "response", "responses", "metrics"}
    assert list(record["responses"]) == ["capital", "sea"]
    assert record["response"] == record["responses"]["capital"]
    assert record["metrics"] == record["responses"]["sea"]["metrics"]
    reported = [response["metrics"] for response in record["responses"].values()]
    for response, metrics in zip(record["responses"].values(), reported, strict=True):
        assert response["content"].strip()
        assert metrics["model"] == model_server.model
        assert metrics["prompt_tokens"] > 10
        assert 0 < metrics["completion_tokens"] <= 48  # of two tries at most
        assert metrics["total_tokens"] == metrics["prompt_tokens"] + metrics["completion_tokens"]
        assert metrics["cost"] == pytest.approx((metrics["prompt_tokens"] + 2 * metrics["completion_tokens"]) / 10**6)
        assert metrics["latency_seconds"] > 0
    total = sum(metrics["cost"] for metrics in reported)
    assert float(done.document["cost"]["usd"]) == pytest.approx(total)
    assert done.document["aggregates"]["stats/cost_summary"]["cost"]["total"] == pytest.approx(total)
    assert sum(event.payload["tokens"] for event in done.of("spend.settled")) == sum(
        reported_metrics["total_tokens"] for reported_metrics in reported
    )
    assert (done.document["scored"], done.exit_code) == (1, 0)
