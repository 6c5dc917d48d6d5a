"""Sandbox metrics in pipelines: gates, pools, users and kills."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import attrs
import pytest
from boxes import SMALL, left, needs_bubblewrap, wait_for

import dicast
from dicast import ConfigError, PluginError, Program
from dicast_sandbox import Bubblewrap, Unconfined

pytestmark = needs_bubblewrap


def pipeline(tmp_path: Path, rows: list[dict[str, object]], **sections) -> dict[str, object]:
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return {
        "source": {"rows/jsonl": {"path": str(tmp_path / "rows.jsonl")}},
        "ledger": {"ledger/sqlite": {"path": str(tmp_path / "ledger.db")}},
        **sections,
    }


def test_a_cheap_gate_spares_programs(tmp_path):
    tests = {
        "command": "python3 check.py",
        "output_file": "solution.py",
        "files": {"check.py": "from solution import f\nassert f(2) == 4\n"},
    }
    rows = [
        {"id": "right", "output": "def f(x): return x * x"},
        {"id": "wrong", "output": "def f(x): return 1"},
        {"id": "broken", "output": "def f(x: return"},
        {"id": "empty", "output": ""},
    ]
    metrics = [{"proxy/syntax": {"language": "python"}}, "proxy/format", {"sandbox/tests_pass": tests}]
    run = dicast.run(pipeline(tmp_path, rows, metrics=metrics))
    assert {verdict.subject_id: verdict.tier for verdict in run.verdicts} == {
        "right": "truth", "wrong": "truth", "broken": "proxy", "empty": "proxy"
    }  # fmt: skip
    assert run.metrics["sandbox/tests_pass"]["scored"] == 2
    assert run.cost["msat"] == run.metrics["sandbox/tests_pass"]["saved"]["msat"] == "1000"


def test_all_sandboxes_of_a_run_are_one_pool(tmp_path):
    rows = [{"id": str(number), "output": "x"} for number in range(3)]
    backend = {"sandbox/bubblewrap": {"concurrency": 1}}
    metrics = [{"sandbox/command": {"as": name, "command": "sleep 0.2", "backend": "box"}} for name in ("a", "b")]
    started = time.monotonic()
    run = dicast.run(pipeline(tmp_path, rows, metrics=metrics, define={"box": backend}))
    assert run.scored == 3
    assert time.monotonic() - started > 6 * 0.2


@pytest.mark.slow
def test_waiting_for_its_turn_is_not_the_programs_time(tmp_path):
    rows = [{"id": str(number), "output": "x"} for number in range(4)]
    command = {"command": "sleep 0.9", "timeout": 3.3, "backend": {"sandbox/bubblewrap": {"concurrency": 1}}}
    run = dicast.run(pipeline(tmp_path, rows, metrics=[{"sandbox/command": command}]))
    assert run.score["mean"] == 1


def test_no_sandbox_is_refused_where_the_pipeline_is_read(tmp_path):
    metrics = [{"sandbox/command": {"command": "true", "backend": "sandbox/none"}}]
    with pytest.raises(ConfigError, match="unsafe: true"):
        dicast.run(pipeline(tmp_path, [{"id": "1", "output": ""}], metrics=metrics))


def test_another_kind_of_component_is_no_backend(tmp_path):
    metrics = [{"sandbox/command": {"command": "true", "backend": "proxy/format"}}]
    with pytest.raises(PluginError, match="proxy/format is a metric, not a sandbox"):
        dicast.run(pipeline(tmp_path, [{"id": "1", "output": ""}], metrics=metrics))


@pytest.mark.parametrize("parent", ["dicast", "bwrap"])
def test_killing_dicast_leaves_no_process(parent):
    mark = f"killed-{os.getpid()}-{time.monotonic_ns()}"
    code = (
        "import asyncio\nfrom dicast import Program\nfrom dicast_sandbox import Bubblewrap\nfrom dicast_sandbox.backends.profiles import limits\n"
        "command = ('sh', '-c', 'setsid sleep 60 & sleep 60')\n"
        f"program = Program(command, limits('small'), environment={{'MARK': {mark!r}}})\n"
        "asyncio.run(Bubblewrap().execute(program))\n"
    )
    started = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    try:
        wait_for(lambda: len(left(mark)) >= 3)
        started.send_signal(signal.SIGKILL) if parent == "dicast" else os.kill(child(started.pid), signal.SIGKILL)
        wait_for(lambda: not left(mark))
    finally:
        started.kill()
        started.wait()


def child(pid: int) -> int:
    for entry in Path("/proc").iterdir():
        with suppress(OSError):  # it has ended meanwhile
            if entry.name.isdecimal() and (entry / "stat").read_text().rpartition(")")[2].split()[1] == str(pid):
                return int(entry.name)
    raise AssertionError(pid)


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root, to be somebody else")
def test_a_user_without_rights_can_use_it(tmp_path):
    """An unprivileged dicast runs bwrap with the same arguments; here an unprivileged user starts it."""
    code = (
        "import os; os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "import asyncio\nfrom dicast import Program\nfrom dicast_sandbox import Bubblewrap\nfrom dicast_sandbox.backends.profiles import limits\n"
        "box = Bubblewrap(); box.check()\n"
        "for command in ('id -u', ':() { :|:& }; f() { f & f; }; f; sleep 9'):\n"
        "    print(asyncio.run(box.execute(Program(('bash', '-c', command), limits('small', 8)))))\n"
    )
    imports = (
        "import asyncio, dicast, dicast_sandbox.backends.pool, dicast_sandbox.backends.profiles, asyncio.subprocess\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", imports + code], capture_output=True, text=True, timeout=200, check=False, cwd="/"
    )
    first, second = done.stdout.splitlines()
    assert "exit=0, output='1000" in first
    assert "limit='processes'" in second


def test_cancelling_ends_the_program():
    async def cancelled() -> None:
        task = asyncio.create_task(
            Bubblewrap().execute(Program(("sleep", "60"), SMALL, environment={"MARK": "cancelled"}))
        )
        await asyncio.sleep(0.3)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()

    asyncio.run(cancelled())
    assert left("MARK=cancelled") == []


def test_without_a_sandbox_wall_time_holds_where_a_child_keeps_the_output():
    program = Program(("sh", "-c", "setsid sleep 200 & echo hi"), attrs.evolve(SMALL, wall=0.3))
    started = time.monotonic()
    execution = asyncio.run(Unconfined().execute(program))
    assert (execution.limit, execution.output) == ("wall", "hi\n")
    assert time.monotonic() - started < 150


FIRST_PROCESS = """
import asyncio, os
from pathlib import Path
from dicast import Program
from dicast_sandbox import Bubblewrap
from dicast_sandbox.backends.profiles import limits
assert os.getpid() == 1
for command in ("true", "setsid sleep 60 & sleep 60"):
    print(asyncio.run(Bubblewrap().execute(Program(("sh", "-c", command), limits("small", 1)))).exit)
print([path.read_text() for path in Path("/proc").glob("[0-9]*/stat") if path.parent.name != "1"])
"""


@pytest.mark.slow
@pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("unshare"), reason="needs root, to make a process the first one"
)
def test_nothing_is_left_where_dicast_is_the_first_process():
    done = subprocess.run(
        ["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", FIRST_PROCESS],
        capture_output=True, text=True, timeout=200, check=False,
    )  # fmt: skip
    assert done.stdout.splitlines() == ["0", "137", "[]"], done.stdout + done.stderr
