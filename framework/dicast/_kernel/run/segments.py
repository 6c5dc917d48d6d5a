"""Segments of a run: the ledgers in which the workers of its shards record, and their transfer to the ledger of the run."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from ..classes import frozen
from ..contract.protocols import Ledger
from ..events import SHARD_COMMITTED, SHARD_MERGED, SHARD_MERGING, SHARD_ROOTED
from ..pipeline.default_ledger import ledger_component
from ..plan.sections import Budget
from ..resume.resume import EarlierRun
from ..stream.opening_context import opening
from ..stream.stream import BATCH
from ..values import Event, Query
from ..values.clock import Clock
from ..values.errors import ConfigError, LedgerError, LedgerRefused, Problem
from .allotment import Allotment
from .merged_events import Bounds, MergedEvents, are_slices
from .shard_set import ShardRecord, ShardSet, is_running, shard_records

WORKER_SECONDS = 30.0
"""Seconds to wait for workers of a run that was ended."""


@frozen
class Segments:
    """Places of the segments of one run.

    :param run_id: the run.
    :param of: the number of its shards.
    :param folder: the folder with a file for each segment; None if all segments are in one ledger.
    :param ledger: the URL or the component of this ledger.
    :param size: the number of subjects in a slice. A shard has the sessions that begin in its slice. None: the shard has every N-th session.
    """

    run_id: str
    of: int
    folder: str | None
    ledger: str | None = None
    size: int | None = None

    @classmethod
    def of_run(cls, run_id: str, started: Mapping[str, Any]) -> Segments | None:
        """Return the segments of the run whose ``run.started`` has the payload *started*; None if it has no shards."""
        split = started.get("split")
        return None if split is None else cls(run_id, split["of"], split["folder"], split["ledger"], split.get("size"))

    def json(self) -> dict[str, Any]:
        """Return the member ``split`` of ``run.started``."""
        return {"of": self.of, "folder": self.folder, "ledger": self.ledger, "size": self.size}

    def place(self, number: int) -> str:
        """Return the ledger of the shard *number*: a path, a URL or a component."""
        return str(self.ledger) if self.folder is None else str(Path(self.folder, f"{number:05}.db"))

    def files(self) -> Iterator[Path]:
        """Yield the files of the segments, with the files that SQLite adds to them."""
        for number in range(1, self.of + 1) if self.folder is not None else ():
            for suffix in ("", "-wal", "-shm"):
                if (file := Path(self.place(number) + suffix)).exists():
                    yield file

    def _exists(self, place: str) -> bool:
        return self.folder is not None and Path(place).exists()

    async def wait_for_workers(self) -> None:
        """Wait for workers that are about to end, at most :data:`WORKER_SECONDS`. A worker that was killed holds its lease for half of this time."""
        until = time.monotonic() + WORKER_SECONDS
        while time.monotonic() < until:
            async with self._opened(None) as records:
                if not any(map(is_running, records)):
                    return
            await asyncio.sleep(0.5)

    @asynccontextmanager
    async def opened(self, committed: Mapping[int, Any] | None = None) -> AsyncIterator[list[ShardRecord]]:
        """Open the segments that exist, and provide their shards.

        :param committed: the heads of shards that workers of this process committed, by number. A worker has checked its file, so a file that has this head is not checked again.
        :raises ConfigError: naming a segment that is damaged, or that a worker still writes.
        """
        async with self._opened({} if committed is None else committed) as records:
            running = [record for record in records if is_running(record)]
            if running:
                texts = (
                    Problem(f"{record.run_name} is still running; wait for its end", record.place) for record in running
                )
                raise ConfigError(texts)
            yield records

    @asynccontextmanager
    async def _opened(self, committed: Mapping[int, Any] | None) -> AsyncIterator[list[ShardRecord]]:
        """Open the segments. They are not checked if *committed* is None."""
        async with AsyncExitStack() as stack:
            records = list[ShardRecord]()
            places = {self.place(number): number for number in range(1, self.of + 1)}
            for place, number in places.items():
                _, configuration = ledger_component(place if self.folder is None else Path(place))
                try:
                    ledger = await stack.enter_async_context(opening(configuration, None, create=False))
                except LedgerRefused:
                    if self._exists(place):
                        raise
                    continue  # no worker has recorded in it
                is_checked = (
                    self.folder is not None and committed is not None and _has_head(ledger, committed.get(number))
                )
                if committed is not None and not is_checked:
                    refuse_damaged(place, ledger)
                try:
                    records += self._own(place, ledger)
                except LedgerError:
                    refuse_damaged(place, ledger)
                    raise
            yield records

    def _own(self, place: str, ledger: Ledger) -> Iterator[ShardRecord]:
        for record in shard_records(place, ledger):
            if record.started["shard"].get("run") == self.run_id:
                yield record


def _has_head(ledger: Ledger, head: Mapping[str, Any] | None) -> bool:
    """Return True if *head* is the newest row of *ledger*."""
    newest = ledger.head()
    return newest is not None and head == {"seq": newest.seq, "digest": newest.digest}


def refuse_damaged(place: str, ledger: Ledger) -> None:
    """Refuse a segment that is damaged.

    :raises ConfigError: with its place.
    """
    if not (check := ledger.verify()).ok:
        message = f"the segment is damaged at row {check.bad_seq}: {check.reason}"
        raise ConfigError(Problem(f"{message}; remove it, and resume the run to judge its shards again", place))


def is_merged(ledger: Ledger, run_id: str) -> bool:
    """Return True if the events of all segments of the run are in *ledger*, and no worker continues a segment."""
    return any(True for _ in ledger.read(Query(run_id, (SHARD_MERGED,), limit=1)))


def read_bounds(ledger: Ledger, run_id: str) -> tuple[Bounds, int | None, bool]:
    """Return the bounds of the last transfer of the run in *ledger*, the row that begins it, and whether it reads the shards one by one; empty, None and False without a transfer."""
    entries = ledger.read(Query(run_id, (SHARD_MERGING,), newest_first=True, limit=1))
    entry = next(iter(entries), None)
    if entry is None:
        return {}, None, False
    payload: Any = entry.event.payload
    bounds = {item["number"]: (item["after"], item["until"]) for item in payload["segments"]}
    return bounds, entry.seq, payload.get("streams", False)


def next_bounds(bounds: Bounds, records: Sequence[ShardRecord]) -> Bounds:
    """Return the bounds of the events in *records* that no transfer before *bounds* has."""
    return {
        record.number: (bounds.get(record.number, (0, 0))[1], head.seq)
        for record in records
        if (head := record.ledger.head()) is not None
    }


def bounds_json(bounds: Bounds, *, streams: bool) -> dict[str, Any]:
    """Return the payload of the event that begins a transfer, which reads the shards one by one if it *streams*. A continued transfer has the same order of events."""
    segments = [{"number": key, "after": low, "until": high} for key, (low, high) in bounds.items()]
    return {"segments": segments, "streams": streams}


async def catch_up(ledger: Ledger, earlier: EarlierRun, *, leave: bool) -> None:
    """Continue the transfer of a run's segments to its *ledger* that an earlier process did not end, at its next event, before the run is resumed.

    :param leave: the run continues without its segments, so all their events are transferred.
    :raises ConfigError: as :meth:`Segments.opened`.
    """
    segments = Segments.of_run(earlier.run_id, earlier.payload)
    if segments is None or is_merged(ledger, earlier.run_id):
        return
    await segments.wait_for_workers()
    clock = Clock()

    def event(type_: str, payload: Mapping[str, Any]) -> Event:
        return Event(*_placed(clock, type_), earlier.run_id, payload)

    async with segments.opened() as records:
        shards = ShardSet(sorted(records, key=lambda record: record.number))
        bounds, start, streams = read_bounds(ledger, earlier.run_id)
        if start is not None:
            entries = ledger.read(Query(earlier.run_id, after=start))
            count = sum(entry.event.type not in (SHARD_COMMITTED, SHARD_ROOTED) for entry in entries)
            _append(ledger, islice(_events(shards, bounds, earlier.run_id, clock, streams=streams), count, None))
        bounds = next_bounds(bounds, records) if leave else {}
        if any(low < high for low, high in bounds.values()):
            streams = are_slices(shards)
            ledger.append([event(SHARD_MERGING, bounds_json(bounds, streams=streams))])
            _append(ledger, _events(shards, bounds, earlier.run_id, clock, streams=streams))
    if leave:
        allotment = Allotment.left_open(ledger, earlier.run_id, Budget())
        ledger.append([*allotment.release_events(event), event(SHARD_MERGED, {"is_complete": False})])


def _placed(clock: Clock, type_: str) -> tuple[str, str, str]:
    id_, time = clock.stamp()
    return id_, type_, time


def _events(shards: ShardSet, bounds: Bounds, run_id: str, clock: Clock, *, streams: bool) -> Iterator[Event]:
    for subject in MergedEvents(shards, bounds, streams=streams).subjects(run_id, clock):
        yield from subject.events


def _append(ledger: Ledger, events: Iterator[Event]) -> None:
    while batch := list(islice(events, BATCH)):
        ledger.append(batch)


def open_numbers(records: Sequence[ShardRecord], of: int) -> list[int]:
    """Return the numbers of the shards, of *of*, that are not complete in *records*."""
    complete = {record.number for record in records if record.is_complete}
    return [number for number in range(1, of + 1) if number not in complete]
