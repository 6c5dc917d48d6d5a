"""Helpers that run programs in sandboxes."""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs
import pytest

from dicast import ConfigError, Execution, Limits, Program
from dicast_sandbox import Bubblewrap
from dicast_sandbox.backends.profiles import limits

MARK = "DICAST_TEST_MARK"
MB = 1024**2
SMALL = attrs.evolve(limits("small"), wall=6, cpu=6, memory=256 * MB, file_size=16 * MB, disk=32 * MB, output=MB)


def works() -> bool:
    try:
        Bubblewrap().check()
    except ConfigError:
        return False
    return True


needs_bubblewrap = pytest.mark.skipif(not works(), reason="bubblewrap makes no sandbox here (apt install bubblewrap)")


@contextmanager
def with_pytest() -> Iterator[Bubblewrap]:
    """Provide a sandbox with pytest: copies of packages in plain Python, because the sandbox's Python may differ from the tests' own."""
    packages = Path(pytest.__file__).parents[1]
    with tempfile.TemporaryDirectory(prefix="dicast-pytest-") as name:
        Path(name).chmod(0o755)
        for package in ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments"):
            for path in (packages / package, *packages.glob(f"{package}-*.dist-info")):
                shutil.copytree(path, Path(name, path.name), ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(packages / "py.py", name)
        yield Bubblewrap(mounts=(Path(name),), environment={"PYTHONPATH": name})


def left(mark: str) -> list[str]:
    """Return the commands of the host's processes with *mark* in their environment."""
    commands = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdecimal() and mark.encode() in (entry / "environ").read_bytes():
                commands.append((entry / "cmdline").read_text(errors="replace"))
        except OSError:  # it has ended, or is not ours
            continue
    return commands


def wait_for(condition: Callable[[], bool]) -> None:
    """Wait until *condition* holds, at most 100 seconds."""
    end = time.monotonic() + 100
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def run(*command: str, limits: Limits = SMALL, **program) -> Execution:
    """Run in a sandbox, and check that no process is left."""
    mark = f"{os.getpid()}-{uuid.uuid4().hex}"
    marked_program = Program(command, limits, environment={MARK: mark}, **program)
    execution = asyncio.run(Bubblewrap().execute(marked_program))
    assert isinstance(execution, Execution), execution
    assert left(mark) == []
    return execution


def python(code: str, **program) -> Execution:
    """Run Python code as a candidate's."""
    return run("python3", "-c", code, **program)
