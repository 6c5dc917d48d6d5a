"""A small repository with a slow function, and proposers for it."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
import traceback
from contextlib import suppress
from importlib.metadata import entry_points
from pathlib import Path

import pytest

DICAST = [sys.executable, "-m", "dicast"]
SOURCE = "def work(n):\n    return {value}, {cost}\n"
MEASURE = "import slow\n_, cost = slow.work(10)\nprint(f'METRIC cost={cost}')\nprint('METRIC size_kb=1')\n"
CHECKS = "import slow\nassert slow.work(10)[0] == 285\n"


def source(cost, value="sum(i * i for i in range(n))"):
    return SOURCE.format(value=value, cost=cost)


class Child:
    """A command of ``dicast autoresearch`` in a forked process with all imports done; *variables* are added to its environment."""

    def __init__(self, root, *words, **variables):
        self.code, self.out, self.err = None, "", ""
        self._files = [os.memfd_create(name) for name in ("out", "err")]  # not on a disk that may be full
        self.pid = os.fork()
        if not self.pid:
            os._exit(self._run(root, words, variables))

    def _run(self, root, words, variables):
        code = 1
        try:
            os.chdir(root)
            os.environ |= {"HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1", **variables}
            for number, file in enumerate(self._files, 1):
                os.dup2(file, number)
            sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
            (command,) = entry_points(group="console_scripts", name="dicast")
            code = command.load()(["autoresearch", *words])
            sys.stdout.flush()
        except BaseException:  # it is printed, and the exit code reports it
            traceback.print_exc()
            code = 70
        finally:
            sys.stderr.flush()
        return code

    @property
    def output(self):
        """All that is printed."""
        return self.out + self.err

    def poll(self):
        """Return the exit code, -9 of a killed one; None while it runs."""
        if self.code is None and (status := os.waitpid(self.pid, os.WNOHANG))[0]:
            self._end(status[1])
        return self.code

    def _end(self, status):
        self.code = os.waitstatus_to_exitcode(status)
        self.out, self.err = (os.pread(file, 1_000_000, 0).decode(errors="replace") for file in self._files)
        for file in self._files:
            os.close(file)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)

    def wait(self):
        """Return the exit code when it has ended."""
        if self.code is None:
            self._end(os.waitpid(self.pid, 0)[1])
        return self.code


class Repository:
    """A git repository in *root*."""

    def __init__(self, root):
        self.root = root
        root.mkdir(exist_ok=True)
        self.git("init", "-q", "-b", "main", ".")
        self.write("slow.py", source(100))
        self.write("measure.py", MEASURE)
        self.write("checks.py", CHECKS)
        self.git("add", "-A")
        self.commit("first")

    def git(self, *words, check=True):
        env = {"PATH": os.environ["PATH"], "HOME": str(self.root), "GIT_CONFIG_NOSYSTEM": "1"}
        done = subprocess.run(["git", *words], cwd=self.root, capture_output=True, text=True, env=env, check=False)
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def commit(self, message):
        self.git("-c", "user.name=t", "-c", "user.email=t@t", "commit", "-q", "--allow-empty", "-m", message)

    def write(self, name, text):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def dicast(self, *words, code=0):
        """Run a command; return the process that has ended with *code*."""
        done = Child(self.root, *words)
        assert done.wait() == code, done.output
        return done

    def json(self, *words, code=0):
        return json.loads(self.dicast(*words, "--json", code=code).out)

    def init(self, *words, scope="slow.py"):
        """Start a session, in this process."""
        python = shlex.quote(sys.executable)
        (command,) = entry_points(group="console_scripts", name="dicast")
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(self.root)
            patch.setenv("HOME", str(self.root))
            patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
            assert command.load()([
                "autoresearch", "init", "--primary", "cost", "--direction", "lower", "--command", f"{python} measure.py",
                "--checks", f"{python} checks.py", "--scope", scope, *words,
            ]) == 0  # fmt: skip

    def proposer(self, code):
        """Return the command of a proposer with *code*; ``n`` is the number of the experiment, ``source`` makes slow.py."""
        path = self.root.parent / f"propose-{self.root.name}.py"
        path.write_text(
            "import json, os, shutil, subprocess, sys, time\nfrom pathlib import Path\n"
            f"{'SOURCE'} = {SOURCE!r}\n"
            "def source(cost, value='sum(i * i for i in range(n))'): return SOURCE.format(value=value, cost=cost)\n"
            "state = json.load(sys.stdin)\nn = state['next_run']\n" + code
        )
        return f"{shlex.quote(sys.executable)} {shlex.quote(str(path))}"

    def loop(self, code, runs, *words):
        return self.json("loop", "--propose", self.proposer(code), "--runs", str(runs), *words)

    def tree(self):
        """Return every file below the root with its bytes and mode, without git's and the session's own."""
        files = {}
        for path in sorted(self.root.rglob("*")):
            name = str(path.relative_to(self.root))
            if (
                name.split("/", maxsplit=1)[0] in {".git", ".auto"}
                or name == "autoresearch.jsonl"
                or (path.is_dir() and not path.is_symlink())
            ):
                continue
            content = os.readlink(path) if path.is_symlink() else path.read_bytes()
            files[name] = (content, 0 if path.is_symlink() else path.stat().st_mode)
        return files

    def kept_content(self, path="slow.py", ref="refs/dicast/loop/cost"):
        """Return the content of *path* in the newest kept experiment."""
        return self.git("show", f"{ref}:{path}")

    def state(self):
        """Return the user's state: refs without the loop's, HEAD, stashes, worktrees, index, and files."""
        refs = [line for line in self.git("for-each-ref").splitlines() if "\trefs/dicast/" not in line]
        words = [("symbolic-ref", "-q", "HEAD"), ("rev-parse", "HEAD"), ("stash", "list"), ("worktree", "list")]
        outputs = [self.git(*some, check=False) for some in words]
        index = self.root / self.git("rev-parse", "--git-path", "index").strip()
        return refs, outputs, index.read_bytes(), self.git("reflog", check=False), self.tree()

    def log(self):
        return [json.loads(line) for line in (self.root / "autoresearch.jsonl").read_text().splitlines()]

    def entries(self):
        return [entry for entry in self.log() if "type" not in entry]

    def statuses(self):
        return [entry["status"] for entry in self.entries()]


def running(word):
    """Return the processes whose command line has *word*, zombies left out."""
    processes = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if word.encode() in (folder / "cmdline").read_bytes():
                processes.append(int(folder.name))
    return processes


def have_ended(word, seconds=100):
    """Return whether no process has *word* in its command line, or will have none soon."""
    end = time.monotonic() + seconds
    while running(word) and time.monotonic() < end:
        time.sleep(0.02)
    return not running(word)


@pytest.fixture(scope="session")
def path_without_bwrap(tmp_path_factory):
    """Return a folder with all programs but bubblewrap."""
    folder = tmp_path_factory.mktemp("bin")
    for place in reversed(os.environ["PATH"].split(os.pathsep)):
        for program in Path(place).iterdir() if Path(place).is_dir() else ():
            if program.name != "bwrap":
                (folder / program.name).unlink(missing_ok=True)
                (folder / program.name).symlink_to(program)
    return folder


@pytest.fixture(params=["namespace", "copies"])
def place(request, monkeypatch):
    """Run the test with bubblewrap, and without it."""
    if request.param == "copies":
        monkeypatch.setenv("PATH", str(request.getfixturevalue("path_without_bwrap")))
    elif shutil.which("bwrap") is None:
        pytest.skip("there is no bubblewrap")
    return request.param


@pytest.fixture
def repository(tmp_path, monkeypatch):
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    return Repository(Path(tmp_path) / "repo")
