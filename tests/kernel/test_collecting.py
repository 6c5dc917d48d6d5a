"""Chat models that collect calls: calls that wait for a batch in the kernel."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import attrs
import pytest

import dicast
from dicast import ChatModel, ChatRequest, Cost, Judgment, Message, Query, Reply, Rubric

CENT = Cost("0.01", pricing_version="list 1")


class Collected:
    """A live model that answers in batches; *sizes* has the number of calls in each."""

    longest_wait = 3600.0

    def __init__(self, seconds):
        self.seconds, self.sizes, self.waiting = seconds, [], []

    def estimate(self, request):
        return CENT

    async def complete(self, request):
        answer = asyncio.get_running_loop().create_future()
        self.waiting.append(answer)
        return await answer

    async def send_collected(self):
        waiting, self.waiting = self.waiting, []
        if waiting:
            self.sizes.append(len(waiting))
            await asyncio.sleep(self.seconds)
            for answer in waiting:
                answer.set_result(Reply("fine", "m", cost=CENT))


@attrs.frozen
class Batched:
    """Opens the live model."""

    seconds: float = 0.05
    live: list = attrs.field(factory=list, eq=False)

    @asynccontextmanager
    async def open(self, run):
        self.live.append(Collected(self.seconds))
        yield self.live[-1]

    def estimate(self, request):
        return CENT

    async def complete(self, request):
        raise AssertionError("the live model answers")


@attrs.frozen
class Direct:
    """Answers each call by itself."""

    def estimate(self, request):
        return CENT

    async def complete(self, request):
        await asyncio.sleep(0.01)
        return Reply("fine", "d", cost=CENT)


@attrs.frozen
class Asking:
    """Asks its models *times* times, one after the other, or all at once."""

    models: tuple[ChatModel, ...]
    times: int = 1
    at_once: bool = False

    name = "asking"
    version = "1"
    rubric = Rubric("asked", "1.0.0")

    async def judge(self, subject, children):
        calls = [model.complete(ChatRequest((Message("user", "?"),))) for model in self.models * self.times]
        replies = await asyncio.gather(*calls) if self.at_once else [await call for call in calls]
        return Judgment(
            1.0,
            0.9,
            "llm",
            replies[0].model,
            sum((reply.cost for reply in replies), Cost.zero()),
            includes_replies=True,
        )

    def estimate(self, subject):
        return Cost(f"0.{len(self.models) * self.times:02}")


@pytest.fixture
def judged(tmp_path):
    def run(*judges, rows=6, **sections):
        data = [dicast.Subject("row", f"r{number}", output="a") for number in range(rows)]
        budget = {"run": "10 usd", "day": "10 usd"}
        ledger = {"ledger/sqlite": {"path": str(tmp_path / "l.db")}}
        pipeline = {"name": "p", "judges": list(judges), "budget": budget, "ledger": ledger, **sections}
        return dicast.run(pipeline, subjects=data)

    return run


def test_calls_of_all_subjects_wait_together_whatever_the_concurrency(judged):
    model = Batched()
    done = judged(Asking((model,)), rows=300, executor={"dicast/async": {"concurrency": 2}})
    assert (done.scored, model.live[0].sizes) == (300, [300])


@pytest.mark.parametrize("at_once", [False, True])
def test_a_judge_that_asks_a_direct_model_too_is_no_dead_end(judged, at_once):
    model = Batched()
    done = judged(Asking((model, Direct()), 2, at_once), executor={"dicast/async": {"concurrency": 1}})
    assert (done.scored, sum(model.live[0].sizes)) == (6, 12)


def test_a_reservation_for_a_batch_outlives_its_run_and_another_does_not(judged, tmp_path):
    judged(Asking((Batched(),)), rows=1)
    judged(Asking((Batched(), Direct())), rows=1)
    from dicast_ledger import Sqlite

    async def reserved():
        async with Sqlite(tmp_path / "l.db").open() as ledger:
            return [entry.event.payload.get("outlives_run") for entry in ledger.read(Query(types=("spend.reserved",)))]

    assert asyncio.run(reserved()) == [True, None]


def test_what_a_model_raises_in_place_of_answers_ends_the_run(judged):
    class Broken(Collected):
        async def send_collected(self):
            raise ValueError("a defect")

    @attrs.frozen
    class Opens(Batched):
        @asynccontextmanager
        async def open(self, run):
            yield Broken(0)

    with pytest.raises(ValueError, match="a defect"):
        judged(Asking((Opens(),)))
