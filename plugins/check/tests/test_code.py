"""Checks by functions of the user: consent, results, failures."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from hashlib import sha256

import pytest

from dicast import ConfigError, Subject, run
from dicast.testing import run_pipeline

PYTHON = """
import asyncio, helper

def short(output, row):
    print("this is no answer")
    return len(output) <= helper.MOST

def graded(output, row):
    return {"score": 0.7, "reason": "so so"}

def decided(output, row):
    return {"pass": output == "yes", "score": 0.2, "reason": "it says so"}

async def same(output, row):
    await asyncio.sleep(0)
    return output == row["expected"]

def number(output, row):
    return float(output)

def boom(output, row):
    raise ValueError("no such thing")

def slow(output, row):
    import time
    time.sleep(30)

def leave(output, row):
    raise SystemExit(7)
"""
SCRIPT = """
exports.short = (output, row) => { console.log("this is no answer"); return output.length <= 3; };
exports.graded = async (output, row) => ({ score: 0.7, reason: "so so" });
exports.boom = () => { throw new TypeError("no such thing"); };
module.exports.default = (output, row) => output === row.expected;
"""
node = pytest.mark.skipif(shutil.which("node") is None, reason="Node.js is not installed")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "checks.py").write_text(PYTHON)
    (tmp_path / "helper.py").write_text("MOST = 3\n")
    (tmp_path / "checks.js").write_text(SCRIPT)
    return tmp_path


def judged(metric, *outputs, trust="[checks.py, checks.js]", **context):
    """Return the scores of the outputs, or the kinds and messages of their failures."""
    subjects = [Subject("row", str(number), "", output, context=context) for number, output in enumerate(outputs)]
    done = run_pipeline(f"metrics: [{{{metric}}}]\ntrust: {trust}\n", subjects=subjects)
    scores = {verdict.subject_id: verdict.score for verdict in done.verdicts}
    for event in done.of("eval.failed"):
        scores[event.payload["subject_id"]] = (event.payload["failure_mode"], event.payload["error_message"])
    return [scores[subject.id] for subject in subjects]


@pytest.mark.parametrize(
    ("function", "outputs", "expected"),
    [
        ("short", ["abc", "abcd"], [1, 0]),
        ("graded", ["a"], [0.7]),
        ("decided", ["yes", "no"], [1, 0]),
        ("same", ["a", "b"], [1, 0]),
        ("number", ["0.25"], [0.25]),
    ],
)
def test_a_function_of_python_scores(function, outputs, expected, folder):
    assert judged(f"check/python: {{file: checks.py, function: {function}}}", *outputs, expected="a") == expected


@node
@pytest.mark.parametrize(
    ("options", "expected"), [("function: short", [1, 0]), ("function: graded", [0.7, 0.7]), ("negate: true", [0, 1])]
)
def test_a_function_of_javascript_scores(options, expected, folder):
    assert judged(f"check/javascript: {{file: checks.js, {options}}}", "abc", "abcd", expected="abc") == expected


@pytest.mark.parametrize(
    ("options", "output", "kind", "message"),
    [
        ("function: boom", "a", "crashed", "ValueError: no such thing"),
        ("function: leave", "a", "crashed", "the exit code is 7"),
        ("function: slow, timeout: 0.3", "a", "timeout", "took longer than 0.3 s"),
        ("function: number", "57", "invalid_score", "returned 57; a score is in [0, 1]"),
        ("function: number", "nan", "invalid_score", "it returned nan"),
        (
            "function: graded, complete: true",
            "a",
            "invalid_score",
            "return true or false, a number, or {pass, score, reason}",
        ),
        ("function: shrot", "a", "crashed", "the file has no function 'shrot'; it has short"),
    ],
)
def test_a_function_that_gives_no_score_is_a_failure(options, output, kind, message, folder):
    ((failure, text),) = judged(f"check/python: {{file: checks.py, {options}}}", output)
    assert failure == kind
    assert message in text


@node
def test_an_exception_of_javascript_is_a_failure(folder):
    ((kind, message),) = judged("check/javascript: {file: checks.js, function: boom}", "a")
    assert (kind, message) == ("crashed", "check/javascript: checks.js:boom: TypeError: no such thing")


def test_all_files_without_consent_are_named_at_once(folder):
    (folder / "more.py").write_text("def short(output, row):\n    return True\n")
    with pytest.raises(ConfigError) as caught:
        judged("check/assertions: {code: [checks.py, more.py]}", "a", trust="[]")
    assert str(caught.value).count("is code and not trusted") == 2
    assert "Read them, then add trust: [checks.py, more.py] to the pipeline file" in str(caught.value)


@pytest.mark.parametrize(
    "metric", ["check/python: {file: checks.py, function: short}", "check/assertions: {code: [checks.py]}"]
)
def test_code_without_consent_refuses_the_run_with_its_digest_and_both_ways_out(metric, folder):
    with pytest.raises(ConfigError) as caught:
        judged(metric, "a", trust="[]")
    digest = sha256((folder / "checks.py").read_bytes()).hexdigest()
    assert f"checks.py (SHA-256 {digest[:12]}…) is code and not trusted" in str(caught.value)
    assert "trust: [checks.py]" in str(caught.value)
    assert "--yes" in str(caught.value)


def test_code_that_a_row_names_never_runs_without_consent(folder):
    mark = folder / "ran"
    (folder / "evil.py").write_text(f"open({str(mark)!r}, 'w')\ndef f(output, row):\n    return True\n")
    items = [{"check": "python", "file": "evil.py", "function": "f"}]
    ((kind, message),) = judged("check/assertions: {}", "a", **{"assert": items})
    assert kind == "missing_input"
    assert "evil.py is code that is not trusted" in message
    assert not mark.exists()
    assert judged("check/assertions: {}", "a", trust="[evil.py]", **{"assert": items}) == [1]
    assert mark.exists()


def test_the_command_allows_all_code_for_one_run(folder):
    (folder / "rows.jsonl").write_text(
        '{"output": "abc", "assert": [{"check": "python", "file": "checks.py", "function": "short"}]}\n'
    )
    (folder / "p.yaml").write_text(
        "source: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [check/assertions, {check/python: {file: checks.py, function: short}}]\n"
    )
    refused, allowed = (
        subprocess.run(
            [sys.executable, "-m", "dicast", "run", "p.yaml", *options], capture_output=True, text=True, check=False
        )
        for options in ([], ["--yes"])
    )
    assert (refused.returncode, allowed.returncode) == (2, 0)
    assert "is code and not trusted" in refused.stderr


def test_a_file_is_trusted_by_its_place_and_not_by_its_name(folder):
    (folder / "other").mkdir()
    (folder / "other" / "checks.py").write_text("def short(output, row):\n    return True\n")
    with pytest.raises(ConfigError, match="other/checks.py"):
        judged("check/python: {file: other/checks.py, function: short}", "a", trust="[checks.py]")


def test_a_changed_file_has_another_fingerprint_and_does_not_run(folder):
    pipeline = {
        "metrics": [{"check/python": {"file": "checks.py", "function": "short"}}],
        "trust": ["checks.py"],
        "ledger": {"ledger/sqlite": {"path": "l.db"}},
    }
    rows = [Subject("row", str(number), "", "a") for number in range(2)]
    first = run(pipeline, subjects=rows)
    (folder / "checks.py").write_text(PYTHON.replace("<=", "<"))
    second = run(pipeline, subjects=rows)
    prints = [{verdict.fingerprint for verdict in done.verdicts} for done in (first, second)]
    assert prints[0].isdisjoint(prints[1])
    (folder / "checks.py").write_text(
        "import pathlib\ndef short(output, row):\n    pathlib.Path(__file__).open('a').write('#')\n    return True\n"
    )
    third = run({**pipeline, "executor": {"dicast/async": {"concurrency": 1}}}, subjects=rows)
    assert third.failures == {"crashed": 1}


@pytest.mark.parametrize("name", ["a\0b.py", "x" * 5000 + ".py", "/dev/zero", "."])
def test_a_name_in_a_row_that_is_no_file_of_code_fails_the_row(folder, name):
    items = [{"check": "python", "file": name, "function": "f"}]
    text = "metrics: [check/assertions: {}]\n"
    pipeline = folder / "pipeline.yaml"
    pipeline.write_text(
        f"source: {{rows/jsonl: {{path: rows.jsonl}}}}\n{text}ledger: {{ledger/sqlite: {{path: ledger.db}}}}\n"
    )
    (folder / "rows.jsonl").write_text(json.dumps({"id": "1", "output": "a", "assert": items}) + "\n")
    command = [sys.executable, "-m", "dicast", "run", "pipeline.yaml", "--yes", "--json"]
    limited = ["sh", "-c", 'ulimit -v 4000000 && exec "$@"', "sh", *command]
    process = subprocess.run(limited, cwd=folder, capture_output=True, text=True, timeout=200, check=False)
    assert json.loads(process.stdout)["failures"] == {"missing_input": 1}, process.stderr
