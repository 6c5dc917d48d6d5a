"""The command that adds an extra works in the environment that it is printed in."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest

from dicast._kernel.cli import main
from dicast._kernel.contract.registry import Registry
from dicast.toolkit.installing import how_to_install, with_one_command

ROOT = Path(__file__).resolve().parents[2]


class Installed:
    """The distribution ``dicast`` as pip or uv would leave it."""

    def __init__(self, files: dict[str, str]) -> None:
        self.files = files

    def read_text(self, name: str) -> str | None:
        return self.files.get(name)


@pytest.fixture
def installed(monkeypatch):
    requirements = [
        'dicast-llm<0.2,>=0.1; extra == "llm"',
        'dicast-hybrid<0.2,>=0.1; extra == "hybrid"',
        'dicast-openai<0.2,>=0.1; extra == "openai"',
        'dicast[hybrid,llm]; extra == "openai"',
        'dicast-proxy[schemas]<0.2,>=0.1; extra == "schemas"',
        'dicast-llamacpp<0.2,>=0.1; extra == "llamacpp"',
    ]

    def make(folder=None, prefix="/elsewhere", installer="uv"):
        files = {} if folder is None else {"direct_url.json": f'{{"url": "{folder.as_uri()}", "dir_info": {{}}}}'}
        monkeypatch.setattr(metadata, "distribution", lambda name: Installed(files | {"INSTALLER": f"{installer}\n"}))
        monkeypatch.setattr(metadata, "requires", lambda name: requirements)
        monkeypatch.setattr(sys, "prefix", str(prefix))

    return make


def test_an_index_is_where_an_extra_comes_from(installed):
    installed()
    assert how_to_install("openai").endswith("pip install 'dicast[openai]'")


def test_in_a_job_of_the_action_an_extra_is_an_input_of_the_action(installed, monkeypatch):
    installed()
    monkeypatch.setenv("DICAST_ACTION", "/action")
    monkeypatch.setenv("DICAST_EXTRAS", "stats, openai")
    assert how_to_install("notify") == "extras: stats,openai,notify  # in the action's inputs, dicast[notify]"
    messages = [f"no {name}; {how_to_install(name)}" for name in ("notify", "llm")]
    wanted = "extras: stats,openai,notify,llm  # in the action's inputs, dicast[notify,llm]"
    assert with_one_command(messages) == (["no notify", "no llm"], wanted)


def test_in_a_clone_that_uv_keeps_uv_adds_it(installed, monkeypatch):
    installed(ROOT, ROOT / ".venv")
    monkeypatch.chdir(ROOT / "docs")
    assert how_to_install("openai") == "uv sync --inexact --extra openai  # dicast[openai]"


def test_outside_of_the_clone_its_folder_is_named(installed, monkeypatch, tmp_path):
    clone = tmp_path / "a clone"
    clone.mkdir()
    installed(clone, clone / ".venv")
    monkeypatch.chdir(tmp_path)
    assert how_to_install("llm") == f"uv sync --inexact --extra llm --project '{clone}'  # dicast[llm]"


def test_what_pip_installed_from_a_clone_grows_from_its_folders(installed):
    installed(ROOT, ROOT / ".venv", "pip")
    _, _, places = how_to_install("openai").partition("pip install ")
    parts = [f"{ROOT}/plugins/{name}" for name in ("openai", "hybrid", "llm")]
    assert places == " ".join(parts) + "  # dicast[openai]"


def test_the_extra_of_a_plugin_is_added_to_its_folder(installed):
    installed(ROOT)
    assert how_to_install("schemas").endswith(f"pip install '{ROOT}/plugins/proxy[schemas]'  # dicast[schemas]")
    assert how_to_install("llamacpp").endswith(f"pip install {ROOT}/contrib/llamacpp  # dicast[llamacpp]")


def test_several_extras_are_one_command(installed, monkeypatch):
    installed()
    assert how_to_install("replay", "llm").endswith("pip install 'dicast[replay,llm]'")
    installed(ROOT, ROOT / ".venv")
    monkeypatch.chdir(ROOT)
    assert how_to_install("replay", "llm") == "uv sync --inexact --extra replay --extra llm  # dicast[replay,llm]"
    installed(ROOT, ROOT / ".venv", "pip")
    _, _, places = how_to_install("openai", "llm").partition("pip install ")
    assert (
        places == " ".join(f"{ROOT}/plugins/{name}" for name in ("openai", "hybrid", "llm")) + "  # dicast[openai,llm]"
    )


PIPELINE = """\
define:
  grader: {replay/chat: {path: replies.jsonl}}
source: {rows/jsonl: {path: rows.jsonl}}
judges:
  - llm/judge: {model: grader}
"""


def test_several_missing_extras_are_one_error_with_one_command(tmp_path, monkeypatch, capsys):
    missing, scan = {"replay", "llm"}, Registry.scan
    monkeypatch.setattr(
        Registry, "scan", lambda self: {name: plugin for name, plugin in scan(self).items() if name not in missing}
    )
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pipeline.yaml").write_text(PIPELINE)
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "output": "a"}\n')
    assert main(["check", "pipeline.yaml"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert [line for line in lines if "pipeline.yaml:" in line] == [
        "pipeline.yaml:2:12: the plugin 'replay' is an extra that is not installed (define.grader)",
        "pipeline.yaml:5:5: the plugin 'llm' is an extra that is not installed (judges[0])",
    ]
    assert lines[-1].endswith(how_to_install("replay", "llm"))
    assert sum("--extra" in line or "pip install" in line for line in lines) == 1


def test_one_missing_extra_has_its_command_in_its_message(monkeypatch):
    assert with_one_command([f"a; {how_to_install('llm')}", f"b; {how_to_install('llm')}", "c"])[1] is None


def test_commands_of_components_are_joined_too():
    messages = [f"diff/similarity needs rapidfuzz: {how_to_install('similarity')}", f"x; {how_to_install('llm')}"]
    assert with_one_command(messages) == (
        ["diff/similarity needs rapidfuzz", "x"],
        how_to_install("similarity", "llm"),
    )
