"""``dicast new``: its output, and the names that it refuses."""

from __future__ import annotations

import ast
import json
import tomllib

import pytest

from dicast._kernel.cli import main
from dicast._kernel.cli.new import BACKENDS, KINDS, NewPlugin

ENTRY_POINTS = {
    "command": ("dicast.commands", "tool-care", "dicast_tool_care:tool_care"),
    "gate_clause": ("dicast.gate_clauses", "tool_care", "dicast_tool_care:ToolCare"),
    "rubrics": ("dicast.rubrics", "tool-care-v1", "dicast_tool_care"),
}


@pytest.mark.parametrize("kind", KINDS)
def test_writes_a_whole_plugin(kind, tmp_path, capsys):
    assert main(["new", kind, "tool_care", "--directory", str(tmp_path), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    folder = tmp_path / "dicast-tool-care"
    assert (document["plugin"], document["path"]) == ("tool_care", str(folder))
    assert sorted(document["files"]) == sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()
    )
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    group, name, value = ENTRY_POINTS.get(kind, ("dicast", "tool_care", "dicast_tool_care"))
    formats = {"dicast.formats": {"tool_care": "dicast_tool_care"}} if kind == "reader" else {}
    assert project["entry-points"] == {group: {name: value}} | formats
    assert project["dependencies"][-1] == "dicast-kernel>=0.1,<0.2"
    for path in folder.rglob("*.py"):
        ast.parse(path.read_text())
    assert "${" not in "".join(path.read_text() for path in folder.rglob("*") if path.suffix in (".py", ".toml", ".md"))
    assert "python-version: ${{ matrix.python }}" in (folder / ".github" / "workflows" / "ci.yml").read_text()


@pytest.mark.parametrize(
    ("backend", "requirement"), [("hatch", "hatchling"), ("setuptools", "setuptools"), ("uv", "uv_build")]
)
def test_the_package_is_built_by_the_named_backend(backend, requirement, tmp_path):
    assert main(["new", "rubrics", "tone", "--backend", backend, "--directory", str(tmp_path)]) == 0
    project = tomllib.loads((tmp_path / "dicast-tone" / "pyproject.toml").read_text())
    (required,) = project["build-system"]["requires"]
    assert required.startswith(f"{requirement}>=")
    assert backend in BACKENDS


@pytest.mark.parametrize(("pip", "install", "run"), [(True, "pip", ""), (False, "uv pip", "uv run ")])
def test_tells_the_next_steps_in_an_environment_with_pip_and_in_one_of_uv(
    pip, install, run, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr("dicast._kernel.cli.new.find_spec", lambda name: object() if pip else None)
    monkeypatch.chdir(tmp_path)
    assert main(["new", "metric", "brief"]) == 0
    assert capsys.readouterr().out.partition("Next:\n")[2].splitlines() == [
        f"  {install} install -e './dicast-brief[test]'",
        f"  {run}pytest dicast-brief",
        f"  {run}dicast plugins --load",
    ]


def test_the_next_steps_name_a_folder_elsewhere(tmp_path, capsys):
    folder = tmp_path / "my plugins"
    assert main(["new", "metric", "brief", "--directory", str(folder)]) == 0
    output = capsys.readouterr().out
    assert f"install -e '{folder}/dicast-brief[test]'\n" in output
    assert f"pytest '{folder}/dicast-brief'\n" in output


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "ToolCare",
            "'ToolCare' is no valid name of a plugin: use lower-case words joined by '_', starting with a letter; write tool_care",
        ),
        ("tool-care", "write tool_care"),
        ("tool__care", "write tool_care"),
        ("2fast", "write fast"),
        ("\u00e9t\u00e9", "is no valid name of a plugin"),
        ("class", "a keyword of Python"),
        ("proxy", "plugin 'proxy' (dicast-proxy 0.1.0) is installed already"),
        ("dicast", "is installed already"),
    ],
)
def test_refuses_names_that_cannot_be(name, message, tmp_path, capsys):
    assert main(["new", "metric", name, "--directory", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["run", "gate_check"])
def test_refuses_the_name_of_a_command_for_a_command_alone(name, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("dicast._kernel.cli.new.commands", lambda: {"gate-check": object()})
    assert main(["new", "command", name, "--directory", str(tmp_path)]) == 2
    assert f"the command 'dicast {name.replace('_', '-')}' is installed" in capsys.readouterr().err
    assert main(["new", "metric", name, "--directory", str(tmp_path)]) == 0


def test_refuses_a_folder_that_exists(tmp_path, capsys):
    (tmp_path / "dicast-brief").mkdir()
    assert main(["new", "judge", "brief", "--directory", str(tmp_path)]) == 2
    assert "exists already; choose another name or --directory" in capsys.readouterr().err
    assert list((tmp_path / "dicast-brief").iterdir()) == []


def test_refuses_a_directory_that_cannot_be_made(tmp_path, capsys):
    (tmp_path / "file").touch()
    assert main(["new", "judge", "brief", "--directory", str(tmp_path / "file")]) == 2
    assert "choose another --directory" in capsys.readouterr().err


def test_unknown_kind_names_the_kinds(tmp_path, capsys):
    assert main(["new", "widget", "brief"]) == 2
    assert "'metric', 'judge', 'preset', 'model'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("kind", "summary"),
    [
        ("command", "the command tool-care, in src/dicast_tool_care/__init__.py"),
        ("gate_clause", "the gate clause tool_care, in src/dicast_tool_care/__init__.py"),
        ("rubrics", "the rubric tool-care-v1, in src/dicast_tool_care/tool-care-v1.md"),
        ("judge", "the judge tool_care/tool_care, in src/dicast_tool_care/__init__.py"),
    ],
)
def test_the_summary_names_what_a_pipeline_or_a_shell_writes(kind, summary, tmp_path):
    assert NewPlugin(kind, "tool_care", tmp_path).summary == summary
