from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from trust_project import Project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Project in a temporary folder, in which the test runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DICAST_LEDGER", raising=False)
    return Project(tmp_path)


@pytest.fixture
def judged(project: Project, judged_once: Path) -> Project:
    """Copy of the project that the module has judged once, in the folder ``judged_once``."""
    shutil.copytree(judged_once, project.folder, dirs_exist_ok=True)
    return project
