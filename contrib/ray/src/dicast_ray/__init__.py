"""Runs on a Ray cluster: the executor ``ray/shards``."""

from __future__ import annotations

from collections.abc import Mapping
from math import inf

import attrs

from dicast import Classes, ConfigError, Executor, Host, Shards, Within, hookimpl

_POSITIVE = Within(1, inf, "1 or more")


def _amounts(_component: object, _field: object, resources: Mapping[str, float]) -> None:
    """Refuse amounts of 0 or less, and resources that Ray has itself.

    :raises ConfigError: naming the resource.
    """
    for name, amount in resources.items():
        if name in ("CPU", "GPU", "memory", "object_store_memory"):
            raise ConfigError(f"resources: {name} is a resource of Ray itself; name one of ray start --resources")
        if not 0 < amount < inf:
            raise ConfigError(f"resources: {name} must be a number above 0, not {amount!r}")


@attrs.frozen
class RayShards:
    """Has the shards of a run judged by tasks of a Ray cluster, and collects their events at the end.

    A task records its shard in a segment before it answers. If its machine dies, another task continues the shard. The machines need the same
    files, the same versions, and the environment variables of the pipeline.

    :param address: the address of a cluster, such as ``10.0.0.1:6379``. By default the run starts a cluster on this machine, and ends it.
    :param shard: the number of subjects in a shard; at least 1.
    :param workers: the largest number of tasks at the same time; at least 1. By default one for each CPU of the cluster.
    :param resources: the resources that a task takes from its machine, by their names in ``ray start --resources``. A pipeline with a sandbox is
        judged by machines with a container engine alone: ``{sandbox: 1}``.
    :param concurrency: the largest number of subjects that a task judges at the same time; at least 1.
    :param segments: the folder of the segments, or the URL or component of a ledger that all machines can write. By default a folder next to
        the ledger of the run, which is removed at the end of the run; all machines need it at the same path.
    """

    name = "shards"
    address: str | None = None
    shard: int = attrs.field(default=10_000, validator=_POSITIVE)
    workers: int | None = attrs.field(default=None, validator=attrs.validators.optional(_POSITIVE))
    resources: Mapping[str, float] = attrs.field(factory=dict, validator=_amounts)
    concurrency: int = attrs.field(default=32, validator=_POSITIVE)
    segments: str | None = None

    async def run(self, host: Host, shards: Shards) -> None:
        """Judge *shards* on the cluster."""
        if host.stop.is_set():
            return
        from .cluster import connected  # imported late: Ray takes a second to import

        async with connected(self.address) as cluster:
            await cluster.judge(host, shards, self.workers, self.resources)


@hookimpl
def dicast_executors() -> Classes[Executor]:
    """Return ``ray/shards``."""
    return [RayShards]
