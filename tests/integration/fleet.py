"""The plugin ``fleet``: an executor that judges each shard of a run in a process. Tests install it; it is not imported from here."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path

import attrs

import dicast
from dicast import Host, PluginError, Shards, hookimpl

WORKER = """
import json, sys
import dicast
spec, reference = json.load(sys.stdin)
segment = dicast.build(spec).judge(reference)
print(json.dumps(segment))
"""


@attrs.frozen
class Fleet:
    """Judges every shard in a process.

    :param workers: the number of processes at the same time; 0 for threads of this process.
    :param shard: the number of subjects in a shard.
    :param concurrency: the number of subjects that a worker judges at the same time.
    :param segments: the folder or the ledger of the segments.
    :param share: the number of workers among which threads divide the rate limits.
    :param tries: the number of processes for a shard.
    :param pids: a file that gets the id of each process.
    """

    name = "shards"
    workers: int = 2
    shard: int = 3
    concurrency: int = 4
    segments: str | None = None
    share: int = 1
    tries: int = 1
    pids: str | None = None

    async def run(self, host: Host, shards: Shards) -> None:
        """Judge the shards, at most *workers* at the same time."""
        if not self.workers:
            for number, reference in shards.references.items():
                host.commit(number, await asyncio.to_thread(dicast.build(host.spec).judge, reference, None, self.share))
            return
        permits = asyncio.Semaphore(self.workers)
        await asyncio.gather(*(self._judge(host, number, shards, permits) for number in shards.references))

    async def _judge(self, host: Host, number: int, shards: Shards, permits: asyncio.Semaphore) -> None:
        async with permits:
            for _ in range(self.tries):
                if host.stop.is_set():
                    return
                pipe = asyncio.subprocess.PIPE
                worker = await asyncio.create_subprocess_exec(
                    sys.executable, "-c", WORKER, stdin=pipe, stdout=pipe, start_new_session=True
                )
                self._note(worker.pid)
                message = json.dumps([host.spec, shards.references[number]]).encode()
                answer = asyncio.create_task(worker.communicate(message))
                stopping = asyncio.create_task(host.stop.wait())
                await asyncio.wait({answer, stopping}, return_when=asyncio.FIRST_COMPLETED)
                stopping.cancel()
                if not answer.done():
                    worker.send_signal(signal.SIGINT)
                out, _ = await answer
                if worker.returncode == 0:
                    host.commit(number, json.loads(out))
                    return
            raise PluginError(f"the worker of shard {number} ended with {worker.returncode}")

    def _note(self, pid: int) -> None:
        if self.pids is not None:
            with Path(self.pids).open("a") as file:
                file.write(f"{pid}\n")


@hookimpl
def dicast_executors():
    return [Fleet]
