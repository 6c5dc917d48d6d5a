"""Odd file names, numbers and files on the command line end with exit 2 and a message, and block nothing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from dicast._kernel.cli import main

LONG = "a" * 5_000
PIPELINE = "source: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [proxy/format]\nledger: {ledger/sqlite: {path: l.db}}\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "rows.jsonl").write_text('{"id": "a", "output": "x"}\n')
    (tmp_path / "p.yaml").write_text(PIPELINE)
    (tmp_path / "include.yaml").write_text("include: pipe.yaml\n")
    (tmp_path / "label.yaml").write_text(PIPELINE.replace("proxy/format", "{proxy/format: {as: ''}}"))
    (tmp_path / "blank.yaml").write_text(PIPELINE.replace("proxy/format", "{proxy/format: {as: ' '}}"))
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe.yaml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("command", "named"),
    [
        (["run", f"{LONG}.yaml"], "File name too long"),
        (["check", LONG], "name too long"),
        (["show", "x", "--ledger", LONG], LONG[:20]),
        (["verdicts", "--ledger", f"{LONG}/l.db"], LONG[:20]),
        (["run", "p.yaml", "--set", f"source.rows/jsonl.path={LONG}"], "File name too long"),
        (["run", "p.yaml", "--set", f'ledger={{"ledger/sqlite": {{"path": "{LONG}"}}}}'], "too long"),
        (["run", "p.yaml", "--limit", "9" * 23], "0<=x<=9007199254740992"),
        (["run", "p.yaml", "--head", "9" * 23], "1<=x<=9007199254740992"),
        (["verdicts", "--limit", "9" * 23], "0<=x<=9007199254740992"),
        (["check", "label.yaml"], "a label must not be empty"),
        (["check", "blank.yaml"], "a label must not be empty"),
        (["show", "x\udcff", "--ledger", "l.db"], "is not UTF-8"),
        (["run", "bad\udcff.yaml"], "is not UTF-8"),
    ],
)
def test_what_is_odd_is_named_and_ends_with_exit_2(folder, capfd, command, named):
    assert main(command) == 2
    said = capfd.readouterr().err
    assert named in said
    assert len(said.splitlines()) == 1
    assert not (folder / "l.db").exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with names are POSIX")
@pytest.mark.parametrize(
    "command",
    [["run", "pipe.yaml"], ["check", "pipe.yaml"], ["check", "include.yaml"], ["check", "/dev/../{}/pipe.yaml"]],
)
def test_a_pipe_that_nobody_writes_to_is_refused_and_not_waited_for(folder, command):
    command = [part.format(str(folder).lstrip("/")) for part in command]  # a path through /dev is no descriptor's
    done = subprocess.run(
        [sys.executable, "-m", "dicast", *command], capture_output=True, text=True, timeout=200, check=False
    )
    assert done.returncode == 2
    assert "pipe.yaml is a named pipe; write its content to a file" in done.stderr


SUITE = PIPELINE + "experiments: {one: {}, two: {}}\n"


@pytest.mark.skipif(not os.path.exists("/dev/fd"), reason="shells name pipes /dev/fd/N where the system has it")
@pytest.mark.parametrize("text", [PIPELINE, SUITE])
def test_a_pipeline_may_come_through_a_pipe_of_the_shell(folder, text):
    reader, writer = os.pipe()
    os.write(writer, text.encode())
    os.close(writer)
    name = f"/dev/fd/{reader}"
    command = [sys.executable, "-m", "dicast", "run", name, "--json"]
    done = subprocess.run(command, capture_output=True, timeout=200, check=False, pass_fds=[reader])
    os.close(reader)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    runs = document.get("experiments", {"": document})
    assert [run["name"] for run in runs.values()] == ["/".join(filter(None, ("pipeline", name))) for name in runs]
    assert [run["scored"] for run in runs.values()] == [1] * len(runs)


@pytest.mark.slow
@pytest.mark.skipif(not os.path.exists("/dev/stdin"), reason="standard input has no name here")
def test_a_pipeline_may_come_from_standard_input_with_paths_relative_to_the_current_folder(folder):
    command = [sys.executable, "-m", "dicast", "check", "/dev/stdin"]
    for text, code in ((PIPELINE, 0), (SUITE, 0), ("", 2)):
        done = subprocess.run(command, input=text, capture_output=True, text=True, timeout=200, check=False)
        assert done.returncode == code, done.stderr
    elsewhere = folder / "elsewhere.yaml"
    elsewhere.write_text(PIPELINE)
    with elsewhere.open() as file:
        assert subprocess.run(command, stdin=file, capture_output=True, timeout=200, check=False).returncode == 0


@pytest.mark.skipif(sys.platform != "linux", reason="a file name may be any bytes on Linux")
def test_a_file_name_that_is_no_text_is_refused_before_anything_is_judged(folder):
    name = b"bad\xff.yaml"
    (folder / os.fsdecode(name)).write_text(PIPELINE)
    command = [os.fsencode(sys.executable), b"-m", b"dicast", b"run", name, b"--json"]
    done = subprocess.run(command, capture_output=True, timeout=200, check=False)
    assert done.returncode == 2
    assert "not UTF-8" in json.loads(done.stdout)["error"]["message"]
    assert not (folder / "l.db").exists()


DEEP = "[" * 5_000 + "]" * 5_000
SPEC = '[optimization]\nseed = "a"\n[evaluator]\ncommand = ["true"]\n'


@pytest.mark.parametrize(
    "command",
    [
        ["check", "p.yaml", "--set", f"metrics={DEEP}"],
        ["check", "p.yaml", "--set", f"{'.'.join('a' * 5_000)}=1"],
        ["optimize", "deep.toml"],
        ["optimize", "deep.yaml"],
        ["optimize", "dotted.toml"],
        ["optimize", "run", "spec.toml", "--run-dir", "p.yaml"],
        ["optimize", "run", "spec.toml", "--run-dir", "p.yaml/run"],
        ["optimize", "run", "spec.toml", "--dataset", "circle"],
    ],
    ids=lambda words: f"{words[1]}-{words[-1]:.9}",
)
def test_what_is_nested_too_deep_or_no_folder_ends_with_exit_2(folder, capfd, command):
    (folder / "circle").symlink_to(folder / "circle")
    (folder / "spec.toml").write_text(SPEC)
    (folder / "deep.toml").write_text(f"{SPEC}metrics = {DEEP}\n")
    (folder / "dotted.toml").write_text(f"{SPEC}{'.'.join('a' * 5_000)} = 1\n")
    (folder / "deep.yaml").write_text(f"optimization: {{seed: a}}\nevaluator: {{metrics: {DEEP}}}\n")
    assert main(command) == 2
    assert "defect" not in capfd.readouterr().err


def test_the_action_reads_no_module_of_the_working_directory():
    action = (Path(__file__).resolve().parents[2] / "action.yml").read_text()
    calls = [line.strip() for line in action.splitlines() if "python -" in line]
    assert calls
    assert [call for call in calls if "python -I -c" not in call and "python -P -m" not in call] == []
