"""The newest run is the most recently started run in the ledger, even if a clock goes back and ids do not grow."""

from __future__ import annotations

from itertools import count

import pytest

import dicast
from dicast import Subject
from dicast._kernel.run import execute as runner
from dicast._kernel.run.direct import DirectWindow
from dicast._kernel.values.clock import Clock

TEXT = "name: nightly\nmetrics: [proxy/format]\n"
NOON = 1_780_000_000_000_000_000


@pytest.fixture
def backwards(shop, monkeypatch):
    """Each run has a clock that is a second behind that of the run before."""
    seconds = count()

    def clock():
        now = NOON - next(seconds) * 10**9
        return Clock(lambda: now)

    monkeypatch.setattr(runner, "Clock", clock)
    shop.rows("a", "b")
    return shop


def begun(shop, *arguments, text=TEXT):
    done = shop.run(text, *arguments)
    assert done.code == 0, done.err
    return done.json["run_id"]


def broken_off(shop, monkeypatch):
    """A run that a defect ends before it has judged anything."""

    async def break_off(self, subject):
        raise RuntimeError("the lights went out")

    with monkeypatch.context() as patch:
        patch.setattr(DirectWindow, "_take", break_off)
        assert shop.run(TEXT).code == 70
    return shop.events("run.started")[-1]["run_id"]


def test_last_is_the_run_that_began_last(backwards):
    shop = backwards
    first, second = begun(shop), begun(shop)
    assert first > second
    output = shop.dicast("verdicts", "--run", "last", "--json").json["verdicts"]
    assert {verdict["run_id"] for verdict in output} == {second}
    assert shop.dicast("compare", "last", first, "--json").json["a"]["run_id"] == second


def test_resume_takes_the_run_that_began_last_and_a_baseline_does_so_too_whichever_ended_last(backwards, monkeypatch):
    shop = backwards
    runs = [broken_off(shop, monkeypatch) for _ in range(2)]
    assert runs == sorted(runs, reverse=True)
    assert begun(shop, "--resume") == runs[1]
    assert begun(shop, "--resume") == runs[0]
    assert shop.dicast("compare", "last", runs[0], "--json").json["a"]["run_id"] == runs[1]
    assert shop.dicast("compare", "nightly", runs[0], "--json").json["a"]["run_id"] == runs[1]


def test_the_newest_verdict_on_a_workloads_run_is_the_last_in_the_ledger(backwards):
    pipeline = {"judges": ["heuristic/workload"], "ledger": {"ledger/sqlite": {"path": "ledger.db"}}}
    subjects = [Subject("workload", "a", output="x", context={"per_turn_scores": [score]}) for score in (0.5, 1.0)]
    runs = [dicast.run(pipeline, subjects=[subject]).run_id for subject in subjects]
    assert runs == sorted(runs, reverse=True)
    for order in (runs, runs[::-1]):
        named = [word for run_id in order for word in ("--run", run_id)]
        output = backwards.dicast("workloads", "--ledger", "ledger.db", "--json", *named).json
        assert output["data"][0]["mean"] == 1.0
