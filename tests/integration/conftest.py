"""A folder with a plugin of obedient components, and the command line in this process and in one of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import attrs
import pytest

from dicast._kernel.cli import main

FAKE = Path(__file__).with_name("fake_components.py")
DATA_KEYS = {"run_id", "worst", "ledger"}


@attrs.frozen
class Done:
    """Result of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        """Standard output as the one JSON document it has to be, without NaN or infinity."""
        return json.loads(self.out, parse_constant=lambda name: pytest.fail(f"{name} in JSON"))


class Shop:
    """A folder that tests write files into and run commands in."""

    def __init__(self, folder, capfd):
        self.folder, self._capfd = folder, capfd
        self._started = []

    def __truediv__(self, name):
        return self.folder / name

    def write(self, name, content):
        """Write a file of text, bytes, or rows as JSON lines; return its path."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, list):
            content = "".join(json.dumps(row) + "\n" for row in content)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def rows(self, *outputs, name="data.jsonl", sessions=None):
        """Write rows with ids r0, r1 … and these outputs."""
        made = [{"id": f"r{n}", "output": output} for n, output in enumerate(outputs)]
        for number, row in enumerate(made):
            if sessions:
                row["session_id"] = f"s{number % sessions}"
        return self.write(name, made)

    def pipeline(self, text, name="p.yaml"):
        """Write a pipeline file over data.jsonl, unless the text names a source itself."""
        source = "" if "source:" in text else "source: {rows/jsonl: {path: data.jsonl}}\n"
        return self.write(name, source + text)

    def dicast(self, *arguments):
        """Run a command in this process."""
        self._capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        return Done(code, *self._capfd.readouterr())

    def run(self, text, *arguments):
        """Write a pipeline and ``dicast run`` it with --json."""
        return self.dicast("run", self.pipeline(text).name, "--json", *arguments)

    def start(self, *arguments, **options):
        """Start a command as a process of its own."""
        return self.python("-m", "dicast", *map(str, arguments), **options)

    def python(self, *arguments, **options):
        """Start Python as a process of its own."""
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        process = subprocess.Popen([sys.executable, *arguments], cwd=self.folder, text=True, **streams | options)
        self._started.append(process)
        return process

    def clear(self):
        """End the processes that a failed test left running."""
        for process in self._started:
            if process.returncode is None:
                process.kill()
                finish(process)

    def process(self, *arguments, **options):
        """Run a command as a process of its own and wait for it."""
        return finish(self.start(*arguments, **options))

    def events(self, *types):
        """Return the ledger's events, in their order; only of *types* if any are given."""
        lines = self.dicast("ledger", "export").out.splitlines()
        found = [json.loads(line) for line in lines]
        return [event for event in found if not types or event["type"] in types]

    def verified(self):
        """Return True if the ledger's chain is intact."""
        done = self.dicast("ledger", "verify", "--json")
        return done.code == 0 and done.json["ok"]


def finish(process, timeout=300):
    """Wait for a process that was started; one that hangs is killed and fails the test."""
    with closing(process.stdout), closing(process.stderr):
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            pytest.fail(f"did not end within {timeout} s")
    return Done(process.returncode, out, err)


def wait_for(condition, seconds=100):
    """Look until *condition* holds."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.01)


def settled(document):
    """Return a run's document without the parts that differ between two equal runs: ids, and the ledger's head."""
    return {key: value for key, value in document.items() if key not in ("run_id", "ledger")}


@pytest.fixture
def shop(tmp_path, monkeypatch, install, capfd):
    """An empty folder to work in, with the plugin ``fake`` installed, also for processes started there."""
    install("dicast-fake", "1.0", {"dicast": {"fake": "dicast_fake"}}, dicast_fake=FAKE.read_text())
    folder = tmp_path / "shop"
    folder.mkdir()
    monkeypatch.chdir(folder)
    for name in ("DICAST_LEDGER", "DICAST_DISABLED", "DICAST_BLOCK"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("dicast._kernel.stream.sinks.PAUSE_SECONDS", 0.001)  # between the tries of a sink that failed
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")]))
    shop = Shop(folder, capfd)
    yield shop
    shop.clear()
