"""Judges and chat models inside components: paid for, counted and shared by the kernel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from types import MappingProxyType

import attrs
import pytest

import dicast
from dicast import (
    AccessRefused,
    ChatModel,
    ChatRequest,
    ConfigError,
    Cost,
    Execution,
    Failure,
    Judge,
    Judgment,
    Message,
    Metric,
    Query,
    RawScore,
    Reply,
    Rubric,
    Score,
    Subject,
    Task,
    Usage,
    judge,
    maybe_await,
    metric,
)
from dicast._kernel.api.runs import run_unless_disabled, with_ledger
from dicast._kernel.pipeline.build import load_pipeline
from dicast._kernel.run.request import Request
from dicast._kernel.source.source import SubjectList
from dicast._kernel.timing.event_loop import in_loop
from dicast.testing import FakeChatModel, FakeJudge, FakeMetric, MemoryLedger, run_pipeline
from dicast.toolkit.rate_limit import RateLimiter

CENT = Cost("0.01", pricing_version="list 1")


@attrs.frozen
class Model:
    """Answers every request alike."""

    cost: Cost = CENT
    error: object = None
    says: object = None
    requests: list[ChatRequest] = attrs.field(factory=list, eq=False)

    def estimate(self, request: ChatRequest) -> Cost:
        if self.says is None:
            return self.cost
        return self.says[request.attempt] if isinstance(self.says, tuple) else self.says

    async def complete(self, request: ChatRequest) -> Reply | Failure:
        self.requests.append(request)
        await asyncio.sleep(0)
        if isinstance(self.error, BaseException):
            raise self.error
        if self.error is not None:
            return self.error
        return Reply("fine", "m-1", usage=Usage(30, 4), cost=self.cost)


@attrs.frozen
class Asking:
    """Judge that calls its model *times* times and reports no cost."""

    model: ChatModel
    times: int = 1
    announces: bool = True
    confidence: float = 1.0
    ends_in: str = "verdict"
    fallback: Judge | None = None

    def estimate(self, subject: Subject) -> Cost:
        cost = dicast.estimate(self.model, ChatRequest(()))
        return Cost(self.times * cost.amount) if self.announces else Cost.zero()

    async def judge(self, subject, children):
        for attempt in range(self.times):
            request = ChatRequest((Message("user", subject.text),), attempt=attempt)
            answer = await maybe_await(self.model.complete(request))
            if isinstance(answer, Failure):
                return answer
        match self.ends_in:
            case "failure":
                return Failure("judge_output_invalid", "no use")
            case "raise":
                raise RuntimeError("on purpose")
            case "says":
                return Judgment(0.5, cost=Cost("0.05"), includes_replies=True)
        return Judgment(0.5, self.confidence, "llm", answer.model)


@attrs.frozen
class Cheap:
    """Costs nothing."""

    def judge(self, subject, children):
        return Judgment(0.25, 0.4, "heuristic")


@attrs.frozen
class Both:
    """Asks all its judges, one after the other; the last one decides."""

    judges: tuple[Judge, ...]

    async def judge(self, subject, children):
        result = [await maybe_await(judge.judge(subject, children)) for judge in self.judges]
        last = result[-1]
        if isinstance(last, Failure):
            return Judgment(0.0, signals={"kind": last.kind, "throttled_reason": last.throttled_reason})
        return last


def judged(judge, *, text="", subjects=1, **options):
    rows = [Subject("row", str(number), output="text") for number in range(subjects)]
    return run_pipeline(f"judges: [j]\n{text}", subjects=rows, components={"j": judge, **options})


def settled(done):
    return [event.payload for event in done.of("spend.settled")]


def test_what_a_judge_s_model_costs_is_counted_though_the_judge_says_nothing():
    done = judged(Asking(Model(), times=3))
    (spent,) = settled(done)
    assert (spent["amount"], spent["model"], spent["calls"], spent["tokens"]) == ("0.03", "m-1", 3, 102)
    assert spent["pricing_version"] == "list 1"
    assert done.verdicts[0].judge_cost_usd == Decimal("0.03")
    assert done.document["cost"]["usd"] == "0.03"


def test_what_a_judge_says_beyond_its_model_s_cost_is_counted_too():
    assert judged(Asking(Model(), ends_in="says")).document["cost"]["usd"] == "0.05"


@attrs.frozen
class Dearer:
    """Asks a judge, and reports the cost of the judge and its *own* as the whole cost."""

    inner: Judge
    own: Cost

    async def judge(self, subject, children):
        answer = await maybe_await(self.inner.judge(subject, children))
        return Judgment(0.5, 1.0, cost=answer.cost + self.own, includes_replies=True)


@pytest.mark.parametrize(("own", "amounts"), [("0.02", ["0.01", "0.02"]), ("0", ["0.01"])])
def test_a_cost_beyond_that_of_the_judge_inside_is_settled_and_no_cost_twice(own, amounts):
    done = judged(Dearer(FakeJudge(Judgment(0.5, cost=CENT)), Cost(own)))
    assert [spent["amount"] for spent in settled(done) if spent["amount"] != "0"] == amounts
    assert done.verdicts[0].judge_cost_usd == Decimal(done.document["cost"]["usd"]) == sum(map(Decimal, amounts))


@pytest.mark.parametrize("ends_in", ["failure", "raise"])
def test_what_was_paid_for_a_failure_is_counted(ends_in):
    done = judged(Asking(Model(), times=2, ends_in=ends_in))
    assert done.document["failed"] == 1
    assert (done.document["cost"]["usd"], done.document["spend_lost"]["usd"]) == ("0.02", "0")


def test_a_cost_that_was_not_announced_is_an_overrun():
    done = judged(Asking(Model(says=Cost.zero()), announces=False))
    assert (done.document["cost"]["usd"], done.document["overruns"]) == ("0.01", 1)


def test_a_judge_that_announces_nothing_is_reserved_for_by_its_model():
    model = Model()
    done = judged(Asking(model, announces=False), text="budget: {run: 0.01 usd}", subjects=3)
    assert (done.document["cost"]["usd"], done.document["overruns"], len(model.requests)) == ("0.01", 0, 1)
    assert done.document["failures"] == {"throttled_no_heuristic": 2}


def test_a_later_attempt_that_costs_is_not_made_without_room_though_the_first_was_free():
    model = Model(Cost.zero(), says=(Cost.zero(), CENT))
    done = judged(Asking(model, times=2, announces=False), text="budget: {run: 0 usd}")
    assert [request.attempt for request in model.requests] == [0]
    assert done.document["failures"] == {"throttled_no_heuristic": 1}


def test_a_call_inside_one_that_holds_room_does_not_wait_for_it():
    @attrs.frozen
    class Holding:
        inner: Judge

        def estimate(self, subject):
            return CENT

        async def judge(self, subject, children):
            return await maybe_await(self.inner.judge(subject, children))

    done = judged(Holding(Asking(Model())), text="budget: {run: 0.015 usd}")
    assert done.document["failures"] == {"throttled_no_heuristic": 1}


@pytest.mark.parametrize(("sends", "lost"), [(False, "0"), (True, "0.01")])
def test_a_call_that_ran_out_of_time_is_lost_only_if_it_was_sent(sends, lost):
    @attrs.frozen
    class Paced:
        limiter: RateLimiter = attrs.field(factory=lambda: RateLimiter(requests_per_minute=None if sends else 1))

        def estimate(self, request):
            return CENT

        async def complete(self, request):
            async with self.limiter.turn(1):
                if sends:
                    await asyncio.sleep(30)
                return Reply("fine", "m-1", cost=CENT)

    @attrs.frozen
    class Open:
        @asynccontextmanager
        async def open(self, run):
            live = Paced()
            if not sends:
                async with live.limiter.turn(1):
                    pass
            yield live

        def estimate(self, request):
            return CENT

    done = run_pipeline(
        "judges: [{j: {timeout: 0.2}}]",
        subjects=[Subject("row", "a", output="text")],
        components={"j": Asking(Open())},
    )
    assert done.document["failures"] == {"timeout": 1}
    assert done.document["spend_lost"]["usd"] == lost


@attrs.frozen
class Trying:
    """Judge that makes a number of tries: half a cent for each useless reply, and a pause before the next try."""

    tries: tuple[str, ...]
    waits: asyncio.Event = attrs.field(factory=asyncio.Event, eq=False)

    @asynccontextmanager
    async def open(self, run):
        yield self

    def estimate(self, request):
        return CENT

    async def complete(self, request):
        limiter = RateLimiter()
        for become in self.tries:
            async with limiter.turn(1) as number:
                if become == "hangs":
                    self.waits.set()
                    await asyncio.sleep(60)
                if become == "busy":
                    limiter.overloaded(number)
            if become == "useless":
                limiter.spent(Cost("0.005"))
        self.waits.set()
        await asyncio.sleep(60)


@attrs.frozen
class Either:
    """Gives its first judge up when its second one has had an answer, or raised."""

    first: Judge
    second: Judge
    waits: asyncio.Event = attrs.field(eq=False)

    async def judge(self, subject, children):
        asking = asyncio.ensure_future(self.first.judge(subject, children))
        try:
            await self.waits.wait()
            return await self.second.judge(subject, children)
        finally:
            asking.cancel()
            await asyncio.wait([asking])


GIVEN_UP = {
    "paid": (("useless",), "0.005", "0"),
    "paid and busy": (("useless", "busy"), "0.005", "0"),
    "paid for more than was reserved": (("useless", "useless", "useless"), "0.015", "0"),
    "busy": (("busy",), "0", "0"),
    "paid, and under way": (("useless", "hangs"), "0", "0.015"),  # and that one may cost what a try may
}


@pytest.mark.parametrize(("tries", "cost", "lost"), GIVEN_UP.values(), ids=GIVEN_UP)
@pytest.mark.parametrize("how", ["out of time", "inside, out of time", "access refused elsewhere"])
def test_a_call_that_is_given_up_costs_what_its_tries_did(tries, cost, lost, how):
    model = Trying(tries)
    elsewhere = Either(Asking(model), Asking(Model(error=AccessRefused("401"))), model.waits)
    judge = {"out of time": Asking(model), "inside, out of time": Both((Asking(model),))}.get(how, elsewhere)
    done = run_pipeline(
        f"judges: [{{j: {{timeout: {50 if judge is elsewhere else 0.3}}}}}]",
        subjects=[Subject("row", "a", output="text")],
        components={"j": judge},
    )
    assert (done.document["cost"]["usd"], done.document["spend_lost"]["usd"]) == (cost, lost)
    if how == "access refused elsewhere":
        assert (done.exit_code, done.document["stopped"]["reason"]) == (2 if cost == lost else 3, "refused_by_provider")
    elif how == "out of time":
        (failed,) = done.of("eval.failed")
        assert (failed.payload["failure_mode"], failed.payload["judge_cost_usd"]) == ("timeout", cost)


def test_a_request_that_broke_without_a_word_may_have_been_paid():
    done = judged(Asking(Model(error=ConnectionResetError("gone"))))
    assert done.document["failures"] == {"judge_call_failed": 1}
    assert done.document["spend_lost"]["usd"] == "0.01"


def test_replies_that_were_kept_are_no_calls():
    @attrs.frozen
    class Keeps:
        async def complete(self, request):
            return Reply("fine", "m-1", usage=Usage(30, 4), metrics={"cached": True})

    done = judged(Asking(Keeps(), announces=False))
    assert (done.of("spend.settled"), done.verdicts[0].judge_model) == ([], "m-1")


@pytest.mark.parametrize("section", ["metrics", "judges"])
def test_a_rationale_makes_every_event_that_holds_it_the_user_s(section):
    @attrs.frozen
    class Talks:
        model: ChatModel

        async def judge(self, subject, children):
            await maybe_await(self.model.complete(ChatRequest(())))
            return Judgment(0.5, signals={"rationale_redacted": "because"})

    done = run_pipeline(
        f"{section}: [j]", subjects=[Subject("row", "a", output="x")], components={"j": Talks(Model(Cost.zero()))}
    )
    reports = {event.type: event.sensitivity for event in done.events if "because" in str(event.payload)}
    assert reports == dict.fromkeys(["spend.settled", "eval.completed"], "user_controlled")


def test_the_model_that_answered_is_in_the_fingerprint_also_of_metrics_and_of_judges_inside():
    @attrs.frozen
    class Named:
        name: str = attrs.field(eq=False, metadata={"keys": ()})

        async def complete(self, request):
            return Reply("fine", self.name)

    def fingerprints(name):
        judge = Both((Asking(Named(name), announces=False), Cheap()))
        done = run_pipeline(
            "metrics: [j]\njudges: [{j: {as: k}}]",
            subjects=[Subject("row", "a", output="x")],
            components={"j": judge},
        )
        return [verdict.fingerprint for verdict in done.verdicts]

    first, second = fingerprints("a"), fingerprints("b")
    assert all(item != other for item, other in zip(first, second, strict=True))


def test_calls_of_a_model_that_costs_nothing_are_counted_without_reserving():
    done = judged(Asking(Model(Cost.zero()), times=2), text="budget: {run: 0 usd}")
    assert done.of("spend.reserved") == []
    (spent,) = settled(done)
    assert (spent["amount"], spent["calls"], spent["tokens"], spent["reservation_id"]) == ("0", 2, 68, None)


def test_a_model_inside_a_model_is_counted_once():
    @attrs.frozen
    class Around:
        model: ChatModel

        async def complete(self, request):
            return await maybe_await(self.model.complete(request))

    done = judged(Asking(Around(Model()), announces=False))
    assert (settled(done)[0]["calls"], done.document["cost"]["usd"]) == (1, "0.01")


def test_the_model_is_told_which_rollout_it_is():
    model = Model(Cost.zero())
    run_pipeline(
        "metrics: [j]\nscoring: {rollouts: 3}",
        subjects=[Subject("row", "a", output="text")],
        components={"j": Asking(model)},
    )
    assert [request.rollout for request in model.requests] == [0, 1, 2]


def test_what_a_call_may_cost_is_asked_for_the_rollout_that_is_under_way():
    @attrs.frozen
    class Remembers:
        """Costs nothing the first time."""

        def estimate(self, request):
            return CENT if request.rollout else Cost.zero()

        async def complete(self, request):
            return Reply("fine", "m-1", cost=self.estimate(request))

    done = run_pipeline(
        "metrics: [j]\nscoring: {rollouts: 2}",
        subjects=[Subject("row", "a", output="text")],
        components={"j": Asking(Remembers())},
    )
    assert (done.document["cost"]["usd"], done.document["overruns"]) == ("0.01", 0)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (RuntimeError("broken"), "judge_call_failed"),
        (TimeoutError(), "timeout"),
        ("text", "judge_call_failed"),
        (Failure("refused", "no", cost=CENT), "refused"),
    ],
)
def test_what_a_model_does_amiss_is_an_answer_to_its_judge(error, kind):
    done = judged(Asking(Model(error=error)))
    assert done.document["failures"] == {kind: 1}
    assert done.document["cost"]["usd"] == ("0.01" if isinstance(error, Failure) else "0")


@pytest.mark.parametrize(
    "reports",
    [{"metrics": {"thing": object()}}, {"metrics": {"set": {"ab"}}}, {"usage": Usage(2**64, 1)}, {"model": "\ud800"}],
)
def test_a_reply_that_is_no_json_is_paid_for_and_its_judges_failure(reports):
    @attrs.frozen
    class Chatty(Model):
        """Model whose report no ledger can store."""

        async def complete(self, request):
            return Reply("fine", cost=CENT, **reports)

    done = judged(Asking(Chatty()))
    assert (done.document["failures"], done.document["cost"]["usd"]) == ({"crashed": 1}, "0.01")
    (failed,) = done.of("eval.failed")
    assert "Chatty made a reply that is not JSON" in failed.payload["error_message"]


def test_half_a_character_in_a_reply_comes_to_its_judge_as_an_escape():
    @attrs.frozen
    class Cut(Model):
        """Ends in the middle of a character."""

        async def complete(self, request):
            return Reply("fine \ud83d", "m-1", cost=CENT, metrics=MappingProxyType({"cut": True}))

    @attrs.frozen
    class Quoting(Asking):
        """Judge that reports the reply of its model."""

        async def judge(self, subject, children):
            answer = await self.model.complete(ChatRequest((Message("user", subject.text),)))
            return Judgment(0.5, judge_model=answer.text)

    done = judged(Quoting(Cut()))
    assert (done.document["scored"], done.document["cost"]["usd"]) == (1, "0.01")
    assert done.of("eval.completed")[0].payload["judge_model"] == r"fine \ud83d"


def test_judges_inside_a_judge_are_paid_one_by_one():
    done = judged(Both((Cheap(), Asking(Model()), Asking(Model(), times=2))))
    assert [(spent["amount"], spent["metric"], spent["judge"]) for spent in settled(done)] == [
        ("0.01", "j.judges[1]", "j"),
        ("0.02", "j.judges[2]", "j"),
    ]
    assert done.verdicts[0].judge_cost_usd == Decimal("0.03")
    assert len(done.of("spend.reserved")) == 2


def test_an_unknown_cost_inside_is_settled_once():
    done = judged(Both((Cheap(), Asking(Model(Cost.unknown(), says=Cost.zero()), announces=False))))
    assert [(spent["amount"], spent["metric"]) for spent in settled(done)] == [(None, "j.judges[1]")]
    assert done.document["cost"]["usd"] is None


def test_what_is_begun_names_the_rubric_for_the_subject_s_kind():
    @attrs.frozen
    class Ruled:
        judge_kind = "hybrid"

        def rubric_for(self, kind):
            return Rubric(f"{kind}-rules", "3")

        def judge(self, subject, children):
            return Judgment(0.5)

    done = judged(Ruled())
    started = done.of("eval.started")[0].payload
    assert (started["rubric_id"], started["rubric_version"], started["judge_kind_planned"]) == (
        "row-rules",
        "3",
        "hybrid",
    )
    assert (done.verdicts[0].rubric_id, done.verdicts[0].rubric_version) == ("row-rules", "3")


def test_a_judge_inside_a_metric_costs_what_it_costs():
    done = run_pipeline(
        "metrics: [j]",
        subjects=[Subject("row", "a", output="text")],
        components={"j": Both((Asking(Model()), Asking(Model())))},
    )
    assert done.verdicts[0].scores[0]["cost"] == {"amount": "0.02", "unit": "usd", "pricing_version": "list 1"}


@pytest.mark.parametrize(
    ("cap", "calls", "spent"), [("0.02 usd", 2, "0.02"), ("0.01 usd", 1, "0.01"), ("0 usd", 0, "0")]
)
def test_a_metric_whose_judge_does_not_fit_is_skipped_and_the_proxies_stand(cap, calls, spent):
    """The same as for a metric with its own cost estimate."""

    @attrs.frozen
    class Twice:
        tier = "truth"
        judge: Judge

        async def score(self, subject):
            answers = [await maybe_await(self.judge.judge(subject, ())) for _ in range(2)]
            return next((answer for answer in answers if isinstance(answer, Failure)), Score(0.0))

    model = Model()
    done = run_pipeline(
        f"{{metrics: {{proxy: [p], truth: [t]}}, budget: {{run: {cap}}}}}",
        subjects=[Subject("row", "a", output="text")],
        components={"p": FakeMetric(Score(1.0)), "t": Twice(Asking(model))},
    )
    (verdict,) = done.verdicts
    fits = calls == 2
    assert (verdict.tier, verdict.score) == (("truth", 0.5) if fits else ("proxy", 1.0))
    assert list(verdict.skipped) == ([] if fits else [{"metric": "t", "reason": "run_cap"}])
    assert (len(model.requests), done.document["cost"]["usd"], done.exit_code) == (calls, spent, 0)


def test_over_a_cap_a_judge_inside_a_judge_is_not_asked_and_its_owner_hears_why():
    model = Model()
    done = judged(Both((Asking(model),)), text="budget: {run: 0 usd}")
    assert model.requests == []
    assert done.verdicts[0].signals == {"kind": "throttled_no_heuristic", "throttled_reason": "run_cap"}


def test_a_judge_s_fallback_is_asked_where_a_cap_leaves_no_room():
    model = Model()
    done = judged(Asking(model, fallback=Cheap()), text="budget: {day: 0 usd}")
    (verdict,) = done.verdicts
    assert (model.requests, verdict.judge_kind, verdict.score) == ([], "heuristic", 0.25)
    assert verdict.signals == {"throttled_reason": "daily_cap", "escalation_skipped": "budget_exhausted"}


def test_a_fault_of_a_judge_inside_a_judge_is_a_failure_to_its_owner():
    @attrs.frozen
    class Faulty:
        def judge(self, subject, children):
            raise RuntimeError("on purpose")

    assert judged(Both((Faulty(),))).verdicts[0].signals["kind"] == "crashed"


def test_a_metric_with_a_priced_judge_inside_is_no_proxy():
    with pytest.raises(ConfigError, match="costs money"):
        run_pipeline("metrics: {proxy: [j]}", components={"j": Both((Asking(Model()),))})


def test_equal_models_share_one_live_object():
    opened = []

    @attrs.frozen
    class Connected:
        url: str

        @asynccontextmanager
        async def open(self, run) -> AsyncIterator[Model]:
            opened.append(self.url)
            yield Model(Cost.zero())

    components = {"a": Asking(Connected("x")), "b": Asking(Connected("x")), "c": Asking(Connected("y"))}
    run_pipeline("judges: [a, b, c]", subjects=[Subject("row", "a", output="text")], components=components)
    assert opened == ["x", "y"]


@pytest.mark.parametrize("around", [lambda judge: judge, lambda judge: Both((Cheap(), judge))])
def test_a_model_that_refuses_access_ends_the_run(around):
    done = judged(around(Asking(Model(error=AccessRefused("401 for m-1")))), subjects=300)
    assert done.document["stopped"] == {"reason": "refused_by_provider", "message": "401 for m-1"}
    assert (done.exit_code, done.document["scored"], done.document["cost"]["usd"]) == (2, 0, "0")
    assert done.document["spend_lost"]["usd"] == "0"
    assert len(done.of("spend.reserved")) <= 32


def test_calls_under_way_when_access_is_refused_are_heard_and_paid():
    @attrs.frozen
    class Closing:
        """Model that refuses every call after the first; calls in progress are slow."""

        came: list[int] = attrs.field(factory=list, eq=False)

        async def complete(self, request):
            self.came.append(1)
            if len(self.came) == 4:
                raise AccessRefused("403")
            await asyncio.sleep(0.05)
            return Reply("fine", "m-1", cost=CENT)

        def estimate(self, request):
            return CENT

    done = judged(Asking(Closing()), subjects=10, text="executor: {dicast/async: {concurrency: 4}}")
    assert (done.exit_code, done.document["stopped"]["reason"]) == (3, "refused_by_provider")
    assert (done.document["cost"]["usd"], done.document["spend_lost"]["usd"]) == ("0.03", "0")
    assert done.document["scored"] == 3


def test_a_rubric_whose_text_changed_under_its_version_is_refused(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    @attrs.frozen
    class Ruled:
        rubric: Rubric

        def judge(self, subject, children):
            return Judgment(0.5, rubric=self.rubric)

    def run(version, text):
        ruled = {"j": Both((Ruled(Rubric("kind", version, text)),))}
        return run_pipeline(
            "judges: [j]\nledger: {ledger/sqlite: {path: l.db}}",
            subjects=[Subject("row", "a", output="text")],
            components=ruled,
        )

    run("1", "be kind")
    run("1", "be kind")
    run("2", "be kinder")
    with pytest.raises(ConfigError, match=r"the text of rubric kind 1 differs from its text in run .* a new version"):
        run("1", "be kinder")


def test_a_call_without_room_says_what_it_might_have_taken():
    done = judged(Asking(Model(), times=3), text="budget: {run: 0.02 usd}")
    (failed,) = done.document["failed_subjects"]
    assert failed["error_message"] == (
        "a cap forbids this call, which may cost up to 0.03 usd, and there is no fallback judge (run_cap)"
    )


def test_a_slot_key_of_a_judge_inside_a_judge_is_refused_with_where_it_may_stand(plugin):
    plugin(
        "twice",
        "from dicast import Judge\n@judge()\ndef twice(subject: Subject, *, inner: Judge): ...\n@hookimpl\ndef dicast_judges():\n    return [twice]\n",
    )
    with pytest.raises(
        ConfigError,
        match="unknown option 'timeout' of heuristic/turn; it belongs to the outermost",
    ):
        run_pipeline("judges: [{twice/twice: {inner: {heuristic/turn: {timeout: 3}}}}]")


IN_USD, IN_MSAT = Judgment(0.75, 0.5, cost=Cost("0.02")), Judgment(0.25, 0.5, cost=Cost(700, "msat"))


@pytest.mark.parametrize("judge", ["llm/jury: {judges: [a, b]}", "hybrid/cascade: {stages: [a, b]}"])
@pytest.mark.parametrize("order", [(IN_USD, IN_MSAT), (IN_MSAT, IN_USD)])
def test_costs_in_two_units_stay_two_amounts_in_verdict_spend_and_document(judge, order):
    first, second = (FakeJudge(item, cost=item.cost) for item in order)
    rows = [Subject("row", "r", output="text")]
    text = f"judges: [{{{judge}}}]\nbudget: {{run: [1 usd, 5000 msat]}}"
    done = run_pipeline(text, subjects=rows, components={"a": first, "b": second})
    (verdict,) = done.verdicts
    assert (verdict.judge_cost_usd, verdict.judge_cost_msat) == (Decimal("0.02"), Decimal(700))
    assert done.document["cost"] == {"usd": "0.02", "msat": "700"}
    assert sorted((item["unit"], item["amount"]) for item in settled(done)) == [("msat", "700"), ("usd", "0.02")]


def test_a_cap_in_the_second_unit_holds_inside_a_jury():
    first, second = (FakeJudge(item, cost=item.cost) for item in (IN_USD, IN_MSAT))
    rows = [Subject("row", str(number), output="text") for number in range(3)]
    text = "judges: [{llm/jury: {judges: [a, a, b]}}]\nbudget: {run: [1 usd, 1000 msat]}"
    done = run_pipeline(text, subjects=rows, components={"a": first, "b": second})
    assert done.document["cost"] == {"usd": "0.12", "msat": "700"}


@attrs.frozen
class AskingBoth:
    """Judge that calls two models in turn, and reports their cost as *said*."""

    first: ChatModel
    second: ChatModel
    said: Cost = Cost.zero()
    announced: Cost = Cost.zero()

    def estimate(self, subject: Subject) -> Cost:
        return self.announced

    async def judge(self, subject, children):
        for model in (self.first, self.second):
            answer = await maybe_await(model.complete(ChatRequest((Message("user", subject.text),))))
            if isinstance(answer, Failure):
                return answer
        return Judgment(0.5, 1.0, cost=self.said, includes_replies=True)


USD, MSAT = Model(Cost("0.02")), Model(Cost(700, "msat"))


@pytest.mark.parametrize("models", [(USD, MSAT), (MSAT, USD)])
@pytest.mark.parametrize("message", [Cost.zero(), Cost("0.02"), Cost(700, "msat")])
@pytest.mark.parametrize("announced", [Cost.zero(), Cost("0.02"), Cost(700, "msat")])
def test_two_chat_models_paid_in_two_units_are_settled_each_in_its_own(models, message, announced):
    rows = [Subject("row", "r", output="text")]
    text = "judges: [both]\nbudget: {run: [1 usd, 5000 msat]}"
    done = run_pipeline(text, subjects=rows, components={"both": AskingBoth(*models, message, announced)})
    (verdict,) = done.verdicts
    assert (verdict.judge_cost_usd, verdict.judge_cost_msat) == (Decimal("0.02"), Decimal(700))
    assert done.document["cost"] == {"usd": "0.02", "msat": "700"}
    assert (done.document["overruns"], done.document["spend_lost"]) == (0, {"usd": "0", "msat": "0"})
    told = settled(done)
    assert sorted((item["unit"], item["amount"]) for item in told) == [("msat", "700"), ("usd", "0.02")]
    assert sum(item["calls"] for item in told) == 2


@pytest.mark.parametrize(
    ("reported", "settled_amount"), [("0", "0.04"), ("0.01", "0.04"), ("0.04", "0.04"), ("0.05", "0.05")]
)
def test_a_judge_that_reports_less_than_its_replies_pays_for_the_replies(reported, settled_amount):
    rows = [Subject("row", "r", output="text")]
    judge = AskingBoth(USD, USD, Cost(reported), announced=Cost("0.05"))
    done = run_pipeline("judges: [both]\nbudget: {run: 1 usd}", subjects=rows, components={"both": judge})
    (verdict,) = done.verdicts
    assert Decimal(done.document["cost"]["usd"]) == verdict.judge_cost_usd == Decimal(settled_amount)
    assert done.document["overruns"] == 0


def test_a_cap_in_the_unit_of_the_second_chat_model_holds():
    rows = [Subject("row", str(number), output="text") for number in range(3)]
    text = "judges: [both]\nbudget: {run: [1 usd, 1000 msat]}"
    judge = AskingBoth(USD, MSAT, announced=Cost("0.02"))
    done = run_pipeline(text, subjects=rows, components={"both": judge})
    assert done.document["cost"] == {"usd": "0.06", "msat": "700"}
    assert done.document["failures"] == {"throttled_no_heuristic": 2}


def test_what_one_chat_model_cost_is_settled_though_another_ends_unheard():
    models = (MSAT, Model(Cost("0.02"), error=TimeoutError("too slow")))
    rows = [Subject("row", "r", output="text")]
    text = "judges: [both]\nbudget: {run: [1 usd, 5000 msat]}"
    done = run_pipeline(text, subjects=rows, components={"both": AskingBoth(*models)})
    spent, lost = done.document["cost"], done.document["spend_lost"]
    assert (lost["usd"], Decimal(spent["msat"]) + Decimal(lost["msat"])) == ("0.02", 700)


@attrs.frozen
class Breaking:
    """A metric that breaks the run off when it is asked for the first time."""

    tier = "truth"
    asked: list[Subject] = attrs.field(factory=list, init=False, eq=False)

    async def score(self, subject):
        self.asked.append(subject)
        if len(self.asked) == 1:
            for _ in range(100):  # let the others be paid
                await asyncio.sleep(0)
            raise AccessRefused("not today")
        return Score(1.0)


@attrs.frozen
class Around:
    """Asks a judge, then a model of its own."""

    inner: Judge
    model: ChatModel

    async def judge(self, subject, children):
        await maybe_await(self.inner.judge(subject, children))
        await maybe_await(self.model.complete(ChatRequest((Message("user", subject.text),))))
        return Judgment(0.5, 1.0)


@pytest.mark.parametrize("inside", [False, True])
def test_a_verdict_that_is_taken_up_has_what_was_paid_in_both_units(inside):
    both = AskingBoth(USD, MSAT)
    ready = {"ledger": MemoryLedger(), "both": both, "breaking": Breaking(), "outer": Around(both, USD)}
    judge = "outer" if inside else "both"
    text = f"metrics: [{judge}, breaking]\nbudget: {{run: [1 usd, 5000 msat]}}\nledger: ledger\n"
    pipeline = load_pipeline(text, needs_source=False, ready=ready)
    source = SubjectList([Subject("row", "r", output="text")])
    done = [in_loop(run_unless_disabled(pipeline, Request(source=source, resume=run))) for run in (None, "")]
    costs = [one.document["cost"] for one in done]
    query = Query(types=("eval.completed",))
    (verdict,) = with_ledger(pipeline.ledger, lambda ledger: [entry.event.payload for entry in ledger.read(query)])
    assert costs == [{"usd": "0.04" if inside else "0.02", "msat": "700"}] * 2
    assert (verdict["judge_cost_usd"], verdict["judge_cost_msat"]) == (costs[0]["usd"], costs[0]["msat"])


def test_an_answer_can_be_awaited_like_the_answer_of_an_async_def():
    async def awaited():
        values = (
            Execution(0, "", 0.1),
            Score(0.5),
            RawScore(7),
            Judgment(0.5),
            Failure("refused", "no"),
            Reply("fine", "m-1"),
            Subject("row", "1"),
        )
        return [(value, await value) for value in values]

    assert all(value is result for value, result in asyncio.run(awaited()))


@judge()
def plain(subject):
    return Judgment(0.75)


@judge()
async def waiting(subject, children):
    return Judgment(0.75 - len(children))


@attrs.frozen
class WithoutDefault:
    """Takes children without a default."""

    def judge(self, subject, children):
        return Judgment(0.75 - len(children))


@metric(tier="truth")
def words(subject):
    return Score(0.75)


@metric(tier="truth")
async def slow_words(subject):
    return Score(0.75)


@attrs.frozen
class Sync:
    """Answers at once."""

    def complete(self, request):
        return Reply("0.75", "m-1")


@attrs.frozen
class Writes:
    """Writes an output at once."""

    def produce(self, subject):
        return attrs.evolve(subject, output="0.75")


@attrs.frozen
class AsksAll:
    """Awaits a component of each kind."""

    judge_inside: Judge
    metric: Metric
    model: ChatModel
    task: Task

    async def judge(self, subject, children=()):
        judgment = await self.judge_inside.judge(subject)
        score = await self.metric.score(subject)
        reply = await self.model.complete(ChatRequest((Message("user", subject.text),)))
        produced = await self.task.produce(subject)
        assert [judgment.score, score.value, reply.text, produced.output] == [0.75, 0.75, "0.75", "0.75"]
        return Judgment(1.0)


@attrs.frozen
class AsksInside:
    """Awaits a judge inside a judge."""

    inside: Judge

    async def judge(self, subject, children=()):
        return await self.inside.judge(subject)


KINDS_OF_JUDGES = [plain(), waiting(), WithoutDefault(), FakeJudge(Judgment(0.75)), AsksInside(plain())]
KINDS_OF_METRICS = [words(), slow_words(), FakeMetric(Score(0.75)), plain(), waiting()]
KINDS_OF_MODELS = [Sync(), FakeChatModel("0.75")]


@pytest.mark.parametrize("judge_inside", KINDS_OF_JUDGES)
@pytest.mark.parametrize("metric", KINDS_OF_METRICS)
@pytest.mark.parametrize("model", KINDS_OF_MODELS)
def test_a_nested_component_of_any_kind_is_awaited_in_a_run(judge_inside, metric, model):
    done = judged(AsksAll(judge_inside, metric, model, Writes()))
    assert (done.document["failures"], done.verdicts[0].score) == ({}, 1.0)


@pytest.mark.parametrize("judge_inside", [plain(), waiting(), FakeJudge(Judgment(0.75)), AsksInside(plain())])
@pytest.mark.parametrize("metric", [words(), slow_words(), FakeMetric(Score(0.75))])
@pytest.mark.parametrize("model", KINDS_OF_MODELS)
def test_a_nested_component_of_any_kind_is_awaited_without_a_run(judge_inside, metric, model):
    asked = AsksAll(judge_inside, metric, model, Writes()).judge(Subject("row", "1", output="text"))
    assert asyncio.run(asked) == Judgment(1.0)
