"""``sandbox/none``: no sandbox, for output that is trusted like one's own code."""

from __future__ import annotations

import asyncio
import os
import sys
import tarfile
import tempfile
import time
from asyncio.subprocess import DEVNULL, STDOUT
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path

import attrs

from dicast import ConfigError, Execution, Failure, Program
from dicast.toolkit.files import error_reason
from dicast.toolkit.process_tree import ProcessTree

from .process import Tail, exit_code, follow, make_execution

_ELSEWHERE = "run dicast in WSL, on Linux or on macOS"


@attrs.frozen
class Unconfined:
    """Runs programs as the user who runs dicast, with all of their rights; a metric accepts it only with ``unsafe: true``.

    Only the limits on wall time and output are enforced. The workspace is a temporary folder.
    """

    name = "none"
    unsafe = True

    def check(self) -> None:
        """Refuse a system without POSIX pipes and sessions.

        :raises ConfigError: on Windows.
        """
        if os.name != "posix":
            raise ConfigError(
                f"sandbox/none needs sessions of POSIX, which this system lacks ({sys.platform}); {_ELSEWHERE}"
            )

    async def execute(self, program: Program) -> Execution | Failure:
        """Run *program* in a temporary folder, and end every process that it started."""
        if program.peer is not None:
            return Failure("crashed", "sandbox/none cannot isolate the candidate: mode: isolated needs a sandbox")
        with tempfile.TemporaryDirectory(prefix="dicast-") as folder:
            _write(program, Path(folder))
            return await _run(program, folder)


async def _run(program: Program, folder: str) -> Execution | Failure:
    start, tail, tree = time.monotonic(), Tail(), ProcessTree()
    async with _piped() as (stream, write):
        try:
            process = await asyncio.create_subprocess_exec(
                *program.command, stdin=DEVNULL, stdout=write, stderr=STDOUT, cwd=folder, start_new_session=True,
                env={**os.environ, **program.environment, **tree.env},
            )  # fmt: skip
        except OSError as error:
            return Failure("crashed", f"sandbox/none could not start {program.command[0]!r}: {error_reason(error)}")
        finally:
            os.close(write)
        try:
            limit = await follow(process, program.limits, tail, stream)
        finally:
            tree.end_session(process.pid)
            tree.end()
            await process.wait()
    code, output = exit_code(process.returncode or 0), tail.content
    report = None if program.collect is None else _read(Path(folder, program.collect))
    return make_execution(code, output, time.monotonic() - start, limit, report)


@asynccontextmanager
async def _piped() -> AsyncIterator[tuple[asyncio.StreamReader, int]]:
    """Provide a pipe: a stream to read until the end of the block, and the descriptor to which a program writes.

    ``subprocess.PIPE`` would not do: asyncio waits for its end, and children in sessions of their own may keep it open.
    """
    read, write = os.pipe()
    stream = asyncio.StreamReader()
    protocol = asyncio.StreamReaderProtocol(stream)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(lambda: protocol, os.fdopen(read, "rb"))
    try:
        yield stream, write
    finally:
        transport.close()


def _read(path: Path) -> bytes | None:
    return path.read_bytes() if path.is_file() else None


def _write(program: Program, folder: Path) -> None:
    if program.archive is not None:
        with tarfile.open(fileobj=BytesIO(program.archive)) as archive:
            archive.extraction_filter = getattr(tarfile, "data_filter", None)  # Python before 3.11.4 has none
            archive.extractall(folder)  # noqa: S202  # dicast made the archive from files that it has checked
    for name, content in program.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755 if content.startswith(b"#!") else 0o644)
