"""Run for an executor that judges its shards elsewhere: the pipeline as plain data, and the shards."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ..classes import frozen
from ..values.errors import PluginError

SEGMENT_KEYS = ("number", "of", "place", "run_id", "subjects", "is_complete", "reason", "head")
"""Members of a segment's description, which a worker returns."""


@frozen
class Shards:
    """Shards of a run that have to be judged.

    :param of: the number of shards of the whole run.
    :param digest: the digest of the data, which all shards read.
    :param references: the description of each shard as plain data, by its number, from 1. Shards that an earlier process completed are left out.
    """

    of: int
    digest: str
    references: Mapping[int, Mapping[str, Any]]

    @property
    def number(self) -> int:
        """The number of shards that have to be judged."""
        return len(self.references)


class Host(Protocol):
    """Run that an executor with ``run`` has judged by workers."""

    @property
    def spec(self) -> Mapping[str, Any]:
        """The pipeline as plain data, for :func:`dicast.build` in a worker."""
        ...

    @property
    def stop(self) -> asyncio.Event:
        """The event that is set when the run has to end early. The executor then interrupts its workers, and commits their segments."""
        ...

    def progress(self, shard: int, subjects: int) -> None:
        """Report that *subjects* subjects of *shard* are judged; the user sees the sum over all shards."""
        ...

    def commit(self, shard: int, segment: Mapping[str, Any]) -> None:
        """Record that the worker of *shard* has ended, and that its events are in *segment*, the answer of :meth:`~dicast.BuiltPipeline.judge`.

        :raises PluginError: if the run has no such open shard, it was committed before, or the segment is of another shard.
        """
        ...


class ShardHost:
    """Host of the shards of a run."""

    def __init__(
        self,
        spec: Mapping[str, Any],
        stop: asyncio.Event,
        shards: Shards,
        record: Callable[[Mapping[str, Any]], None],
        show: Callable[[int], None],
    ) -> None:
        """Create the host.

        :param record: records the commit of a segment.
        :param show: shows the number of judged subjects.
        """
        self.spec, self.stop = spec, stop
        self._shards, self._record, self._show = shards, record, show
        self._committed: set[int] = set()
        self._judged: dict[int, int] = {}

    def progress(self, shard: int, subjects: int) -> None:
        """See :class:`Host`."""
        self._judged[shard] = subjects
        self._show(sum(self._judged.values()))

    def commit(self, shard: int, segment: Mapping[str, Any]) -> None:
        """See :class:`Host`."""
        reference = self._shards.references.get(shard)
        if reference is None or shard in self._committed:
            reason = "was committed before" if shard in self._committed else "is no open shard of the run"
            raise PluginError(f"the executor committed shard {shard}, which {reason}; commit each reference once")
        missing = [key for key in SEGMENT_KEYS if key not in segment]
        if missing or any(segment[key] != reference[key] for key in ("number", "of", "place")):
            message = f"the executor committed {dict(segment)!r:.200} as the segment of shard {shard}"
            raise PluginError(f"{message}; commit the answer of judge for the reference of this shard")
        self._committed.add(shard)
        self._record({key: segment[key] for key in SEGMENT_KEYS})
        self.progress(shard, int(segment["subjects"]))
