"""Optional members of executors, which :mod:`dicast.optional` has too."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from . import Host, Shards


class HasHost(Protocol):
    """Executors."""

    async def host(self, slots: Sequence[Any]) -> Mapping[str, Callable[..., Any]]:
        """Take over the metrics of some of the *slots*, and return a function that calls each of these metrics, by the slot's path; on the live object. Without it, the kernel calls all metrics."""


class HasRun(Protocol):
    """Executors."""

    async def run(self, host: Host, shards: Shards) -> None:
        """Have each reference of *shards* judged by :func:`~dicast.build` in a worker, and commit each segment to *host*; on the live object. It returns early if ``host.stop`` is set. Without ``shard``, it is not called."""


class HasShard(Protocol):
    """Executors."""

    @property
    def shard(self) -> int:
        """The number of subjects in a shard, 1 or more; ``concurrency`` is then the number of each worker. Without it, the kernel judges all subjects in its process."""


class HasSegments(Protocol):
    """Executors with ``shard``."""

    @property
    def segments(self) -> str | None:
        """The folder, or the URL or component of the ledger, in which the workers record; the segments stay there after the run. Without it, or None, a folder next to the ledger of the run, which is removed at its end."""


class HasPlacement(Protocol):
    """Executors."""

    def placement(self, slots: Sequence[Any]) -> Mapping[str, str]:
        """Return the reasons why metrics of *slots* stay in the main process, by label; ``dicast check`` prints them."""
