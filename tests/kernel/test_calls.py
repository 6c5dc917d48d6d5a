"""Every behavior of a component becomes a score or a counted failure, within its time, and ends nothing else."""

from __future__ import annotations

import asyncio
import json
import math
import re
import threading
import time
from contextlib import suppress

import attrs
import pytest

from dicast import Cost, Failure, InvalidScore, Judgment, Score, judge, metric
from dicast.testing import FakeJudge, FakeMetric, MemorySink, run_pipeline, sample


def run(component, *, kind="metrics", rows=1, sinks=None, **options):
    listed = [{"it": {"as": "it", **options}}]
    text = json.dumps({kind: listed, "sinks": list(sinks or {})})
    subjects = [sample("x", id=str(n)) for n in range(rows)]
    return run_pipeline(text, subjects=subjects, components={"it": component, **(sinks or {})})


def failure(component, **options):
    done = run(component, **options)
    assert done.verdicts == ()
    (event,) = done.of("eval.failed")
    assert done.document["failures"] == {event.payload["failure_mode"]: 1}
    assert event.payload["eval_id"] == done.of("eval.started")[0].payload["eval_id"]
    return event.payload["failure_mode"], event.payload["error_message"]


@attrs.frozen
class Does:
    """A metric that calls a function."""

    tier = "proxy"
    what: object = attrs.field(eq=False)

    def score(self, subject):
        return self.what()


@attrs.frozen
class DoesLater(Does):
    async def score(self, subject):
        return self.what()


@attrs.frozen
class Judges:
    accepts = ()
    what: object = attrs.field(eq=False)

    def judge(self, subject, children):
        return self.what()


def raising(error):
    def what():
        raise error

    return what


EITHER = pytest.mark.parametrize("kind", [Does, DoesLater])


# What is no answer


@EITHER
@pytest.mark.parametrize("answer", [None, 1.0, 1, 0, True, math.nan, "0.5", {}, Score, Judgment(1.0)], ids=repr)
def test_an_answer_that_is_no_score_is_an_invalid_score(kind, answer):
    mode, message = failure(kind(lambda: answer))
    assert mode == "invalid_score"
    assert repr(answer)[:30] in message
    assert "not a Score" in message


@pytest.mark.parametrize("answer", [None, 0.5, Score(1.0), "yes"], ids=repr)
def test_an_answer_that_is_no_judgment_is_an_invalid_score(answer):
    mode, message = failure(Judges(lambda: answer), kind="judges")
    assert mode == "invalid_score"
    assert "not a Judgment" in message


@EITHER
@pytest.mark.parametrize("value", [1.5, -0.1, math.nan, math.inf, True, None, "0.5"], ids=repr)
def test_a_score_that_cannot_be_built_is_an_invalid_score_that_names_it(kind, value):
    mode, message = failure(kind(lambda: Score(value)))
    assert mode == "invalid_score"
    assert repr(value) in message


@EITHER
@pytest.mark.parametrize(
    "signals",
    [{"a": object()}, {"a": {1, 2}}, {1: "a"}, {"a": 2**70}, {"a": "\ud800"}, {"\ud800": 1}, {"a": 1j}],
    ids=lambda signals: repr(signals).partition(" at 0x")[0],
)
def test_evidence_that_is_no_json_is_an_invalid_score(kind, signals):
    mode, message = failure(kind(lambda: Score(0.5, signals=signals)))
    assert mode == "invalid_score"
    assert "signals" in message


def test_signals_that_lead_back_to_themselves_are_an_invalid_score():
    loop = {}
    loop["loop"] = loop
    assert failure(Does(lambda: Score(0.5, signals=loop)))[0] == "invalid_score"


@pytest.mark.parametrize("signals", [["a"], "text", 7])
@pytest.mark.parametrize("kind", ["metrics", "judges"])
def test_signals_that_are_no_mapping_are_an_invalid_score(kind, signals):
    component = {
        "metrics": Does(lambda: Score(0.5, signals=signals)),
        "judges": Judges(lambda: Judgment(0.5, signals=signals)),
    }
    assert failure(component[kind], kind=kind)[0] == "invalid_score"


def test_details_that_are_no_text_in_utf8_are_an_invalid_score():
    assert failure(Does(lambda: Score(0.5, details="\udc00")))[0] == "invalid_score"


def test_evidence_in_any_script_is_kept():
    score = Score(0.5, details="größer ≥ 你好", signals={"ключ": ["ü", None, 1.5]})
    (item,) = run(Does(lambda: score)).verdicts[0].scores
    assert (item["details"], item["signals"]) == (score.details, score.signals)


# What is raised


class Odd(Exception):
    pass


class Panic(BaseException):
    """The exception of a library in Rust."""


@EITHER
@pytest.mark.parametrize("error", [Odd("why"), KeyError("k"), SystemExit(3), TimeoutError("mine"), RecursionError("r")])
def test_whatever_is_raised_is_a_crash_that_says_what_and_where(kind, error):
    mode, message = failure(kind(raising(error)))
    assert mode == "crashed"
    line = raising.__code__.co_firstlineno + 2
    assert message == f"it: {type(error).__name__}: {error} (tests/kernel/test_calls.py:{line})"


@EITHER
@pytest.mark.parametrize("error", [Panic("from Rust"), asyncio.CancelledError("inner")])
def test_what_is_no_exception_is_a_crash_too(kind, error):
    done = run(kind(raising(error)), rows=3)
    assert (done.document["failures"], done.document["stopped"]) == ({"crashed": 3}, None)


def test_a_cancelled_task_of_the_component_s_own_is_its_crash():
    @metric(tier="proxy")
    async def impatient(subject):
        task = asyncio.ensure_future(asyncio.sleep(60))
        task.cancel()
        await task
        return Score(1.0)

    assert failure(impatient())[0] == "crashed"


@EITHER
def test_a_message_that_is_no_utf8_does_not_stop_the_run(kind):
    done = run(kind(raising(ValueError("bad byte \udcff"))), rows=2)
    assert done.document["stopped"] is None
    assert done.document["failures"] == {"crashed": 2}
    assert "bad byte" in done.document["failed_subjects"][0]["error_message"]


def test_a_component_s_own_failure_may_hold_any_text():
    done = run(Does(lambda: Failure("refused", "because \udcff")))
    assert done.document["failures"] == {"refused": 1}


def test_one_crash_is_one_subject_s():
    scores = [Score(0.5), Odd("one"), Score(1.0)]
    done = run(FakeMetric(scores), rows=3)
    assert (done.document["scored"], done.document["failed"], done.document["score"]["mean"]) == (2, 1, 0.75)


def test_keyboard_interrupt_is_not_the_component_s():
    with pytest.raises(KeyboardInterrupt):
        run(Does(raising(KeyboardInterrupt())))


# Estimates


@attrs.frozen
class Estimates:
    tier = "truth"
    what: object = attrs.field(eq=False)

    def estimate(self, subject):
        if subject.id == "0":
            return self.what()
        return Cost.zero()

    def score(self, subject):
        return Score(1.0)


@pytest.mark.parametrize("what", [raising(Odd("why")), lambda: None, lambda: 0.01, lambda: Cost(0.01)])
def test_an_estimate_that_fails_is_its_subject_s_crash(what):
    subjects = [sample("x", id=str(n)) for n in range(1, -1, -1)]
    done = run_pipeline("metrics: [it]", subjects=subjects, components={"it": Estimates(what)})
    assert done.document["failures"] == {"crashed": 1}
    assert done.document["scored"] == 1


# Time


def busy():
    while True:
        pass


def hopeless():
    return re.match(r"(a+)+$", "a" * 40 + "b")


def swallowing():
    with suppress(BaseException):
        busy()
    busy()


@pytest.mark.parametrize("what", [busy, hopeless, swallowing])
def test_a_function_that_does_not_end_is_ended(what):
    began = time.perf_counter()
    assert failure(Does(what), timeout=0.1) == ("timeout", "it: no answer within 0.1 s")
    assert 0.1 <= time.perf_counter() - began < 29


def test_an_estimate_that_does_not_end_is_ended():
    @attrs.frozen
    class Estimates:
        tier = "truth"

        def score(self, subject):
            return Score(1.0)

        def estimate(self, subject):
            busy()

    assert failure(Estimates(), timeout=0.1) == ("timeout", "it: no answer within 0.1 s")


@metric(tier="proxy")
async def endless(subject):
    await asyncio.Event().wait()


@metric(tier="proxy")
async def stubborn(subject):
    for _ in range(2):
        with suppress(BaseException):
            await asyncio.sleep(30)
    return Score(1.0)


@pytest.mark.parametrize("make", [endless, stubborn])
def test_what_waits_too_long_is_cancelled(make):
    began = time.perf_counter()
    assert failure(make(), timeout=0.1) == ("timeout", "it: no answer within 0.1 s")
    assert 0.1 <= time.perf_counter() - began < 29


def test_a_judge_that_waits_too_long_is_a_timeout():
    mode, message = failure(FakeJudge(Judgment(1.0), seconds=30), kind="judges", timeout=0.05)
    assert (mode, message) == ("timeout", "no answer within 0.05 s")


def test_a_slow_subject_does_not_spoil_the_others():
    @metric(tier="proxy")
    async def slow(subject):
        if subject.id == "1":
            await asyncio.sleep(30)
        return Score(1.0)

    done = run(slow(), rows=4, timeout=0.1)
    assert (done.document["scored"], done.document["failures"]) == (3, {"timeout": 1})
    assert [verdict.subject_id for verdict in done.verdicts] == ["0", "2", "3"]


def test_a_component_that_keeps_the_loop_again_and_again_keeps_nobody_from_a_timeout():
    over = threading.Event()

    @metric(tier="proxy")
    async def waits(subject):
        try:
            await asyncio.sleep(30)
        finally:
            over.set()

    @metric(tier="proxy")
    async def hogs(subject):
        for _ in range(40):
            time.sleep(0.06)  # noqa: ASYNC251  # which is what is tried
            await asyncio.sleep(0)
            if over.is_set():
                return Score(1.0)
        return Score(0.0)

    text = json.dumps({"metrics": [{"waits": {"timeout": 0.1, "on": "candidate"}}, {"hogs": {"on": "row"}}]})
    subjects = [sample("x", kind="candidate"), sample("x", id="2")]
    done = run_pipeline(text, subjects=subjects, components={"waits": waits(), "hogs": hogs()})
    assert (done.document["score"]["mean"], done.document["failures"]) == (1.0, {"timeout": 1})


def test_the_timer_is_gone_with_the_run():
    run(Does(lambda: Score(1.0)), timeout=0.01)
    end = time.monotonic() + 0.1
    while time.monotonic() < end:
        pass


def test_an_answer_in_time_is_no_timeout_however_many_there_are():
    @metric(tier="proxy")
    def quick(subject):
        time.sleep(0.25)
        return Score(1.0)

    assert run(quick(), rows=5, timeout=1).document["scored"] == 5


def test_a_run_in_another_thread_works_without_the_timer():
    done = []
    thread = threading.Thread(target=lambda: done.append(run(Does(lambda: Score(1.0)))))
    thread.start()
    thread.join()
    assert done[0].document["scored"] == 1


def test_a_run_inside_an_event_loop_works():
    async def work():
        return run(Does(lambda: Score(1.0)))

    assert asyncio.run(work()).document["scored"] == 1


# Again


AGAIN = Failure("judge_call_failed", "busy", retryable=True)


def test_a_retryable_failure_is_asked_again_and_the_last_answer_stands():
    assert run(FakeMetric([AGAIN, AGAIN, Score(0.5)]), retries=2).verdicts[0].score == 0.5
    assert run(FakeJudge([AGAIN, Judgment(0.5)]), kind="judges", retries=2).verdicts[0].score == 0.5


def test_retries_end():
    fake = FakeMetric([AGAIN, AGAIN, AGAIN])
    assert failure(fake, retries=2) == ("judge_call_failed", "it: busy")
    fake.assert_all_asked()


def test_without_retries_a_failure_is_not_asked_again():
    fake = FakeMetric([AGAIN])
    assert failure(fake) == ("judge_call_failed", "it: busy")


@pytest.mark.parametrize("answer", [Failure("refused", "no"), Odd("no")])
def test_what_is_not_retryable_is_not_asked_again(answer):
    fake = FakeMetric([answer])
    failure(fake, retries=5)
    fake.assert_all_asked()


def test_a_timeout_is_tried_again():
    waits = [30, 0]

    @metric(tier="proxy")
    async def slow(subject):
        await asyncio.sleep(waits.pop(0))
        return Score(1.0)

    assert run(slow(), timeout=0.05, retries=1).document["scored"] == 1


# Ranges


@pytest.mark.parametrize(
    ("answer", "value", "raw"),
    [
        (7, 0.7, 7.0),
        (0, 0.0, 0.0),
        (10.0, 1.0, 10.0),
        (Score(0.0, 0.5, "why", raw=2.5), 0.25, 2.5),
        (Score(0.125), 0.125, None),
    ],
    ids=repr,
)
def test_a_declared_range_is_brought_to_the_unit_interval(answer, value, raw):
    (verdict,) = run(Does(lambda: answer), range=[0, 10]).verdicts
    assert verdict.score == pytest.approx(value)
    if isinstance(answer, Score):
        assert (verdict.confidence, verdict.scores[0]["details"]) == (answer.confidence, answer.details)


def test_a_range_may_begin_anywhere():
    assert run(Does(lambda: -5), range=[-10, 10]).verdicts[0].score == 0.25
    assert run(Does(lambda: 4), range=[1, 5]).verdicts[0].score == 0.75


@pytest.mark.parametrize("answer", [10.01, -0.01, math.nan, math.inf, 10**400, Score(0.5, raw=11), True, "7"], ids=repr)
def test_a_number_outside_its_range_is_an_invalid_score(answer):
    assert failure(Does(lambda: answer), range=[0, 10])[0] == "invalid_score"


# Money


def paid(answer, estimate="0.01", unit="usd", tier="truth"):
    @metric(tier=tier, cost=f"{estimate} {unit}")
    async def it(subject):
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return it()


def spends(done):
    return [
        (e.type, e.payload.get("amount"), e.payload.get("unit")) for e in done.events if e.type.startswith("spend.")
    ]


def test_a_call_is_reserved_before_and_settled_after():
    done = run(paid(Score(1.0, cost=Cost("0.004", pricing_version="p1"))))
    assert spends(done) == [("spend.reserved", "0.01", "usd"), ("spend.settled", "0.004", "usd")]
    assert done.document["cost"] == {"usd": "0.004", "msat": "0"}
    (verdict,) = done.verdicts
    assert (str(verdict.judge_cost_usd), verdict.judge_pricing_version) == ("0.004", "p1")
    assert verdict.scores[0]["cost"] == {"amount": "0.004", "unit": "usd", "pricing_version": "p1"}
    reserved, settled = done.of("spend.reserved")[0], done.of("spend.settled")[0]
    assert reserved.payload["reservation_id"] == settled.payload["reservation_id"]
    assert reserved.payload["eval_id"] == settled.payload["eval_id"] == verdict.eval_id
    assert settled.payload["overrun"] is False


@pytest.mark.parametrize("announced", [True, False])
def test_an_unknown_cost_is_null_never_zero(announced):
    score = Score(1.0, cost=Cost.unknown())
    done = run(paid(score) if announced else Does(lambda: score))
    assert done.document["stopped"] is None
    assert done.document["cost"] == {"usd": None, "msat": "0"}
    (verdict,) = done.verdicts
    assert verdict.judge_cost_usd is None
    assert verdict.scores[0]["cost"]["amount"] is None
    assert spends(done)[-1] == ("spend.settled", None, "usd")


def test_the_units_are_kept_apart():
    text = "metrics: [{a: {as: a}}, {b: {as: b}}]\nbudget: {run: [1 usd, 900 msat]}"
    components = {
        "a": paid(Score(1.0, cost=Cost("0.01"))),
        "b": paid(Score(1.0, cost=Cost(700, "msat")), "700", "msat"),
    }
    done = run_pipeline(text, subjects=[sample("x")], components=components)
    assert done.document["cost"] == {"usd": "0.01", "msat": "700"}
    (verdict,) = done.verdicts
    assert (str(verdict.judge_cost_usd), str(verdict.judge_cost_msat)) == ("0.01", "700")


def test_a_cost_that_was_not_announced_is_recorded():
    done = run(Does(lambda: Score(1.0, cost=Cost("0.02"))), rows=3)
    assert (done.document["cost"]["usd"], done.document["overruns"]) == ("0.02", 1)
    assert [kind for kind, *_ in spends(done)] == ["spend.reserved", "spend.settled"]
    assert done.document["throttled"] == {"no_estimate": 2}


@pytest.mark.parametrize("announced", [True, False])
def test_a_cost_on_a_failure_is_recorded(announced):
    answer = Failure("refused", "no", cost=Cost("0.003"))
    done = run(paid(answer) if announced else Does(lambda: answer))
    assert done.document["failures"] == {"refused": 1}
    assert done.document["cost"]["usd"] == "0.003"
    assert done.of("eval.failed")[0].payload["judge_cost_usd"] == "0.003"


def test_each_retry_is_paid():
    answers = [attrs.evolve(AGAIN, cost=Cost("0.001")), Judgment(1.0, cost=Cost("0.002"))]
    done = run(FakeJudge(answers, cost=Cost("0.01")), kind="judges", retries=1)
    assert done.document["cost"]["usd"] == "0.003"
    assert str(done.verdicts[0].judge_cost_usd) == "0.003"


def test_a_true_cost_above_the_projection_is_reported():
    done = run(paid(Score(1.0, cost=Cost("0.011"))))
    assert done.document["overruns"] == 1
    assert done.of("spend.settled")[0].payload["overrun"] is True
    assert run(paid(Score(1.0, cost=Cost("0.01")))).document["overruns"] == 0


@pytest.mark.parametrize("answer", [Failure("timeout", "late"), Odd("late"), None, 0.5, InvalidScore("1.5")], ids=repr)
def test_a_paid_call_that_ended_unheard_counts_as_spent(answer):
    done = run(paid(answer))
    assert spends(done)[-1] == ("spend.lost", "0.01", "usd")
    assert (done.document["spend_lost"]["usd"], done.document["cost"]["usd"]) == ("0.01", "0")


def test_a_paid_call_that_failed_for_nothing_gives_its_room_back():
    done = run(paid(Failure("judge_call_failed", "503")))
    assert spends(done)[-1] == ("spend.released", None, None)
    assert done.document["spend_lost"] == {"usd": "0", "msat": "0"}


def test_a_metric_whose_price_is_unknown_is_skipped_and_never_bought():
    @attrs.frozen
    class Costly:
        tier = "truth"

        def estimate(self, subject):
            return Cost.unknown()

        def score(self, subject):
            raise AssertionError("it was asked")

    text = "metrics: [{cheap: {as: cheap}}, {costly: {as: costly}}]"
    done = run_pipeline(text, subjects=[sample("x")], components={"cheap": FakeMetric(Score(1.0)), "costly": Costly()})
    assert done.verdicts[0].skipped == ({"metric": "costly", "reason": "unknown_price"},)
    assert spends(done) == []


def test_an_answer_s_reply_is_kept_where_it_was_paid_for():
    score = Score(0.5, 0.25, "d", "f", Cost("0.004"), {"a": [1]}, 5.0)
    (event,) = run(paid(score)).of("spend.settled")
    assert (event.payload["metric"], event.payload["rollout"]) == ("it", 0)
    assert event.payload["reply"]["value"] == 0.5
    assert event.payload["reply"]["feedback"] == "f"


def test_a_paid_answer_that_is_no_json_does_not_stop_the_run():
    done = run(paid(Score(0.5, feedback="\udcff", cost=Cost("0.004"))), rows=2)
    assert done.document["stopped"] is None
    assert done.document["cost"]["usd"] == "0.008"


@EITHER
def test_a_component_that_swallows_its_timeout_and_answers_all_the_same_is_late(kind):
    def careless():
        try:
            busy()
        except BaseException:
            return Score(0.0)

    @metric(tier="proxy")
    async def careless_too(subject):
        try:
            await asyncio.sleep(30)
        except BaseException:
            return Score(0.0)

    assert failure(careless_too() if kind is DoesLater else Does(careless), timeout=0.05)[0] == "timeout"


def test_a_timeout_of_the_component_s_own_is_its_crash():
    @metric(tier="proxy")
    async def hurried(subject):
        async with asyncio.timeout(0.01):
            await asyncio.sleep(30)

    mode, message = failure(hurried(), timeout=5)
    assert mode == "crashed"
    assert message.startswith("it: TimeoutError: ")


class Unspeakable(Exception):
    def __str__(self):
        raise Odd("no words")

    __repr__ = __str__


@EITHER
def test_what_cannot_be_shown_is_a_crash_too(kind):
    assert failure(kind(raising(Unspeakable())))[0] == "crashed"
    assert failure(kind(Unspeakable))[0] in ("crashed", "invalid_score")


# One terminal event


def test_every_subject_ends_in_one_terminal_event_a_label_under_the_id_it_started_with():
    @metric(tier="proxy")
    def sometimes(subject):
        if int(subject.id) % 3 == 0:
            raise Odd(subject.id)
        return Score(0.5)

    @judge()
    async def other(subject):
        await asyncio.sleep(0.001 * (int(subject.id) % 4))
        return Failure("refused", "no") if int(subject.id) % 4 == 0 else Judgment(1.0)

    sink = MemorySink(wants=("eval.started", "eval.completed", "eval.failed"))
    text = "metrics: [a]\njudges: [{b: {as: b}}]\nsinks: [s]\nexecutor: {dicast/async: {concurrency: 5}}"
    components = {"a": sometimes(), "b": other(), "s": sink}
    run_pipeline(text, subjects=[sample("x", id=str(n)) for n in range(40)], components=components)
    open_, ends = {}, set()
    for event in sink.events:
        key = event.payload["eval_id"], event.payload["judge"], event.subject_id
        if event.type == "eval.started":
            open_[key] = event
        else:
            assert open_.pop(key).id < event.id
            assert key not in ends
            ends.add(key)
    assert open_ == {}
    assert len(ends) == 80
    reports = [event.subject_id for event in sink.events if event.type != "eval.started"]
    assert reports == [str(n) for n in range(40) for _ in "ab"]
