"""Plugins for tests: distributions that are installed for one test, without an installer."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from textwrap import dedent

import pytest

BROKEN = Path(__file__).parent / "broken_plugins"


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Install a distribution: ``install("dicast-x", "1.0", {"dicast": {"x": "dicast_x"}}, dicast_x="source")``."""
    site = tmp_path / "site"
    site.mkdir()
    monkeypatch.syspath_prepend(str(site))
    installed, before = set(), set(sys.modules)

    def installer(distribution, version="0.1.0", groups=(), folder=site, **modules):
        info = folder / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: {version}\n")
        lines = [line for group in groups for line in (f"[{group}]", *(f"{k} = {v}" for k, v in groups[group].items()))]
        (info / "entry_points.txt").write_text("\n".join(lines))
        for name, source in modules.items():
            (folder / f"{name}.py").write_text(dedent(source))
            installed.add(name)
        return info

    yield installer
    for name in installed - before:  # a library that a test puts its own in the place of stays as it is
        sys.modules.pop(name, None)


@pytest.fixture
def plugin(install):
    """Install a plugin of one module: ``plugin("x", "source")``."""

    def installer(name, source, version="0.1.0"):
        header = "from __future__ import annotations\nimport attrs\nfrom dicast import *\n"
        module = {f"dicast_{name}": header + dedent(source)}
        return install(f"dicast-{name}", version, {"dicast": {name: f"dicast_{name}"}}, **module)

    return installer


@pytest.fixture
def broken(install):
    """Install one of ``tests/broken_plugins``."""

    def installer(name):
        project = tomllib.loads((BROKEN / name / "pyproject.toml").read_text())["project"]
        source = (BROKEN / name / f"dicast_{name}.py").read_text()
        install(project["name"], project["version"], project["entry-points"], **{f"dicast_{name}": source})

    return installer
