"""Runners that cannot start, and test commands detected in the workspace."""

from __future__ import annotations

import asyncio
import json
import subprocess

import pytest
from boxes import needs_bubblewrap, with_pytest

from dicast import ConfigError, Failure, Score, Subject
from dicast_sandbox import Command, PassingTests, VerificationDelta

pytestmark = needs_bubblewrap

RIGHT, WRONG = "def f(x): return x * x\n", "def f(x): return x\n"
TESTS = {"test_it.py": "from solution import f\ndef test_a(): assert f(2) == 4\n"}
UNITTEST = "import unittest\nfrom solution import f\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(f(2), 4)\n"


def judge(metric, output=RIGHT, **subject) -> Score | Failure:
    return asyncio.run(metric.score(Subject("row", "1", output=output, **subject)))


@pytest.fixture(scope="module")
def box():
    with with_pytest() as sandbox_with_pytest:
        yield sandbox_with_pytest


def npm(script: str) -> dict[str, str]:
    return {"package.json": json.dumps({"scripts": {"test": script}})}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("command", "files", "message"),
    [
        ("no-such-runner test", {}, "no program 'no-such-runner'"),
        (("no-such-runner",), {}, "no program 'no-such-runner'"),
        ("cd sub && X=1 no-such-runner | true && true", {}, None),
        ("cd sub && X=1 no-such-runner && true", {"sub/a": ""}, "no program 'no-such-runner'"),
        ("/opt/no/runner", {}, "no program '/opt/no/runner'"),
        ("./run.sh", {}, "no 'run.sh' in the workspace"),
        ("./run.sh", {"run.sh": "true\n"}, "'run.sh' in the workspace is not executable"),
        ("python3 -m no_such_module.cli", {}, "No module named 'no_such_module'"),
        ("python3 -B -X dev -m pytest -q", TESTS, "No module named 'pytest'"),
        ("npm test", npm("no-such-runner --all"), "no program 'no-such-runner'"),
        ("sh -c 'no-such-runner'", {}, "no program 'no-such-runner'"),
        (("bash", "-ec", "cd sub && exec no-such-runner -q"), {"sub/a": ""}, "no program 'no-such-runner'"),
        (("sh", "-c", "cd sub && ./run.sh"), {"run.sh": "#!/bin/sh\n"}, "no 'sub/run.sh' in the workspace"),
        ("sh -c 'no-such-runner || true'", {}, None),
        ("env no-such-runner", {}, "no program 'no-such-runner'"),
        ('/usr/bin/env X=1 sh -c "no-such-runner"', {}, "no program 'no-such-runner'"),
        ("env PATH=/opt no-such-runner", {}, None),
        ("bash missing.sh", {}, "no 'missing.sh' in the workspace"),
        ("bash -e sub/run.sh", {"sub/run.sh": "true\n"}, None),
        ("./run.sh", {"run.sh": "#!/no/such/interpreter -x\n"}, "no program '/no/such/interpreter'"),
        ("./run.sh", {"run.sh": "#!/usr/bin/env no-such-interpreter\n"}, "no program 'no-such-interpreter'"),
        ("sh run.sh", {"run.sh": "#!/no/such/interpreter\n"}, None),
        ("npm test", npm("env no-such-runner"), "no program 'no-such-runner'"),
    ],
)
def test_a_runner_that_cannot_start_is_a_failure_that_names_it(command, files, message):
    for metric in (Command, PassingTests, VerificationDelta):
        result = judge(metric(command=command, files=files), context={"tests_passing": 1})
        if message is None:
            assert not isinstance(result, Failure) or metric is VerificationDelta
        else:
            assert isinstance(result, Failure), result
            assert (result.kind, message in result.message) == ("crashed", True), result


@pytest.mark.parametrize(
    ("command", "output_file", "output"),
    [
        ("python3 solution.py", "solution.py", "raise SystemExit(127)"),
        ("sh solution.sh", "solution.sh", "no-such-program"),
        ("./solution.sh", "solution.sh", "no first line says what runs it"),
        ("./solution.sh", "solution.sh", "#!/no/such/interpreter\n"),
        ("python3 -m solution", "solution.py", "import os; print('no program', 'no module'); os._exit(126)"),
        ("python3 -m pack.tool", "solution.py", "print('sh: 1: python3: not found'); raise SystemExit(127)"),
        ("python3 -c 'import solution'", "solution.py", "import no_such_module"),
        ("test -x gone || no-such-runner", "solution.py", ""),
        ("env sh solution.sh", "solution.sh", "exec no-such-program"),
        ("sh -c 'python3 solution.py'", "solution.py", "print('1 test'); raise SystemExit(127)"),
        ("sh -c './solution.sh'", "solution.sh", "#!/no/such/interpreter\n"),
    ],
)
def test_a_candidate_cannot_make_its_0_a_runner_that_could_not_start(command, output_file, output):
    files = {"pack/tool.py": "import sys; sys.path.insert(0, '.'); import solution\n"}
    result = judge(Command(command=command, output_file=output_file, files=files), output)
    assert isinstance(result, Score), result
    assert result.value == 0


def test_a_patch_that_leaves_out_the_program_it_was_to_write_scores_0(tmp_path):
    (tmp_path / "a").write_text("1\n")
    patch = "--- a/a\n+++ b/a\n@@ -1 +1 @@\n-1\n+2\n"
    for command in ("./tool", "python3 -m tool"):
        result = judge(Command(command=command, output_as="patch", template=tmp_path), patch)
        assert isinstance(result, Score), result
        assert result.value == 0
    result = judge(Command(command="python3 -m pytest", output_as="patch", template=tmp_path), patch)
    assert "No module named 'pytest'" in result.message


def test_what_the_isolated_candidate_runs_by_is_looked_for_too():
    metric = PassingTests(
        command="python3 -m unittest test_it", files={"test_it.py": UNITTEST},
        mode="isolated", candidate="no-such-runtime solution.x", output_file="solution.x",
    )  # fmt: skip
    assert "no program 'no-such-runtime'" in judge(metric).message


def test_a_runner_is_looked_for_once_for_all_subjects():
    metric, looks = Command(command="python3 -c 'raise SystemExit(1)'"), []

    class Counting:
        name = "counting"

        async def execute(self, program):
            looks.append(program.command[:2])
            return await metric.backend.execute(program)

    async def run():
        async with Command(command=metric.command, backend=Counting()).open(None) as live:
            return [(await live.score(Subject("row", str(number), output="x"))).value for number in range(4)]

    assert asyncio.run(run()) == [0, 0, 0, 0]
    assert len(looks) == 5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("files", "command", "scores"),
    [
        (TESTS, "python3 -m pytest", (1, 0)),
        ({"pyproject.toml": "[project]\n", "package.json": "{}", "tests/test_it.py": TESTS["test_it.py"]}, "python3 -m pytest", (1, 0)),
        ({"Makefile": "all:\n\ntest:\n\tpython3 -c 'from solution import f; assert f(2) == 4'\n", **npm('echo "Error: no test specified" && exit 1')},
         "make test", (1, 0)),
    ],
)  # fmt: skip
def test_without_a_command_the_workspace_says_how_it_is_tested(box, files, command, scores):
    metric = PassingTests(files=files, output_file="solution.py", backend=box)
    results = [judge(metric, output) for output in (RIGHT, WRONG)]
    assert tuple(score.value for score in results) == scores, results
    assert all(score.details.startswith(f"{command} (exit ") for score in results)


@pytest.mark.parametrize(
    ("files", "command"),
    [(npm("no-such-runner"), "npm test"), ({"Cargo.toml": ""}, "cargo test"), ({"go.mod": ""}, "go test ./...")],
)
def test_every_kind_of_workspace_has_its_command(files, command):
    result = judge(PassingTests(files=files, output_file="a.x"))
    message = result.message if isinstance(result, Failure) else result.details
    assert command.partition(" ")[0] in message
    assert command in message or isinstance(result, Failure)


def test_the_command_is_found_in_the_workspace_as_it_is_before_the_candidate(tmp_path):
    (tmp_path / "Makefile").write_text("test:\n\tfalse\n")
    result = judge(PassingTests(template=tmp_path, output_file="pytest.ini"), "")
    assert result.details.startswith("make test (exit 2)")
    metric = PassingTests(files={"package.json": "{{ output }}", "Makefile": "test:\n\tfalse\n"}, output_file="a.txt")
    assert judge(metric, npm("true")["package.json"]).details.startswith("make test (exit 2)")


def test_a_workspace_that_says_no_command_is_an_error_that_says_what_was_looked_for(tmp_path):
    for metric in (PassingTests, VerificationDelta):
        with pytest.raises(ConfigError, match=r"searched for: pyproject\.toml, .*Cargo\.toml.*set 'command'"):
            metric()
        with pytest.raises(ConfigError, match="searched for"):
            metric(template=tmp_path, files={"data.txt": "x"})
        result = judge(metric(files="context.files"), context={"files": {"data.txt": "x"}, "tests_passing": 1})
        assert (result.kind, "row 1: no file in the workspace determines" in result.message) == ("missing_input", True)


def test_a_delta_finds_its_command_in_a_repository(tmp_path, box):
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    (tmp_path / "solution.py").write_text(WRONG)
    (tmp_path / "test_it.py").write_text(TESTS["test_it.py"])
    git = ["git", "-C", tmp_path, "-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run([*git, "add", "-A"], check=True)
    subprocess.run([*git, "commit", "-qm", "one"], check=True)
    patch = f"--- a/solution.py\n+++ b/solution.py\n@@ -1 +1 @@\n-{WRONG}+{RIGHT}"
    result = judge(VerificationDelta(repository=tmp_path, output_as="patch", backend=box), patch)
    assert (result.value, result.signals["tests_before"], result.signals["tests_after"]) == (1, 0, 1), result
