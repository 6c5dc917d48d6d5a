"""Untracked paths that commands need, in a folder whose git is written out here."""

from __future__ import annotations

from types import SimpleNamespace

import attrs
import pytest

from dicast import ConfigError
from dicast_autoresearch.links import Links
from dicast_autoresearch.session import Session

SESSION = Session(name="s", primary="m", direction="higher_is_better", command="sh run.sh", scope=("src",))


@pytest.fixture
def links(tmp_path, monkeypatch):
    for name in ("data/raw", "sub/node_modules", ".venv/bin", "other", "module/inside", "empty", "env/lib", ".auto"):
        (tmp_path / name).mkdir(parents=True)
    for name in ("run.sh", "data/raw/a.csv", "secret.txt", "tracked.txt"):
        (tmp_path / name).write_text("")
    for name in ("PATH", "PYTHONPATH", "NODE_PATH", "VIRTUAL_ENV", "CONDA_PREFIX"):
        monkeypatch.setenv(name, "")
    untracked = ["data/raw", "sub/node_modules", ".venv", "other", "secret.txt", "env", ".auto"]
    git = SimpleNamespace(
        root=tmp_path,
        untracked=lambda: untracked,
        submodules=lambda _: ["module", "empty"],
        is_tracked=lambda path, _: path == "tracked.txt",
    )
    return Links(git, SESSION)


ALWAYS = [".venv", "module", "sub/node_modules"]


@pytest.mark.parametrize(
    ("command", "named"),
    [
        ("", []),
        ("cat secret.txt", ["secret.txt"]),
        ("sh -c 'cat <secret.txt;ls data/raw/a.csv'", ["data/raw", "secret.txt"]),
        ("cat ./other/../secret.txt ../other missing", ["secret.txt"]),
        ("cat data", []),
    ],
)
def test_dependencies_submodules_and_named_paths_are_linked(links, command, named):
    paths = links.paths(*filter(None, [command]))
    assert [*paths] == sorted([*ALWAYS, *named])
    assert paths[".venv"] == links.git.root / ".venv"
    assert links.left_out(command) == [path for path in ("data/raw", "other", "secret.txt", "env") if path not in named]


@pytest.mark.parametrize("variable", ["PATH", "PYTHONPATH", "NODE_PATH", "VIRTUAL_ENV", "CONDA_PREFIX"])
def test_folders_of_the_environment_are_linked(links, variable, monkeypatch):
    monkeypatch.setenv(variable, f"/usr/bin:{links.git.root}/env/lib:other")
    assert [*links.paths()] == sorted([*ALWAYS, "env"])


def test_paths_of_the_session_are_linked_or_refused(links):
    named = attrs.evolve(links, session=attrs.evolve(SESSION, link=("other", "./secret.txt", "data")))
    assert [*named.paths("cat data/raw/a.csv")] == sorted([*ALWAYS, "other", "secret.txt", "data"])
    wrong = attrs.evolve(links, session=attrs.evolve(SESSION, link=("missing", "tracked.txt")))
    with pytest.raises(ConfigError) as raised:
        wrong.paths()
    assert "--link missing: there is no such path in" in str(raised.value)
    assert "--link tracked.txt: git tracks it" in str(raised.value)
    assert links.of_session() == {".auto": links.git.root / ".auto"}
