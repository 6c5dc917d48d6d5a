"""New packages and examples of third parties pass the type checkers of an author; each example of the page of hooks has a test there."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from dicast._kernel.cli import main
from dicast._kernel.cli.new import KINDS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def projects(tmp_path_factory):
    """The folder of all projects: new packages of each kind, and examples."""
    folder = tmp_path_factory.mktemp("authors")
    for kind in KINDS:
        assert main(["new", kind, f"my_{kind}", "--directory", str(folder)]) == 0
    for example in (ROOT / "examples" / "third-party").glob("*/pyproject.toml"):
        shutil.copytree(example.parent, folder / example.parent.name)
    return folder


def modules(folder: Path) -> list[Path]:
    """Return the folders in which the modules of the projects are found."""
    return [project / "src" for project in folder.iterdir()]


def test_mypy_strict_passes(projects, type_checkers):
    assert type_checkers.mypy_errors(*projects.rglob("*.py"), search=modules(projects)) == []


def test_pyright_passes(projects, type_checkers, tmp_path):
    options = {"typeCheckingMode": "standard", "extraPaths": list(map(str, modules(projects)))}
    assert type_checkers.basedpyright_errors(tmp_path, *projects.rglob("*.py"), **options) == []


def test_ruff_passes_on_new_packages(projects):
    if find_spec("ruff") is None:
        pytest.skip("ruff is not installed: uv sync --group dev")
    for kind in KINDS:
        folder = projects / f"dicast-my-{kind.replace('_', '-')}"
        for arguments in (("check", "--no-cache"), ("format", "--check", "--no-cache")):
            command = [sys.executable, "-m", "ruff", *arguments]
            done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout + done.stderr


def test_each_component_of_the_page_of_hooks_has_a_test_on_the_page():
    page = (ROOT / "docs" / "reference" / "hooks.md").read_text(encoding="utf-8")
    hooks = re.findall(r"^def dicast_\w+\(\) -> Classes\[\w+\]:\n    return \[([\w, ]+)\]$", page, re.MULTILINE)
    classes = {name for hook in hooks for name in hook.split(", ")}
    names = {re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() for name in classes}
    tests = re.findall(r'^    (?!options)\w+ = "kinds/(\w+)"$', page, re.MULTILINE)
    assert names == {*tests}
    assert len(tests) == len(names) > len(KINDS) - len(("reader", "command", "rubrics", "gate_clause"))
