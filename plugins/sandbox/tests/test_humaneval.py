"""HumanEval as a pipeline: a cheap gate before the problems' own tests, which run in sandboxes."""

from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from importlib.metadata import entry_points
from pathlib import Path

import attrs
import pytest
from boxes import needs_bubblewrap, wait_for

connect = entry_points(group="dicast")["ledger"].load().connect  # as a pipeline finds it


pytestmark = [needs_bubblewrap, pytest.mark.outside_data, pytest.mark.slow]
DATA = Path(os.environ.get("DICAST_OUTSIDE_DATA", Path(__file__).parents[4] / "shared" / "data"))
MSAT = 500
"""What a run in a sandbox is reckoned at."""

PIPELINE = """\
name: humaneval
source: {rows/jsonl: {path: rows.jsonl}}
metrics:
  - proxy/syntax: {language: python}
  - sandbox/tests_pass:
      as: tests
      command: python3 check.py
      mode: isolated
      output_file: solution.py
      files:
        check.py: |
          {{ context.prompt }}
          from solution import {{ context.entry_point }}
          {{ context.test }}
          check({{ context.entry_point }})
gate: {min_coverage: 1}
"""

ANSWERS = {
    "canonical": lambda problem: problem["prompt"] + problem["canonical_solution"],
    "broken": lambda problem: problem["prompt"] + problem["canonical_solution"] + "\nassert (",
    "empty": lambda problem: "",
    "none": lambda problem: problem["prompt"] + "    return None\n",
}
PARSE = ("canonical", "none")
"""The kinds of answers that are programs at all."""


@attrs.frozen
class Ran:
    """Finished pipeline: its folder, the output of the command, and the run's document."""

    folder: Path
    text: str
    document: dict


@pytest.fixture(scope="module")
def problems() -> list[dict[str, str]]:
    path = DATA / "human_eval.jsonl.gz"
    if not path.exists():
        pytest.skip(f"{path} is not there: DICAST_OUTSIDE_DATA names its folder")
    return [json.loads(line) for line in gzip.open(path)]


def write(folder: Path, problems: list[dict[str, str]]) -> None:
    """Write a row for each problem and kind of answer; the kinds alternate."""
    rows = [
        {"id": f"{problem['task_id']} {kind}", "output": answer(problem)}
        | {key: problem[key] for key in ("prompt", "test", "entry_point")}
        for problem in problems
        for kind, answer in ANSWERS.items()
    ]  # fmt: skip
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "pipeline.yaml").write_text(PIPELINE)


def dicast(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "dicast", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def ran(problems, tmp_path_factory) -> Ran:
    folder = tmp_path_factory.mktemp("humaneval")
    write(folder, problems)
    text = dicast(folder, "run", "pipeline.yaml")
    return Ran(folder, text, json.loads(dicast(folder, "show", "last", "--json")))


def passing(ran: Ran, kind: str) -> list[str]:
    """Return the problems with an answer of *kind* that passes their tests."""
    verdicts = json.loads(dicast(ran.folder, "verdicts", "--json"))["verdicts"]
    values = {
        verdict["subject_id"]: score["value"]
        for verdict in verdicts
        for score in verdict["scores"]
        if score["metric"] == "tests"
    }
    return [subject.removesuffix(f" {kind}") for subject, value in values.items() if subject.endswith(kind) and value]


def test_the_canonical_solutions_pass(ran, problems):
    assert passing(ran, "canonical") == [problem["task_id"] for problem in problems]


def test_no_tests_are_satisfied_by_a_constant(ran):
    assert passing(ran, "none") == []


def test_the_document_counts_what_parses_and_what_passes(ran, problems):
    rows, programs = len(problems) * len(ANSWERS), len(problems) * len(PARSE)
    document, tests = ran.document, ran.document["metrics"]["tests"]
    assert (document["subjects"], document["scored"], document["coverage"]) == (rows, rows, 1)
    assert document["score"]["by_tier"] == {"truth": programs, "proxy": rows - programs}
    assert document["metrics"]["proxy/syntax"]["mean"] == programs / rows
    assert (tests["scored"], tests["total"], tests["mean"]) == (programs, rows, len(problems) / programs)
    # 1 where both are, .5 where the program runs and fails, 0 where the gate holds it back
    assert document["score"]["mean"] == (len(problems) + len(problems) / 2) / rows


def test_the_gate_spares_the_sandbox_what_does_not_parse(ran, problems):
    spared = len(problems) * (len(ANSWERS) - len(PARSE))
    tests = ran.document["metrics"]["tests"]
    assert (tests["spared"], tests["saved"]) == (spared, {"usd": "0", "msat": str(spared * MSAT)})
    assert ran.document["cost"]["msat"] == str(len(problems) * len(PARSE) * MSAT)
    assert f"  the gate spared {spared:,} runs of tests: {spared * MSAT} msat" in ran.text.splitlines()


def test_an_interrupted_run_comes_to_the_same(problems, tmp_path):
    undisturbed, interrupted = tmp_path / "undisturbed", tmp_path / "interrupted"
    for folder in (undisturbed, interrupted):
        folder.mkdir()
        write(folder, problems[::8])
    complete = json.loads(dicast(undisturbed, "run", "pipeline.yaml", "--json"))
    part = interrupt(interrupted)
    assert 0 < part["metrics"]["tests"]["spared"] < complete["metrics"]["tests"]["spared"]
    resumed = json.loads(dicast(interrupted, "run", "pipeline.yaml", "--resume", "--json"))
    assert settled(resumed) == settled(complete)
    assert resumed["spend_lost"] == part["spend_lost"]


def interrupt(folder: Path) -> dict:
    """Run the pipeline until it has judged a subject, send it Ctrl-C, and return its document."""
    command = [sys.executable, "-m", "dicast", "run", "pipeline.yaml", "--json"]
    started = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        wait_for(lambda: judged(folder) > 0)
        started.send_signal(signal.SIGINT)
        document = json.loads(started.communicate(timeout=200)[0])
    finally:
        started.kill()
        started.wait()
    assert (document["stopped"], started.returncode) == ({"reason": "interrupted"}, 130)
    return document


def judged(folder: Path) -> int:
    path = folder / ".dicast" / "ledger.db"
    if not path.exists():
        return 0
    with closing(connect(path)) as ledger:
        if not ledger.execute("SELECT name FROM sqlite_master WHERE name = 'events'").fetchone():
            return 0  # it is just being made
        (count,) = ledger.execute("SELECT count(*) FROM events WHERE type = 'eval.completed'").fetchone()
    return count


def settled(document: dict) -> dict:
    """Return a run's document without its ids, and without the calls that an interruption has lost."""
    return {key: value for key, value in document.items() if key not in ("run_id", "ledger", "spend_lost")}
