"""Live figures of a growing run on a busy machine, in a real Chromium, for longer than several rounds."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from .serving import Server
from .test_dashboard import Tab

pytestmark = pytest.mark.slow

RUN = """
import asyncio
import attrs
import dicast

@attrs.frozen
class Slow:
    name: str

    async def judge(self, subject, children):
        await asyncio.sleep(0.1)
        return dicast.Judgment(int(subject.id) % 7 / 7, 1.0)

rows = [dicast.Subject("row", str(number), "q", "a") for number in range(2000)]
pipeline = {"name": "slow", "judges": [Slow("a"), Slow("b")], "executor": {"dicast/async": {"concurrency": 2}}, "ledger": {"ledger/sqlite": {"path": "ledger.db"}}}
dicast.run(pipeline, subjects=rows)
"""
BUSY = "while True: pass"


@pytest.fixture
def processes(tmp_path):
    """A growing run, and processes that keep the processors busy."""
    commands = [RUN, *[BUSY] * (os.cpu_count() or 1)]
    started = [subprocess.Popen([sys.executable, "-c", command], cwd=tmp_path) for command in commands]
    yield started
    for process in started:
        process.kill()
        process.wait(200)


def test_a_page_follows_a_run_for_many_rounds_and_sees_its_death(chromium, tmp_path, processes):
    server = Server(tmp_path)
    try:
        with Tab(chromium, server, wait=".progress") as page:
            judged = "Number(document.querySelector('.progress [data-path$=judged]')?.dataset.value ?? 0)"
            seen = 0
            for _ in range(6):
                page.wait_for_function(f"seen => {judged} > seen", arg=seen)
                seen = page.evaluate(judged)
            page.get_by_role("link", name="slow").first.click()
            page.wait_for_function(f"seen => {judged} > seen", arg=seen)
            processes[0].send_signal(signal.SIGKILL)
            page.wait_for_selector(".progress .note:has-text('--resume')")
            page.wait_for_selector(".mark:has-text('dead')")
            backlog = server.get("/analytics/backlog")
            assert backlog["open"] == "0"
            assert int(backlog["interrupted"]) > 0
    finally:
        server.end()
