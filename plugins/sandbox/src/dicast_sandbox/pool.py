"""The sandboxes of one run, so many at a time."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Mapping

import attrs

from dicast import Execution, Failure, Program

from .sandboxed import Place, Sandboxed

PEER = "DICAST_PEER_FD"
"""The environment variable that names the descriptor by which a program talks to its peer."""


class Pool:
    """Runs programs in the sandboxes of *place*, *concurrency* at a time."""

    def __init__(self, place: Place, concurrency: int) -> None:
        self._place = place
        self._slots: asyncio.LifoQueue[int] = asyncio.LifoQueue()
        for slot in reversed(range(concurrency)):
            self._slots.put_nowait(slot)

    async def execute(self, program: Program) -> Execution | Failure:
        """Run *program*, when it is its turn."""
        slot = await self._slots.get()
        try:
            if program.peer is None:
                return await Sandboxed(self._place, program, slot).run()
            return await self._with_peer(program, program.peer, slot)
        finally:
            self._slots.put_nowait(slot)

    async def _with_peer(self, program: Program, peer: Program, slot: int) -> Execution | Failure:
        """Run both; the peer ends when *program* has."""
        ours, theirs = socket.socketpair()
        with ours, theirs:
            environment: Mapping[str, str] = {**program.environment, PEER: str(ours.fileno())}
            told = attrs.evolve(program, environment=environment)
            running = [
                asyncio.create_task(Sandboxed(self._place, told, slot, ours, keep=True).run()),
                asyncio.create_task(Sandboxed(self._place, peer, slot, theirs).run()),
            ]
            try:
                answer = await running[0]
                beside = running[1].result() if running[1].done() else None
            finally:
                for task in running:
                    task.cancel()
                await asyncio.gather(*running, return_exceptions=True)
        return answer if beside is None else _joined(answer, beside)


def _joined(answer: Execution | Failure, beside: Execution | Failure) -> Execution | Failure:
    """What came of a program whose peer has ended before it: a limit of the peer's is why."""
    if isinstance(answer, Failure) or isinstance(beside, Failure):
        return answer if isinstance(answer, Failure) else beside
    return attrs.evolve(answer, limit=answer.limit or beside.limit, output=answer.output + beside.output)
