from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from trust_project import Project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A folder of its own, in which the test runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DICAST_LEDGER", raising=False)
    return Project(tmp_path)
