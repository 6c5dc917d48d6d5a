"""Judging while things still happen: live sources, subjects that come again, and families that the ledger knows."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager

import attrs
import pytest

from dicast import (
    ConfigError,
    Cost,
    DataError,
    Due,
    Failure,
    Judgment,
    Lookahead,
    Query,
    RunContext,
    Subject,
    TraceEvent,
    forecast,
)
from dicast._kernel.pipeline.build import load_pipeline
from dicast._kernel.run.forecast import Forecast
from dicast._kernel.run.forecast import forecast as foretell
from dicast._kernel.source.source import SubjectList
from dicast._kernel.timing.event_loop import in_loop
from dicast.testing import FakeJudge, MemoryLedger, run_pipeline, sample

PIPELINE = "name: watched\njudges: [judge]\n"


@attrs.frozen
class Live:
    """A live source whose subjects a test's function yields, given the run."""

    live = True
    kinds = ("tool_cycle", "turn", "session")

    yields: object
    run: RunContext | None = None

    @asynccontextmanager
    async def open(self, run):
        yield attrs.evolve(self, run=run)

    def subjects(self):
        return self.yields(self.run)


def turn(name, *events, session="s"):
    return Subject("turn", name, "asked", "said", events=events, session_id=session, parent_id=session)


def session(name="s"):
    return Subject("session", name, session_id=name)


def watch(yields, judge=None, *, text=PIPELINE, ledger=None, **components):
    given = {"judge": judge or FakeJudge(), "book": ledger or MemoryLedger(), **components}
    return run_pipeline(text + "ledger: book\n", source=Live(yields), components=given)


def of_run(run, *types):
    return [entry.event for entry in run.read(Query(run_id=run.run_id, types=types))]


async def until(condition):
    async with asyncio.timeout(100):
        while not condition():  # noqa: ASYNC110  # what is waited for is another process's doing in real life: it polls
            await asyncio.sleep(0.005)


def test_a_verdict_is_in_the_ledger_while_the_source_still_waits():
    async def yields(run):
        yield Due(turn("t1"), "bus")
        await until(lambda: of_run(run, "eval.completed"))

    assert [verdict.subject_id for verdict in watch(yields, FakeJudge(seconds=0.01)).verdicts] == ["t1"]


def test_nothing_is_judged_before_it_comes_and_no_subject_is_needed():
    async def yields(run):
        assert of_run(run, "run.started")
        return
        yield

    done = watch(yields)
    assert (done.document["subjects"], done.exit_code) == (0, 3)


def test_events_say_why_a_subject_was_judged():
    async def yields(run):
        yield Due(turn("t1"), "bus")
        yield turn("t2")

    started = watch(yields).of("eval.started")
    assert [(event.subject_id, event.payload["trigger"]) for event in started] == [("t1", "bus"), ("t2", "batch")]


def test_a_subject_that_comes_again_is_judged_again_and_never_twice_at_once():
    running = []

    @attrs.frozen
    class Careful:
        accepts = ()

        async def judge(self, subject, children):
            assert not running
            running.append(subject)
            await asyncio.sleep(0.01)
            running.clear()
            return Judgment(1.0)

    async def yields(run):
        yield Due(turn("t1"), "bus")
        yield Due(turn("t1"), "feedback_arrived")

    done = watch(yields, Careful())
    assert done.document["failures"] == {}
    assert len({verdict.eval_id for verdict in done.verdicts}) == 2
    assert [event.payload["trigger"] for event in done.of("eval.started")] == ["bus", "feedback_arrived"]
    assert (done.document["subjects"], done.document["scored"], done.document["skipped"]) == (1, 1, 0)


def test_the_newest_verdict_on_each_subject_is_what_a_watch_s_gate_and_mean_are_about():
    judge = FakeJudge([Judgment(1.0), Judgment(0.8), Failure("crashed", "no"), Judgment(0.0), Judgment(0.6)])

    async def yields(run):
        for name in ("t1", "t2", "t3"):
            yield Due(turn(name), "bus")
        yield Due(turn("t1"), "feedback_arrived")
        yield Due(turn("t3"), "feedback_arrived")

    done = watch(yields, judge, text=PIPELINE + "gate: {min_score: 0.5}\n")
    assert (done.document["subjects"], done.document["scored"], done.document["failed"]) == (3, 3, 0)
    assert done.document["score"]["mean"] == pytest.approx((0.0 + 0.8 + 0.6) / 3)
    assert done.document["judges"]["judge"]["total"] == 3
    assert done.exit_code == 1
    assert len(done.verdicts) == 4


def test_a_watch_that_goes_on_with_another_gate_is_held_to_that_from_the_start():
    ledger, names = MemoryLedger(), iter(("t1", "t2"))

    async def yields(run):
        yield Due(turn(next(names)), "bus")

    @attrs.frozen
    class Pausing(Live):
        pauses = True

    def watch_on(gate):
        components = {"a": FakeJudge(Judgment(0.2)), "b": FakeJudge(Judgment(0.9)), "book": ledger}
        text = f"name: watched\njudges: [a, b]\nledger: book\n{gate}\n"
        return run_pipeline(text, source=Pausing(yields), components=components)

    first = watch_on("gate: {on: a, min_score: 0.1}")
    assert (first.exit_code, first.document["gate"]["passed"]) == (3, None)  # paused, and so not at its end
    second = watch_on("gate: {on: b, min_score: 0.1}")
    assert second.document["run_id"] == first.document["run_id"]
    assert (second.document["score"]["label"], second.document["score"]["mean"]) == ("b", 0.9)
    assert [clause["value"] for clause in second.document["gate"]["clauses"]] == [1.0, 0.9]


def test_a_pause_without_a_gate_is_no_failure():
    async def yields(run):
        yield Due(turn("t1"), "bus")

    @attrs.frozen
    class Pausing(Live):
        pauses = True

    done = run_pipeline("judges: [j]", source=Pausing(yields), components={"j": FakeJudge()})
    assert (done.exit_code, done.document["stopped"]["reason"]) == (0, "paused")


def test_trace_events_are_durable_when_recorded_and_told_once():
    event = TraceEvent("turn.completed", {"stop_reason": "end_turn"}, "2026-03-01T12:00:00Z", "s", "t1")

    async def yields(run):
        run.record([event], {"offset": 7})
        assert [entry.payload for entry in of_run(run, "turn.completed")] == [event.payload]
        assert [entry.payload for entry in of_run(run, "source.position")] == [{"offset": 7}]
        yield Due(turn("t1", event), "bus", run.run_id)

    done = watch(yields)
    assert len(done.of("turn.completed")) == 1
    assert "from_run" not in done.of("subject.read")[0].payload


def test_what_another_run_has_recorded_is_named_and_not_told_again():
    event = TraceEvent("turn.completed", {}, None, "s", "t1")
    done = run_pipeline(PIPELINE, subjects=[Due(turn("t1", event), "batch", "R0")], components={"judge": FakeJudge()})
    assert done.of("turn.completed") == []
    assert done.of("subject.read")[0].payload["from_run"] == "R0"


def test_only_a_source_whose_subjects_are_read_may_record():
    async def yields(run):
        return
        yield

    @attrs.frozen
    class Hasty(Live):
        @asynccontextmanager
        async def open(self, run):
            run.record([])
            yield self

    with pytest.raises(Exception, match="only while the subjects of a live source are read"):
        run_pipeline(PIPELINE, source=Hasty(yields), components={"judge": FakeJudge()})


def test_a_killed_process_s_open_evaluations_are_gone_on_with_under_their_ids():
    async def first(run):
        yield Due(turn("t1"), "bus", run.run_id)
        await until(lambda: of_run(run, "eval.completed"))
        yield Due(turn("t1"), "feedback_arrived", run.run_id)
        yield Due(turn("t2"), "bus", run.run_id)

    full_run = watch(first)
    rows = [event for event in full_run.events if event.type != "run.completed"]
    last_two = [event for event in rows if event.type == "eval.completed"][1:]
    ledger = MemoryLedger()
    _append(ledger, [event for event in rows if event not in last_two])

    async def again(run):
        assert run.resumed
        assert run.run_id == full_run.document["run_id"]
        yield Due(turn("t1"), "feedback_arrived", run.run_id)
        yield Due(turn("t2"), "bus", run.run_id)
        yield Due(turn("t2"), "feedback_arrived", run.run_id)

    done = watch(again, ledger=ledger)
    eval_ids = [event.payload["eval_id"] for event in full_run.of("eval.started")]
    assert [verdict.eval_id for verdict in done.verdicts][:3] == eval_ids
    assert [(verdict.subject_id, verdict.run_id) for verdict in done.verdicts] == [
        (name, full_run.document["run_id"]) for name in ("t1", "t1", "t2", "t2")
    ]
    assert len(done.of("eval.started")) == 4
    assert len(done.of("subject.read")) == 4


def _append(ledger, events):
    async def append():
        async with ledger.open() as live:
            live.append(events)

    asyncio.run(append())


def test_a_paid_answer_to_what_has_changed_since_is_not_used_again():
    judge = FakeJudge(Judgment(0.5, cost=Cost("0.01")), cost=Cost("0.01"))

    async def first(run):
        yield Due(turn("t1"), "bus", run.run_id)

    full_run = watch(first, judge)
    ledger = MemoryLedger()
    _append(ledger, [event for event in full_run.events if event.type != "run.completed"])

    async def again(run):
        yield Due(turn("t1"), "feedback_arrived", run.run_id)

    costlier = FakeJudge(Judgment(0.5, cost=Cost("0.01")), cost=Cost("0.01"))
    done = watch(again, costlier, ledger=ledger)
    assert len(costlier.asked) == 1
    assert done.document["cost"]["usd"] == "0.02"


def test_a_finished_live_run_is_not_taken_up():
    ledger = MemoryLedger()

    async def yields(run):
        assert not run.resumed
        yield Due(turn("t1"), "bus", run.run_id)

    runs = {watch(yields, ledger=ledger).document["run_id"] for _ in range(2)}
    assert len(runs) == 2


def test_a_changed_pipeline_is_refused_before_the_live_source_opens():
    ledger, opened = MemoryLedger(), []

    @attrs.frozen
    class Paused(Live):
        pauses = True

        @asynccontextmanager
        async def open(self, run):
            opened.append(run.run_id)
            yield attrs.evolve(self, run=run)

    async def yields(run):
        yield Due(turn("t1"), "bus", run.run_id)

    def run(text):
        components = {"judge": FakeJudge(), "book": ledger}
        return run_pipeline(text + "ledger: book\n", source=Paused(yields), components=components)

    assert run(PIPELINE).document["stopped"]["reason"] == "paused"
    with pytest.raises(ConfigError, match=r"cannot be resumed: judges.* start a new run \(--new\)"):
        run("name: watched\njudges: [{judge: {as: other}}]\n")
    assert len(opened) == 1


@attrs.frozen
class Turns:
    accepts = ("turn",)

    def judge(self, subject, children):
        return Judgment(0.5, signals={"children": [child.eval_id for child in children]})


@attrs.frozen
class Sessions:
    accepts = ("session",)

    def judge(self, subject, children):
        return Judgment(0.5, signals={"children": [child.eval_id for child in children]})


def family(yields, ledger=None):
    text = "name: watched\njudges: [turns, sessions]\n"
    return watch(yields, text=text, ledger=ledger, turns=Turns(), sessions=Sessions())


def test_a_session_judged_again_is_given_the_newest_verdict_on_each_turn():
    async def yields(run):
        for name in ("t1", "t2"):
            yield Due(turn(name), "bus", run.run_id)
        yield Due(session(), "bus", run.run_id)
        yield Due(turn("t1"), "feedback_arrived", run.run_id)
        yield Due(session(), "feedback_arrived", run.run_id)

    t1, t2, first, t1_again, second = family(yields).verdicts
    assert first.signals["children"] == [t1.eval_id, t2.eval_id]
    assert second.signals["children"] == [t1_again.eval_id, t2.eval_id]
    assert t1.parent_eval_id == t2.parent_eval_id == first.eval_id
    assert t1_again.parent_eval_id == second.eval_id != first.eval_id


def test_a_watched_session_is_given_the_watch_s_own_verdicts_whatever_else_was_judged_meanwhile():
    ledger = MemoryLedger()
    meanwhile = "name: again\njudges: [turns]\nledger: book\n"

    async def yields(run):
        yield Due(turn("t1"), "bus", run.run_id)
        components = {"turns": Turns(), "book": ledger}
        run_pipeline(meanwhile, subjects=[Due(turn("t1"), "batch", run.run_id)], components=components)
        yield Due(session(), "bus", run.run_id)

    t1, found = family(yields, ledger).verdicts
    assert found.signals["children"] == [t1.eval_id]


def test_turns_judged_before_and_after_a_kill_name_one_verdict_on_their_session():
    async def first(run):
        yield Due(turn("t1"), "bus", run.run_id)

    full_run = family(first)
    ledger = MemoryLedger()
    _append(ledger, [event for event in full_run.events if event.type != "run.completed"])

    async def again(run):
        yield Due(turn("t2"), "bus", run.run_id)
        yield Due(session(), "bus", run.run_id)

    t1, t2, found = family(again, ledger).verdicts
    assert found.signals["children"] == [t1.eval_id, t2.eval_id]
    assert t1.parent_eval_id == t2.parent_eval_id == found.eval_id


def test_a_turn_that_is_judged_again_alone_names_the_newest_verdict_on_its_session():
    ledger = MemoryLedger()

    async def yields(run):
        yield Due(turn("t1"), "bus", run.run_id)
        yield Due(session(), "bus", run.run_id)

    _, found = family(yields, ledger).verdicts
    text = "name: again\njudges: [turns]\nledger: book\n"
    again = run_pipeline(
        text, subjects=[Due(turn("t1"), "batch", found.run_id)], components={"turns": Turns(), "book": ledger}
    )
    assert [verdict.parent_eval_id for verdict in again.verdicts] == [found.eval_id]


def test_a_run_waits_as_long_as_the_most_patient_judge_inside_it():
    seen = []

    async def yields(run):
        seen.append(run.lookahead)
        return
        yield

    text = "name: patient\njudges: [hybrid/cascade: {stages: [{heuristic/turn: {lookahead_messages: 9}}, judge]}]\n"
    watch(yields, text=text)
    watch(yields)
    assert seen == [Lookahead(9, 24.0), Lookahead(0, 0.0)]


def test_a_source_that_breaks_off_ends_the_run_and_what_was_judged_is_kept():
    ledger = MemoryLedger()

    async def yields(run):
        yield Due(turn("t1"), "bus")
        raise OSError("the disk is gone")

    with pytest.raises(DataError, match="the disk is gone"):
        watch(yields, ledger=ledger)

    async def found(run):
        assert [event.subject_id for event in of_run(run, "eval.completed")] == ["t1"]
        return
        yield

    watch(found, ledger=ledger)


def foretold(judges, ready, subjects):
    built = load_pipeline(f"name: f\njudges: {judges}\nledger: book\n", needs_source=False, ready=ready)
    return in_loop(foretell(built, built.ledger, SubjectList(subjects)))


def priced(amount, unit="usd"):
    return FakeJudge(Judgment(1.0), cost=Cost(amount, unit))


@pytest.mark.parametrize(
    ("judges", "usd", "msat"),
    [
        ("[a]", "0.06", "0"),
        ("[a, b: {as: second, on: turn}]", "0.08", "0"),
        ("[llm/jury: {judges: [a, b]}]", "0.12", "0"),
        ("[hybrid/cascade: {stages: [free, a]}, c]", "0.06", "15"),
        ("[hybrid/cascade: {stages: [free, {llm/jury: {judges: [a, b]}}]}]", "0.12", "0"),
        ("[free]", "0", "0"),
    ],
)
def test_a_forecast_adds_up_what_every_judge_may_cost(judges, usd, msat):
    ready = {
        "a": priced("0.02"),
        "b": priced("0.02"),
        "c": priced("5", "msat"),
        "free": FakeJudge(),
        "book": MemoryLedger(),
    }
    subjects = [sample("1", id="a"), sample("2", id="b"), turn("t")]
    found = foretold(judges, ready, subjects)
    assert (found.subjects, found.usd, found.msat) == (3, Cost(usd), Cost(msat, "msat"))
    assert not any(judge.asked for name, judge in ready.items() if name != "book")


def test_a_forecast_of_a_file_reads_its_ledger_and_source(tmp_path):
    class One:
        def subjects(self):
            yield sample("1")

    (tmp_path / "p.yaml").write_text("metrics: [proxy/format]\nledger: {ledger/sqlite: {path: l.db}}\n")
    assert forecast(tmp_path / "p.yaml", One()) == Forecast(1, 0, Cost("0"), Cost("0", "msat"))


def test_a_forecast_with_a_price_that_nobody_knows_is_unknown():
    ready = {"a": FakeJudge(cost=Cost.unknown()), "book": MemoryLedger()}
    assert foretold("[a]", ready, [sample("1")]).usd == Cost.unknown()


@pytest.mark.parametrize("output", [object(), float("nan"), {"x": [float("inf")]}, "\ud800", 2**80, {1: 2}])
def test_a_live_run_outlives_a_subject_that_is_no_json(output):
    async def yields(run):
        yield Due(turn("t1"))
        yield Due(Subject("turn", "t2", "asked", output, session_id="s"))
        yield Due(turn("t3"))

    done = watch(yields)
    assert [verdict.subject_id for verdict in done.verdicts] == ["t1", "t3"]
    (failed,) = done.of("eval.failed")
    assert (failed.subject_id, failed.payload["failure_mode"]) == ("t2", "source_error")
    assert "turn" in failed.payload["error_message"] or "'t2'" in failed.payload["error_message"]
    assert done.document["failures"] == {"source_error": 1}


@pytest.mark.parametrize("ordered", [False, True])
def test_a_source_without_an_order_has_every_subject_recorded(ordered):
    async def yields(run):
        yield turn("t1", session="a")
        yield turn("t2", session="b")
        await until(lambda: len(of_run(run, "eval.completed")) == 2)
        yield turn("t3", session="c")

    source = type("Source", (Live,), {"ordered": ordered})(yields)
    components = {"judge": FakeJudge(seconds=0.01), "book": MemoryLedger()}
    done = run_pipeline(PIPELINE + "ledger: book\n", source=source, components=components)
    assert sorted(event.subject_id for event in done.of("eval.completed")) == ["t1", "t2", "t3"]
