"""Connection to a Ray cluster, and the tasks of a run on it. The process of the run moves references alone."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")  # Ray reads it when it is imported

import ray
from ray import exceptions
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from dicast import ConfigError, Host, PluginError, Shards

from .worker import Board, judge

TRIES = 3
"""The most tasks of a shard that may be lost with their process or their machine."""

SHOW_SECONDS = 1.0
"""Seconds between two looks at the progress."""

_LOST = (
    exceptions.WorkerCrashedError,
    exceptions.NodeDiedError,
    exceptions.ObjectLostError,
    exceptions.LocalRayletDiedError,
    exceptions.OutOfMemoryError,
)
"""Errors after which another task continues the shard."""

_ADVICE = "Start it with ray start, or correct the address. A cluster with tokens needs RAY_AUTH_MODE=token and the file ~/.ray/auth_token here, too"

_QUIET = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_ENABLE_UV_RUN_RUNTIME_ENV": "0"}
"""Settings of Ray: it sends no usage statistics, and does not copy the folder of ``uv run`` to the workers."""


@contextmanager
def _environment(variables: Mapping[str, str]) -> Iterator[None]:
    """Set environment *variables* during the block."""
    values = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in values.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


@asynccontextmanager
async def connected(address: str | None) -> AsyncIterator[Cluster]:
    """Connect to the cluster at *address*, or start one on this machine. A connection of the program is used, and stays open.

    :raises ConfigError: if there is no such cluster.
    """
    is_ours = not ray.is_initialized()
    if is_ours:
        with _environment(_QUIET):
            try:
                # in a thread: it takes seconds, and would replace the signal handlers of the main thread
                await asyncio.to_thread(ray.init, address or "local", log_to_driver=False, logging_level=logging.ERROR)
            except (ConnectionError, ValueError, RuntimeError) as error:
                place = "on this machine" if address is None else f"at {address}"
                message = f"ray/shards: no Ray cluster {place}: {error}"
                raise ConfigError(message if address is None else f"{message}. {_ADVICE}") from error
    try:
        yield Cluster()
    finally:
        if is_ours:
            await asyncio.to_thread(ray.shutdown)


def _places(needed: Mapping[str, float]) -> int:
    """Return the number of tasks that can run at the same time, each with a CPU and the *needed* resources.

    :raises ConfigError: if no machine can run a task.
    """
    nodes: list[Any] = ray.nodes()  # type: ignore[no-untyped-call]
    machines: list[dict[str, float]] = [node["Resources"] for node in nodes if node["Alive"]]
    missing = [name for name in needed if not any(machine.get(name, 0) >= needed[name] for machine in machines)]
    if missing:
        text = ", ".join(f"{name}: {needed[name]:g}" for name in missing)
        advice = "start Ray there with --resources, as in ray start --resources='{\"sandbox\": 4}'"
        raise ConfigError(f"ray/shards: no machine of the cluster has the resources {text}; {advice}")
    amounts = {"CPU": 1.0, **needed}
    return sum(min(int(machine.get(name, 0) // amount) for name, amount in amounts.items()) for machine in machines)


class Cluster:
    """Tasks of one run on the connected cluster."""

    def __init__(self) -> None:
        remote: Any = ray.remote  # its types allow no affinity, and no function with a handle
        affinity = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=True)
        self._board: Any = remote(num_cpus=0, max_restarts=-1, scheduling_strategy=affinity)(Board).remote()
        self._task = remote(num_cpus=1, max_retries=0, scheduling_strategy="SPREAD")(judge)
        self._workers = 1
        self._open: set[Any] = set()
        self._is_ending = False

    async def judge(
        self, host: Host, shards: Shards, workers: int | None, needed: Mapping[str, float] | None = None
    ) -> None:
        """Have all *shards* judged by at most *workers* tasks at the same time, and commit each to *host*.

        :param needed: the resources of each task, in addition to a CPU.
        :raises ConfigError: if no machine has the *needed* resources, or a worker cannot judge the pipeline.
        :raises PluginError: if a shard was lost too often.
        """
        spec = ray.put(dict(host.spec))
        places = _places(needed or {})
        self._task = self._task.options(resources=dict(needed or {}))
        self._workers = max(1, min(workers or places, shards.number))
        permits = asyncio.Semaphore(self._workers)
        tasks = {
            asyncio.create_task(self._judge_shard(host, number, spec, shards, permits)) for number in shards.references
        }
        showing = asyncio.create_task(self._show(host))
        stopping = asyncio.create_task(host.stop.wait())
        try:
            pending = {*tasks}
            while pending and not stopping.done():
                await asyncio.wait({*pending, stopping}, return_when=asyncio.FIRST_COMPLETED)
                for task in [task for task in pending if task.done()]:
                    task.result()
                    pending.discard(task)
        finally:
            self._is_ending = True
            showing.cancel()
            stopping.cancel()
            for reference in self._open:
                ray.cancel(reference)
            await asyncio.gather(*tasks, showing, return_exceptions=True)

    async def _judge_shard(
        self, host: Host, number: int, spec: Any, shards: Shards, permits: asyncio.Semaphore
    ) -> None:
        async with permits:
            for tries in reversed(range(TRIES)):
                if self._is_ending or host.stop.is_set():
                    return
                reference = self._task.remote(spec, dict(shards.references[number]), self._board, self._workers)
                self._open.add(reference)
                try:
                    segment: dict[str, Any] = await reference
                except exceptions.TaskCancelledError:
                    return  # its segment has all that it recorded
                except _LOST as error:
                    if not tries:
                        message = f"shard {number} was lost {TRIES} times with its worker: {error}"
                        raise PluginError(f"ray/shards: {message}. Continue with --resume") from error
                    continue
                except exceptions.RayTaskError as error:
                    raise PluginError(f"ray/shards: the worker of shard {number} failed: {error}") from error
                finally:
                    self._open.discard(reference)
                if "error" in segment:
                    raise ConfigError(f"ray/shards, shard {number}: {segment['error']}")
                host.commit(number, segment)
                return

    async def _show(self, host: Host) -> None:
        """Pass the numbers of judged subjects on from time to time."""
        while True:
            await asyncio.sleep(SHOW_SECONDS)
            with suppress(exceptions.RayActorError):  # it starts again elsewhere, and gets the next reports
                for shard, subjects in (await self._board.counts.remote()).items():
                    host.progress(shard, subjects)
