"""Running the command line on hostile files, with a bound on what it may take."""

from __future__ import annotations

import json
import os
import resource
import shutil
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

    def bounded(self, *arguments: str, gib: float = 1.0, seconds: float = 100) -> Ended:
        """In a process with so much address space; one that takes longer fails the test."""
        command = [sys.executable, "-m", "dicast", *arguments]
        pipes = dict.fromkeys(("stdout", "stderr"), subprocess.PIPE)
        with subprocess.Popen(command, cwd=self.folder, text=True, stdin=subprocess.DEVNULL, **pipes) as process:
            resource.prlimit(process.pid, resource.RLIMIT_AS, (int(gib * 2**30),) * 2)
            try:
                output, errors = process.communicate(timeout=seconds)
            finally:
                process.kill()
        return Ended(process.returncode, output, errors)


@pytest.fixture
def attack(tmp_path, monkeypatch, capfd):
    if os.name != "posix":
        pytest.skip("bounds, FIFOs and devices are POSIX")
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("DICAST_")]:
        monkeypatch.delenv(name)
    return Attack(tmp_path, capfd)


class Disk:
    """A small file system in memory at ``disk``. Calling it leaves so much room in kB."""

    step = int(os.environ.get("DICAST_DISK_STEP", "16"))
    """kB between two rooms that are left."""
    room = 4 * 1024
    """kB that are enough for every command."""

    def __init__(self, folder: Path, capfd) -> None:
        self.folder, self._capfd = folder, capfd
        rows = (
            {"id": str(n), "input": os.urandom(1500).hex(), "output": "ab"[n % 2], "reference": "a"} for n in range(40)
        )
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))

    def __call__(self, room: int) -> None:
        for attempt in range(20):  # a server that writes in between may have used the room: the size is refused
            used = os.statvfs(self.folder / "disk")
            kilobytes = (used.f_blocks - used.f_bfree) * used.f_frsize // 1024 + room
            words = ["mount", "-o", f"remount,size={kilobytes}k", "disk"]
            if not subprocess.run(words, cwd=self.folder, check=attempt == 19).returncode:
                return

    def empty(self) -> None:
        """Make room, and remove what a command left."""
        self(self.room)
        for path in (self.folder / "disk").iterdir():
            if path.name != ".filler":
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def dicast(self, *arguments: str) -> tuple[int, str]:
        """Return the exit code and all that is printed."""
        self._capfd.readouterr()
        code = main(list(arguments))
        return code, "".join(self._capfd.readouterr())


@pytest.fixture
def disk(tmp_path, monkeypatch, capfd):
    """Mount a small file system at ``disk``, below the current folder, which has 40 rows."""
    if os.geteuid() != 0:
        pytest.skip("a small file system is mounted, which needs root")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DICAST_LEDGER", raising=False)
    (tmp_path / "disk").mkdir()
    words = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", "disk"]
    if subprocess.run(words, cwd=tmp_path, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    (tmp_path / "disk/.filler").write_bytes(bytes(8192))  # a size of 0 would be no limit
    yield Disk(tmp_path, capfd)
    subprocess.run(["umount", tmp_path / "disk"], check=True)
