"""Ends of a run of dicast: no process and no file of its sandboxes may be left."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest
import yaml
from boxes import SMALL, left, needs_bubblewrap

from dicast import Execution, Program
from dicast_sandbox import Bubblewrap

pytestmark = needs_bubblewrap

SLOW = "echo x >/dev/shm/x; yes | head -c 1000000 >x; (setsid sleep 50 &) ; trap '' TERM INT; sleep 50"
QUICK = "echo x >x; sleep 0.02"
CANDIDATE = "import time\ndef f(x): time.sleep(50)\n"


def command_line(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text(errors="replace")
    except OSError:
        return ""


def running(mark: str) -> list[str]:
    """Return the processes with *mark* in their environment or in their command; bwrap itself has no environment."""
    pids = [int(entry) for entry in os.listdir("/proc") if entry.isdecimal()]
    return left(mark) + [words for pid in pids if mark in (words := command_line(pid))]


def wait_for(condition: Callable[[], object], seconds: float = 100) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@attrs.frozen
class Running:
    process: subprocess.Popen[str]
    mark: str
    temporary: Path

    def sandboxes(self) -> list[str]:
        return running(self.mark)


@contextmanager
def started(tmp_path: Path, command: str, rows: int = 300, **options: object) -> Iterator[Running]:
    """Provide ``dicast run`` over *rows* candidates, eight at a time; afterwards no process may be left."""
    mark = f"kill-{os.getpid()}-{time.monotonic_ns()}"
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (tmp_path / "rows.jsonl").write_text(
        "".join(json.dumps({"id": str(n), "output": CANDIDATE}) + "\n" for n in range(rows))
    )
    metric = {"command": f": {mark}; {command}", "timeout": 50, "profile": "small", "output_file": "solution.py"}
    backend = {"sandbox/bubblewrap": {"concurrency": 8, "environment": {"MARK": mark}}}
    document = {
        "source": {"rows/jsonl": {"path": "rows.jsonl"}},
        "metrics": [{"sandbox/tests_pass": {**metric, "report": "none", "backend": backend, **options}}],
    }
    (tmp_path / "kill.yaml").write_text(yaml.safe_dump(document))
    before = set(os.listdir("/dev/shm")), mounts()
    process = subprocess.Popen(
        [sys.executable, "-m", "dicast", "run", "kill.yaml"],
        cwd=tmp_path, env={**os.environ, "TMPDIR": str(temporary)}, text=True, start_new_session=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        yield Running(process, mark, temporary)
        wait_for(lambda: not running(mark), 20)
    finally:
        process.kill()
        process.communicate()
    assert [*temporary.iterdir()] == []
    assert not {name for name in set(os.listdir("/dev/shm")) - before[0] if "dicast" in name or name == "x"}
    assert mounts() <= before[1]


def mounts() -> set[str]:
    """Return the mounts of bwrap that this process can see."""
    lines = Path("/proc/self/mounts").read_text().splitlines()
    return {line for line in lines if any(word in line for word in ("/tmp/work", "newroot", "oldroot", "bwrap"))}


MOMENTS = [0, 0.004, 0.02, 0.1, 0.5]


@pytest.mark.slow
@pytest.mark.parametrize("command", [SLOW, QUICK], ids=["slow", "quick"])
@pytest.mark.parametrize("moment", MOMENTS)
def test_kill_9_leaves_no_process_and_no_workspace(tmp_path, command, moment):
    with started(tmp_path, command) as run:
        wait_for(run.sandboxes)
        time.sleep(moment)
        run.process.kill()


@pytest.mark.slow
def test_kill_9_ends_candidates_that_have_a_sandbox_of_their_own(tmp_path):
    tests = "from solution import f\nf(1)\n"
    with started(tmp_path, "python3 check.py", mode="isolated", files={"check.py": tests}) as run:
        wait_for(lambda: sum("sleep" in words or "check.py" in words for words in run.sandboxes()) > 8)
        run.process.kill()


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("command", [SLOW, QUICK], ids=["slow", "quick"])
def test_being_asked_to_stop_ends_all_sandboxes_and_exits_with_130(tmp_path, command, number):
    with started(tmp_path, command) as run:
        wait_for(lambda: len(run.sandboxes()) > (16 if command == SLOW else 4))
        run.process.send_signal(number)
        assert run.process.wait(200) == 130


@pytest.mark.slow
def test_being_asked_twice_to_stop_leaves_nothing(tmp_path):
    with started(tmp_path, SLOW) as run:
        wait_for(lambda: len(run.sandboxes()) > 16)
        for _ in range(2):
            run.process.send_signal(signal.SIGINT)
            time.sleep(0.03)
        assert run.process.wait(200) != 0


def test_what_is_given_up_while_it_waits_or_runs_leaves_its_turn_to_others():
    async def given_up() -> list[object]:
        async with Bubblewrap(concurrency=1).open(None) as pool:
            program = Program(("sleep", "50"), attrs.evolve(SMALL, wall=50), environment={"MARK": "given-up"})
            runs = asyncio.create_task(asyncio.wait_for(pool.execute(program), 0.8))
            await asyncio.sleep(0.1)
            waits = asyncio.create_task(asyncio.wait_for(pool.execute(program), 0.2))
            errors = await asyncio.gather(runs, waits, return_exceptions=True)
            return [*errors, await asyncio.wait_for(pool.execute(Program(("echo", "next"), SMALL)), 100)]

    *errors, third = asyncio.run(given_up())
    assert [type(error) for error in errors] == [TimeoutError, TimeoutError]
    assert isinstance(third, Execution)
    assert third.output == "next\n"
    assert left("MARK=given-up") == []


@pytest.mark.parametrize("milliseconds", [0, 1, 3, 6, 10, 15, 20, 30])
def test_what_is_given_up_while_it_starts_is_ended(milliseconds):
    mark = f"starting-{os.getpid()}-{milliseconds}"

    async def given_up() -> list[object]:
        program = Program(("sh", "-c", f": {mark}; sleep 500"), attrs.evolve(SMALL, wall=500))
        async with Bubblewrap(concurrency=8).open(None) as pool:
            runs = [asyncio.wait_for(pool.execute(program), milliseconds / 1000) for _ in range(8)]
            return await asyncio.gather(*runs, return_exceptions=True)

    started = time.monotonic()
    assert [type(error) for error in asyncio.run(given_up())] == [TimeoutError] * 8
    assert time.monotonic() - started < 300
    assert running(mark) == []
