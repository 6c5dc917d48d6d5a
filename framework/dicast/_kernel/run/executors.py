"""The kernel's own plugin, ``dicast``: what it offers goes through the same hooks as everybody's."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import attrs

from ..contract.hooks import hookimpl
from ..contract.protocols import Executor
from ..plan.sections import AT_LEAST_ONE, Slot
from ..values import RunContext

if TYPE_CHECKING:
    from ..._processes.sharing import Pool


def cores() -> int:
    """How many cores this process may use."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed is not None else os.cpu_count() or 1


@attrs.frozen
class Async:
    """Judges subjects concurrently in one event loop.

    :param concurrency: how many subjects are judged at the same time, at most; 1 or more.
    """

    concurrency: int = attrs.field(default=32, validator=AT_LEAST_ONE)


@attrs.frozen
class Processes:
    """Asks the metrics that only compute in worker processes, so that they use every core; the rest is as in dicast/async.

    A metric goes to the workers when its ``score`` is a ``def``, it needs no ``open`` and has no chat model or judge inside,
    and it can be pickled; ``dicast check`` says which do. A worker that dies is replaced, and costs one call.

    :param workers: how many processes; 1 or more. By default one for each core that this process may use.
    :param concurrency: how many subjects are judged at the same time, at most; 1 or more. By default 32 for each worker.
    """

    workers: int | None = attrs.field(default=None, validator=AT_LEAST_ONE)
    concurrency: int = attrs.field(validator=AT_LEAST_ONE)

    @concurrency.default
    def _enough(self) -> int:
        return 32 * (self.workers or cores())

    def __attrs_post_init__(self) -> None:
        if os.name != "posix":
            raise ValueError(f"dicast/processes needs a POSIX system, and this is {sys.platform}; use dicast/async")

    def placement(self, slots: Sequence[Slot]) -> Mapping[str, str]:
        """Why metrics of *slots* stay in the main process, by label; those that are not named are sent to workers."""
        from ..._processes.sharing import reason_to_stay  # as below

        return {slot.label: why for slot in slots if (why := reason_to_stay(slot)) is not None}

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Pool]:
        """The pool of workers of one run; they start with the first metric that is sent to them."""
        from ..._processes.sharing import Pool  # asyncio's processes and mmap, which listing components does not need

        pool = Pool(self.workers or cores())
        try:
            yield pool
        finally:
            await pool.close()


@hookimpl
def dicast_executors() -> list[type[Executor]]:
    """Offer ``dicast/async`` and ``dicast/processes``."""
    return [Async, Processes]
