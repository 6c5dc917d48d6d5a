"""The README's files, commands and Python work, and the output shown is the output."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"
BLOCK = re.compile(r'^```(\w+)(?: title="([^"\n]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
BLOCKS = BLOCK.findall(README.read_text("utf-8"))


@pytest.fixture
def folder(tmp_path):
    for _, title, text in BLOCKS:
        if title:
            (tmp_path / title).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.mark.slow
def test_the_commands_print_what_is_shown(folder):
    printed = ""
    for line in re.findall(r"^\$ dicast (.+)$", README.read_text("utf-8"), re.MULTILINE):
        command = [str(Path(sys.executable).with_name("dicast")), *shlex.split(line)]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=200, check=False)
        assert done.returncode == 0, done.stderr
        printed += done.stdout
    (text_,) = [text for language, _, text in BLOCKS if language == "text"]
    assert text_.splitlines()[1:] == [line for line in printed.splitlines() if line in text_.splitlines()]


def test_the_python_runs():
    (program,) = [text for language, _, text in BLOCKS if language == "python"]
    exec(compile(program, "README.md", "exec"), {})
