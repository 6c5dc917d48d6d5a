"""Pipeline that a worker builds from plain data, to judge a shard of a run."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..classes import evolve, frozen
from ..values.errors import ConfigError

if TYPE_CHECKING:
    from ..pipeline.read import PipelineFile
    from ..plan.sections import Pipeline
    from ..run.shard_set import ShardRecord

LEASE_SECONDS = 30.0
"""Seconds to wait for the lease of a worker that ended on another machine; a lease is valid for half of this time."""


def build(spec: Mapping[str, Any]) -> BuiltPipeline:
    """Return the pipeline of *spec*, the plain data of a :class:`~dicast.Host`.

    :raises ConfigError: if the data are of another version of dicast.
    """
    from ..pipeline.plain_spec import read_spec  # PyYAML takes 10 ms to import

    return WorkerPipeline(read_spec(spec, os.environ))


class BuiltPipeline(Protocol):
    """Pipeline in a worker. Its files, its environment variables and its secrets are those of the worker's machine."""

    def judge(
        self, reference: Mapping[str, Any], progress: Callable[[int], None] | None = None, workers: int = 1
    ) -> dict[str, Any]:
        """Judge the shard of *reference*, one of the references of :class:`~dicast.Shards`, and return the description of its segment as plain data.

        All events are durable in the segment before the function returns. A shard that another worker began is continued: its results are not judged
        and not paid for again. SIGINT and SIGTERM end it in order, if the function runs in the main thread.

        :param progress: is called with the number of judged subjects from time to time.
        :param workers: the largest number of workers of the run at the same time: rate limits of endpoints are divided by it.
        :raises RequestError: when the pipeline cannot be built here, or differs from the pipeline of the run; nothing was judged then.
        """
        ...


@frozen
class WorkerPipeline:
    """Pipeline *file* of a run, in a worker."""

    _file: PipelineFile

    def judge(
        self, reference: Mapping[str, Any], progress: Callable[[int], None] | None = None, workers: int = 1
    ) -> dict[str, Any]:
        """See :class:`BuiltPipeline`."""
        from ...toolkit.rate_limit import WORKERS  # asyncio takes 20 ms to import
        from ..timing.event_loop import in_loop

        place: Path | str = Path(reference["place"]) if reference["is_file"] else str(reference["place"])
        if isinstance(place, Path):
            place.parent.mkdir(parents=True, exist_ok=True)
        pipeline = self._pipeline(place, int(reference["concurrency"]))
        _refuse_differences(pipeline, reference["setup"])
        earlier = in_loop(_free_shard(pipeline, reference))
        if earlier is None or not earlier.is_complete:
            token = WORKERS.set(workers)
            try:
                in_loop(_judged(pipeline, reference, earlier, progress))
            finally:
                WORKERS.reset(token)
        return in_loop(_segment(pipeline, reference))

    def _pipeline(self, place: Path | str, concurrency: int) -> Pipeline:
        """Return the pipeline with its ledger at *place*."""
        from ..pipeline.build import build_pipeline
        from ..pipeline.overrides import put
        from ..pipeline.yaml_nodes import from_data

        file = self._file.with_ledger(place)
        executor = from_data({"dicast/async": {"concurrency": concurrency}}, file.start)
        return build_pipeline(evolve(file, root=put(file.root, "executor", executor)))


def _refuse_differences(pipeline: Pipeline, setup: Mapping[str, str]) -> None:
    """Refuse a *pipeline* that is not the pipeline of the run, whose digests are *setup*.

    :raises ConfigError: naming the parts that differ.
    """
    names = sorted(name for name in {*setup, *pipeline.setup} if setup.get(name) != pipeline.setup.get(name))
    if names:
        message = f"{', '.join(names)} differ on this machine from the run that was started"
        raise ConfigError(f"{message}; install the same versions and files on all machines")


async def _free_shard(pipeline: Pipeline, reference: Mapping[str, Any]) -> ShardRecord | None:
    """Return the run of the shard that another worker left; None without one. A lease on another machine is waited for."""
    import asyncio  # imported late, as in judge

    from ..run.shard_set import is_running

    until = time.monotonic() + LEASE_SECONDS
    while True:
        async with _opened(pipeline, create=True) as ledger:
            record = _newest(reference, ledger)
            if record is None or not is_running(record) or time.monotonic() >= until:
                return record
        await asyncio.sleep(1)


def _opened(pipeline: Pipeline, *, create: bool) -> Any:
    from ..pipeline.slots import ledger_slot
    from ..stream.opening_context import opening

    return opening(ledger_slot(pipeline).component, None, create=create)


def _newest(reference: Mapping[str, Any], ledger: Any) -> ShardRecord | None:
    from ..run.shard_set import shard_records

    records = [
        record
        for record in shard_records(str(reference["place"]), ledger)
        if record.number == reference["number"] and record.started["shard"].get("run") == reference["run_id"]
    ]
    return records[-1] if records else None


async def _judged(
    pipeline: Pipeline,
    reference: Mapping[str, Any],
    earlier: ShardRecord | None,
    progress: Callable[[int], None] | None,
) -> None:
    from ..pipeline.slots import ledger_slot
    from ..resume.open_runs import RunCommand
    from ..run.execute import execute
    from ..run.request import Request
    from ..source.shard import Shard
    from ..values import Cost

    filters = reference["filters"]
    if filters:
        from ..source.filters import read_filters

        filters = read_filters(filters)
    allotment = reference["allotment"]
    if allotment is not None:
        allotment = allotment["id"], tuple(Cost(cap["amount"], cap["unit"]) for cap in allotment["amounts"])
    of_run = reference["run_id"], reference["digest"], reference["size"]
    shard = Shard(reference["number"], reference["of"], *of_run, allotment)
    request = Request(
        limit=None if earlier is not None else reference["limit"],
        resume=None if earlier is None else earlier.run_id,
        shard=shard,
        signals=True,
        trusts_all=reference["trusts_all"],
        command=RunCommand(pipeline.file),
        filters=tuple(filters),
        progress=None if progress is None else lambda report: progress(report.judged),
    )
    await execute(pipeline, ledger_slot(pipeline), request)


async def _segment(pipeline: Pipeline, reference: Mapping[str, Any]) -> dict[str, Any]:
    """Return the description of the segment. A segment that is a file is checked before: the process of the run does not check a file with this head again.

    :raises ConfigError: if the file is damaged.
    """
    from ..run.segments import refuse_damaged

    async with _opened(pipeline, create=False) as ledger:
        if reference["is_file"]:
            refuse_damaged(str(reference["place"]), ledger)
        record = _newest(reference, ledger)
        is_complete = record is not None and record.is_complete
        head = ledger.head()
        return {
            **{name: reference[name] for name in ("number", "of", "place")},
            "run_id": record and record.run_id,
            "subjects": 0 if record is None else record.document.get("subjects", 0),
            "is_complete": is_complete,
            "reason": None if is_complete else "interrupted" if record is None else record.reason,
            "head": None if head is None else {"seq": head.seq, "digest": head.digest},
        }
