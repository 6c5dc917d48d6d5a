"""Worker processes from the command line: the same output as one process, and no worker outlives the main process."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from .conftest import finish, settled, wait_for

pytestmark = pytest.mark.skipif(os.name != "posix", reason="worker processes of POSIX")

ROWS = 60
WORKERS = "executor: {dicast/processes: {workers: 2}}\n"
PLACED = """
import os, re, signal, time

@metric(tier="proxy")
def place(subject, *, seconds: float = 0.0, journal: str = "", regex: bool = False, deaf: bool = False):
    '''Note the process it is asked in, and keep it busy.'''
    with open(journal, "a") as file:
        file.write(f"{os.getpid()}\\n")
    if deaf:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
    if regex:
        re.match(r"(a+)+$", "a" * 60 + "!")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass
    return Score(float(subject.output))

@hookimpl
def dicast_metrics(): return [place]
"""


@pytest.fixture
def placed(shop, plugin):
    plugin("placed", PLACED)
    shop.rows(*[n / ROWS for n in range(ROWS)], sessions=7)
    return shop


def pids(shop):
    """The processes that were asked, one for each call."""
    return [int(pid) for pid in (shop / "pids").read_text().split()] if (shop / "pids").exists() else []


def lives(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")  # one that has ended and nobody has asked about may still be listed
    return not stat.exists() or stat.read_text().rpartition(")")[2].split()[0] != "Z"


def test_the_outputs_are_those_of_one_process(placed):
    sinks = "sinks: [csv/rows: {path: out.csv}]\n"
    documents, tables = [], []
    for number, executor in enumerate(("", WORKERS)):
        ledger = f"ledger: {{ledger/sqlite: {{path: l{number}.db}}}}\n"
        metrics = "metrics: [placed/place: {journal: pids}, proxy/format, fake/wait]\njudges: [fake/opinion]\n"
        done = placed.run(metrics + sinks + ledger + executor)
        assert done.code == 0
        documents.append(settled(done.json))
        tables.append((placed / "out.csv").read_bytes())
    assert documents[0] == documents[1]
    assert tables[0] == tables[1]
    assert len(set(pids(placed)) - {os.getpid()}) in (1, 2)


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_run_leaves_no_worker_and_can_be_taken_up_by_one_process(placed, number):
    placed.pipeline("metrics: [placed/place: {seconds: 0.05, journal: pids}]\ngate: {min_coverage: 0}\n" + WORKERS)
    process = placed.start("run", "p.yaml", "--json")
    wait_for(lambda: len(pids(placed)) >= 12)
    began = time.monotonic()
    process.send_signal(number)
    done = finish(process)
    assert time.monotonic() - began < 20
    assert (done.code, done.err) == (130, "")
    assert 0 < done.json["scored"] < ROWS
    assert done.json["failed"] == 0  # a call that is broken off is nobody's failure
    assert not any(map(lives, set(pids(placed))))
    assert placed.verified()
    resumed = placed.dicast("run", "p.yaml", "--resume", "--json", "--set", "executor=dicast/async")
    assert (resumed.code, resumed.json["scored"], resumed.json["run_id"]) == (0, ROWS, done.json["run_id"])


@pytest.mark.parametrize("busy", ["seconds: 60", "regex: true", "seconds: 60, deaf: true"])
def test_no_worker_outlives_a_killed_main_process(placed, busy):
    placed.pipeline(f"metrics: [placed/place: {{{busy}, journal: pids}}]\n" + WORKERS)
    process = placed.start("run", "p.yaml")
    wait_for(lambda: len(set(pids(placed))) == 2)
    process.kill()
    finish(process)
    wait_for(lambda: not any(map(lives, set(pids(placed)))), 5)


@pytest.mark.slow
def test_a_killed_run_is_taken_up_with_workers(placed):
    placed.pipeline("metrics: [placed/place: {seconds: 0.05, journal: pids}]\n" + WORKERS)
    process = placed.start("run", "p.yaml")
    wait_for(lambda: len(pids(placed)) >= 30)
    process.kill()
    finish(process)
    done = placed.dicast("run", "p.yaml", "--resume", "--json")
    assert (done.code, done.json["scored"]) == (0, ROWS)
    assert placed.verified()


@pytest.mark.slow
def test_a_worker_killed_from_outside_costs_one_subject_at_most(placed):
    placed.pipeline("metrics: [placed/place: {seconds: 0.05, journal: pids}]\ngate: {min_coverage: 0}\n" + WORKERS)
    process = placed.start("run", "p.yaml", "--json")
    wait_for(lambda: len(pids(placed)) >= 10)
    os.kill(pids(placed)[-1], signal.SIGKILL)
    done = finish(process)
    assert done.code == 0
    assert done.json["scored"] >= ROWS - 1
    assert set(done.json["failures"]) <= {"crashed"}
    assert len(set(pids(placed))) == 3


def test_check_says_which_metrics_stay_in_the_main_process(shop):
    shop.rows(1)
    shop.pipeline("metrics: [fake/act, fake/wait: {as: slow}, fake/opinion]\n" + WORKERS)
    why = {"slow": "it waits (async def)", "fake/opinion": "it is a judge"}
    assert shop.dicast("check", "p.yaml", "--json").json == {"ok": True, "errors": [], "main_process": why}
    assert shop.dicast("check", "p.yaml").out.splitlines() == [
        "p.yaml: ok",
        "slow runs in the main process: it waits (async def)",
        "fake/opinion runs in the main process: it is a judge",
    ]
