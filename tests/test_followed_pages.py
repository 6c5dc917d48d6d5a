"""Every page, followed literally: its blocks in their order, in a fresh folder with a copy of ``examples/``.

- A block with ``title="NAME"`` is written to that file, or appended to it if the fence has ``append``.
- bash runs a ``bash`` block unchanged, and the lines of a ``console`` block that begin with ``$ ``. All blocks of a page share a folder and
  the exported environment.
- Each command ends with exit code 0, or with N if the fence has ``exit=N``.
- ``norun`` in the fence marks a command that needs the network, a key, a clone or a terminal; :data:`NORUN` counts them. ``norun elsewhere``
  marks commands that another test runs.
- ``JUDGE_URL`` is a model of the tests, and ``BATCH_URL`` an endpoint with batches, as for a reader.
- README.md, the first ten minutes and the first use of every command run in bash. On other pages, a ``dicast`` command without features of
  the shell runs in the tests' process, which saves the start of another process.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from dicast._kernel.cli import main

ROOT = Path(__file__).resolve().parents[1]
CHANGES_THE_CLONE = {"docs/how-to/first-contribution.md"}
"""tests/test_first_contribution.py follows it in a copy of the repository."""
PAGES = sorted(
    {ROOT / "README.md", *(path for path in (ROOT / "docs").rglob("*.md") if "adr" not in path.parts)}
    - {ROOT / name for name in CHANGES_THE_CLONE}
)
BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NORUN = 60
"""How many commands are not run, at most."""
SECONDS = 120


def blocks(page):
    return [match.groups() for match in BLOCK.finditer(page.read_text(encoding="utf-8"))]


def commands(language, text):
    if language == "bash":
        return [line for line in text.splitlines() if line and not line.startswith("#")]
    return re.findall(r"^\$ (.*(?:\\\n.*)*)$", text, re.MULTILINE) if language == "console" else []


def is_run(info):
    return "norun" not in info.split() and "title=" not in info


def has_commands(page):
    return any(commands(language, text) and is_run(info) for language, info, text in blocks(page))


FOLLOWED = [page for page in PAGES if has_commands(page)]


def own_environment(folder):
    """Make a virtual environment in *folder* that sees the tests' packages, and into which a page may install more."""
    ours = Path(sysconfig.get_path("purelib"))
    subprocess.run(["uv", "venv", "-q", "--python", sys.executable, str(folder)], check=True)
    (theirs,) = folder.glob("lib/python*/site-packages")
    for metadata in ours.glob("*.dist-info"):  # by which uv knows that nothing is missing
        shutil.copytree(metadata, theirs / metadata.name)
    (theirs / "ours.pth").write_text(f"import site; site.addsitedir({str(ours)!r})\n")
    command = folder / "bin" / "dicast"
    command.write_text(f'#!/bin/sh\nexec {folder}/bin/python -m dicast "$@"\n')
    command.chmod(0o755)
    return {"VIRTUAL_ENV": str(folder), "UV_OFFLINE": "1", "UV_NO_BUILD_ISOLATION": "1", "UV_NO_CACHE": "1"}


def installs(page):
    """Return whether *page* installs packages; it then has an environment of its own, which takes half a second to make."""
    return any(
        "pip install" in command
        for language, info, text in blocks(page)
        if is_run(info)
        for command in commands(language, text)
    )


def find_installed(environment, metadata_folder, monkeypatch):
    """Let this process find the packages that a page installed into its *environment*; *metadata_folder* is for the metadata."""
    ours = Path(sysconfig.get_path("purelib"))
    (theirs,) = environment.glob("lib/python*/site-packages")
    for metadata in {path.name for path in theirs.glob("*.dist-info")} - {
        path.name for path in ours.glob("*.dist-info")
    }:
        shutil.copytree(theirs / metadata, metadata_folder / metadata, dirs_exist_ok=True)
    monkeypatch.syspath_prepend(str(metadata_folder))
    for paths in set(theirs.glob("*.pth")) - {theirs / "ours.pth"}:
        for path in filter(os.path.isdir, paths.read_text(encoding="utf-8").splitlines()):
            monkeypatch.syspath_prepend(path)


def first(page):
    """Return whether a new user reads *page* first: every run of the tests follows such pages, only the whole suite the others."""
    return page.parent in (ROOT, ROOT / "docs" / "start")


def first_uses():
    """Where each command of dicast is run first: on which page, in which block, and how."""
    uses = {}
    for page in sorted(FOLLOWED, key=first, reverse=True):
        for number, (language, info, text) in enumerate(blocks(page)):
            for command in commands(language, text) if is_run(info) else ():
                uses.setdefault(tuple(command.split()[:2]), (page, number, command))
    return set(uses.values())


FIRST_USES = first_uses()


def spared(page, number, command):
    """Return whether *command* of a page's block runs in this process."""
    needs_process = page.parent == ROOT or page.stem == "ten-minutes" or (page, number, command) in FIRST_USES
    return (
        not needs_process
        and command.startswith("dicast ")
        and not set("|<>&;$`*~#\n") & set(re.sub("'[^']*'", "", command))
    )


def in_this_process(command, folder, capfd):
    """Run a *command* of dicast, and forget the modules in *folder*; return the exit code and the end of the output."""
    before = set(sys.modules)
    capfd.readouterr()
    code = main(shlex.split(command)[1:])
    for name in set(sys.modules) - before:
        if Path(getattr(sys.modules[name], "__file__", None) or ROOT).is_relative_to(folder):
            del sys.modules[name]
    return code, "".join(part[-2000:] for part in capfd.readouterr())


def in_bash(command, variables, monkeypatch):
    """Run *command* in bash, and keep its exported variables; return the exit code and the end of the output."""
    done = subprocess.run(
        ["bash", "-c", f"{command}\ncode=$?\nenv -0 > {variables}\nexit $code"],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    for line in variables.read_text(encoding="utf-8").split("\0")[:-1]:
        name, _, value = line.partition("=")
        monkeypatch.setenv(name, value)
    return done.returncode, done.stdout[-2000:] + done.stderr[-2000:]


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(
            page, id=str(page.relative_to(ROOT).with_suffix("")), marks=[] if first(page) else pytest.mark.slow
        )
        for page in FOLLOWED
    ],
)
def test_a_page_can_be_followed_literally(page, tmp_path, chat_server, batch_server, monkeypatch, capfd):
    if page.stem in ("sandbox", "sandboxes") and shutil.which("bwrap") is None:
        pytest.skip("there is no bubblewrap here (apt install bubblewrap)")
    chat_server.answer = chat_server.sealed(score=0.5, winner="first", confidence=0.9)
    shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns("out", "third-party"))
    for name in [name for name in os.environ if name.startswith(("DICAST_", "PYTEST_", "COV_", "UV_"))]:
        if name != "PYTEST_CURRENT_TEST":  # which pytest removes itself
            monkeypatch.delenv(name)
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    if installs(page):
        environment = own_environment(tmp_path.parent / f"{tmp_path.name}.venv")
        path = f"{environment['VIRTUAL_ENV']}/bin:{path}"
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
    monkeypatch.setenv("PATH", path)
    monkeypatch.setenv("JUDGE_URL", chat_server.url)
    monkeypatch.setenv("BATCH_URL", batch_server.url)
    monkeypatch.setenv("JUDGE_KEY", "no-key")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p no:schemathesis")  # as in pyproject.toml
    monkeypatch.chdir(tmp_path)
    for number, (language, info, text) in enumerate(blocks(page)):
        title = re.search(r'title="([^"]+)"', info)
        if title:
            (tmp_path / title[1]).parent.mkdir(parents=True, exist_ok=True)
            with (tmp_path / title[1]).open("a" if "append" in info.split() else "w", encoding="utf-8") as file:
                file.write(text)
        expected = int((re.search(r"exit=(\d+)", info) or [0, 0])[1])
        for command in commands(language, text) if is_run(info) else ():
            if spared(page, number, command):
                code, output = in_this_process(command, tmp_path, capfd)
            else:
                code, output = in_bash(command, tmp_path.parent / f"{tmp_path.name}.environment", monkeypatch)
                if "pip install" in command:
                    metadata_folder = tmp_path.parent / f"{tmp_path.name}.metadata"
                    find_installed(Path(environment["VIRTUAL_ENV"]), metadata_folder, monkeypatch)
            assert code == expected, f"$ {command}\n{output}"


def test_few_commands_are_left_out():
    left = [
        f"{page.name}: {command}"
        for page in PAGES
        for language, info, text in blocks(page)
        if "norun" in info.split() and "elsewhere" not in info.split()
        for command in commands(language, text)
        if not command.startswith("uv sync --inexact --extra ")  # installs an extra; test_docs_extras checks these
    ]
    assert len(left) <= NORUN, left
