"""Plugins that never end: their own row times out, the run goes on, and the process ends with its exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import closing

import pytest

from dicast_ledger import connect

pytestmark = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="the timer is POSIX")

PLUGIN = """\
from __future__ import annotations
import asyncio, contextlib, re, sys, threading, time
import attrs
from dicast import *

async def swallow():
    while True:
        try:
            print("waits", file=sys.stderr, flush=True)
            await asyncio.sleep(60)
        except BaseException:
            pass

def deaf():
    while True:
        time.sleep(60)

async def started():
    task = asyncio.create_task(swallow())
    await asyncio.sleep(0)

@attrs.frozen
class Later:
    name = "later"
    tier = "proxy"
    async def score(self, subject):
        what = subject.output
        if what == "sleeps":
            print("waits", file=sys.stderr, flush=True)
            time.sleep(60)
        if what == "spins":
            while True:
                pass
        if what == "swallows":
            await swallow()
        if what == "leaves a thread":
            await asyncio.to_thread(deaf)
        if what == "leaves a task":
            await started()
        if what == "is late":
            with contextlib.suppress(BaseException):
                time.sleep(60)
        await asyncio.sleep(0)
        return Score(1.0)

@attrs.frozen
class Now:
    name = "now"
    tier = "proxy"
    def score(self, subject):
        what = subject.output
        if what == "sleeps":
            time.sleep(60)
        if what == "spins":
            while True:
                pass
        if what == "backtracks":
            re.match("(a+)+$", "a" * 60 + "b")
        if what == "leaves a thread":
            threading.Thread(target=deaf, name="deaf").start()
        if what == "cries":
            swallow_all()
        return Score(1.0)

def swallow_all():
    while True:
        try:
            print("waits", file=sys.stderr, flush=True)
            time.sleep(60)
        except BaseException:
            pass

class Open:
    wants = ("eval.completed",)
    def __init__(self, at):
        self.at = at
    def write(self, events):
        if self.at == "write":
            deaf()
    def close(self):
        if self.at == "close":
            deaf()

@attrs.frozen
class Deaf:
    name = "deaf"
    at: str
    def open(self, run):
        from contextlib import asynccontextmanager
        @asynccontextmanager
        async def opened():
            yield Open(self.at)
        return opened()

@hookimpl
def dicast_metrics():
    return [Later, Now]

@hookimpl
def dicast_sinks():
    return [Deaf]
"""

IMPATIENT = """\
import sys
from dicast._kernel import api
from dicast._kernel.timing import awaiting, stop
from dicast._kernel.cli import leaving, main
from dicast._kernel.stream import sinks

awaiting.GIVE_UP_SECONDS = stop.END_SECONDS = leaving.LEAVE_SECONDS = api.LEAVE_SECONDS = 0.3
sinks.SINK_SECONDS = sinks.CLOSE_SECONDS = 0.2
sys.exit(main())
"""


@pytest.fixture
def start(tmp_path, monkeypatch):
    info = tmp_path / "site" / "dicast_endless-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dicast-endless\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text("[dicast]\nendless = dicast_endless\n")
    (tmp_path / "site" / "dicast_endless.py").write_text(PLUGIN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "site"))

    def begin(outputs, more):
        rows = "".join(json.dumps({"id": output, "output": output}) + "\n" for output in outputs)
        (tmp_path / "rows.jsonl").write_text(rows)
        (tmp_path / "p.yaml").write_text(
            f"source: {{rows/jsonl: {{path: rows.jsonl}}}}\nledger: {{ledger/sqlite: {{path: l.db}}}}\n{more}"
        )
        return subprocess.Popen(
            [sys.executable, "-c", IMPATIENT, "run", "p.yaml", "--json"],
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    return begin


def ended(process, seconds=100):
    """The document, the exit code and what was said; the process is killed when it does not end."""
    try:
        output, errors = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        pytest.fail(f"the process has not ended in {seconds} s")
    return json.loads(output) if output else {}, process.returncode, errors


def recorded(folder):
    """The types of the events in the ledger, in order."""
    with closing(connect(folder / "l.db")) as database:
        return [type_ for (type_,) in database.execute("SELECT type FROM events ORDER BY seq")]


TERMINAL = ("eval.completed", "eval.failed", "run.completed", "run.stopped")
GOOD = ["fine", "good"]
SHORT = "{timeout: 1}"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("metric", "bad"),
    [
        ("later", ["sleeps", "spins", "swallows", "is late"]),
        ("now", ["sleeps", "spins", "backtracks"]),
    ],
)
def test_a_metric_that_never_ends_is_a_timeout_of_its_own_row(start, tmp_path, metric, bad):
    document, code, errors = ended(start([GOOD[0], *bad, GOOD[1]], f"metrics: [endless/{metric}: {SHORT}]\n"))
    assert (document["scored"], document["failures"]) == (2, {"timeout": len(bad)}), errors
    assert (code, document["stopped"]) == (3, None)
    ends = [type_ for type_ in recorded(tmp_path) if type_ in TERMINAL]
    assert sorted(ends) == ["eval.completed"] * 2 + ["eval.failed"] * len(bad) + ["run.completed"]
    messages = {failed["subject_id"]: failed["error_message"] for failed in document["failed_subjects"]}
    assert ("swallows" in bad) == ("ignored its cancellation" in messages.get("swallows", "")), messages


@pytest.mark.slow
@pytest.mark.parametrize(
    ("metric", "output", "failures"),
    [("now", "leaves a thread", {}), ("later", "leaves a thread", {"timeout": 1}), ("later", "leaves a task", {})],
)
def test_what_a_metric_leaves_behind_does_not_keep_the_process(start, metric, output, failures):
    more = f"metrics: [endless/{metric}: {SHORT}]\ngate: {{min_score: 0.5, min_coverage: 0.5}}\n"
    document, code, errors = ended(start([*GOOD, output], more))
    assert (code, document["failures"]) == (0, failures), errors


@pytest.mark.slow
@pytest.mark.parametrize("at", ["write", "close"])
def test_a_sink_that_never_ends_loses_its_own_output_alone(start, at):
    document, code, errors = ended(start(GOOD, f"metrics: [proxy/format]\nsinks: [endless/deaf: {{at: {at}}}]\n"))
    assert (code, document["scored"]) == (4, 2), errors
    assert "no answer within 0.2 s" in document["sinks"]["endless/deaf"]["error"]


def test_the_second_interrupt_ends_a_process_whose_plugin_swallows_everything(start):
    process = start(["cries"], "metrics: [endless/now]\n")
    for _ in range(2):
        assert process.stderr.readline() == "waits\n"
        os.kill(process.pid, signal.SIGINT)
    assert ended(process)[1] == 130


@pytest.mark.parametrize("output", ["swallows", "sleeps"])
def test_an_interrupt_ends_a_run_whose_coroutine_does_not_heed_it(start, output):
    process = start([output], "metrics: [endless/later]\n")
    assert process.stderr.readline() == "waits\n"
    os.kill(process.pid, signal.SIGINT)
    document, code, errors = ended(process)
    assert (code, document["stopped"]) == (130, {"reason": "interrupted"}), errors
