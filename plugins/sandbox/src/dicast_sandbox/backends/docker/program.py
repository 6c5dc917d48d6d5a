"""A program in a container, and two that talk to each other."""

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

from ...inside import text
from ..environment import HOME, REPORT_BYTES, WORKSPACE
from ..process import Tail, came, exit_code, follow, joined, whole
from .container import START_SECONDS, Container, Engine, container, ended

LOOK_SECONDS = 0.25
"""How long between two looks at what a container has taken."""

STARTED = b"started\n"

_RELAY = "relay.py"
_UNPACK = f'mkdir -p {HOME} {WORKSPACE} && cd {WORKSPACE} && head -c "$1" | tar -xf - || exit 125; shift; '
# Where memory is short, the kernel ends the program before what looks after it.
_START = 'ulimit -d "$1"; shift; echo 1000 >/proc/self/oom_score_adj; echo started >&2; exec '
_PYTHON = "command -v python3 >/dev/null || { echo 'mode: isolated needs python3 in the image' >&2; exit 125; }; "
_COLLECT = f'cd {WORKSPACE}; [ ! -f "$1" ] || exec head -c "$2" -- "$1"'
_CHUNK = 1 << 16
_WORDS = 500

Streams = Literal["closed", "relayed", "peer"]
"""A program's stdin, stdout and stderr: nothing and its output twice; the same, with the client's stdin and stderr for the
socket to its peer; or for the peer the socket twice, and its output."""

_SCRIPTS: dict[Streams, str] = {
    "closed": f'{_UNPACK}{_START}"$@" </dev/null 2>&1',
    "relayed": f'{_PYTHON}{_UNPACK}{_START}python3 -I -c "$@"',
    "peer": f'{_UNPACK}{_START}"$@"',
}


async def run(engine: Engine, program: Program) -> Execution | Failure:
    """Run *program* in a container, and its peer in another; the peer ends when *program* has."""
    if program.peer is None:
        return await Contained(engine, program).run()
    tests, candidate = Contained(engine, program, "relayed"), Contained(engine, program.peer, "peer")
    tests.other, candidate.other = candidate, tests
    running = [asyncio.create_task(one.run()) for one in (tests, candidate)]
    try:
        await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        beside = running[1].result() if running[1].done() else None
        if isinstance(beside, Failure):
            return beside
        answer = await running[0]
        beside = running[1].result() if running[1].done() else None
    finally:
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    return answer if beside is None else joined(answer, beside)


@attrs.define(eq=False)
class Contained:
    """A *program* in a container of *engine*, which talks to the *other*'s; *started* is the client at it, once it runs."""

    engine: Engine
    program: Program
    streams: Streams = "closed"
    other: Contained | None = None
    started: asyncio.Future[Process] = attrs.field(factory=lambda: asyncio.get_running_loop().create_future())

    async def run(self) -> Execution | Failure:
        """Run the program to its end."""
        clients: list[Process] = []
        try:
            async with container(self.engine, self.program.limits) as made:
                return _failure(made) if isinstance(made, str) else await self._run(made, clients)
        finally:
            await whole(_all_ended(clients))

    async def _run(self, made: Container, clients: list[Process]) -> Execution | Failure:
        packed = _packed(self.program)
        client = await self._enter(made, clients, _SCRIPTS[self.streams], str(len(packed)), *self._command())
        refused = await self._begin(client, packed)
        if refused is not None:
            return refused
        begun, tail = time.monotonic(), Tail()
        self.started.set_result(client)
        struck = await self._follow(made, client, tail)
        seconds, taken = time.monotonic() - begun, await made.look()
        if taken is None and struck is None:
            return Failure("crashed", "sandbox/docker: the container has ended before its program", retryable=True)
        if struck is None and taken is not None:
            struck = taken.struck(self.program.limits)
        collected = None if struck else await self._collected(made, clients)
        code = exit_code(-signal.SIGKILL if client.returncode is None else client.returncode)
        return came(code, tail.kept, seconds, struck, collected)

    def _command(self) -> tuple[str, ...]:
        relay = (text(_RELAY).decode(),) if self.streams == "relayed" else ()
        return str(self.program.limits.memory // 1024), *relay, *self.program.command

    async def _enter(self, made: Container, clients: list[Process], script: str, *words: str) -> Process:
        entering = asyncio.create_task(made.enter(("/bin/sh", "-c", script, "sh", *words), self._environment()))
        try:
            await asyncio.shield(entering)
        finally:
            clients.append(await entering)
        return clients[-1]

    def _environment(self) -> dict[str, str]:
        own = {"HOME": HOME, "TMPDIR": "/tmp", "USER": "sandbox", "LANG": "C.UTF-8"}  # noqa: S108  # inside
        return {**own, **self.engine.environment, **self.program.environment}

    async def _begin(self, client: Process, packed: bytes) -> Failure | None:
        """Hand the workspace in, and wait until the program starts."""
        assert client.stdin is not None and client.stderr is not None  # noqa: PT018  # they are pipes
        said = b""
        try:
            async with asyncio.timeout(START_SECONDS):
                with suppress(ConnectionError):  # stderr says why
                    client.stdin.write(packed)
                    await client.stdin.drain()
                if self.streams == "closed":
                    client.stdin.close()
                while line := await client.stderr.readline():
                    if line == STARTED:
                        return None
                    said += line
        except TimeoutError:
            said += b"no start in %d s" % START_SECONDS
        return _failure(said.decode(errors="replace"))

    async def _follow(self, made: Container, client: Process, tail: Tail) -> str | None:
        """Follow the program to its end, or until it strikes a limit."""
        said, spoken = (client.stderr, client.stdout) if self.streams == "peer" else (client.stdout, client.stderr)
        following = asyncio.create_task(follow(client, self.program.limits, tail, said))
        watching = asyncio.create_task(self._watch(made))
        speaking = asyncio.create_task(self._speak(spoken))
        try:
            await asyncio.wait({following, watching}, return_when=asyncio.FIRST_COMPLETED)
            struck = following.result() if following.done() else watching.result()
            if struck is None and self.streams == "peer":
                await speaking  # what it said last
            return struck
        finally:
            tasks = following, watching, speaking
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _watch(self, made: Container) -> str | None:
        """The limit that is struck first; None when the container ends."""
        while (taken := await made.look()) is not None:
            if struck := taken.struck(self.program.limits):
                return struck
            await asyncio.sleep(LOOK_SECONDS)
        return None

    async def _speak(self, spoken: asyncio.StreamReader | None) -> None:
        """Carry what is said to the other, which starts perhaps later."""
        if self.other is None or spoken is None:
            return
        sink = (await asyncio.shield(self.other.started)).stdin
        assert sink is not None  # a pipe
        with suppress(ConnectionError):  # the other has ended
            while chunk := await spoken.read(_CHUNK):
                sink.write(chunk)
                await sink.drain()
        sink.close()

    async def _collected(self, made: Container, clients: list[Process]) -> bytes | None:
        """The file that is wanted back, from the container that is still there."""
        if self.program.collect is None:
            return None
        client = await self._enter(made, clients, _COLLECT, self.program.collect, str(REPORT_BYTES))
        found, _ = await asyncio.wait_for(client.communicate(), START_SECONDS)
        return found or None


def _failure(said: str) -> Failure:
    return Failure("crashed", f"sandbox/docker could not start: {said.strip()[-_WORDS:]}", retryable=True)


def _packed(program: Program) -> bytes:
    """The workspace as a tar: the files last, so that they stand above the template's."""
    packed = io.BytesIO(program.archive or b"")
    with tarfile.open(fileobj=packed, mode="a" if program.archive else "w") as archive:
        for name, content in program.files.items():
            member = tarfile.TarInfo(name)
            member.size, member.mtime = len(content), int(time.time())
            member.mode = 0o755 if content.startswith(b"#!") else 0o644
            archive.addfile(member, io.BytesIO(content))
    return packed.getvalue()


async def _all_ended(clients: list[Process]) -> None:
    await asyncio.gather(*map(ended, clients))
