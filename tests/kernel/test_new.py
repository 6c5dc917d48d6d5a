"""``dicast new``: what it writes, and which names it refuses."""

from __future__ import annotations

import ast
import json
import tomllib

import pytest

from dicast._kernel.cli import main


@pytest.mark.parametrize("kind", ["metric", "judge", "sink", "source"])
def test_writes_a_whole_plugin(kind, tmp_path, capsys):
    assert main(["new", kind, "tool_care", "--directory", str(tmp_path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    folder = tmp_path / "dicast-tool-care"
    assert (told["plugin"], told["path"]) == ("tool_care", str(folder))
    assert sorted(told["files"]) == sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()
    )
    project = tomllib.loads((folder / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["dicast"] == {"tool_care": "dicast_tool_care"}
    assert project["dependencies"][1] == "dicast-kernel>=0.1,<0.2"
    for path in folder.rglob("*.py"):
        ast.parse(path.read_text())
    assert "${" not in "".join(path.read_text() for path in folder.rglob("*") if path.suffix in (".py", ".toml", ".md"))
    assert "python-version: ${{ matrix.python }}" in (folder / ".github" / "workflows" / "ci.yml").read_text()


def test_tells_the_next_steps(tmp_path, capsys):
    assert main(["new", "metric", "brief", "--directory", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert f"cd {tmp_path / 'dicast-brief'}\n  pip install -e '.[test]'\n  pytest\n" in shown


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "ToolCare",
            "'ToolCare' is no plugin's name: lower-case words joined by '_', beginning with a letter; write tool_care",
        ),
        ("tool-care", "write tool_care"),
        ("tool__care", "write tool_care"),
        ("2fast", "write fast"),
        ("\u00e9t\u00e9", "is no plugin's name"),
        ("class", "a word of Python's own"),
        ("proxy", "plugin 'proxy' (dicast-proxy 0.1.0) is installed already"),
        ("dicast", "is installed already"),
    ],
)
def test_refuses_names_that_cannot_be(name, message, tmp_path, capsys):
    assert main(["new", "metric", name, "--directory", str(tmp_path)]) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


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
    assert "'metric', 'judge', 'sink', 'source'" in capsys.readouterr().err
