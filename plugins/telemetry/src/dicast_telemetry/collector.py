"""Transport of spans to a collector."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Self

import attrs
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord
from opentelemetry.proto.trace.v1.trace_pb2 import Span

from dicast import DicastError, Event
from dicast.toolkit.endpoint import Address, Answer, ClientLimits
from dicast.toolkit.endpoint.faults import ConnectionFault
from dicast.toolkit.http_reply import ReplyRefused

if TYPE_CHECKING:
    from dicast.toolkit.endpoint.client import Client

from .spans import Spans

SPANS = 512
"""Most spans in one request."""

PARALLEL_REQUESTS = 4
"""Most parallel requests. A run waits for its collector before it starts further subjects."""

SLOW_SECONDS = 1.0
"""After a failure that took at least this long, requests pause, so that a run does not wait for a dead collector each time."""

REST_SECONDS = 30.0
_COMPLAINT_CHARS = 300
_PROTOBUF = "application/x-protobuf"


class CollectorError(DicastError):
    """The collector did not accept a request."""


@attrs.define
class Collector:
    """Client of the collector's address. *rejected* counts spans refused in accepted requests, with the last *complaint*."""

    endpoint: str
    _client: Client
    rejected: int = 0
    complaint: str = ""
    _resting: float = 0.0

    @classmethod
    @asynccontextmanager
    async def connected(
        cls, endpoint: str, headers: Mapping[str, str], seconds: float, most: int
    ) -> AsyncIterator[Self]:
        """Yield the collector at *endpoint*. A request may take *seconds*, and its answer may have *most* bytes."""
        from dicast.toolkit.endpoint.client import connect  # importing httpx and aiohttp is slow

        address = Address(endpoint, option="endpoint")
        limits = ClientLimits(timeout=seconds, max_reply_bytes=most)
        async with connect(address, limits, 1, headers=headers, secrets=headers.values()) as client:
            yield cls(endpoint, client)

    async def send(self, request: ExportTraceServiceRequest | ExportLogsServiceRequest) -> None:
        """Send *request*.

        :raises CollectorError: when it was not accepted.
        """
        began = time.monotonic()
        if began < self._resting:
            raise CollectorError(
                f"{self.endpoint} did not answer; it is not asked again for {self._resting - began:.0f} s"
            )
        try:
            answer = await self._client.fetch(
                "POST",
                "",
                request.SerializeToString(),
                headers={"Content-Type": _PROTOBUF, "Accept": _PROTOBUF},
                masked=False,
            )
        except ReplyRefused as error:
            raise CollectorError(f"{self.endpoint} answered with a reply that cannot be read: {error}") from error
        except (ConnectionFault, TimeoutError) as error:
            if time.monotonic() - began > SLOW_SECONDS:
                self._resting = time.monotonic() + REST_SECONDS
            reason = str(error) or type(error).__name__
            raise CollectorError(f"{self.endpoint} could not be reached: {reason}") from error
        if not 200 <= answer.status < 300:
            words = self._client.reader.message(answer.data.decode("utf-8", "replace"))[:_COMPLAINT_CHARS]
            raise CollectorError(f"{self.endpoint} answered {answer.status}: {words!r}")
        self._note_rejected(answer)

    def _note_rejected(self, answer: Answer) -> None:
        content_type = answer.headers.get("Content-Type", "").partition(";")[0].strip()
        if content_type != _PROTOBUF or not answer.data:
            return
        # Answers about log events have the same fields.
        partial = ExportTraceServiceResponse.FromString(answer.data).partial_success
        if partial.rejected_spans:
            self.rejected += partial.rejected_spans
            self.complaint = self._client.reader.message(partial.error_message)[:_COMPLAINT_CHARS]


@attrs.frozen(eq=False)
class _Part:
    """A request with its receiver, and the number of its spans."""

    collector: Collector
    request: ExportTraceServiceRequest | ExportLogsServiceRequest
    spans: int


class Feed:
    """Live sink that turns batches of a run's events into spans and sends them."""

    def __init__(self, collector: Collector, spans: Spans, logs: Collector | None = None) -> None:
        self._collector, self._log_collector = collector, logs
        self._spans = spans
        self._batch: tuple[str, str] | None = None
        self._converted = 0
        self._new_spans: list[Span] = []
        self._new_logs: list[LogRecord] = []
        self._waiting: list[_Part] = []
        self._sent = 0

    async def write(self, events: Sequence[Event]) -> int:
        """Send the spans that *events* finish, and return their number. Called again with the same events, it sends the rest.

        :raises CollectorError: when the collector did not accept them.
        """
        batch = events[0].id, events[-1].id
        if batch != self._batch:  # spans of the previous batch were counted as lost
            self._batch, self._converted, self._sent = batch, 0, 0
            self._new_spans, self._new_logs, self._waiting = [], [], []
        for event in events[self._converted :]:  # a conversion that failed goes on with its event
            self._new_spans += self._spans.add([event])
            self._new_logs += self._spans.take_logs()
            self._converted += 1
        self._waiting += self._parts()
        self._new_spans, self._new_logs = [], []
        while self._waiting:
            parts = self._waiting[:PARALLEL_REQUESTS]
            errors = await asyncio.gather(*map(self._send, parts), return_exceptions=True)
            if error := next((error for error in errors if error is not None), None):
                raise error
        return self._sent

    def _parts(self) -> list[_Part]:
        """Return the requests with the new spans and their log events."""
        requests = [self._new_spans[start : start + SPANS] for start in range(0, len(self._new_spans), SPANS)]
        parts = [_Part(self._collector, self._spans.request(part), len(part)) for part in requests]
        if self._log_collector is not None:
            for start in range(0, len(self._new_logs), SPANS):
                request = self._spans.log_request(self._new_logs[start : start + SPANS])
                parts.append(_Part(self._log_collector, request, 0))
        return parts

    async def _send(self, part: _Part) -> None:
        await part.collector.send(part.request)
        self._waiting = [other for other in self._waiting if other is not part]
        self._sent += part.spans

    async def close(self) -> int:
        """Raise an error for refused spans. Every span has been sent before.

        :raises CollectorError: when the collector refused spans of accepted requests.
        """
        for collector, kind in ((self._collector, "spans"), (self._log_collector, "log events")):
            if collector is not None and collector.rejected:
                refused = f"{collector.endpoint} refused {collector.rejected} {kind}: {collector.complaint!r}"
                raise CollectorError(refused)
        return 0
