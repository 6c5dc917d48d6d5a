"""Sinks that fail, and their reported errors."""

from __future__ import annotations

from contextlib import asynccontextmanager, nullcontext

import attrs
import pytest

from dicast import DataError, Judgment, Score
from dicast._kernel.stream import sinks
from dicast.testing import FakeJudge, FakeMetric, MemoryLedger, MemorySink, run_pipeline, sample


@pytest.fixture(autouse=True)
def _no_pause(monkeypatch):
    monkeypatch.setattr(sinks, "PAUSE_SECONDS", 0.001)


@attrs.frozen
class Flaky:
    """Fails *writes* times, then *closes* times, and answers *count*."""

    writes: int = 0
    closes: int = 0
    count: int | None = None
    wants: tuple[str, ...] = ("eval.completed",)
    told: list = attrs.field(factory=list, eq=False)
    closed: list = attrs.field(factory=list, eq=False)

    def write(self, events):
        self.told.append([event.subject_id for event in events])
        if len(self.told) <= self.writes:
            raise OSError("disk full")
        return self.count

    def close(self):
        self.closed.append(True)
        if len(self.closed) <= self.closes:
            raise OSError("cannot finish")
        return self.count


@attrs.frozen
class Waiting(Flaky):
    async def write(self, events):
        return Flaky.write(self, events)

    async def close(self):
        return Flaky.close(self)


def run(*values, rows=3):
    named = {f"s{n}": sink for n, sink in enumerate(values)}
    text = f"metrics: [m]\nsinks: [{', '.join(f'{{{name}: {{as: {name}}}}}' for name in named)}]\n"
    subjects = [sample("x", id=str(n)) for n in range(rows)]
    return run_pipeline(text, subjects=subjects, components={"m": FakeMetric(Score(0.5)), **named})


@pytest.mark.parametrize("kind", [Flaky, Waiting])
@pytest.mark.parametrize("failures", [0, 1, 2])
def test_a_sink_that_fails_for_a_while_is_told_again_and_loses_nothing(kind, failures):
    sink = kind(writes=failures)
    done = run(sink)
    assert done.document["sinks"] == {"s0": {"written": 3, "lost": 0}}
    assert sink.told == [["0", "1", "2"]] * (failures + 1)
    assert done.exit_code == 0


@pytest.mark.parametrize("kind", [Flaky, Waiting])
def test_a_sink_that_keeps_failing_loses_its_events_and_the_run_says_so(kind):
    sink, other = kind(writes=99), MemorySink()
    done = run(sink, other)
    assert done.document["sinks"]["s0"] == {"written": 0, "lost": 3, "error": "OSError: disk full"}
    assert len(sink.told) == 3
    assert done.exit_code == 4
    assert done.document["scored"] == 3
    assert len(other.of("eval.completed")) == 3


def test_a_sink_that_cannot_finish_loses_one():
    sink = Flaky(closes=99)
    done = run(sink)
    assert done.document["sinks"]["s0"] == {"written": 3, "lost": 1, "error": "OSError: cannot finish"}
    assert (len(sink.closed), done.exit_code) == (3, 4)


@attrs.frozen
class Unclosable:
    """A sink whose component cannot be closed."""

    @asynccontextmanager
    async def open(self, run):
        yield MemorySink()
        raise OSError("cannot disconnect")


@pytest.mark.parametrize(
    "sink", [Flaky(wants=(), writes=99), Flaky(wants=(), closes=99), Flaky(closes=99), Unclosable()]
)
def test_the_ledger_has_the_losses_that_the_run_reports(sink):
    done = run(sink, MemorySink())
    (completed,) = done.of("run.completed")
    assert done.document["sinks"]["s0"]["lost"] > 0
    assert completed.payload["sinks"] == done.document["sinks"]


def test_a_sink_that_finishes_at_the_second_try_loses_nothing():
    assert run(Flaky(closes=1)).document["sinks"] == {"s0": {"written": 3, "lost": 0}}


def test_a_sink_may_say_itself_how_many_records_it_wrote():
    assert run(Flaky(count=10)).document["sinks"]["s0"]["written"] == 20
    assert run(Flaky(count=0)).document["sinks"]["s0"]["written"] == 0


def test_a_sink_is_told_what_it_wants_in_the_order_of_the_ledger():
    everything, some = MemorySink(), MemorySink(wants=("eval.completed", "run.started"))
    done = run(everything, some)
    reports = [event.id for event in everything.events]
    assert reports == [event.id for event in done.events]
    assert [event.type for event in some.events] == ["run.started"] + ["eval.completed"] * 3


def test_a_sink_that_wants_nothing_of_it_is_not_called():
    sink = Flaky(wants=("no.such_event",), writes=99)
    assert run(sink).document["sinks"] == {"s0": {"written": 0, "lost": 0}}
    assert sink.told == []
    assert sink.closed


def test_the_end_of_the_run_is_told_and_counted_before_the_sink_closes():
    sink = MemorySink()
    done = run(sink)
    assert sink.events[-1].type == "run.completed"
    assert done.document["sinks"]["s0"]["written"] == len(sink.events)
    assert sink.events[-1].payload["sinks"]["s0"]["written"] == len(sink.events)


def test_the_pause_between_the_attempts_doubles(monkeypatch):
    pauses = []

    async def sleep(seconds):
        pauses.append(seconds)

    monkeypatch.setattr(sinks, "PAUSE_SECONDS", 0.25)
    monkeypatch.setattr(sinks.asyncio, "sleep", sleep)
    run(Flaky(writes=99, closes=0), rows=1)
    assert [pause for pause in pauses if pause] == [0.25, 0.5]


@attrs.frozen
class Leaving(Flaky):
    """Raises when it is left, and says so in *left*."""

    left: list = attrs.field(factory=list, eq=False)

    @asynccontextmanager
    async def open(self, run):
        try:
            yield self
        finally:
            self.left.append(True)
            raise RuntimeError("stuck")


def test_a_sink_that_raises_when_it_is_left_loses_one_and_the_run_has_its_document():
    sink, other = Leaving(), MemorySink()
    done = run(sink, other)
    assert done.document["sinks"]["s0"] == {"written": 3, "lost": 1, "error": "RuntimeError: stuck"}
    assert done.document["sinks"]["s1"]["lost"] == 0
    assert (done.exit_code, done.document["scored"], done.document["broken"]) == (4, 3, {})
    assert sink.left == [True]


def test_a_sink_that_can_neither_be_closed_nor_left_loses_one():
    done = run(Leaving(closes=99))
    assert done.document["sinks"]["s0"] == {"written": 3, "lost": 1, "error": "OSError: cannot finish"}
    assert (done.exit_code, done.document["broken"]) == (4, {})


def test_an_error_of_the_run_is_not_hidden_by_a_sink_that_raises_when_it_is_left():
    def subjects():
        yield sample("x", id="1")
        raise ConnectionAbortedError("the source's own")

    sink = Leaving()
    with pytest.raises(DataError, match="the source's own"):
        run_pipeline(
            "metrics: [m]\nsinks: [s]", subjects=subjects(), components={"m": FakeMetric(Score(0.5)), "s": sink}
        )
    assert sink.left == [True]


@attrs.frozen
class Counting:
    """An aggregate."""

    def add(self, record):
        return None

    def finish(self):
        return {"n": 1}


@attrs.frozen
class Never:
    """An early stop."""

    def observe(self, record):
        return None


@attrs.frozen
class Given:
    """A source."""

    def subjects(self):
        yield sample("x", id="1")


def stuck(component):
    """*component* as one that raises when a run leaves it."""

    @asynccontextmanager
    async def open(self, run, **options):
        async with component.open(run, **options) if hasattr(component, "open") else nullcontext(component) as live:
            yield live
        if run is not None:
            raise RuntimeError("stuck")

    return attrs.make_class("Stuck", {}, frozen=True, class_body={"open": open, "name": "stuck"})()


@pytest.mark.parametrize(
    ("text", "component", "at"),
    [
        ("aggregates: [broken]", Counting(), "aggregates[0]"),
        ("early_stop: [broken]", Never(), "early_stop[0]"),
        ("judges: [{broken: {as: j}}]", FakeJudge(Judgment(0.5)), "executor"),
    ],
)
def test_what_raises_when_it_is_left_is_broken_and_the_run_is_not(text, component, at):
    ready = {"m": FakeMetric(Score(0.5)), "broken": stuck(component)}
    done = run_pipeline(f"metrics: [m]\n{text}", subjects=[sample("x", id="1")], components=ready)
    assert done.document["broken"] == {at: f"{at}: RuntimeError: stuck"}
    assert (done.exit_code, done.document["scored"]) == (0, 1)


def test_a_source_that_raises_when_it_is_left_is_broken_and_the_run_is_not():
    done = run_pipeline("metrics: [m]", source=stuck(Given()), components={"m": FakeMetric(Score(0.5))})
    assert done.document["broken"] == {"source": "source: RuntimeError: stuck"}
    assert (done.exit_code, done.document["scored"]) == (0, 1)


def test_a_ledger_that_raises_when_it_is_left_may_have_lost_what_it_was_told():
    ready = {"m": FakeMetric(Score(0.5)), "book": stuck(MemoryLedger())}
    done = run_pipeline("metrics: [m]\nledger: book", subjects=[sample("x", id="1")], components=ready)
    assert done.document["stopped"] == {"reason": "ledger_failed", "error": "RuntimeError: stuck"}
    assert (done.exit_code, done.document["scored"]) == (4, 1)
