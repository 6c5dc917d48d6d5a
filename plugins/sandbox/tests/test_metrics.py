"""Scores, details, signals and costs of the metrics, and the options that they refuse."""

from __future__ import annotations

import asyncio
import shutil
import sys
from pathlib import Path

import pytest
from boxes import needs_bubblewrap, with_pytest

from dicast import ConfigError, Cost, Failure, Score, Subject
from dicast_sandbox import Bubblewrap, Command, PassingTests, Unconfined, VerificationDelta
from dicast_sandbox.backends.bubblewrap import sandbox

pytestmark = needs_bubblewrap


def judge(metric, output="", **subject) -> Score | Failure:
    return asyncio.run(metric.score(Subject("row", "1", output=output, **subject)))


def test_a_command_that_succeeds_scores_1():
    result = judge(Command(command="cat output.txt"), "hello")
    assert (result.value, result.confidence, result.cost) == (1.0, 1.0, Cost(500, "msat"))
    assert result.details == "cat output.txt (exit 0)\nhello"
    assert result.signals["exit_code"] == 0


def test_a_command_that_fails_scores_0():
    result = judge(Command(command=["sh", "-c", "echo no; exit 3"]))
    assert (result.value, result.confidence) == (0.0, 0.8)
    assert result.details == "sh -c echo no; exit 3 (exit 3)\nno"


def test_another_exit_code_may_be_expected():
    assert judge(Command(command="exit 3", expected_exit_code=3)).value == 1


def test_a_limit_that_is_only_guessed_spoils_no_result():
    words = "echo 'error: File too large'; exit 1"
    result = judge(Command(command=words, expected_exit_code=1))
    assert (result.value, "limit" in result.signals, "limit" in result.details) == (1, False, False)
    result = judge(Command(command=words))
    assert (result.value, result.signals["limit"]) == (0, "file_size")
    tests = "import unittest\nclass T(unittest.TestCase):\n  def test_a(self): pass\n  def test_b(self): raise MemoryError\n"
    metric = VerificationDelta(command="python3 -m unittest t", files={"t.py": tests})
    result = judge(metric, context={"tests_passing": 0})
    assert (result.value, result.signals["tests_after"], "limit" in result.signals) == (1, 1, False)
    result = judge(metric, context={"tests_passing": 2})
    assert (result.value, result.signals["tests_after"], result.signals["limit"]) == (0, 1, "memory")


def test_the_slot_keys_timeout_is_the_wall_limit():
    result = judge(Command(command="sleep 30", timeout=0.5))
    assert (result.value, result.signals["limit"]) == (0.0, "wall")
    assert "exceeded its limit on wall" in result.details


def test_no_output_is_not_run():
    result = asyncio.run(Command(command="true").score(Subject("row", "1")))
    assert (result.kind, result.message, result.cost) == ("missing_input", "row 1 has no output to run", Cost.zero())


def test_a_field_of_the_output_may_be_judged():
    metric = Command(command="test $(cat output.txt) = 5", field="a.b")
    assert judge(metric, {"a": {"b": "5"}}).value == 1
    assert judge(metric, {"a": {}}).value == 0


def test_files_are_filled_from_the_subject():
    metric = Command(command="cat a/b.txt", files={"a/b.txt": "{{ id }} {{ context.x }} {{ x }} {{output}}"})
    assert judge(metric, "o", context={"x": 4}).details.endswith("\n1 4 4 o")


def test_files_may_be_the_subjects_own():
    metric = Command(command="cat x y", files="context.files")
    assert judge(metric, context={"files": {"x": "1", "y": "2"}}).details.endswith("\n12")
    assert judge(metric).kind == "missing_input"
    assert judge(metric, context={"files": {"../x": "1"}}).kind == "missing_input"


def test_what_a_file_needs_and_the_subject_has_not_is_missing_input():
    result = judge(Command(command="true", files={"x": "{{ context.nothing }}"}))
    assert (result.kind, result.message) == ("missing_input", "row 1 has no 'context.nothing'")


def test_a_template_is_unpacked_first(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.txt").write_text("template")
    (tmp_path / "run.sh").write_text("#!/bin/sh\ncat sub/a.txt sub/link output.txt")
    (tmp_path / "run.sh").chmod(0o755)
    (tmp_path / "output.txt").write_text("not this")
    (tmp_path / "sub" / "link").symlink_to("a.txt")
    result = judge(Command(command="ls -A && ./run.sh", template=tmp_path), "!")
    assert result.details.endswith("\noutput.txt\nrun.sh\nsub\ntemplatetemplate!"), result


def test_a_template_that_has_changed_is_read_again(tmp_path):
    metric = Command(command="grep -q second told", template=tmp_path)
    (tmp_path / "told").write_text("first")
    assert judge(metric, "").value == 0.0
    (tmp_path / "told").write_text("second")
    assert judge(metric, "").value == 1.0


C = '#include <stdio.h>\nint twice(int);\nint main(){if(twice(2)!=4) return 1; puts("1..1\\nok 1"); return 0;}'


@pytest.mark.parametrize(
    ("command", "files", "output_file", "good", "bad"),
    [
        ("node check.js", {"check.js": "if (require('./a.js').f(2) !== 4) process.exit(1)"}, "a.js", "exports.f = x => x * x", "exports.f = x => x"),
        ("gcc -o c c.c a.c && ./c", {"c.c": C}, "a.c", "int twice(int x){return 2*x;}", "int twice(int x){return x;}"),
        ("test $(sh a.sh 2) = 4", None, "a.sh", "echo $(($1 * $1))", "echo $1"),
    ],
    ids=["node", "c", "shell"],
)  # fmt: skip
def test_any_language_that_is_installed_can_be_run(command, files, output_file, good, bad):
    if not shutil.which(command.split()[0], path="/usr/local/bin:/usr/bin:/bin"):
        pytest.skip(f"{command.split()[0]} is not installed")
    metric = Command(command=command, files=files, output_file=output_file)
    assert [judge(metric, text).value for text in (good, bad)] == [1.0, 0.0]


def test_tests_pass_reads_node_s_own_report():
    if not shutil.which("node", path="/usr/local/bin:/usr/bin:/bin"):
        pytest.skip("node is not installed")
    tests = "const t = require('node:test'), a = require('node:assert');\nt('a', () => a.equal(require('./a.js').f(2), 4));\nt('b', () => 1);"
    metric = PassingTests(command="node --test a.test.js", output_file="a.js", files={"a.test.js": tests})
    assert judge(metric, "exports.f = x => x * x").signals["passed"] == 2
    result = judge(metric, "exports.f = x => x")
    assert (result.value, result.signals["failed"]) == (0, 1)


def test_fewer_tests_than_there_are_is_no_pass():
    files = {"t.py": "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): pass\n"}
    command = "python3 -m unittest t"
    assert judge(PassingTests(command=command, files=files, tests=1)).value == 1
    result = judge(PassingTests(command=command, files=files, tests=2))
    assert (result.value, "1 passed of 2" in result.details) == (0, True)


def test_a_test_that_is_skipped_is_none_that_passed():
    skip = "import unittest\nclass T(unittest.TestCase):\n  def test_a(self): pass\n  @unittest.skip('so')\n  def test_b(self): pass\n"
    options = {"command": "python3 -m unittest t", "files": {"t.py": skip}}
    result = judge(PassingTests(**options, tests=2))
    assert (result.value, "1 passed of 2" in result.details) == (0, True)
    assert judge(PassingTests(**options, tests=1)).value == 1
    assert judge(PassingTests(**options)).value == 1


@pytest.mark.parametrize(("passing", "value"), [(1, 1.0), (2, 0.5), (3, 0.0), (2.0, 0.5)])
def test_the_delta_is_what_passes_now_against_before(passing, value):
    result = judge(VerificationDelta(command="echo 2 passed"), context={"tests_passing": passing})
    assert (result.value, result.confidence, result.signals["forgeable"]) == (value, 0.9, True)
    assert result.signals["parsed"] is True
    assert f"tests before: {int(passing)}, after: 2, delta: {2 - int(passing)}" in result.details


def test_a_delta_needs_to_know_what_passed_before():
    assert judge(VerificationDelta(command="echo 2 passed")).kind == "missing_input"
    for value in ("1", 1.5, True, -1, float("nan")):
        result = judge(VerificationDelta(command="echo 2 passed"), context={"tests_passing": value})
        assert (result.kind, f"{value!r} as context.tests_passing" in result.message) == ("missing_input", True)


def test_a_missing_baseline_counts_0_where_the_option_says_so():
    metric = VerificationDelta(command="echo 2 passed", baseline_missing="zero")
    result = judge(metric)
    assert (result.value, result.signals["tests_before"], result.signals["tests_after"]) == (1, 0, 2)
    assert judge(metric, context={"tests_passing": "1"}).kind == "missing_input"


@pytest.mark.parametrize(("command", "before", "value"), [("echo fine", 1, 0), ("exit 1", 1, 0), ("echo fine", 0, 0.5)])
def test_an_output_without_a_count_is_no_test_and_says_so(command, before, value):
    result = judge(VerificationDelta(command=command), context={"tests_passing": before})
    assert (result.value, result.confidence) == (value, 0.9)
    assert (result.signals["tests_after"], result.signals["parsed"]) == (0, False)


def test_a_delta_without_the_report_that_there_should_be_is_none_passed():
    options = {"command": "python3 -m unittest t; true", "output_file": "t.py"}
    for code in ("import os; os._exit(0)", "print('77 passed', flush=True)\nimport os; os._exit(0)"):
        result = judge(VerificationDelta(**options), code, context={"tests_passing": 1})
        assert (result.value, result.signals["tests_after"]) == (0, 0), result


def test_a_delta_of_words_can_be_forged_in_either_mode():
    isolated = {"mode": "isolated", "output_file": "solution.py"}
    for options, forgeable in (({}, True), ({"report": "tap"}, False)):
        metric = VerificationDelta(command="echo 1..2; echo ok; echo ok; echo 2 passed", **isolated, **options)
        result = judge(metric, context={"tests_passing": 1})
        assert (result.value, result.signals["tests_after"], result.signals["forgeable"]) == (1, 2, forgeable)


def test_no_sandbox_at_all_has_to_be_asked_for():
    with pytest.raises(ConfigError, match="unsafe: true"):
        Command(command="true", backend=Unconfined())
    result = judge(Command(command="cat output.txt; exit 4", backend=Unconfined(), unsafe=True), "here")
    assert result.details == "cat output.txt; exit 4 (exit 4)\nhere"
    result = judge(Command(command="sleep 9", backend=Unconfined(), unsafe=True, timeout=0.3))
    assert result.signals["limit"] == "wall"


def test_a_sandbox_that_does_not_work_says_what_to_do(monkeypatch):
    sandbox._check.cache_clear()
    monkeypatch.setenv("PATH", "/nowhere")
    with pytest.raises(ConfigError, match="bwrap is not installed; apt install bubblewrap.*name another backend"):
        Command(command="true")
    sandbox._check.cache_clear()


def test_a_sandbox_that_cannot_start_is_a_failure(monkeypatch):
    metric = Command(command="true")
    monkeypatch.setattr("dicast_sandbox.backends.bubblewrap.arguments._NEEDED", ())
    monkeypatch.setattr(
        "dicast_sandbox.backends.bubblewrap.program.bwrap_arguments",
        lambda *_: ["--ro-bind", "/nowhere", "/x", "--", "true"],
    )
    result = judge(metric)
    assert (result.kind, result.retryable) == ("crashed", True)
    assert "could not start" in result.message


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"command": ""}, "command is empty"),
        ({"timeout": 0.0}, "timeout, expected more than 0 and less than 1e9 seconds, got 0.0"),
        ({"timeout": 1e12}, "timeout, expected more than 0 and less than 1e9 seconds"),
        ({"output_file": "../x"}, "'../x' is not the name of a file"),
        ({"files": {"/x": ""}}, "'/x' is not the name of a file"),
        ({"mode": "isolated", "files": {"x": "{{ output }}"}}, "keeps the output out"),
        ({"mode": "isolated"}, "is not a Python file"),
        (
            {"mode": "isolated", "output_file": "lib/sol.py", "files": {"t.py": "import os\nfrom lib.sol import *\n"}},
            r"'t\.py' has 'from lib\.sol import \*'.*name what it imports",
        ),
        ({"candidate": "x"}, "candidate needs mode: isolated"),
        ({"candidate_files": ("x",)}, "candidate_files needs mode: isolated"),
        ({"mode": "isolated", "candidate_files": ("x",)}, "needs a template or a repository"),
        ({"mode": "isolated", "candidate_files": ("x",), "template": Path(__file__).parent}, "has no 'x'"),
        ({"report": "junit"}, "report_file"),
        ({"backend": Bubblewrap(mounts=("/no/such/folder",))}, "does not exist"),
    ],
)
def test_options_that_cannot_work_are_refused(options, message):
    with pytest.raises(ConfigError, match=message):
        PassingTests(**{"command": "true", **options})


@pytest.fixture(scope="module")
def box():
    """Provide a sandbox with pytest."""
    with with_pytest() as sandbox_with_pytest:
        yield sandbox_with_pytest


@pytest.mark.slow
def test_pytest_s_own_report_is_read_from_what_is_mounted(box):
    tests = (
        "from solution import f\nimport pytest\ndef test_a(): assert f(2) == 4\n@pytest.mark.skip\ndef test_b(): pass\n"
    )
    command = "python3 -m pytest -q test_it.py"
    metric = PassingTests(command=command, output_file="solution.py", files={"test_it.py": tests}, backend=box)
    result = judge(metric, "def f(x): return x * x")
    assert (result.value, *(result.signals[name] for name in ("passed", "skipped", "collected"))) == (1, 1, 1, 2), (
        result
    )
    assert judge(metric, "def f(x): return x").signals["failed"] == 1
    assert judge(metric, "import os; os._exit(0)").details.splitlines()[0].endswith("no pytest report that can be read")


@pytest.mark.slow
@pytest.mark.parametrize(
    "command",
    [
        "cd tests && python3 -m pytest -q",
        "cd tests; python3 -m pytest -q --junitxml=out.xml",
        "python3 -m pytest -q --junit-xml out.xml tests",
        ("python3", "-m", "pytest", "--junitxml=/tmp/out.xml", "tests"),
        "cd tests && cd .. && python3 -m pytest --rootdir=tests tests",
    ],
)
def test_pytest_s_report_is_found_wherever_it_is_written(box, command):
    metric = PassingTests(command=command, files={"tests/test_it.py": "def test_a(): pass\n"}, backend=box)
    result = judge(metric)
    assert (result.value, result.signals["passed"], result.signals["collected"]) == (1, 1, 1), result


@pytest.mark.slow
def test_pytest_s_report_is_found_without_a_sandbox():
    command = (sys.executable, "-m", "pytest", "-q", "-p", "no:xdist")
    metric = PassingTests(
        command=command, files={"test_it.py": "def test_a(): pass\n"}, backend=Unconfined(), unsafe=True
    )
    assert judge(metric).signals["passed"] == 1


def test_a_delta_of_pytest_without_its_report_is_none_passed(box):
    tests = {"test_it.py": "from solution import f\ndef test_a(): assert f(2) == 4\n"}
    metric = VerificationDelta(command="python3 -m pytest -q", output_file="solution.py", files=tests, backend=box)
    for code in ("import os; os._exit(0)", "import os; print('77 passed', flush=True); os._exit(0)"):
        result = judge(metric, code, context={"tests_passing": 1})
        assert (result.value, result.signals["tests_after"]) == (0, 0), result
