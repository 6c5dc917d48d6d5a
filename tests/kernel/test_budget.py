"""Caps: calls that are paid, that wait, and that are refused, and the amounts that count as spent."""

from __future__ import annotations

import asyncio
import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest

from dicast import Cost, Event, Failure, Judgment, Query, Refusal, Score, metric
from dicast._kernel.asking import budget
from dicast._kernel.asking.budget import BudgetGate, Reservation
from dicast._kernel.plan.sections import Budget
from dicast._kernel.report.fold import Report
from dicast._kernel.run.end import reserved_json
from dicast._kernel.stream.stream import Stream
from dicast._kernel.values.clock import Clock
from dicast.testing import FakeJudge, FakeMetric, MemoryLedger, MemorySink, run_pipeline, sample

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Book:
    """A ledger in memory with its budget, as a run has them; *now* is the time of the clock."""

    def __init__(self, ledger, limits, run_id="R1"):
        self.now, self.ledger, self.run_id = NOW, ledger, run_id
        self.clock = Clock(lambda: (self.now - EPOCH) // timedelta(microseconds=1) * 1000)
        self.budget = BudgetGate(limits, ledger, self, self.clock, run_id)

    def event(self, type_, payload, subject=None, sensitivity="pseudonymous"):
        id_, now = self.clock.stamp()
        of = {} if subject is None else {"subject_kind": subject.kind, "subject_id": subject.id}
        session = None if subject is None else subject.session_id
        return Event(id_, type_, now, self.run_id, payload, session_id=session, **of)

    def emit(self, events):
        self.ledger.append(events)

    def commit(self):
        pass

    def commit_soon(self):
        pass

    def claim(self, claim, lost):
        answer = asyncio.get_running_loop().create_future()
        (refusal,) = self.ledger.reserve([claim], lost)
        answer.set_result(refusal)
        return answer

    async def reserve(self, amount, session="s", unit="usd", seconds=30.0, *, lasting=False):
        cost = amount if isinstance(amount, Cost) else Cost(amount, unit)
        return await self.budget.reserve(sample("x", session_id=session), "E1", cost, seconds, lasting=lasting)

    async def spend(self, amount, session="s", unit="usd"):
        reservation = await self.reserve(amount, session, unit)
        self.budget.settle(reservation, reservation.projected, {})

    def of(self, type_):
        return [entry.event for entry in self.ledger.read(Query(types=(type_,)))]


def limits(**scopes):
    components = {scope: tuple(Cost.parse(text) for text in texts.split(", ")) for scope, texts in scopes.items()}
    return Budget(**({"run": (), "session": (), "day": ()} | components))


def using(work, ledger=None, run_id="R1", **scopes):
    """Run *work* on a book whose caps are *scopes*; it may not wait for long."""

    async def main():
        async with (ledger or MemoryLedger()).open() as live:
            async with asyncio.timeout(5):
                return await work(Book(live, limits(**scopes), run_id))

    return asyncio.run(main())


@pytest.mark.parametrize(
    ("projected", "reason"), [("0.006", "session_cap"), ("0.005", None), ("0.0050000001", "session_cap")]
)
def test_a_cap_may_be_reached_and_not_passed(projected, reason):
    async def work(book):
        await book.spend("0.005")
        return await book.reserve(projected)

    result = using(work, session="0.01 usd")
    assert (result.cap.reason if isinstance(result, Refusal) else None) == reason


@pytest.mark.parametrize(("scope", "reason"), [("run", "run_cap"), ("session", "session_cap"), ("day", "daily_cap")])
def test_each_scope_has_its_cap_and_its_reason(scope, reason):
    async def work(book):
        await book.spend("0.01")
        refusal = await book.reserve("0.001")
        assert refusal.cap.reason == reason
        assert not refusal.wait
        (event,) = book.of("budget.throttled")
        assert event.payload == {
            "reason": reason,
            "scope": {"run": "run:R1", "session": "session:s", "day": "day:2026-03-01"}[scope],
            "limit": "0.01",
            "projected": "0.001",
            "unit": "usd",
            "spent": "0.01",
        }

    using(work, **{scope: "0.01 usd"})


def test_yesterday_s_spend_does_not_count():
    async def work(book):
        book.now = NOW - timedelta(hours=13)
        await book.spend("1.00")
        assert isinstance(await book.reserve("0.01"), Refusal)
        book.now = NOW
        assert isinstance(await book.reserve("1.00"), Reservation)

    using(work, day="1.00 usd")


def test_nothing_is_refused_that_costs_nothing():
    async def work(book):
        assert isinstance(await book.reserve("0"), Reservation)
        assert isinstance(await book.reserve("0.000001"), Refusal)

    using(work, run="0 usd", session="0 usd", day="0 usd")


def test_another_session_and_another_run_have_room_of_their_own():
    ledger = MemoryLedger()

    async def first(book):
        await book.spend("0.01")
        assert isinstance(await book.reserve("0.01", session="t"), Reservation)
        assert isinstance(await book.reserve("0.01"), Refusal)

    async def second(book):
        assert isinstance(await book.reserve("0.01"), Refusal)
        assert isinstance(await book.reserve("0.01", session="u"), Reservation)

    using(first, ledger, session="0.01 usd", run="0.02 usd")
    using(second, ledger, run_id="R2", session="0.01 usd", run="0.02 usd")


def test_a_row_without_a_session_counts_against_run_and_day_alone():
    async def work(book):
        await book.spend("0.05", session=None)
        assert isinstance(await book.reserve("0.05", session=None), Reservation)
        assert [event.payload["scopes"] for event in book.of("spend.reserved")] == [["day:2026-03-01", "run:R1"]] * 2

    using(work, session="0.01 usd", run="0.10 usd")


def test_each_unit_has_its_own_cap():
    async def work(book):
        await book.spend("900", unit="msat")
        assert isinstance(await book.reserve("1", unit="msat"), Refusal)
        assert isinstance(await book.reserve("0.01"), Reservation)
        assert isinstance(await book.reserve("0.001"), Refusal) is False

    using(work, run="0.02 usd, 900 msat")


@pytest.mark.parametrize("end", ["settle", "release", "forfeit"])
def test_a_reservation_that_does_not_fit_waits_for_those_that_are_open(end, monkeypatch):
    monkeypatch.setattr(budget, "POLL_SECONDS", 60)  # what this process gives back is known without polling

    async def work(book):
        reservation = await book.reserve("0.01")
        waiting = asyncio.ensure_future(book.reserve("0.01"))
        await asyncio.sleep(0.02)
        assert not waiting.done()
        assert book.of("budget.throttled") == []
        if end == "settle":
            book.budget.settle(reservation, Cost("0.002"), {})
        else:
            getattr(book.budget, end)(reservation)
        return await waiting

    result = using(work, run="0.012 usd")
    assert isinstance(result, Refusal if end == "forfeit" else Reservation)


def test_waiting_does_not_ask_the_ledger_without_end():
    async def work(book):
        requests = []
        reserve = book.ledger.reserve
        book.ledger.reserve = lambda *arguments: (requests.append(1), reserve(*arguments))[1]
        reservation = await book.reserve("0.01")
        book.budget.release(reservation)  # what changed before is no news to who waits later
        await book.reserve("0.01")
        waiting = asyncio.ensure_future(book.reserve("0.01"))
        await asyncio.sleep(0.05)
        waiting.cancel()
        assert len(requests) == 3

    using(work, run="0.01 usd")


def test_all_that_wait_are_served_one_after_the_other():
    async def work(book):
        most = []

        async def buy():
            reservation = await book.reserve("0.01")
            most.append(len(book.ledger.reservations("R1")))
            await asyncio.sleep(0.001)
            book.budget.release(reservation)

        await asyncio.gather(*(buy() for _ in range(20)))
        return most

    most = using(work, run="0.03 usd")
    assert len(most) == 20
    assert max(most) == 3


def test_what_another_process_gives_back_is_found(monkeypatch):
    monkeypatch.setattr(budget, "POLL_SECONDS", 0.01)

    async def work(book):
        other = Book(book.ledger, limits(), "R2")
        reservation = await other.reserve("0.01")
        waiting = asyncio.ensure_future(book.reserve("0.01"))
        await asyncio.sleep(0.03)
        assert not waiting.done()
        other.budget.release(reservation)
        assert isinstance(await waiting, Reservation)

    using(work, day="0.01 usd")


def test_a_lease_lasts_as_long_as_the_call_may_and_then_counts_as_spent():
    async def work(book):
        dead = Book(book.ledger, limits(), "R0")
        await dead.reserve("0.01", seconds=30)
        (event,) = book.of("spend.reserved")
        lease = datetime.fromisoformat(event.payload["lease_until"])
        assert lease == NOW + timedelta(seconds=30 + budget.GRACE_SECONDS)
        book.now = lease
        waiting = asyncio.ensure_future(book.reserve("0.01"))
        await asyncio.sleep(0.01)
        assert not waiting.done()
        waiting.cancel()
        book.now = lease + timedelta(milliseconds=1)
        assert isinstance(await book.reserve("0.01"), Refusal)
        (lost,) = book.of("spend.lost")
        assert (lost.run_id, lost.session_id) == ("R0", "s")
        assert lost.payload == {
            "reservation_id": event.payload["reservation_id"],
            "amount": "0.01",
            "unit": "usd",
        }

    using(work, day="0.01 usd")


def test_what_a_killed_process_of_this_run_had_open_is_written_off():
    async def work(book):
        await book.reserve("0.01")
        again = Book(book.ledger, limits(run="0.01 usd"))
        await Book(book.ledger, limits(), "R2").reserve("0.01")
        again.budget.write_off()
        assert [event.payload["amount"] for event in book.of("spend.lost")] == ["0.01"]
        assert isinstance(await again.reserve("0.001"), Refusal)

    using(work)


@pytest.mark.parametrize(
    ("amount", "released", "reserved"), [("0.02", 0, ["0.02"]), ("0.01", 0, ["0.02"]), ("0.025", 1, ["0.02", "0.025"])]
)
def test_a_resumed_run_uses_the_reservation_of_a_call_in_a_batch_if_it_is_large_enough(amount, released, reserved):
    async def work(book):
        first = await book.reserve("0.02", lasting=True)
        again = Book(book.ledger, limits(run="0.03 usd"))
        again.budget.write_off()
        result = await again.reserve(amount, lasting=True)
        assert (result.id == first.id) == (not released)
        assert (result.projected, result.subject.text) == (Cost(reserved[-1]), "x")
        assert [event.payload["amount"] for event in book.of("spend.reserved")] == reserved
        assert [event.payload["reservation_id"] for event in book.of("spend.released")] == [first.id] * released
        again.budget.close()
        assert book.of("spend.lost") == []

    using(work, run="0.03 usd")


def test_a_rollout_of_a_resumed_run_reserves_only_the_calls_that_are_in_no_batch():
    async def work(book):
        first = await book.reserve("0.02", lasting=True)
        again = Book(book.ledger, limits(run="0.03 usd"))
        again.budget.write_off()
        costs = {"batched": Cost("0.02"), "direct": Cost("0.01")}
        reservations = await again.budget.admit(sample("x", session_id="s"), "E1", costs, 30.0, {"batched"})
        assert reservations["batched"].id == first.id
        assert reservations["direct"].projected == Cost("0.01")
        assert [event.payload["amount"] for event in book.of("spend.reserved")] == ["0.02", "0.01"]

    using(work, run="0.03 usd")


def test_reservations_for_batches_that_no_call_repeats_are_lost_at_the_end_of_a_resumed_run():
    async def work(book):
        await book.reserve("0.02", lasting=True)
        again = Book(book.ledger, limits())
        again.budget.write_off()
        assert book.of("spend.lost") == []
        again.budget.close()
        assert [event.payload["amount"] for event in book.of("spend.lost")] == ["0.02"]

    using(work)


@pytest.mark.parametrize("reason", [None, "paused", "ledger_failed"])
def test_the_document_has_the_sums_that_stay_reserved_for_batches(reason):
    async def work(book):
        assert reserved_json(book.ledger, "R1", None) == {}
        for amount, unit, lasting in (
            ("0.02", "usd", True),
            ("0.03", "usd", True),
            ("5", "msat", True),
            ("1", "usd", False),
        ):
            await book.reserve(amount, unit=unit, lasting=lasting)
        await Book(book.ledger, limits(), "R2").reserve("0.04", lasting=True)
        sums = {} if reason == "ledger_failed" else {"reserved": {"usd": "0.05", "msat": "5"}}
        assert reserved_json(book.ledger, "R1", reason and {"reason": reason}) == sums

    using(work)


@pytest.mark.parametrize(("cost", "overrun"), [("0.011", True), ("0.01", False), ("0.009", False)])
def test_a_cost_above_its_projection_is_an_overrun_and_blocks_the_next(cost, overrun):
    async def work(book):
        book.budget.settle(await book.reserve("0.01"), Cost(cost), {})
        assert book.of("spend.settled")[0].payload["overrun"] is overrun
        assert isinstance(await book.reserve("0.0005"), Refusal) is overrun

    using(work, run="0.0105 usd")


@pytest.mark.parametrize("cost", [Cost.unknown(), Cost(700, "msat")])
def test_costs_that_cannot_be_compared_are_no_overrun(cost):
    async def work(book):
        book.budget.settle(await book.reserve("0.01"), cost, {})
        assert book.of("spend.settled")[0].payload["overrun"] is False

    using(work)


def test_an_unknown_true_cost_counts_as_its_projection():
    async def work(book):
        book.budget.settle(await book.reserve("0.01"), Cost.unknown(), {})
        assert book.of("spend.settled")[0].payload["amount"] is None
        assert isinstance(await book.reserve("0.001"), Refusal)

    using(work, run="0.01 usd")


@pytest.mark.parametrize("cost", [Cost("0.02"), Cost("0.02", pricing_version="p")])
def test_what_was_not_announced_counts_though_it_passes_the_cap(cost):
    async def work(book):
        book.budget.charge(sample("x", session_id="s"), "E1", cost, {"metric": "m"})
        (event,) = book.of("spend.settled")
        assert (event.payload["amount"], event.payload["pricing_version"]) == ("0.02", cost.pricing_version)
        assert (event.payload["metric"], event.payload["overrun"]) == ("m", True)
        assert book.ledger.reservations("R1") == []
        assert isinstance(await book.reserve("0.001"), Refusal)
        assert isinstance(await book.reserve("0.001", session="t"), Refusal)

    using(work, session="0.01 usd", run="0.02 usd")


def test_an_unknown_cost_that_was_not_announced_holds_no_room():
    async def work(book):
        book.budget.charge(sample("x"), "E1", Cost.unknown(), {})
        assert book.ledger.reservations("R1") == []
        assert book.of("spend.settled")[0].payload["amount"] is None
        assert isinstance(await book.reserve("0.01"), Reservation)

    using(work, run="0.01 usd")


@pytest.mark.parametrize(
    ("costs", "dearest"),
    [
        (["0.01", "0.03", "0.02"], "0.03"),
        (["0.03", None], "0.03"),
        (["0.03", "0.01", "0"], "0.03"),
        (["0.03", "5 msat"], "5 msat"),
        ([None], None),
    ],
)
def test_what_is_not_announced_is_expected_to_cost_as_much_as_the_dearest_call_so_far(costs, dearest):
    def cost(text):
        return Cost.unknown() if text is None else Cost.parse(text if " " in text else f"{text} usd")

    async def work(book):
        for text in costs:
            book.budget.charge(sample("x"), "E1", cost(text), {}, "c")
        assert book.budget.highest_costs == ({} if dearest is None else {"c": cost(dearest)})

    using(work)


# Through a pipeline


def rows(count, session=None):
    return [sample("x", id=str(n), session_id=session and session(n)) for n in range(count)]


def pipeline(judge, count, *, metrics=(), session=None, concurrency=4, **scopes):
    text = {"budget": scopes, "executor": {"dicast/async": {"concurrency": concurrency}}}
    text |= {"metrics": [*metrics, {"j": {"as": "j"}}]} if metrics else {"judges": [{"j": {"as": "j"}}]}
    components = {"j": judge, "cheap": FakeMetric(Score(1.0))}
    return run_pipeline(json.dumps(text), subjects=rows(count, session), components=components)


def paid(cost="0.01", true=None):
    return FakeJudge(Judgment(0.5, cost=Cost(true or cost)), seconds=0.001, cost=Cost(cost))


def test_the_default_caps_are_ten_cents_a_session_and_a_dollar_a_day():
    done = pipeline(paid(), 15, session=lambda n: "one")
    assert (done.document["scored"], done.document["failures"]) == (10, {"throttled_no_heuristic": 5})
    assert done.document["throttled"] == {"session_cap": 5}
    done = pipeline(paid("0.10"), 12)
    assert (done.document["scored"], done.document["throttled"]) == (10, {"daily_cap": 2})


def test_a_capped_judge_is_throttled_and_the_run_says_so():
    done = pipeline(paid(), 5, run="0.03 usd")
    assert (done.document["scored"], done.exit_code) == (3, 3)
    assert done.document["cost"]["usd"] == "0.03"
    assert "run_cap" in done.of("eval.failed")[0].payload["error_message"]


def test_no_room_for_any_judge_is_an_exit_code_of_its_own():
    done = pipeline(paid(), 3, run="0 usd")
    assert (done.document["failures"], done.exit_code) == ({"throttled_no_heuristic": 3}, 5)
    assert done.document["cost"]["usd"] == "0"


def test_the_proxies_stand_where_the_budget_ends():
    done = pipeline(paid(), 4, metrics=["cheap"], run="0.02 usd")
    assert [(verdict.tier, verdict.score) for verdict in done.verdicts].count(("truth", 0.75)) == 2
    assert [(verdict.tier, verdict.score) for verdict in done.verdicts].count(("proxy", 1.0)) == 2
    assert (done.document["metrics"]["j"]["skipped"], done.exit_code) == (2, 0)


def test_cheaper_than_projected_leaves_room_for_more():
    done = pipeline(paid("0.01", "0.001"), 30, run="0.02 usd")
    assert done.document["scored"] == 11  # ten at a tenth of a cent, and one more that still fits whole
    assert done.document["cost"]["usd"] == "0.011"


def test_never_more_than_a_cap_is_open_or_spent():
    done = pipeline(
        paid("0.01", "0.007"), 40, run="0.1 usd", day="0.08 usd", session=lambda n: str(n % 3), concurrency=16
    )
    check_caps(done.events, {"run": "0.1", "day": "0.08", "session": "0.1"})


def test_sinks_hear_of_money_in_the_order_of_the_ledger():
    sink = MemorySink()
    components = {"j": paid("0.01", "0.004"), "cheap": FakeMetric(Score(1.0)), "s": sink}
    text = "metrics: [cheap, j]\nbudget: {run: 0.05 usd}\nsinks: [s]\nexecutor: {dicast/async: {concurrency: 3}}"
    done = run_pipeline(text, subjects=rows(20), components=components)
    assert [event.id for event in sink.events] == [event.id for event in done.events]
    assert len(done.of("spend.settled")) == 11


def test_nothing_is_reserved_for_a_verdict_that_is_not_in_the_ledger_yet():
    done = pipeline(paid(), 20, run="0.05 usd")
    started = set()
    for event in done.events:
        if event.type == "eval.started":
            started.add(event.payload["eval_id"])
        elif event.type == "spend.reserved":
            assert event.payload["eval_id"] in started


def test_a_judge_whose_price_is_unknown_is_never_asked():
    judge = FakeJudge(Judgment(1.0), cost=Cost.unknown())
    done = pipeline(judge, 2)
    assert judge.asked == []
    assert done.document["failures"] == {"throttled_no_heuristic": 2}


def test_a_timeout_forfeits_what_was_reserved():
    @metric(tier="truth", cost="0.01 usd")
    async def slow(subject):
        await asyncio.sleep(30)

    text = "metrics: [{slow: {timeout: 0.05}}]\nbudget: {run: 0.02 usd}\nexecutor: {dicast/async: {concurrency: 1}}"
    done = run_pipeline(text, subjects=rows(4), components={"slow": slow()})
    assert done.document["failures"] == {"timeout": 2, "throttled_no_heuristic": 2}
    assert (done.document["spend_lost"]["usd"], done.document["cost"]["usd"]) == ("0.02", "0")


def test_a_failed_call_gives_its_room_to_the_next():
    answers = [Failure("judge_call_failed", "503")] * 3 + [Judgment(1.0, cost=Cost("0.01"))]
    done = pipeline(FakeJudge(answers, cost=Cost("0.01")), 4, run="0.01 usd", concurrency=1)
    assert (done.document["scored"], done.document["failures"]) == (1, {"judge_call_failed": 3})


def check_caps(events, caps):
    """Recompute the settled and open amounts after each event; no scope ever exceeds its cap."""
    open_, spent, most = {}, {}, {}
    for event in events:
        body = event.payload
        if event.type == "spend.reserved":
            open_[body["reservation_id"]] = body["scopes"], Decimal(body["amount"])
        elif event.type in ("spend.settled", "spend.lost"):
            scopes, amount = open_.pop(body["reservation_id"])
            spent[body["reservation_id"]] = scopes, amount if body["amount"] is None else Decimal(body["amount"])
        elif event.type == "spend.released":
            del open_[body["reservation_id"]]
        else:
            continue
        reserved = {}
        for scopes, amount in (*open_.values(), *spent.values()):
            for scope in scopes:
                reserved[scope] = reserved.get(scope, Decimal(0)) + amount
        for scope, amount in reserved.items():
            assert amount <= Decimal(caps[scope.partition(":")[0]]), f"{scope} holds {amount}"
            most[scope] = max(most.get(scope, Decimal(0)), amount)
    assert open_ == {}
    return most


@pytest.mark.parametrize("turns", range(8))
def test_room_that_is_split_is_nobody_elses_in_between(turns):
    """A request for the remaining budget, however many turns of the event loop later, waits until a part is released."""

    async def main():
        async with MemoryLedger().open() as ledger:
            clock = Clock()
            stream = Stream("R1", clock, ledger, (), Report().observe_all)
            budget = BudgetGate(limits(run="0.03 usd"), ledger, stream, clock, "R1")
            parts = {"x": Cost("0.01"), "y": Cost("0.02")}
            admitted = asyncio.ensure_future(budget.admit(sample("x"), "E1", parts, 30.0))
            for _ in range(turns):
                await asyncio.sleep(0)
            waiting = [asyncio.ensure_future(budget.reserve(sample("x"), "E2", Cost("0.01"), 30.0)) for _ in range(2)]
            reservation = await asyncio.wait_for(admitted, 5) if turns else None
            if reservation is not None:
                assert {key: item.projected for key, item in reservation.items()} == parts
            for other in (*waiting, admitted):
                other.cancel()
            await asyncio.gather(*waiting, admitted, return_exceptions=True)

    asyncio.run(main())
