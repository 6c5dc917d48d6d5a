"""Plugins that raise what ends processes, cancel what is not theirs, or write to the document: the run says so and goes on."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SOURCE = """\
import asyncio, os, sys

@attrs.frozen
class Raises:
    name = "raises"
    tier = "proxy"
    def score(self, subject):
        if subject.id == "b":
            raise {what}
        return Score(1.0)

@attrs.frozen
class Later:
    name = "later"
    tier = "proxy"
    async def score(self, subject):
        await asyncio.sleep(0)
        if subject.id == "b":
            raise {what}
        return Score(1.0)

@attrs.frozen
class Cancels:
    name = "cancels"
    tier = "proxy"
    async def score(self, subject):
        for task in asyncio.all_tasks():
            task.cancel()
        return Score(1.0)

@attrs.frozen
class Writes:
    name = "writes"
    tier = "proxy"
    def score(self, subject):
        print("to stdout")
        os.write(1, b"to the descriptor")
        os.system("echo from a program")
        return Score(1.0)

class Open:
    wants = ("eval.completed",)
    def write(self, events):
        raise {what}
    def close(self):
        return None

@attrs.frozen
class Sunk:
    name = "sunk"
    def open(self, run):
        from contextlib import asynccontextmanager
        @asynccontextmanager
        async def opened():
            yield Open()
        return opened()

@hookimpl
def dicast_metrics():
    return [Raises, Later, Cancels, Writes]

@hookimpl
def dicast_sinks():
    return [Sunk]
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps({"id": name, "output": "x"}) + "\n" for name in "abc"))

    def start(text, what="SystemExit(0)"):
        site = tmp_path / "site"
        info = site / "dicast_bad-0.1.0.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: dicast-bad\nVersion: 0.1.0\n")
        (info / "entry_points.txt").write_text("[dicast]\nbad = dicast_bad\n")
        header = "from __future__ import annotations\nimport attrs\nfrom dicast import *\n"
        (site / "dicast_bad.py").write_text(header + SOURCE.replace("{what}", what))
        (tmp_path / "p.yaml").write_text(
            "source: {rows/jsonl: {path: rows.jsonl}}\nledger: {ledger/sqlite: {path: l.db}}\n" + text
        )
        monkeypatch.setenv("PYTHONPATH", str(site))
        command = [sys.executable, "-m", "dicast", "run", "p.yaml", "--json"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=200, check=False)

    return start


@pytest.mark.parametrize("what", ["SystemExit(0)", "GeneratorExit()", "asyncio.CancelledError()", "KeyError('x')"])
@pytest.mark.parametrize("metric", ["raises", "later"])
def test_whatever_a_metric_raises_fails_its_row_alone(run, metric, what):
    done = run(f"metrics: [bad/{metric}]\n", what)
    document = json.loads(done.stdout)
    assert (document["scored"], document["failures"]) == (2, {"crashed": 1}), done.stderr
    assert what.split("(")[0].rpartition(".")[2] in document["failed_subjects"][0]["error_message"]


@pytest.mark.parametrize("what", ["SystemExit(0)", "GeneratorExit()", "asyncio.CancelledError()"])
def test_a_sink_that_would_end_the_process_is_a_sink_that_failed(run, what):
    done = run("metrics: [proxy/format]\nsinks: [bad/sunk]\n", what)
    assert done.returncode == 4, done.stderr
    document = json.loads(done.stdout)
    assert (document["scored"], document["sinks"]["bad/sunk"]["lost"]) == (3, 3)


def test_a_metric_that_cancels_all_tasks_ends_the_run_with_a_message(run):
    done = run("metrics: [bad/cancels]\n")
    assert done.returncode == 2
    assert "canceled the tasks of the run" in json.loads(done.stdout)["error"]["message"]
    assert "Traceback" not in done.stderr


def test_what_a_plugin_writes_to_standard_output_is_not_in_the_document(run):
    done = run("metrics: [bad/writes]\n")
    assert json.loads(done.stdout)["scored"] == 3
    for said in ("to stdout", "to the descriptor", "from a program"):
        assert said in done.stderr
