"""New packages and examples of third parties pass the type checkers of an author; the examples of the page of hooks pass the kit."""

from __future__ import annotations

import os
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
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


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


METADATA = """Metadata-Version: 2.1
Name: page-hooks
Version: 0.1.0
"""
KIT = """
from dicast.testing import *


class TestNumbers(SourceConformance):
    source = "page/numbers"


class TestTranslate(TaskConformance):
    task = "page/translate"
    options = {"model": "grader"}
    components = {"grader": FakeChatModel("Hallo.")}


class TestWords(ExtractorConformance):
    extractor = "page/words"


class TestTotal(AggregateConformance):
    aggregate = "page/total"


class TestMoreWords(ComparisonConformance):
    comparison = "page/more_words"


class TestEnoughWords(EarlyStopConformance):
    early_stop = "page/enough_words"
    options = {"most": 3}


class TestSame(MetricConformance):
    metric = "page/same"


class TestShort(PresetConformance):
    preset = "page/short"


class TestNoFailedTool(JudgeConformance):
    judge = "page/no_failed_tool"


class TestAgrees(JudgeConformance):
    judge = "page/agrees"
    options = {"model": "grader"}
    components = {"grader": FakeChatModel("yes")}


class TestEcho(ChatModelConformance):
    model = "page/echo"


class TestWire(ChatModelConformance):
    model = "page/wire"
    options = {"port": 9}
    unreachable = {"port": 9}


class TestTabs(SinkConformance):
    sink = "page/tabs"
    options = {"path": "out.tsv"}


class TestIdle(Conformance):
    kind = "sandbox"
    sandbox = "page/idle"


class TestOneByOne(Conformance):
    kind = "executor"
    executor = "page/one_by_one"
"""


def test_each_example_of_the_page_of_hooks_passes_the_kit(tmp_path):
    page = (ROOT / "docs" / "reference" / "hooks.md").read_text(encoding="utf-8")
    (tmp_path / "page_hooks.py").write_text("\n".join(BLOCK.findall(page)), encoding="utf-8")
    metadata = tmp_path / "page_hooks-0.1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(METADATA)
    (metadata / "entry_points.txt").write_text("[dicast]\npage = page_hooks\n")
    (tmp_path / "test_page.py").write_text(KIT)
    offered = set(re.findall(r'"page/(\w+)"', KIT))
    named = re.findall(r"^    return \[(\w+)(?:, (\w+))?\]$", (tmp_path / "page_hooks.py").read_text(), re.MULTILINE)
    classes = {re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower() for pair in named for name in pair if name}
    assert classes == offered
    command = [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:schemathesis"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("DICAST_", "PYTEST_"))}
    done = subprocess.run(
        [*command, "test_page.py"],
        cwd=tmp_path,
        env=environment | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
