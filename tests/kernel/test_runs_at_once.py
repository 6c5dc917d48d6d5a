"""Several runs in one process: each keeps its timeouts, and the host has its signal handler, its alarm and its collector again."""

from __future__ import annotations

import asyncio
import gc
import json
import signal
import threading
import time

import pytest

import dicast
from dicast import Subject
from dicast._kernel.timing.event_loop import YOUNG, patient_collector

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="a timer of POSIX")

PLUGIN = """
import asyncio, time

@metric(tier="proxy")
def busy(subject: Subject, *, most: float = 3.0) -> Score:
    '''A loop that a timeout alone ends before its time.'''
    end = time.monotonic() + most
    while time.monotonic() < end:
        pass
    return Score(1.0)

@metric(tier="proxy")
async def rest(subject: Subject, *, seconds: float) -> Score:
    await asyncio.sleep(seconds)
    return Score(1.0)

@metric(tier="proxy")
async def nest(subject: Subject, *, inner: list[str]) -> Score:
    '''Runs other pipelines together.'''
    runs = [arun(text, subjects=[Subject("row", "inner", output="x")]) for text in inner]
    return Score(1.0, signals={"failures": [dict(one.failures) for one in await asyncio.gather(*runs)]})

@hookimpl
def dicast_metrics():
    return [busy, rest, nest]
"""
ONE = (Subject("row", "a", output="x"),)


@pytest.fixture(autouse=True)
def here(tmp_path, monkeypatch, plugin):
    plugin("clocked", PLUGIN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture(autouse=True)
def host():
    """A host with a handler of its own and a collector of its own."""
    before, thresholds = signal.signal(signal.SIGALRM, handle), gc.get_threshold()
    gc.set_threshold(701, *thresholds[1:])
    HEARD.clear()
    yield
    result = signal.getsignal(signal.SIGALRM), gc.get_threshold()[0], signal.getitimer(signal.ITIMER_REAL)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)
    gc.set_threshold(*thresholds)
    assert result == (handle, 701, (0.0, 0.0))


@pytest.mark.parametrize("threshold", [500, YOUNG])
def test_a_threshold_of_the_collector_that_the_host_sets_during_a_run_stays(threshold):
    with patient_collector():
        assert gc.get_threshold()[0] == 701 + YOUNG
        gc.set_threshold(threshold)
    assert gc.get_threshold()[0] == threshold
    gc.set_threshold(701)


HEARD: list[float] = []


def handle(signum, frame):
    HEARD.append(time.monotonic())


def pipeline(metric, options="{}", *, slot="timeout: 0.05", ledger="own"):
    return f"metrics: [clocked/{metric}: {{{slot}, {options.strip('{}')}}}]\nledger: {{ledger/sqlite: {{path: {ledger}.db}}}}\n"


BUSY = pipeline("busy", ledger="busy")


def failures(failed_events):
    return dict(failed_events.failures)


@pytest.mark.slow
def test_after_runs_inside_a_component_the_outer_ones_timeouts_fire_as_before():
    other = BUSY.replace("busy.db", "other.db")
    text = f"metrics:\n  - clocked/nest: {{inner: {json.dumps([BUSY, other])}}}\n  - clocked/busy: {{timeout: 0.05, on_failure: exclude}}\n"
    outer = dicast.run(text, subjects=ONE)
    (verdict,) = outer.verdicts
    assert verdict.scores[0]["signals"] == {"failures": [{"timeout": 1}] * 2}
    assert verdict.skipped == ({"metric": "clocked/busy", "reason": "timeout"},)
    again = dicast.run(text.replace("exclude", "fail"), subjects=[Subject("row", str(n), output="x") for n in range(2)])
    assert failures(again) == {"timeout": 2}


def test_run_that_ends_before_one_that_began_first_leaves_it_its_timeouts():
    """And the other way round: of three, each begins while another one is under way and ends before it or after it."""

    async def run(delay, seconds, ledger):
        await asyncio.sleep(delay)
        text = f"metrics: [clocked/rest: {{seconds: {seconds}}}, clocked/busy: {{timeout: 0.05}}]\n"
        ledger = f"ledger: {{ledger/sqlite: {{path: {ledger}.db}}}}\nexecutor: {{dicast/async: {{concurrency: 1}}}}\n"
        return failures(
            await dicast.arun(text + ledger, subjects=[Subject("row", str(n), output="x") for n in range(2)])
        )

    async def work():
        return await asyncio.gather(run(0, 0.15, "first"), run(0.02, 0.01, "inside"), run(0.05, 0.2, "last"))

    assert asyncio.run(work()) == [{"timeout": 2}] * 3


@pytest.mark.parametrize("how", ["cancelled", "raised"])
def test_run_that_is_broken_off_leaves_the_others_as_they_were(how):
    resting = pipeline("rest", "{seconds: 30}", slot="weight: 1", ledger="resting")

    def broken():
        yield ONE[0]
        raise RuntimeError("the source breaks off")

    async def work():
        if how == "cancelled":
            other = asyncio.ensure_future(dicast.arun(resting, subjects=ONE))
            await asyncio.sleep(0.1)
            other.cancel()
        else:
            other = asyncio.ensure_future(dicast.arun(resting, subjects=broken()))
        busy = await dicast.arun(BUSY, subjects=ONE)
        with pytest.raises(BaseException, match=r"|breaks off"):
            await other
        return failures(busy), failures(await dicast.arun(BUSY, subjects=ONE))

    assert asyncio.run(work()) == ({"timeout": 1}, {"timeout": 1})


def test_run_in_a_thread_takes_nothing_from_the_one_in_the_main_thread():
    resting = pipeline("rest", "{seconds: 0.05}", slot="weight: 1", ledger="resting")
    thread = threading.Thread(target=lambda: dicast.run(resting, subjects=ONE))
    thread.start()
    busy = dicast.run(BUSY, subjects=ONE)
    thread.join()
    assert failures(busy) == {"timeout": 1}
    assert failures(dicast.run(BUSY, subjects=ONE)) == {"timeout": 1}


def test_alarm_of_the_host_goes_off_during_a_run_and_after_it():
    resting = pipeline("rest", "{seconds: 0.1}", slot="weight: 1", ledger="resting")
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    dicast.run(resting, subjects=ONE)
    assert len(HEARD) == 1
    signal.setitimer(signal.ITIMER_REAL, 50, 7)
    dicast.run(resting, subjects=ONE)
    left, every = signal.setitimer(signal.ITIMER_REAL, 0)
    assert (len(HEARD), every) == (1, 7)
    assert 45 < left < 49.95


def test_process_without_a_handler_has_none_after_a_run():
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    try:
        assert failures(dicast.run(BUSY, subjects=ONE)) == {"timeout": 1}
        assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL
    finally:
        signal.signal(signal.SIGALRM, handle)
