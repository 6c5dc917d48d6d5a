"""Other people's plugins, as they really are: generated or copied from the documentation, built and installed as wheels."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path

import pytest

from dicast._kernel.cli import main
from dicast._kernel.cli.new import BACKENDS, KINDS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
KEYS = dict.fromkeys(("JUDGE_URL", "HOOK_TOKEN"), "http://127.0.0.1:9/v1")
COMPONENTS = [kind for kind in KINDS if kind not in ("command", "gate_clause", "rubrics")]
BUILT_BY = dict(zip(KINDS, cycle(BACKENDS), strict=False))
"""Build backend of the new package of each kind."""
EXAMPLES = sorted(path.parent for path in (ROOT / "examples" / "third-party").glob("*/pyproject.toml"))
THIRD_PARTY = [path.name for path in EXAMPLES]
FENCE = re.compile(r"^```(\w+)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)

PANEL = '''
from __future__ import annotations
import attrs
from dicast import Judge, Judgment, Subject, hookimpl, maybe_await

@attrs.frozen
class Panel:
    """Half as sure as its grader.

    :param grader: the judge that is asked.
    """
    grader: Judge
    name = "panel"

    async def judge(self, subject: Subject, children):
        found = await maybe_await(self.grader.judge(subject, ()))
        return attrs.evolve(found, confidence=found.confidence / 2)

@hookimpl
def dicast_judges():
    return [Panel]
'''
PROJECT = """
[project]
name = "dicast-{name}"
version = "0.1.0"
dependencies = ["dicast-kernel"]
[project.entry-points.dicast]
{name} = "dicast_{name}"
[build-system]
requires = ["hatchling>=1.27"]
build-backend = "hatchling.build"
"""
THREE_WAYS = """
import json
from dicast import Subject
from dicast.testing import run_pipeline, sample
text = '''
metrics:
  - my_metric/my_metric: {words: 3}
  - my_judge/my_judge: {as: polite, weight: 3}
judges:
  - my_judge/my_judge
  - panel/panel: {grader: {my_judge/my_judge: {phrases: [canberra]}}}
'''
run = run_pipeline(text, subjects=[sample("Thank you"), sample("It is Canberra of course", id="curt")])
print(json.dumps({"exit": run.exit_code, "verdicts": [
    [verdict.subject_id, verdict.judge, verdict.score, verdict.confidence, verdict.tier] for verdict in run.verdicts]}))
"""


def uv(*arguments: object) -> None:
    """Run uv, wherever it is: on the path, or a module of this interpreter."""
    found = shutil.which("uv")
    command = [found] if found else [sys.executable, "-m", "uv"]
    ran = subprocess.run(
        [*command, *map(str, arguments)], capture_output=True, text=True, timeout=300, check=False, env=clean()
    )
    assert ran.returncode == 0, f"uv {' '.join(map(str, arguments))}\n{ran.stderr}"


def clean() -> dict[str, str]:
    """Return the environment without variables that point into this environment."""
    ours = ("VIRTUAL_ENV", "PYTHONPATH", "PYTEST_ADDOPTS", "DICAST_", "COV_", "UV_PROJECT")
    return {name: value for name, value in os.environ.items() if not name.startswith(ours)}


def wheel(project: Path, into: Path) -> Path:
    uv("build", "--wheel", "--quiet", "--out-dir", into / project.name, project)
    (built,) = (into / project.name).glob("*.whl")
    return built


@pytest.fixture(scope="module")
def wheels(tmp_path_factory):
    """The wheels of plugins and of their dependencies, by folder name, each built once."""
    folder = tmp_path_factory.mktemp("plugins")
    for kind, backend in BUILT_BY.items():
        assert main(["new", kind, f"my_{kind}", "--directory", str(folder), "--backend", backend]) == 0
    for backend in BACKENDS:
        assert main(["new", "rubrics", f"clarity_{backend}", "--directory", str(folder), "--backend", backend]) == 0
    (folder / "panel").mkdir()
    (folder / "panel" / "dicast_panel.py").write_text(PANEL)
    (folder / "panel" / "pyproject.toml").write_text(PROJECT.format(name="panel"))
    documented(folder / "brevity")
    for example in EXAMPLES:
        shutil.copytree(example, folder / example.name)
    ours = [ROOT / "framework", ROOT / "plugins" / "rows", ROOT / "plugins" / "ledger"]
    projects = [*ours, *(path for path in sorted(folder.iterdir()))]
    return {project.name: wheel(project, folder.parent / "dist") for project in projects}, folder


def documented(folder: Path) -> str:
    """Write the plugin of docs/how-to/plugins.md to *folder*, as its blocks say; return its pipeline."""
    blocks = dict(reversed(FENCE.findall((ROOT / "docs" / "how-to" / "plugins.md").read_text(encoding="utf-8"))))
    folder.mkdir()
    (module,) = tomllib.loads(blocks["toml"])["project"]["entry-points"]["dicast"].values()
    (folder / f"{module}.py").write_text(blocks["python"])
    (folder / "pyproject.toml").write_text(blocks["toml"])
    (folder / "answers.jsonl").write_text(blocks["jsonl"])
    (folder / "pipeline.yaml").write_text(blocks["yaml"])
    return blocks["yaml"]


@pytest.fixture(scope="module")
def environment(wheels, tmp_path_factory):
    """Make an environment with the kernel and the named wheels, and nothing else of dicast's."""
    constraints = tmp_path_factory.mktemp("constraints") / "constraints.txt"
    tested = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["uv"]
    constraints.write_text("\n".join(tested["constraint-dependencies"]))

    def make(*names: str, extra: str = "", others: Sequence[str] = ()) -> Path:
        folder = tmp_path_factory.mktemp("environment")
        uv("venv", "--quiet", "--python", sys.executable, folder)
        python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
        built, _ = wheels
        needed = [f"dicast-kernel{extra} @ {built['framework'].as_uri()}", *(built[name] for name in names), *others]
        uv("pip", "install", "--quiet", "--python", python, "--constraint", constraints, *needed)
        return python

    return make


@pytest.fixture(scope="module")
def authors(environment):
    """The environment of the authors of all kinds of plugins, including a judge that calls another, and of the examples of third parties."""
    names = [f"dicast-my-{kind.replace('_', '-')}" for kind in KINDS]
    return environment(*names, "panel", *THIRD_PARTY, extra="[testing]", others=["hypothesis"])


def run(python: Path, *arguments: object, folder: Path) -> str:
    """Run Python in another environment, with warnings as errors; return its output."""
    command = [python, "-W", "error", *map(str, arguments)]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False, env=clean())
    assert ran.returncode == 0, f"{ran.stdout}\n{ran.stderr}"
    return ran.stdout


OPTIONAL = {"test_shards_are_slices_of_all_subjects", "test_proves_its_verdicts"}
"""Checks of members that a component may leave out."""


def test_new_plugins_pass_their_own_tests_from_their_wheels(wheels, authors, subtests):
    """All kinds are tested by one process, which says a line a test."""
    folders = [wheels[1] / f"dicast-my-{kind.replace('_', '-')}" / "tests" for kind in KINDS]
    options = (
        "-v",
        "-p",
        "no:cacheprovider",
        "--rootdir",
        wheels[1],
    )  # in pytest's own import mode, as their authors do
    tested = run(authors, "-m", "pytest", *options, *folders, folder=wheels[1])
    for kind in KINDS:
        with subtests.test(kind):
            found = re.findall(
                rf"^dicast-my-{kind.replace('_', '-')}/tests/.+::(\w+)(?:\[.*\])? (\w+) +\[ *\d+%\]$",
                tested,
                re.MULTILINE,
            )
            assert len(found) >= (10 if kind in COMPONENTS else 2), tested
            assert {answer for name, answer in found if name not in OPTIONAL} == {"PASSED"}, tested
            assert {answer for name, answer in found if name in OPTIONAL} <= {"PASSED", "SKIPPED"}, tested


def test_a_new_plugin_passes_its_own_tests_in_its_folder(wheels, authors):
    shown = run(authors, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder=wheels[1] / "dicast-my-metric")
    assert re.search(r"^\d\d passed", shown, re.MULTILINE), shown


@pytest.mark.parametrize("name", THIRD_PARTY)
def test_an_example_of_a_third_party_passes_its_own_tests_from_its_wheel(name, wheels, authors):
    shown = run(authors, "-m", "pytest", "-q", "-p", "no:cacheprovider", folder=wheels[1] / name)
    assert re.search(r"^\d+ passed in", shown, re.MULTILINE), shown


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda path: path.name)
def test_the_pipeline_of_an_example_lacks_nothing_but_data_and_extras(folder, authors, tmp_path):
    (pipeline,) = re.findall(r"^```yaml\n(.*?)^```$", (folder / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "pipeline.yaml").write_text(pipeline)
    command = [authors, "-m", "dicast", "check", "pipeline.yaml", "--json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, env=clean() | KEYS)
    messages = [error["message"] for error in json.loads(done.stdout).get("errors", ())]
    assert messages, done.stdout
    lacking = re.compile(r"does not exist|is an extra|^unknown plugin '(rows|proxy|openai|llm)'")
    assert [text for text in messages if not lacking.search(text)] == []


@pytest.mark.parametrize("folder", EXAMPLES, ids=lambda path: path.name)
def test_an_example_of_a_third_party_has_what_its_publication_needs(folder):
    project = tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["build-system"]["requires"][0].startswith(("setuptools>=", "hatchling>="))
    assert project["project"]["license-files"] == ["LICENSE"]
    names = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert names >= {"README.md", "LICENSE", ".github/workflows/ci.yml"}


def test_a_judge_serves_as_judge_as_metric_and_inside_another(authors, tmp_path):
    found = json.loads(run(authors, "-c", THREE_WAYS, folder=tmp_path))
    assert found == {
        "exit": 0,
        "verdicts": [
            ["sample", "metrics", 1.0, 0.7, "truth"],
            ["sample", "my_judge/my_judge", 1.0, 0.6, "truth"],
            ["sample", "panel/panel", 0.0, 0.3, "truth"],
            ["curt", "metrics", 0.15, 0.7, "truth"],
            ["curt", "my_judge/my_judge", 0.0, 0.6, "truth"],
            ["curt", "panel/panel", 1.0, 0.3, "truth"],
        ],
    }


def test_wheels_bring_nothing_but_themselves(authors, tmp_path):
    listed = json.loads(run(authors, "-m", "dicast", "plugins", "--load", "--json", folder=tmp_path))["plugins"]
    assert {plugin["name"]: plugin["status"] for plugin in listed} == dict.fromkeys(
        ("dicast", *(f"my_{kind}" for kind in COMPONENTS), "apology", "grade_level", "panel", "post"), "ok"
    )


def test_a_new_command_is_a_command_of_dicast(authors, tmp_path):
    assert "Count the failures of RUN by their kind." in run(
        authors, "-m", "dicast", "my-command", "-h", folder=tmp_path
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_wheel_of_each_backend_has_the_rubrics_and_the_mark_of_types(backend, wheels):
    names = zipfile.ZipFile(wheels[0][f"dicast-clarity-{backend}"]).namelist()
    package = f"dicast_clarity_{backend}"
    expected = {f"{package}/{name}" for name in ("__init__.py", "py.typed", f"clarity-{backend}-v1.md")}
    assert {name for name in names if ".dist-info/" not in name and not name.endswith("/")} == expected


def test_the_documented_plugin_works_from_its_wheel(environment, wheels, tmp_path):
    python = environment("brevity", "rows", "ledger")
    for name in ("pipeline.yaml", "answers.jsonl"):
        shutil.copy(wheels[1] / "brevity" / name, tmp_path)
    document = json.loads(run(python, "-m", "dicast", "run", "pipeline.yaml", "--json", folder=tmp_path))
    assert (document["subjects"], document["scored"], document["score"]["mean"]) == (2, 2, 1.0)
    assert document["metrics"]["brevity/brevity"]["total"] == 2
    assert json.loads(run(python, "-m", "dicast", "ledger", "verify", "--json", folder=tmp_path))["ok"]
    plugins = json.loads(run(python, "-m", "dicast", "plugins", "--json", folder=tmp_path))["plugins"]
    assert {plugin["name"] for plugin in plugins} == {"dicast", "brevity", "rows", "ledger"}
