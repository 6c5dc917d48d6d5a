"""dicast without what only Linux, or only POSIX has: it works in another way, or refuses the component by its name."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

import pytest

from dicast import Score, metric
from dicast.testing import run_pipeline, sample

HERE = Path(__file__).parent
TOKEN = "token-of-this-test-0123456789"
WITHOUT_PROC = ("bwrap", "--dev-bind", "/", "/", "--tmpfs", "/proc")
WITHOUT_NAMESPACES = ("bwrap", "--dev-bind", "/", "/", "--unshare-user", "--disable-userns", "--cap-drop", "ALL")
ROWS = "".join(
    json.dumps({"id": str(n), "input": "q", "output": "ab"[n % 2], "reference": "a"}) + "\n" for n in range(4)
)
ALL = """
source: {rows/jsonl: {path: rows.jsonl}}
metrics:
- diff/match
- check/python: {file: score.py, function: score}
- evaluator/command: {command: "python3 once.py"}
- evaluator/worker: {command: "python3 worker.py"}
- evaluator/metric_lines: {command: "python3 lines.py"}
sinks:
- jsonl/rows: {path: rows.out.jsonl}
- csv/rows: {path: rows.out.csv}
- parquet/rows: {path: rows.out.parquet}
- junit/xml: {path: rows.out.xml}
"""
WORKER = """
import sys, json
for line in sys.stdin:
    print(json.dumps({"id": json.loads(line).get("id"), "score": 0.25}), flush=True)
"""
IN_TURN = """
import json, sys
from dicast._kernel.cli import main
for words in json.loads(sys.argv[1]):
    if code := main(words):
        sys.exit(f"dicast {words} ended with {code}")
"""
PAUSE = {"busy": "while True: pass", "pattern": "import re; re.match('(a|a)*b', 'a' * 60)"}
"""Bodies of functions that never return."""


def can_run(words):
    """Whether this machine can take away what *words* take away."""
    return shutil.which("bwrap") and subprocess.run([*words, "true"], capture_output=True, check=False).returncode == 0


class System:
    """A system that lacks something, and a folder to work in."""

    def __init__(self, folder, words=(), name=""):
        self.folder, self.words = folder, words
        self.env = {**os.environ, "DICAST_TEST_SYSTEM": name, "PYTHONPATH": str(HERE)}

    def python(self, *words):
        return [*self.words, sys.executable, "-X", "warn_default_encoding", *words]

    def command(self, *words):
        return self.python("-m", "dicast", *words)

    def dicast(self, *words, code=0):
        return self.run(self.command(*words), code)

    def dicast_in_turn(self, *commands):
        """Run commands in one process, which saves the start of the others."""
        return self.run(self.python("-c", IN_TURN, json.dumps(commands)), code=0)

    def run(self, command, code):
        done = subprocess.run(
            command, cwd=self.folder, env=self.env, capture_output=True, text=True, timeout=200, check=False
        )
        assert done.returncode == code, (done.stdout + done.stderr)[-1000:]
        assert "Traceback" not in done.stderr
        ours = [line for line in done.stderr.splitlines() if "EncodingWarning" in line and "/dicast" in line]
        assert ours == []
        return done.stdout + done.stderr

    def refuse(self, component, *words):
        """Check a pipeline with *component*, which is refused; return what is printed."""
        (self.folder / "refused.yaml").write_text(f"source: {{rows/jsonl: {{path: rows.jsonl}}}}\n{component}\n")
        return self.dicast("check", "refused.yaml", *words, code=2)


@pytest.fixture
def folder(tmp_path):
    for name, text in {
        "rows.jsonl": ROWS, "all.yaml": ALL, "worker.py": WORKER, "token": TOKEN,
        "lines.py": "print('METRIC quality=0.5')\n", "score.py": "def score(output, row): return output == 'a'\n",
        "once.py": "import sys, json; json.load(sys.stdin); print(json.dumps({'score': 0.5}))\n",
    }.items():  # fmt: skip
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.fixture(params=["windows", "macos"])
def system(request, folder):
    if not can_run(WITHOUT_PROC):
        pytest.skip("/proc cannot be taken away here")
    return System(folder, WITHOUT_PROC, request.param)


@pytest.mark.slow
def test_runs_reports_and_records_work(system):
    assert "all.yaml: ok" in system.dicast("check", "all.yaml")
    document = json.loads(system.dicast("run", "all.yaml", "--yes", "--json"))
    assert document["scored"] == 4
    assert {path.suffix for path in system.folder.glob("rows.out.*")} == {".jsonl", ".csv", ".parquet", ".xml"}
    system.dicast_in_turn(
        ["report"], ["show", "1"], ["runs"], ["baseline", "save", "b"], ["runs", "--json"], ["cost"],
        ["ledger", "verify"], ["plugins", "--load"], ["schema"],
        ["init", "rows.jsonl", "--out", "made.yaml"],
    )  # fmt: skip
    assert (system.folder / "report.html").stat().st_size > 10_000


@pytest.mark.slow
def test_every_module_can_be_imported_without_posix(folder):
    system = System(folder, name="windows")
    code = (
        "import importlib, pkgutil, sys\nwrong = []\n"
        "names = [found.name for found in pkgutil.iter_modules() if found.ispkg and found.name.startswith('dicast')]\n"
        "assert len(names) > 40\n"
        "for top in names:\n"
        "  for found in pkgutil.walk_packages(importlib.import_module(top).__path__, top + '.'):\n"
        "    name = found.name\n"
        "    if '.inside' in name or '.templates' in name or top == 'dicast_litellm' or name.endswith(('__main__', '_processes.worker')): continue\n"
        "    try: importlib.import_module(name)\n"
        "    except BaseException as error: wrong.append(f'{name}: {error!r}')\n"
        "sys.exit('\\n'.join(wrong) or 0)\n"
    )
    words = [*system.words, sys.executable, "-c", code]
    done = subprocess.run(words, cwd=system.folder, env=system.env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.strip()) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("name", PAUSE)
def test_a_function_that_never_ends_is_ended(system, name):
    (system.folder / "score.py").write_text(f"def score(output, row):\n    {PAUSE[name]}\n")
    (system.folder / "p.yaml").write_text(
        "source: {rows/jsonl: {path: rows.jsonl}}\n"
        "metrics: [{check/python: {file: score.py, function: score, timeout: 0.2}}]\n"
    )
    assert "4 timeout" in system.dicast("run", "p.yaml", "--yes", code=3)


@pytest.mark.slow
def test_components_that_need_more_are_refused_by_name(system):
    windows = system.env["DICAST_TEST_SYSTEM"] == "windows"
    metric = "metrics: [{{sandbox/command: {{command: 'true', backend: {}, unsafe: true}}}}]"
    assert re.search(
        "sandbox/bubblewrap works on Linux on .*; name another backend",
        system.refuse(metric.format("sandbox/bubblewrap")),
    )
    if windows:
        assert "sandbox/none needs sessions of POSIX" in system.refuse(metric.format("sandbox/none"))
        assert "sandbox/docker hands files to the client by /dev/fd" in system.refuse(
            metric.format("{sandbox/docker: {image: i}}")
        )
        processes = "metrics: [diff/match]\nexecutor: dicast/processes"
        assert "dicast/processes needs a POSIX system, not win32; use dicast/async" in system.refuse(processes)


@pytest.mark.slow
def test_check_says_what_is_not_promised(system):
    said = {
        "windows": ["no interval timer", "no sessions"],
        "macos": ["no /proc"],
    }[system.env["DICAST_TEST_SYSTEM"]]
    found = json.loads(system.dicast("check", "all.yaml", "--json"))["not_promised"]
    assert [one.partition(":")[0] for one in found] == said
    assert system.dicast("check", "all.yaml").count("not guaranteed on this system: ") == len(said)


@pytest.mark.slow
def test_the_experiment_loop_works_or_is_refused(system):
    root = system.folder / "repo"
    root.mkdir()
    (root / "a.py").write_text("x = 1\n")
    for words in (
        ["init", "-q"],
        ["add", "-A"],
        ["-c", "user.name=u", "-c", "user.email=u@u", "commit", "-qm", "first"],
    ):
        subprocess.run(["git", *words], cwd=root, check=True)
    here = System(root, system.words, system.env["DICAST_TEST_SYSTEM"])
    words = [
        "autoresearch",
        "init",
        "--primary",
        "c",
        "--direction",
        "lower",
        "--command",
        "echo METRIC c=1",
        "--scope",
        "a.py",
    ]
    if here.env["DICAST_TEST_SYSTEM"] == "windows":
        assert "which this system lacks (win32): run it in WSL" in here.dicast(*words, code=2)
        return
    here.dicast(*words)
    said = here.dicast("autoresearch", "loop", "--runs", "1", "--propose", "sh -c 'echo y=1 > a.py'")
    assert "no better than the best kept value" in said


@contextmanager
def serving(system, words):
    """Start a server; yield its port."""
    with (system.folder / "log").open("w") as log:
        env = {**system.env, "DICAST_EVALUATOR_TOKEN": TOKEN, "DICAST_WATCH_TOKEN": TOKEN}
        process = subprocess.Popen(
            system.command(*words), cwd=system.folder, env=env, stdout=log, stderr=log, start_new_session=True
        )
    try:
        until = time.monotonic() + 100
        while not (match := re.search(r"http://127\.0\.0\.1:(\d+)", (system.folder / "log").read_text())):
            assert time.monotonic() < until, (system.folder / "log").read_text()
            time.sleep(0.05)
        yield int(match[1])
        assert "Traceback" not in (system.folder / "log").read_text()
    finally:
        os.killpg(process.pid, signal.SIGKILL)  # unshare does not pass signals on to the server
        process.wait()


@pytest.mark.slow
def test_servers_answer(system):
    (system.folder / "served.yaml").write_text("metrics: [proxy/format]\n")
    (system.folder / "trace.jsonl").touch()
    (system.folder / "watch.yaml").write_text(
        "source: {traces/events: {path: trace.jsonl, subjects: [session]}}\njudges: [heuristic/session]\n"
    )
    system.dicast("run", "served.yaml", "--set", "source={rows/jsonl: {path: rows.jsonl}}")
    for words, path in (
        (["serve", "--port", "0", "--token-file", "token"], "/runs"),
        (["evaluator", "serve", "served.yaml", "--port", "0"], "/health"),
        (["watch", "watch.yaml", "--listen", "0"], "/status"),
    ):
        with serving(system, words) as port:
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}{path}", headers={"Authorization": f"Bearer {TOKEN}"}
            )
            with urllib.request.urlopen(request, timeout=100) as answer:
                assert answer.status == 200


@pytest.mark.slow
def test_without_namespaces_sandboxes_are_refused_and_the_loop_copies(folder):
    if not can_run(WITHOUT_NAMESPACES):
        pytest.skip("namespaces cannot be taken away here")
    system = System(folder, WITHOUT_NAMESPACES)
    metric = "metrics: [{sandbox/command: {command: 'true', backend: sandbox/bubblewrap}}]"
    assert "sandbox/bubblewrap cannot make a sandbox here" in system.refuse(metric)
    assert "all.yaml: ok" in system.dicast("check", "all.yaml")
    system.dicast("run", "all.yaml", "--yes")


def test_without_ctypes_a_command_is_run_and_its_session_ended():
    code = (
        "import sys; sys.modules['_ctypes'] = None\nimport asyncio, dicast.toolkit.command\n"
        "print(asyncio.run(dicast.toolkit.command.call_command(['echo', 'yes'], adopt=True)).output)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "b'yes\\n'\n", done.stderr


def test_without_an_interval_timer_a_metric_that_computes_for_ever_is_ended(monkeypatch):
    monkeypatch.delattr(signal, "setitimer")
    before = signal.getsignal(signal.SIGILL)

    @metric(tier="truth")
    def endless(subject):
        while subject:
            pass
        return Score(1.0)

    done = run_pipeline(
        "{metrics: [{endless: {timeout: 0.2}}]}", subjects=[sample("a")], components={"endless": endless()}
    )
    assert done.document["failures"] == {"timeout": 1}
    assert signal.getsignal(signal.SIGILL) == before
    assert "dicast-timer" not in {thread.name for thread in threading.enumerate()}
