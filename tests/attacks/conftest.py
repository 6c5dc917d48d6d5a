"""Running the command line on hostile files, with a bound on what it may take."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import attrs
import pytest

from dicast._kernel.cli import main

ROWS = "source: {{rows/jsonl: {{path: {path}}}}}\nmetrics: [proxy/format]\nledger: {{ledger/sqlite: {{path: ledger.db}}}}\n"


@attrs.frozen
class Ended:
    code: int
    output: str
    errors: str


class Attack:
    """A folder, in which files are written and commands run."""

    def __init__(self, folder: Path, capfd) -> None:
        self.folder, self._capfd = folder, capfd

    def write(self, name: str, content: str | bytes) -> Path:
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def rows(self, path: str = "rows.jsonl", more: str = "") -> str:
        """A pipeline over the rows in the file *path*."""
        self.write("pipeline.yaml", ROWS.format(path=path) + more)
        return "pipeline.yaml"

    def dicast(self, *arguments: str) -> Ended:
        """In this process."""
        self._capfd.readouterr()
        code = main(list(arguments))
        return Ended(code, *self._capfd.readouterr())

    def bounded(self, *arguments: str, gib: float = 1.0, seconds: float = 30) -> Ended:
        """In a process with so much address space; one that takes longer fails the test."""
        limited = ["sh", "-c", f'ulimit -v {int(gib * 2**20)} && exec "$@"', "sh"]
        ran = subprocess.run(
            [*limited, sys.executable, "-m", "dicast", *arguments],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        return Ended(ran.returncode, ran.stdout, ran.stderr)


@pytest.fixture
def attack(tmp_path, monkeypatch, capfd):
    if os.name != "posix":
        pytest.skip("bounds, FIFOs and devices are POSIX")
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("DICAST_")]:
        monkeypatch.delenv(name)
    return Attack(tmp_path, capfd)
