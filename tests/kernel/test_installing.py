"""The command that adds an extra works in the environment that it is printed in."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest

from dicast import how_to_install

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
