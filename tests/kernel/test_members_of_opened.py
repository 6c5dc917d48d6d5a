"""An optional member counts whether the component declares it or the live object that it opens."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from decimal import Decimal

import attrs
import pytest

from dicast import Answered, ChatModel, ChatRequest, ConfigError, Cost, Failure, Judge, Judgment, Reply, Score, Subject
from dicast.testing import FakeChatModel, FakeMetric, run_pipeline, sample

PRICE = Cost("0.002")


class LiveJudge:
    """A judge without an estimate."""

    async def judge(self, subject, children):
        return Judgment(0.5, cost=PRICE)


class PricedLiveJudge(LiveJudge):
    """A judge with an estimate."""

    def estimate(self, subject):
        return PRICE


@attrs.frozen
class OpenedJudge:
    """A judge that estimates its price and opens a live object."""

    live: type = LiveJudge

    def estimate(self, subject: Subject) -> Cost:
        return PRICE

    @asynccontextmanager
    async def open(self, run):
        yield self.live()

    async def judge(self, subject, children):
        raise AssertionError("the live object is asked")


@attrs.frozen
class LiveModel:
    """A chat model without an estimate."""

    seconds: float = 0.0

    async def complete(self, request):
        await asyncio.sleep(self.seconds)
        return Reply("0.5", "m", "stop", cost=PRICE)


@attrs.frozen
class OpenedModel:
    """A chat model that estimates its price and opens a live object."""

    def estimate(self, request: ChatRequest) -> Cost:
        return PRICE

    @asynccontextmanager
    async def open(self, run):
        yield LiveModel()

    async def complete(self, request):
        raise AssertionError("the live object is asked")


@attrs.frozen
class Asker:
    """A judge that asks a chat model and leaves the price to the model."""

    model: ChatModel = attrs.field(factory=OpenedModel)
    estimates: bool = True

    async def judge(self, subject, children):
        reply = await self.model.complete(ChatRequest("", "how good?"))
        return reply if isinstance(reply, Failure) else Judgment(float(reply.text))


def rows(count):
    return [sample("x", id=str(number)) for number in range(count)]


def run(judge, count=30):
    text = '{"judges": ["j"], "budget": {"run": "0.005 usd"}}'
    return run_pipeline(text, subjects=rows(count), components={"j": judge})


@pytest.mark.parametrize(
    "judge", [OpenedJudge(), OpenedJudge(PricedLiveJudge), Asker()], ids=["on the class", "on both", "of a model"]
)
def test_a_cap_holds_whether_the_class_or_its_live_object_estimates(judge):
    done = run(judge)
    assert Decimal(done.document["cost"]["usd"]) == Decimal("0.004")
    assert done.document["scored"] == 2
    assert done.document["overruns"] == 0
    assert done.document["failures"] == {"throttled_no_heuristic": 28}


class SlowLiveJudge(LiveJudge):
    """A judge without an estimate that takes its time."""

    async def judge(self, subject, children):
        await asyncio.sleep(0.02)
        return await super().judge(subject, children)


def failing(subject):
    raise RuntimeError("no idea")


@attrs.frozen
class Priced:
    """A judge whose estimate is any function, declared by the class."""

    estimate_of: object
    live: type = SlowLiveJudge

    def estimate(self, subject):
        return self.estimate_of(subject)

    @asynccontextmanager
    async def open(self, run):
        yield self.live()

    async def judge(self, subject, children):
        raise AssertionError("the live object is asked")


@attrs.frozen
class Unpriced(Priced):
    """A judge that estimates nothing."""

    estimate_of: object = None
    estimate = None


@pytest.mark.parametrize(
    ("judge", "spent", "failure"),
    [
        (Unpriced(), "0.002", "throttled_no_heuristic"),
        (Priced(lambda subject: Cost.zero()), "0.002", "throttled_no_heuristic"),
        (Priced(lambda subject: Cost("0.0001")), "0.004", "throttled_no_heuristic"),
        (Priced(lambda subject: None), "0", "crashed"),
        (Priced(failing), "0", "crashed"),
    ],
    ids=["none", "zero", "too low", "no cost", "raises"],
)
def test_a_paid_call_without_an_honored_estimate_is_refused(judge, spent, failure):
    done = run(judge)
    assert done.document["cost"]["usd"] == spent
    bought = round(Decimal(spent) / PRICE.amount)
    assert done.document["failures"] == {failure: 30 - bought}
    assert done.document["overruns"] == (bought > 0)


def test_a_component_that_costs_money_without_an_estimate_is_named():
    (failed, *_) = run(Unpriced()).document["failed_subjects"]
    assert failed["error_message"].startswith("j reports a cost of 0.002 usd and estimates nothing")
    done = run_pipeline('{"judges": ["j"], "budget": {"run": "1 eur"}}'.replace("1 eur", "9 msat"), subjects=rows(3),
                        components={"j": Unpriced()})  # fmt: skip
    assert done.document["throttled"] == {"no_estimate": 2}  # of the caps in usd that hold by default


@pytest.mark.parametrize("seconds", [0.0, 0.02])
def test_a_model_without_an_estimate_is_refused_by_the_judge_that_asks_it(seconds):
    done = run(Asker(LiveModel(seconds)))
    assert done.document["cost"]["usd"] == "0.002"
    assert done.document["throttled"] == {"no_estimate": 29}


@attrs.frozen
class OpenedMetric:
    """A metric that needs no output and opens a live object."""

    tier = "truth"
    needs_output = False

    @asynccontextmanager
    async def open(self, run):
        yield LiveMetric()

    def score(self, subject):
        raise AssertionError("the live object is asked")


class LiveMetric:
    """A metric that scores the input."""

    def score(self, subject):
        return Score(1.0 if subject.input else 0.0)


def test_a_class_says_for_its_live_object_that_no_output_is_needed():
    subjects = [Subject("row", "1", input="a"), Subject("row", "2")]
    done = run_pipeline('{"metrics": ["m"]}', subjects=subjects, components={"m": OpenedMetric()})
    assert [verdict.score for verdict in done.verdicts] == [1.0, 0.0]


@attrs.frozen
class OwnPrice:
    """A judge with a price of its own that asks a model once."""

    model: ChatModel = attrs.field(factory=OpenedModel)
    includes_replies: bool = False

    def estimate(self, subject):
        return Cost("0.022")

    async def judge(self, subject, children):
        reply = await self.model.complete(ChatRequest("", "how good?"))
        cost = Cost("0.020") + (reply.cost if self.includes_replies else Cost.zero())
        return Judgment(float(reply.text), cost=cost, includes_replies=self.includes_replies)


@attrs.frozen
class Wrapper:
    """A judge that returns the judgment of another one."""

    judge_inside: Judge = attrs.field(factory=OwnPrice)

    async def judge(self, subject, children):
        return await self.judge_inside.judge(subject, children)


@pytest.mark.parametrize(
    "judge",
    [OwnPrice(), OwnPrice(includes_replies=True), Wrapper(), Wrapper(Wrapper(OwnPrice(includes_replies=True)))],
    ids=["added", "included", "wrapped", "wrapped twice"],
)
def test_a_judges_own_price_and_its_replies_are_both_booked_once(judge):
    text = '{"judges": ["j"], "budget": {"run": "1 usd", "day": "1 usd"}}'
    done = run_pipeline(text, subjects=rows(10), components={"j": judge})
    assert Decimal(done.document["cost"]["usd"]) == Decimal("0.220")
    assert {verdict.judge_cost_usd for verdict in done.verdicts} == {Decimal("0.022")}
    assert done.document["overruns"] == 0


@attrs.frozen
class AskingTask:
    """A task that asks a chat model."""

    model: ChatModel = attrs.field(factory=OpenedModel)

    async def produce(self, subject):
        reply = await self.model.complete(ChatRequest("", subject.id))
        return reply if isinstance(reply, Failure) else attrs.evolve(subject, output=reply.text)


@attrs.frozen
class RetriedTask:
    """A task that sends the same request twice, and times out after both replies the first time."""

    model: ChatModel
    tries: list[list[str]] = attrs.field(factory=list, eq=False)

    async def produce(self, subject):
        self.tries.append([(await self.model.complete(ChatRequest("", "same"))).text for _ in range(2)])
        if len(self.tries) == 1:
            return Failure("timeout", "no answer in time", retryable=True)
        return attrs.evolve(subject, output=" ".join(self.tries[-1]))


def test_a_retried_task_gets_the_replies_that_it_has_paid_for_in_their_order():
    model = FakeChatModel([Reply("first", cost=Cost("0.01")), Reply("second", cost=Cost("0.01"))])
    task = RetriedTask(model)
    text = '{"task": {"t": {"retries": 1}}, "metrics": ["m"], "budget": {"run": "1 usd"}}'
    done = run_pipeline(text, subjects=rows(1), components={"t": task, "m": FakeMetric()})
    assert task.tries == [["first", "second"]] * 2
    assert (done.document["scored"], done.document["cost"]["usd"]) == (1, "0.02")


@attrs.frozen
class PayingTask:
    """A task that pays by itself, and may estimate that on the class or on the live object."""

    answer: object
    live: type | None = None

    async def produce(self, subject):
        await asyncio.sleep(0.01)
        return self.answer(subject)

    @asynccontextmanager
    async def open(self, run):
        yield self if self.live is None else self.live(self.answer)


class PricedTask(PayingTask):
    """A task with an estimate of its own payments."""

    def estimate(self, subject):
        return PRICE


def paid_failure(subject):
    return Failure("refused", "no", cost=PRICE)


def paid_response(subject):
    return Answered.of(subject, {"": {"content": "a", "metrics": {"cost": 0.002}}})


def run_section(section, component, **options):
    text = {section: "c" if section in ("task", "executor") else ["c"], "budget": {"run": "0.005 usd"}, **options}
    return run_pipeline(json.dumps(text), subjects=rows(30), components={"c": component})


@pytest.mark.parametrize(
    "task",
    [AskingTask(), PricedTask(paid_failure), PricedTask(paid_response), PayingTask(paid_failure, PricedTask),
     PricedTask(paid_failure, PayingTask)],
    ids=["of a model", "of a failure", "of a response", "of the live object", "of the class"],
)  # fmt: skip
def test_a_cap_holds_for_a_task_with_an_estimate(task):
    done = run_section("task", task)
    assert Decimal(done.document["cost"]["usd"]) == Decimal("0.004")
    assert (done.document["overruns"], done.document["throttled"]) == (0, {"run_cap": 28})
    assert len(done.of("spend.settled")) == 2


@pytest.mark.parametrize("task", [AskingTask(LiveModel(0.02)), PayingTask(paid_failure)], ids=["of a model", "its own"])
def test_a_task_that_pays_without_an_estimate_is_refused(task):
    done = run_section("task", task)
    assert done.document["cost"]["usd"] == "0.002"
    assert done.document["throttled"] == {"no_estimate": 29}
    messages = {failed["error_message"] for failed in done.document["failed_subjects"]}
    assert any("c reports a cost of 0.002 usd and estimates nothing" in message for message in messages)


@pytest.mark.parametrize("cost", ["costly", -1, float("nan"), float("inf"), True, [1]], ids=str)
def test_a_cost_that_is_no_number_fails_the_row_and_counts_as_the_estimate(cost):
    task = PricedTask(lambda subject: Answered.of(subject, {"": {"content": "a", "metrics": {"cost": cost}}}))
    done = run_section("task", task)
    assert len(done.of("spend.lost")) == 2
    assert done.document["failures"] == {"crashed": 2, "throttled_no_heuristic": 28}
    assert "metrics.cost of a response" in str(done.document["failed_subjects"])


@pytest.mark.parametrize("responses", [[1], {"": 1}, {"": {}}], ids=str)
def test_responses_that_are_none_break_no_run(responses):
    def answer(subject):
        return attrs.evolve(Answered.of(subject, {"": {"content": "a", "metrics": {}}}), responses=responses)

    done = run_section("task", PricedTask(answer))
    assert done.document["stopped"] is None


def test_the_failure_of_a_tasks_model_is_paid_once():
    @attrs.frozen
    class Broken:
        def estimate(self, request):
            return PRICE

        async def complete(self, request):
            return Failure("refused", "no", cost=PRICE)

    done = run_section("task", AskingTask(Broken()), budget={"run": "1 usd"})
    assert Decimal(done.document["cost"]["usd"]) == Decimal("0.060")


@attrs.frozen
class PayingExtractor:
    """An extractor that reports a cost."""

    writes = ("score",)

    async def extract(self, record):
        await asyncio.sleep(0.01)
        return paid_failure(record)


def test_an_extractor_that_pays_is_refused():
    done = run_section("extractors", PayingExtractor())
    assert done.document["cost"]["usd"] == "0.002"
    assert done.document["throttled"] == {"no_estimate": 29}
    messages = {failed["error_message"] for failed in done.document["failed_subjects"]}
    assert any("Pay in a task, a metric or a judge" in message for message in messages)


@attrs.frozen
class Asks:
    """A component of any kind that no cap covers, with a chat model inside."""

    model: ChatModel = attrs.field(factory=LiveModel)
    concurrency: int = 4
    writes = ("score",)

    def extract(self, record):
        return {}

    def add(self, record):
        pass

    def finish(self):
        return {}

    def observe(self, record):
        return None


@pytest.mark.parametrize("section", ["extractors", "aggregates", "early_stop", "executor"])
def test_a_chat_model_in_a_component_that_no_cap_covers_is_refused(section):
    with pytest.raises(
        ConfigError, match="no cap covers the calls of an .*Call the model in a task, a metric or a judge"
    ):
        run_section(section, Asks(), metrics=["diff/match"])


@attrs.frozen
class NamesAJudge:
    """An aggregate with an option called like the method of a judge."""

    judge: str | None = None

    def add(self, record):
        pass

    def finish(self):
        return {}


def test_an_option_called_judge_is_no_judge():
    assert run_section("aggregates", NamesAJudge(), metrics=["diff/match"]).document["aggregates"] == {"c": {}}


@attrs.frozen
class PricedAggregate:
    """An aggregate that returns a score with a cost in place of JSON data."""

    def add(self, record):
        pass

    def finish(self):
        return Score(1.0, cost=PRICE)


def test_an_aggregate_cannot_report_a_cost():
    done = run_section("aggregates", PricedAggregate(), metrics=["diff/match"])
    assert done.document["aggregates"] == {"c": None}
    assert done.document["cost"]["usd"] == "0"
    assert "not a mapping" in done.of("run.completed")[0].payload["broken"]["aggregates[0]"]
