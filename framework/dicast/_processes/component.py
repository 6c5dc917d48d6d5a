"""Executors of the plugin ``dicast``. The executors of other plugins may use the same public modules."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from math import inf
from typing import TYPE_CHECKING

import attrs

from dicast import Executor, RunContext, Within, hookimpl

if TYPE_CHECKING:
    from dicast.metric_calls import Slot

    from .sharing import Pool

_POSITIVE = Within(1, inf, "1 or more")


def cores() -> int:
    """Return the number of cores that this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


@attrs.frozen
class Async:
    """Judges subjects concurrently in one event loop.

    :param concurrency: the largest number of subjects judged at the same time; at least 1.
    """

    concurrency: int = attrs.field(default=32, validator=_POSITIVE)


@attrs.frozen
class Processes:
    """Runs metrics that only compute in worker processes, so that they use every core. Everything else works as in dicast/async.

    A metric runs in the workers if its ``score`` is a ``def``, it needs no ``open``, it has no chat model or judge inside, and it
    can be pickled; ``dicast check`` lists the others. A worker that dies is replaced, and one call fails.

    :param workers: the number of processes; at least 1. By default one for each core that this process may use.
    :param concurrency: the largest number of subjects judged at the same time; at least 1. By default 32 for each worker.
    """

    workers: int | None = attrs.field(default=None, validator=_POSITIVE)
    concurrency: int = attrs.field(validator=_POSITIVE)

    @concurrency.default
    def _enough(self) -> int:
        return 32 * (self.workers or cores())

    def __attrs_post_init__(self) -> None:
        if os.name != "posix":
            raise ValueError(f"dicast/processes needs a POSIX system, not {sys.platform}; use dicast/async")

    def placement(self, slots: Sequence[Slot]) -> Mapping[str, str]:
        """Return the reason why a metric of *slots* stays in the main process, by label; other metrics are sent to workers."""
        from dicast.metric_calls import reason_to_stay  # imported late, as in open

        return {slot.label: reason for slot in slots if (reason := reason_to_stay(slot)) is not None}

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Pool]:
        """Provide the pool of workers of one run. The workers start with the first metric that is sent to them."""
        from .sharing import Pool  # imported late: listing components needs neither asyncio's processes nor mmap

        pool = Pool(self.workers or cores())
        try:
            yield pool
        finally:
            await pool.close()


@hookimpl
def dicast_executors() -> list[type[Executor]]:
    """Return ``dicast/async`` and ``dicast/processes``."""
    return [Async, Processes]
