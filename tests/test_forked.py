"""Forked commands end like processes of their own, and a command that the imports may matter to is none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="commands are forked on Linux alone")
COMMAND = [sys.executable, "-m", "dicast"]


@pytest.fixture(scope="module")
def origin(dicast_forked):
    """Return the process that forks. It is shared, because its imports exceed the time limit of a test."""
    origin = subprocess.Popen.origin
    origin.takes(COMMAND, "/", dict(os.environ))
    return origin


def test_a_fork_has_the_streams_the_folder_and_the_exit_code_of_a_process(origin, tmp_path):
    options = {"capture_output": True, "text": True, "cwd": tmp_path}
    done = subprocess.run([*COMMAND, "check", "none.yaml"], check=False, **options)
    assert (done.returncode, done.stdout) == (2, "")
    assert "none.yaml: cannot read the file" in done.stderr
    assert subprocess.run([*COMMAND, "--version"], check=True, **options).stdout.startswith("dicast, version ")


def test_a_killed_fork_has_its_signal_as_code_and_its_seconds_are_counted(origin, tmp_path):
    before = origin.seconds
    pipes = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen([*COMMAND, "check", "/dev/stdin"], cwd=tmp_path, **pipes) as process:
        assert process.poll() is None
        process.send_signal(signal.SIGKILL)
        assert process.wait(200) == -signal.SIGKILL
    assert origin.seconds >= before


def test_what_python_reads_at_its_start_is_left_to_a_process_of_its_own(origin, tmp_path):
    folder, environment = str(tmp_path), dict(os.environ)
    assert origin.takes(COMMAND, folder, environment)
    assert origin.takes(COMMAND, folder, environment | {"HOME": folder, "DICAST_LEDGER": "l.db"})
    for name in ("PYTHONHASHSEED", "PYTHONWARNINGS", "LC_ALL", "TZ"):
        assert not origin.takes(COMMAND, folder, environment | {name: "1"}), name


@pytest.mark.parametrize("name", ["json.py", "dicast/__init__.py", "sitecustomize.py"])
def test_modules_that_take_the_place_of_imported_ones_are_imported(origin, tmp_path, name):
    (tmp_path / "site" / name).parent.mkdir(parents=True)
    (tmp_path / "site" / name).touch()
    path = os.pathsep.join(filter(None, (str(tmp_path / "site"), os.environ.get("PYTHONPATH"))))
    assert not origin.takes(COMMAND, str(tmp_path), dict(os.environ) | {"PYTHONPATH": path})
    assert not origin.takes(COMMAND, str(tmp_path / "site"), dict(os.environ))
    assert origin.takes(COMMAND, str(tmp_path), dict(os.environ))
