"""Runs with batches that are killed at every step: nothing is bought twice, and the sums are right."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from decimal import Decimal
from importlib.metadata import entry_points

import pytest

connect = entry_points(group="dicast")["ledger"].load().connect  # as a pipeline finds it


PIPELINE = """
source: {rows/jsonl: {path: rows.jsonl}}
judges:
  - llm/judge:
      model: {openai/batch: {model: m, base_url: "URL", poll: 0.05, price: {input_per_mtok: 1, output_per_mtok: 2}}}
budget: {run: BUDGET usd, session: 1000 usd, day: 1000 usd}
"""
COST = Decimal("0.0014")
"""The cost of a reply by the server's usage."""

EVENTS = ("spend.reserved", "batch.intended", "batch.created", "batch.ended", "spend.settled")


class Campaign:
    """A run of *calls* calls that is killed, and resumed, again and again."""

    def __init__(self, folder, server, calls):
        self.folder, self.server, self.calls = folder, server, calls
        rows = ({"id": f"r{number}", "input": f"q{number}", "output": f"a{number}"} for number in range(calls))
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        text = PIPELINE.replace("URL", server.url).replace("BUDGET", str(calls * Decimal("0.01")))
        (folder / "p.yaml").write_text(text)
        self.process, self.step, self.kills = None, None, Counter()
        self.event, self.events_before, self.killing = None, 0, threading.Lock()
        server.hook = self.hook
        server.seconds = 1e9
        self.killed = None

    def hook(self, step, detail):
        """Kill the process at its step, or at its first request after the event of its step."""
        if self.process is not None and (step == self.step or self.has_event()):
            self.kill()
            return "drop"
        return None

    def has_event(self):
        return self.event is not None and self.count(self.event) > self.events_before

    def kill(self):
        with self.killing:
            step = self.step or self.event
            if step is None:  # the hook, or the loop of run(), was first
                return
            self.step = self.event = None
            self.process.kill()
            self.process.wait()
            self.kills[step] += 1

    def run(self, step=None):
        """Run, or take the run up; kill it at *step*. Return the document of a run that was not killed."""
        resumes = ["--resume"] if self.count("run.started") else []
        self.process = None
        self.step, self.event = (None, step) if step in EVENTS else (step, None)
        self.events_before = self.count(step) if step in EVENTS else 0
        command = [sys.executable, "-m", "dicast", "run", "p.yaml", "--json", *resumes]
        with (self.folder / "out").open("w+b") as out:
            self.process = subprocess.Popen(command, cwd=self.folder, stdout=out, stderr=subprocess.DEVNULL)
            ends = time.monotonic() + 100
            while step in EVENTS and self.process.poll() is None and time.monotonic() < ends:
                if self.has_event():
                    self.kill()
                time.sleep(0.002)
            try:
                self.process.wait(200)
            finally:
                self.process.kill()
                self.process.wait()
        return None if self.process.returncode < 0 else json.loads((self.folder / "out").read_bytes())

    def finish(self):
        """Resume the run, unless its last event was recorded before the kill; return its document."""
        if not self.count("run.completed"):
            return self.run()
        words = ["show", "last", "--json"]
        output = subprocess.run(
            [sys.executable, "-m", "dicast", *words], check=True, cwd=self.folder, capture_output=True
        )
        return json.loads(output.stdout)

    def query(self, text, *parameters):
        path = self.folder / ".dicast" / "ledger.db"
        if not path.exists():
            return []
        try:
            with closing(connect(path)) as connection:
                return connection.execute(text, parameters).fetchall()
        except sqlite3.OperationalError:  # it is being made
            return []

    def count(self, kind):
        return sum(count for (count,) in self.query("SELECT count(*) FROM events WHERE type = ?", kind))

    def let_batches_end(self):
        self.server.seconds = 0.1
        for batch in self.server.batches.values():
            batch["_due"] = 0

    def check(self, done, calls):
        """Everything was bought once, and the books say so."""
        assert (done["scored"], done["failures"]) == (self.calls, {})
        assert sum(self.server.billed.values()) == calls
        settled = [
            json.loads(payload) for (payload,) in self.query("SELECT payload FROM events WHERE type = 'spend.settled'")
        ]
        assert sum(payload["calls"] for payload in settled) == calls
        assert sum(Decimal(payload["amount"]) for payload in settled) == Decimal(done["cost"]["usd"]) == calls * COST
        assert (done["spend_lost"]["usd"], done["overruns"]) == ("0", 0)
        items = [item for payload in settled for item in payload.get("batch_items", ())]
        assert len(items) == len(set(items)) == calls
        assert self.query("SELECT count(*) FROM reservations") == [(0,)]
        verified = subprocess.run(
            [sys.executable, "-m", "dicast", "ledger", "verify"], check=False, cwd=self.folder, capture_output=True
        )
        assert verified.returncode == 0, verified


@pytest.fixture
def campaign(tmp_path, batch_server):
    return lambda calls: Campaign(tmp_path, batch_server, calls)


@pytest.mark.slow
def test_a_run_that_is_killed_at_each_step_buys_nothing_twice(campaign):
    running = campaign(60)
    for step in ("batch.intended", "upload", "create", "created", "poll"):
        assert running.run(step) is None, step
    running.let_batches_end()
    assert running.run("download") is None
    running.check(running.run("spend.settled") or running.finish(), calls=60)
    assert len(running.server.batches) == 1


@pytest.mark.skipif("DICAST_LONG" not in os.environ, reason="takes minutes: set DICAST_LONG")
@pytest.mark.slow
def test_a_thousand_calls_settle_over_fifty_kills(campaign):
    running = campaign(1000)
    for step in ("spend.reserved", *("batch.intended", "upload", "after upload", "create") * 5):
        assert running.run(step) is None, step
    for step in ("created", "list", "list", "batch.created", *["poll"] * 19):
        assert running.run(step) is None, step
    running.let_batches_end()
    for step in ["download"] * 6:
        assert running.run(step) is None, step
    done = None
    for step in ("batch.ended", "spend.settled", "spend.settled", "spend.settled"):
        done = done or running.run(step)
    running.check(done or running.finish(), calls=1000)
    print(sum(running.kills.values()), "kills:", dict(running.kills))
    assert sum(running.kills.values()) >= 50
