"""Program in a container, and two programs connected to each other."""

from __future__ import annotations

import asyncio
import io
import signal
import tarfile
import time
from asyncio.subprocess import Process
from contextlib import suppress
from typing import Literal

import attrs

from dicast import Execution, Failure, Program

from ...inside import read_source
from ..environment import HOME, REPORT_BYTES, WORKSPACE
from ..process import Tail, await_fully, exit_code, follow, join_peer_result, make_execution
from .container import START_SECONDS, Container, Engine, end_client, start_container

LOOK_SECONDS = 0.25
"""Time between two readings of a container's usage."""

STARTED = b"started\n"

_RELAY = "relay.py"
_UNPACK = f'mkdir -p {HOME} {WORKSPACE} && cd {WORKSPACE} && head -c "$1" | tar -xf - || exit 125; shift; '
# If memory is short, the kernel ends the program before the processes that control it.
_START = 'ulimit -d "$1"; shift; echo 1000 >/proc/self/oom_score_adj; echo started >&2; exec '
_PYTHON = "command -v python3 >/dev/null || { echo 'mode: isolated needs python3 in the image' >&2; exit 125; }; "
_COLLECT = f'cd {WORKSPACE}; [ ! -f "$1" ] || exec head -c "$2" -- "$1"'
_CHUNK = 1 << 16
_WORDS = 500

Streams = Literal["closed", "relayed", "peer"]
"""Streams of a program, as stdin, stdout and stderr.

``closed``: nothing, and its output twice. ``relayed``: the same, with the client's stdin and stderr as the socket to the peer.
``peer``: the socket twice, and its output.
"""

_SCRIPTS: dict[Streams, str] = {
    "closed": f'{_UNPACK}{_START}"$@" </dev/null 2>&1',
    "relayed": f'{_PYTHON}{_UNPACK}{_START}python3 -I -c "$@"',
    "peer": f'{_UNPACK}{_START}"$@"',
}


async def run_program(engine: Engine, program: Program) -> Execution | Failure:
    """Run *program* in a container, and its peer in another; the peer is ended when *program* has ended."""
    if program.peer is None:
        return await ContainedProgram(engine, program).run()
    tests, candidate = ContainedProgram(engine, program, "relayed"), ContainedProgram(engine, program.peer, "peer")
    tests.peer, candidate.peer = candidate, tests
    running = [asyncio.create_task(contained.run()) for contained in (tests, candidate)]
    try:
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        peer_result = running[1].result() if running[1].done() else None
        if isinstance(peer_result, Failure):
            return peer_result
        answer = await running[0]
        peer_result = running[1].result() if running[1].done() else None
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    return answer if peer_result is None else join_peer_result(answer, peer_result)


@attrs.define(eq=False)
class ContainedProgram:
    """A *program* in a container of *engine*, connected to the program of *peer*; *started* is its client, once it runs."""

    engine: Engine
    program: Program
    streams: Streams = "closed"
    peer: ContainedProgram | None = None
    started: asyncio.Future[Process] = attrs.field(factory=lambda: asyncio.get_running_loop().create_future())

    async def run(self) -> Execution | Failure:
        """Run the program to its end."""
        clients: list[Process] = []
        try:
            async with start_container(self.engine, self.program.limits) as box:
                return _failure(box) if isinstance(box, str) else await self._run(box, clients)
        finally:
            await await_fully(_end_clients(clients))

    async def _run(self, box: Container, clients: list[Process]) -> Execution | Failure:
        packed = _pack_workspace(self.program)
        client = await self._enter(box, clients, _SCRIPTS[self.streams], str(len(packed)), *self._command())
        refused = await self._start(client, packed)
        if refused is not None:
            return refused
        start, tail = time.monotonic(), Tail()
        self.started.set_result(client)
        struck = await self._follow(box, client, tail)
        seconds, usage = time.monotonic() - start, await box.read_usage()
        if usage is None and struck is None:
            return Failure("crashed", "sandbox/docker: the container has ended before its program", retryable=True)
        if struck is None and usage is not None:
            struck = usage.exceeded(self.program.limits)
        collected = None if struck else await self._collect(box, clients)
        code = exit_code(-signal.SIGKILL if client.returncode is None else client.returncode)
        return make_execution(code, tail.content, seconds, struck, collected)

    def _command(self) -> tuple[str, ...]:
        relay = (read_source(_RELAY).decode(),) if self.streams == "relayed" else ()
        return str(self.program.limits.memory // 1024), *relay, *self.program.command

    async def _enter(self, box: Container, clients: list[Process], script: str, *words: str) -> Process:
        entering = asyncio.create_task(box.enter(("/bin/sh", "-c", script, "sh", *words), self._environment()))
        try:
            await asyncio.shield(entering)
        finally:
            clients.append(await entering)
        return clients[-1]

    def _environment(self) -> dict[str, str]:
        variables = {"HOME": HOME, "TMPDIR": "/tmp", "USER": "sandbox", "LANG": "C.UTF-8"}  # noqa: S108  # inside
        return {**variables, **self.engine.environment, **self.program.environment}

    async def _start(self, client: Process, packed: bytes) -> Failure | None:
        """Send the workspace, and wait until the program starts."""
        assert client.stdin is not None and client.stderr is not None  # noqa: PT018  # they are pipes
        errors = b""
        try:
            async with asyncio.timeout(START_SECONDS):
                with suppress(ConnectionError):  # stderr has the cause
                    client.stdin.write(packed)
                    await client.stdin.drain()
                if self.streams == "closed":
                    client.stdin.close()
                while line := await client.stderr.readline():
                    if line == STARTED:
                        return None
                    errors += line
        except TimeoutError:
            errors += b"no start in %d s" % START_SECONDS
        return _failure(errors.decode(errors="replace"))

    async def _follow(self, box: Container, client: Process, tail: Tail) -> str | None:
        """Follow the program to its end; return the limit that it exceeded, or None."""
        output, messages = (client.stderr, client.stdout) if self.streams == "peer" else (client.stdout, client.stderr)
        following = asyncio.create_task(follow(client, self.program.limits, tail, output))
        watching = asyncio.create_task(self._watch(box))
        speaking = asyncio.create_task(self._relay_messages(messages))
        try:
            await asyncio.wait({following, watching}, return_when=asyncio.FIRST_COMPLETED)
            struck = following.result() if following.done() else watching.result()
            if struck is None and self.streams == "peer":
                await speaking  # its last messages
            return struck
        finally:
            tasks = following, watching, speaking
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self, box: Container) -> str | None:
        """Return the first limit that is exceeded; None when the container ends."""
        while (usage := await box.read_usage()) is not None:
            if struck := usage.exceeded(self.program.limits):
                return struck
            await asyncio.sleep(LOOK_SECONDS)
        return None

    async def _relay_messages(self, messages: asyncio.StreamReader | None) -> None:
        """Copy the program's messages to its peer, which may start later."""
        if self.peer is None or messages is None:
            return
        sink = (await asyncio.shield(self.peer.started)).stdin
        assert sink is not None  # a pipe
        with suppress(ConnectionError):  # the peer has ended
            while chunk := await messages.read(_CHUNK):
                sink.write(chunk)
                await sink.drain()
        sink.close()

    async def _collect(self, box: Container, clients: list[Process]) -> bytes | None:
        """Return the file that the program is to return, from the container that still runs."""
        if self.program.collect is None:
            return None
        client = await self._enter(box, clients, _COLLECT, self.program.collect, str(REPORT_BYTES))
        content, _ = await asyncio.wait_for(client.communicate(), START_SECONDS)
        return content or None


def _failure(reason: str) -> Failure:
    return Failure("crashed", f"sandbox/docker could not start: {reason.strip()[-_WORDS:]}", retryable=True)


def _pack_workspace(program: Program) -> bytes:
    """Return the workspace as a tar; the files are last, so that they replace files of the template."""
    packed = io.BytesIO(program.archive or b"")
    with tarfile.open(fileobj=packed, mode="a" if program.archive else "w") as archive:
        for name, content in program.files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(content), int(time.time())
            member.mode = 0o755 if content.startswith(b"#!") else 0o644
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


async def _end_clients(clients: list[Process]) -> None:
    await asyncio.gather(*map(end_client, clients))
