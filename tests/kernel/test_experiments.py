"""Records: the results of a task and extractors for a row, and the aggregates of all records."""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any

import attrs
import pytest

from dicast import (
    Answered,
    ChatModel,
    ChatRequest,
    ConfigError,
    Cost,
    DataError,
    Failure,
    Message,
    Reply,
    Score,
    Subject,
    Usage,
)
from dicast.testing import FakeChatModel, FakeJudge, FakeMetric, MemoryLedger, run_pipeline

LINE = r"\(tests/kernel/test_experiments\.py:\d+\)"
ROWS = [Subject("row", str(number), input=f"question {number}", context={"topic": "t"}) for number in range(4)]
USAGE = Usage(3, 2)


@attrs.frozen
class Ask:
    """Asks a model once for each criterion."""

    name = "ask"
    security_level = "internal"

    model: ChatModel = attrs.field(factory=lambda: FakeChatModel(Reply("0.5")))
    criteria: tuple[str, ...] = ("clarity", "depth")

    async def produce(self, subject: Subject) -> Subject | Failure:
        """One request after the other."""
        responses: dict[str, Mapping[str, Any]] = {}
        for criterion in self.criteria:
            request = ChatRequest((Message("user", f"{criterion}: {subject.input}"),), label=criterion)
            reply = await self.model.complete(request)
            if isinstance(reply, Failure):
                return reply
            responses[criterion] = {"content": reply.text, "metrics": {"score": float(reply.text)}}
        return Answered.of(subject, responses)


@attrs.frozen
class Scores:
    """Extractor of the score in each response."""

    name = "scores"

    writes: tuple[str, ...] = ("scores",)
    value: object = None
    key: str = "scores"

    def extract(self, record: Mapping[str, Any]) -> Mapping[str, object]:
        """A number for each criterion."""
        if self.value is not None:
            return {self.key: self.value}
        return {self.key: {name: float(response["content"]) for name, response in record["responses"].items()}}


@attrs.frozen
class Count:
    """How many records there were, and the sum of a score; *most*: enough of them."""

    name = "count"

    most: int = 99
    fails: bool = False

    @asynccontextmanager
    async def open(self, run):
        yield Counting(self)


class Counting:
    def __init__(self, of):
        self.of, self.seen = of, []

    def add(self, record):
        if self.of.fails:
            raise ValueError("no head for figures")
        self.seen.append(record)

    def finish(self):
        return {"rows": len(self.seen), "ids": [record["row"]["id"] for record in self.seen]}

    def observe(self, record):
        self.add(record)
        return {"value": len(self.seen)} if len(self.seen) >= self.of.most else None


@attrs.frozen
class Difference:
    """The difference of the sums of all scores."""

    name = "difference"

    def compare(self, baseline, variant):
        def total(results):
            return sum(sum(record["metrics"]["scores"].values()) for _, record in results.records())

        return {"baseline": total(baseline), "variant": total(variant)}


READY = {"ask": Ask(), "scores": Scores(), "count": Count(), "difference": Difference()}


def run(text, *, rows=ROWS, **components):
    return run_pipeline(text, subjects=rows, components={**READY, **components})


def records(done):
    return [event.payload for event in done.of("record.completed")]


def test_a_record_has_the_shape_of_document_002():
    done = run("task: ask\nextractors: [scores]\n")
    record = records(done)[0]
    assert record == {
        "row": {"id": "0", "input": "question 0", "topic": "t"},
        "response": {"content": "0.5", "metrics": {"score": 0.5}},
        "responses": {
            "clarity": {"content": "0.5", "metrics": {"score": 0.5}},
            "depth": {"content": "0.5", "metrics": {"score": 0.5}},
        },
        "metrics": {"score": 0.5, "scores": {"clarity": 0.5, "depth": 0.5}},
        "security_level": "internal",
    }
    assert (done.document["subjects"], done.document["scored"], done.document["failed"]) == (4, 4, 0)
    assert (done.document["score"], done.exit_code) == (None, 0)


def test_the_lowest_scores_are_those_of_the_criterion_that_is_the_score():
    replies = [Reply(text) for clarity in ("0.9", "0.3", "0.8", "0.7") for text in (clarity, "0.1")]
    done = run(
        "task: ask\nextractors: [scores]\ngate: [{on: clarity, min_score: 0.1}, {on: depth, max_score: 0.5}]\n"
        "executor: {dicast/async: {concurrency: 1}}\n",
        ask=Ask(FakeChatModel(replies)),
        scores=Scores(),
    )
    assert [entry["score"] for entry in done.document["worst"]] == [0.3, 0.7, 0.8, 0.9]


def test_metrics_and_judges_judge_what_the_task_made():
    metric, judge = FakeMetric([Score(1.0)] * 4), FakeJudge()
    done = run("task: ask\nmetrics: [metric]\njudges: [judge]\n", metric=metric, judge=judge)
    assert [subject.output for subject in metric.asked] == ["0.5"] * 4
    assert [subject.output for subject in judge.asked] == ["0.5"] * 4
    assert [subject.id for subject in metric.asked] == list("0123")
    assert done.document["labels"]["metrics"]["mean"] == 1.0
    types = [event.type for event in done.events if event.subject_id == "2" and event.type != "task.replied"]
    kinds = ["subject.read", "eval.started", "eval.started", "record.completed", "eval.completed", "eval.completed"]
    assert [type_ for type_ in types if not type_.startswith("spend")] == kinds


def test_rollouts_ask_the_task_again():
    replies = [Reply(text) for _ in ROWS for text in ("0.1", "0.2", "0.3")]
    metric = FakeMetric([Score(value) for _ in ROWS for value in (0.2, 0.4, 0.9)])
    done = run(
        "task: ask\nmetrics: [metric]\nscoring: {rollouts: 3, aggregation: median}\nexecutor: {dicast/async: {concurrency: 1}}",
        ask=Ask(FakeChatModel(replies), ("only",)),
        metric=metric,
    )
    assert [subject.output for subject in metric.asked] == ["0.1", "0.2", "0.3"] * 4
    assert done.document["score"]["mean"] == 0.4
    assert [record["response"]["content"] for record in records(done)] == ["0.1"] * 4


def test_each_reply_is_paid_for_by_itself():
    model = FakeChatModel(Reply("0.5", usage=USAGE, cost=Cost("0.01")), cost=Cost("0.02"))
    done = run("task: ask\n", ask=Ask(model))
    assert done.document["cost"]["usd"] == "0.08"
    settled = done.of("spend.settled")
    assert len(done.of("spend.reserved")) == len(settled) == len(done.of("task.replied")) == 8
    assert {event.payload["judge"] for event in settled} == {"ask"}
    assert {event.payload["criterion"] for event in done.of("task.replied")} == {"clarity", "depth"}


def test_a_cap_ends_the_task_and_spends_no_more():
    model = FakeChatModel(Reply("0.5", cost=Cost("0.01")), cost=Cost("0.01"))
    done = run("task: ask\nbudget: {run: 0.03 usd}\nexecutor: {dicast/async: {concurrency: 1}}", ask=Ask(model))
    assert done.document["cost"]["usd"] == "0.03"
    assert done.document["failures"] == {"throttled_no_heuristic": 3}
    assert len(done.of("record.failed")) == 3


def test_a_failed_task_is_no_score_and_says_how_it_tried():
    done = run(
        "task: ask\nmetrics: [metric]\n",
        ask=Ask(FakeChatModel(Failure("judge_call_failed", "no answer", retryable=True))),
        metric=FakeMetric([]),
    )
    assert done.document["failures"] == {"judge_call_failed": 4}
    assert done.document["scored"] == 0
    failed = done.of("record.failed")[0].payload
    assert failed["row"]["id"] == "0"
    assert failed["error"] == "ask: no answer"
    assert [event.payload["failure_mode"] for event in done.of("eval.failed")] == ["judge_call_failed"] * 4


UNWRITABLE = [
    {"metrics": {"thing": object()}},
    {"metrics": {1: 2}},
    {"metrics": {"big": 2**64}},
    {"retry": {"attempts": {1}}},
    {"model": "\ud800"},
    {"usage": Usage(2**70, 1)},
]


@pytest.mark.parametrize("cost", [Cost("0.01"), Cost.zero()], ids=["paid", "free"])
@pytest.mark.parametrize("reports", UNWRITABLE, ids=lambda reports: next(iter(reports)))
def test_a_reply_that_is_no_json_fails_its_row_alone_and_names_the_model(reports, cost):
    def answer(request):
        return Reply("0.5", cost=cost, **(reports if "question 2" in request.messages[0].content else {}))

    done = run("task: ask\n", ask=Ask(FakeChatModel(answer, cost=cost)))
    assert (done.document["scored"], done.document["failures"]) == (3, {"crashed": 1})
    (failed,) = done.of("record.failed")
    assert (
        "ask: the chat model dicast.testing.fakes.FakeChatModel made a reply that is not JSON: "
        in failed.payload["error"]
    )
    assert Decimal(done.document["cost"]["usd"]) == 7 * cost.amount  # that row's second criterion is not asked about
    assert done.document["spend_lost"]["usd"] == "0"


def test_a_reply_that_is_no_json_names_the_innermost_model():
    @attrs.frozen
    class Passes:
        """Model that returns the reply of its model."""

        model: ChatModel

        async def complete(self, request):
            return await self.model.complete(request)

    inner = FakeChatModel(Reply("0.5", cost=Cost("0.01"), metrics={"thing": object()}), cost=Cost("0.01"))
    done = run("task: ask\n", rows=ROWS[:1], ask=Ask(Passes(inner)))
    assert "the chat model dicast.testing.fakes.FakeChatModel made" in done.of("record.failed")[0].payload["error"]
    assert done.document["cost"]["usd"] == "0.01"


def test_a_failure_whose_tries_are_no_json_fails_its_row_alone():
    broken = Failure("judge_call_failed", "no answer", retry={"attempts": object()})
    model = FakeChatModel(lambda request: broken if "question 2" in request.messages[0].content else Reply("0.5"))
    done = run("task: ask\n", ask=Ask(model))
    assert (done.document["scored"], done.document["failures"]) == (3, {"crashed": 1})
    assert "ask: no answer (its retry is not JSON: " in done.of("record.failed")[0].payload["error"]


@pytest.mark.parametrize(("retries", "attempts"), [(0, None), (1, 2)])
def test_a_failed_row_has_its_tries_if_its_task_may_try_again(retries, attempts):
    model = FakeChatModel(lambda request: Failure("judge_call_failed", "no answer", retryable=True))
    done = run(f"task: {{ask: {{retries: {retries}}}}}\n", rows=ROWS[:1], ask=Ask(model))
    (failed,) = done.of("record.failed")
    retry = failed.payload.get("retry")
    assert (None if retry is None else (retry["attempts"], retry["max_attempts"], len(retry["history"]))) == (
        None if attempts is None else (attempts, retries + 1, attempts)
    )


def test_extractors_merge_deeply_and_run_without_a_task():
    first = Scores(value={"a": 0.5}, writes=("scores.a", "scores.b"))
    second = Scores(value={"c": 0.7}, writes=("scores.c",))
    rows = [attrs.evolve(row, output={"x": 1}) for row in ROWS]
    done = run("extractors: [first, second]\n", rows=rows, first=first, second=second)
    failed = done.of("record.failed")
    assert not failed
    assert records(done)[0]["metrics"] == {"scores": {"a": 0.5, "c": 0.7}}
    assert records(done)[0]["response"] == {"content": '{"x":1}', "metrics": {}}


@pytest.mark.parametrize(
    ("extractor", "message"),
    [
        (Scores(key="Bad Name", value=1, writes=("Bad Name",)), "neither in snake case"),
        (Scores(key="other", value=1), "its 'writes' lists scores"),
        (Scores(value=float("nan")), "write null for a missing value"),
        (Scores(value=object()), "not JSON"),
        (Scores(), "KeyError"),
    ],
)
def test_what_an_extractor_does_wrong_fails_its_row_and_names_it(extractor, message):
    done = run("extractors: [bad]\n", rows=[attrs.evolve(row, output="x") for row in ROWS], bad=extractor)
    assert done.document["failures"] == {"crashed": 4}
    for event in done.of("record.failed"):
        assert event.payload["error"].startswith("bad: ")
        assert message in event.payload["error"]
    assert done.exit_code == 3


def test_two_extractors_that_write_one_leaf_are_refused_before_anything_is_spent():
    model = FakeChatModel([])
    with pytest.raises(ConfigError, match=r"second and first .* both write metrics\.scores\.a"):
        run(
            "task: ask\nextractors: [first, second]\n",
            ask=Ask(model),
            first=Scores(),
            second=Scores(writes=("scores.a",)),
        )


def test_aggregates_see_every_record_in_order():
    done = run("task: ask\naggregates: [count]\n")
    assert done.document["aggregates"] == {"count": {"rows": 4, "ids": ["0", "1", "2", "3"], "failures": []}}
    reports = done.of("aggregate.completed")
    assert [event.payload["result"]["rows"] for event in reports] == [4]


def test_aggregates_of_a_run_without_records_read_its_verdicts():
    done = run("metrics: [metric]\naggregates: [count]\n", metric=FakeMetric([Score(0.5)] * 4))
    assert done.document["aggregates"]["count"]["ids"] == ["0", "1", "2", "3"]
    assert done.of("record.completed") == []


def test_an_aggregate_that_breaks_costs_nothing_else_and_is_named():
    done = run("task: ask\naggregates: [count, bad]\n", bad=Count(fails=True))
    assert done.document["aggregates"]["count"]["rows"] == 4
    assert done.document["aggregates"]["bad"] is None
    (message,) = done.document["broken"].values()
    assert re.fullmatch(rf"bad: ValueError: no head for figures {LINE}", message)
    assert done.exit_code == 3


def test_the_first_early_stop_that_has_seen_enough_is_the_one_that_is_told():
    stops = {"late": Count(most=2), "soon": Count(most=1), "too": Count(most=1)}
    done = run("task: ask\nearly_stop: [late, soon, too]\n", **stops)
    assert done.document["scored"] == 4  # the rows were under way
    assert done.document["stopped"] == {"reason": "early_stop", "plugin": "soon", "row_index": 0, "value": 1}


def test_an_early_stop_that_breaks_stops_nothing_and_is_named():
    done = run("task: ask\nearly_stop: [bad, late]\naggregates: [count]\n", bad=Count(fails=True), late=Count(most=99))
    assert (done.document["stopped"], done.document["scored"], done.exit_code) == (None, 4, 0)
    assert [*done.document["broken"]] == ["early_stop[0]"]
    assert re.fullmatch(rf"bad: ValueError: no head for figures {LINE}", done.document["broken"]["early_stop[0]"])
    assert done.document["aggregates"]["count"]["rows"] == 4


def test_a_comparison_that_breaks_costs_no_other_and_is_named():
    @attrs.frozen
    class Broken:
        name = "broken"

        def compare(self, baseline, variant):
            raise ZeroDivisionError("nothing to divide by")

    ledger = MemoryLedger()
    text = "task: ask\nextractors: [scores]\nledger: kept\nbaseline: {run: last, compare: [bad, difference]}\n"
    run(text, kept=ledger, bad=Broken())
    done = run(text, kept=ledger, bad=Broken())
    assert done.document["comparison"] == {"bad": None, "difference": {"baseline": 4.0, "variant": 4.0}}
    ((place, message),) = done.document["broken"].items()
    assert place == "baseline.compare[0]"
    assert re.fullmatch(rf"bad: ZeroDivisionError: nothing to divide by {LINE}", message)
    assert (done.exit_code, done.document["undecided"]) == (3, ["bad has no result"])


def test_an_early_stop_ends_the_run_in_order():
    rows = [attrs.evolve(ROWS[0], id=str(number)) for number in range(1000)]
    done = run(
        "task: ask\nearly_stop: [enough]\nexecutor: {dicast/async: {concurrency: 2}}", rows=rows, enough=Count(most=3)
    )
    stopped = done.document["stopped"]
    assert stopped == {"reason": "early_stop", "plugin": "enough", "row_index": 2, "value": 3}
    assert 3 <= done.document["scored"] < 200
    assert done.exit_code == 0
    assert done.of("run.completed")
    assert not done.of("run.stopped")


def test_a_run_is_compared_with_its_baseline():
    ledger = MemoryLedger()
    text = "name: shop\ntask: ask\nextractors: [scores]\nledger: kept\nbaseline: {run: last, compare: [difference]}\n"
    first = run(text, kept=ledger)
    assert first.document["comparison"] is None
    assert first.document["baseline"] == {"run": "last", "run_id": None, "name": None}
    second = run(text, kept=ledger, ask=Ask(FakeChatModel(Reply("0.75"))))
    assert second.document["comparison"] == {"difference": {"baseline": 4.0, "variant": 6.0}}
    known_values = {"run": "last", "run_id": first.document["run_id"], "name": "shop"}
    assert second.document["baseline"] == {**known_values, "differs": ["task"], "faults": [], "passes": {}}
    named = run(text.replace("last", first.document["run_id"]), kept=ledger)
    assert named.document["comparison"] == {"difference": {"baseline": 4.0, "variant": 4.0}}


def test_a_baseline_that_is_missing_is_refused_before_anything_is_spent():
    model = FakeChatModel([])
    with pytest.raises(ConfigError, match="no finished run or baseline 'shop'"):
        run("task: ask\nbaseline: {run: shop}\n", ask=Ask(model))


def test_a_ledger_of_digests_keeps_the_numbers_of_records_and_no_text(tmp_path):
    rows = [Subject("row", "0", input="a secret")]
    text = (
        f"task: ask\nextractors: [scores]\nledger: {{ledger/sqlite: {{path: {tmp_path / 'l.db'}, content: digest}}}}\n"
    )
    done = run(text, rows=rows, ask=Ask(FakeChatModel(Reply("0.25"))))
    (record,) = records(done)
    assert record["metrics"] == {"score": 0.25, "scores": {"clarity": 0.25, "depth": 0.25}}
    assert record["row"] == {"id": "0"}
    assert record["response"]["content"] == ""
    failed = run(text, rows=rows, ask=Ask(FakeChatModel(Failure("timeout", "a secret was too long"))))
    assert failed.of("record.failed")[0].payload["failure_mode"] == "timeout"
    assert b"secret" not in (tmp_path / "l.db").read_bytes()


def test_a_kept_reply_says_how_long_it_took_when_it_was_asked_for():
    replies = [event.payload["reply"]["metrics"] for event in run("task: ask\n").of("task.replied")]
    assert len(replies) == 8
    assert all(0 <= metrics["latency_seconds"] < 60 for metrics in replies)


def test_rollouts_of_a_row_that_has_failed_are_not_bought():
    model = FakeChatModel(lambda request: Failure("timeout", "late", cost=Cost("0.01")), cost=Cost("0.01"))
    done = run("task: ask\nmetrics: [metric]\nscoring: {rollouts: 3}", ask=Ask(model, ("only",)), metric=FakeMetric([]))
    assert len(model.asked) == 4
    assert done.document["failures"] == {"timeout": 4}


@attrs.frozen
class Malformed:
    """Makes responses that are none."""

    name = "malformed"

    responses: Any = None

    def produce(self, subject: Subject) -> Subject:
        """Make them."""
        equal = {field.name: getattr(subject, field.name) for field in attrs.fields(Subject)}
        return Answered(**equal, responses=self.responses)


@pytest.mark.parametrize(
    "responses",
    [
        ["a"],
        {"a": "text"},
        {1: {"content": "x", "metrics": {}}},
        {"a": {"content": "x", "metrics": None}},
        {"a": {"content": "x", "metrics": [1]}},
        {"a": {"metrics": {}}},
        {"a": {"content": "x", "metrics": {"b": object()}}},
        {"a": {"content": "x", "metrics": {}, "retry": {"n": 1}}},
    ],
)
def test_malformed_responses_fail_their_row_and_name_the_task(responses):
    done = run("task: malformed\n", malformed=Malformed(responses))
    assert done.document["failures"] == {"crashed": 4}
    assert all(event.payload["error"].startswith("malformed: ") for event in done.of("record.failed"))


def test_the_row_index_of_an_early_stop_counts_failed_rows_too():
    replies = iter([Failure("timeout", "late"), Failure("timeout", "late"), Reply("0.5"), Reply("0.5")])
    model = FakeChatModel(lambda request: next(replies))
    text = "task: ask\nearly_stop: [enough]\nexecutor: {dicast/async: {concurrency: 1}}"
    done = run(text, ask=Ask(model, ("only",)), enough=Count(most=1))
    assert done.document["stopped"]["row_index"] == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no record"),
        ('{"subject_id": "1", "failure": {"kind": "timeout"}}\n', "no record"),
        ('{"subject_id": "1", "metrics": {}}\n{"metrics": {}}\n', ":2:"),
    ],
)
def test_a_baseline_file_without_a_record_or_with_something_else_is_refused(tmp_path, text, message):
    path = tmp_path / "rows.jsonl"
    path.write_text(text)
    model = FakeChatModel([])
    with pytest.raises(DataError, match=message):
        run(f"task: ask\nbaseline: {{run: {path}}}\n", ask=Ask(model))
