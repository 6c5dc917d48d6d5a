"""The sink ``azure/monitor``: rows of an experiment as custom events of Application Insights."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from math import inf
from urllib.parse import urlsplit
from uuid import UUID

import attrs

from dicast import ConfigError, Event, Query, RunContext, Secret, Within
from dicast.toolkit.http_reply import MAX_REPLY_BYTES, ReplyReader

from .ingestion import Ingestion
from .rows import RECORDS, Row, Rows

BATCH = 500
"""Most rows in one request."""


def parts_of(connection_string: str) -> dict[str, str]:
    """Return the parts of a connection string by their lower-case names."""
    pairs = (part.partition("=") for part in connection_string.split(";") if part.strip())
    return {name.strip().lower(): value.strip() for name, _, value in pairs}


def _check(_monitor: Monitor, _attribute: attrs.Attribute[Secret], secret: Secret) -> None:
    parts = parts_of(secret.value)
    try:
        UUID(parts.get("instrumentationkey", ""))
        endpoint = urlsplit(parts.get("ingestionendpoint", ""))
        named = endpoint.scheme in ("http", "https") and bool(endpoint.hostname)
    except ValueError:
        named = False
    if not named:
        # For missing parts, the exporter would use the environment or its own defaults.
        raise ConfigError(
            "connection_string is 'InstrumentationKey=<a UUID>;IngestionEndpoint=<an address>', as the Azure portal shows it; "
            "one of the two is missing or wrong"
        )


@attrs.frozen
class Monitor:
    """Send a run's rows as custom events to Azure Monitor (Application Insights).

    The events are ``experiment_start``, ``llm_request`` and ``llm_response`` for each response of a record, ``llm_retry_exhausted``,
    ``experiment_<name>_aggregates``, ``baseline_<name>_<comparison>`` and ``experiment_complete``; a suite adds ``suite_preflight``,
    ``suite_summary`` and the metric ``experiment_count``. The row of a request has ``azure_sequence``, ``az-1``, ``az-2`` and so on, and the row of
    its response has the same; texts of prompts and replies are not sent. A resumed run sends its rows again with the
    same ``event_id``, except rows before an orderly stop that lost nothing. Data is sent only to the ingestion endpoint in *connection_string*:
    the exporter's own statistics, control plane, storage on disk and use of the environment are off.

    :param connection_string: as the Azure portal shows it, with ``InstrumentationKey`` and ``IngestionEndpoint``.
    :param timeout: time limit of one request in seconds.
    :param max_reply_bytes: the most bytes of a decoded reply of the endpoint; after a longer reply, the rows count as not accepted.
    """

    name = "monitor"
    rewrites = True
    wants = ("run.started", *RECORDS, "aggregate.completed", "comparison.completed", "run.completed", "run.stopped")

    connection_string: Secret = attrs.field(validator=_check)
    timeout: float = attrs.field(
        default=10.0, validator=Within(0, 30, "more than 0 and less than 30 seconds", open=True)
    )
    max_reply_bytes: int = attrs.field(
        default=MAX_REPLY_BYTES, validator=Within(1, inf, "1 or more"), metadata={"counts": False}
    )

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Feed]:
        """Yield the live sink. Repeated events get the same ids."""
        stops = run.read(Query(run_id=run.run_id, types=("run.stopped",))) if run.resumed else ()
        rows = Rows(run.run_id, run.name, run.read, [entry.event for entry in stops])
        text = self.connection_string.value
        secrets = [value for name, value in parts_of(text).items() if not name.endswith("endpoint")]
        reader = ReplyReader([text, *secrets], self.max_reply_bytes)
        with closing(Ingestion(text, self.timeout, reader)) as ingestion:
            yield Feed(ingestion, rows)


class Feed:
    """The live sink, which turns a run's events into rows and sends them."""

    def __init__(self, ingestion: Ingestion, rows: Rows) -> None:
        self._ingestion = ingestion
        self._rows = rows
        self._batch: tuple[str, str] | None = None
        self._converted = 0
        self._waiting: list[Row] = []
        self._sent = 0

    async def write(self, events: Sequence[Event]) -> int:
        """Send the rows of *events*, and return the number of events. A second call with the same events sends the rest.

        :raises IngestionError: if the endpoint did not accept them.
        """
        batch = events[0].id, events[-1].id
        if batch != self._batch:  # rows of the previous batch were counted as lost
            self._batch, self._converted, self._waiting, self._sent = batch, 0, [], 0
        for event in events[self._converted :]:  # a conversion that failed goes on with its event
            self._waiting += [*self._rows.add(event)]
            self._converted += 1
        while self._waiting:
            part = self._waiting[:BATCH]
            await asyncio.to_thread(self._ingestion.send, part)
            del self._waiting[: len(part)]
            self._sent += len(part)
        return self._sent

    def close(self) -> int:
        """Return 0: no rows are left to send."""
        return 0
