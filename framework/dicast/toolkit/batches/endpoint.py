"""A provider's batch API, as a plugin describes it: the requests and the values that they return."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Protocol

import attrs

from ..._kernel.values import ChatRequest, Cost, Reply

_SHOWN_CHARS = 300
_SPANS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Unconfirmed(Exception):
    """The endpoint may have created the batch, or not: the connection broke, or it reports an error of its own."""


class Uncertain(Exception):
    """A batch may have been created, and for *reason* no listing shows whether it was."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


def _cut(message: str) -> str:
    return message if len(message) <= _SHOWN_CHARS else f"{message[:_SHOWN_CHARS]}…"


@attrs.frozen
class ItemFault:
    """An item of a batch without a reply.

    :param again: whether the call may be sent again in a new batch.
    :param cost: the cost of the item, which may be billed without a reply.
    :param is_uncounted: whether the item may have been billed without a count of tokens; it then costs its upper bound.
    """

    message: str = attrs.field(converter=_cut)
    kind: str = "judge_call_failed"
    again: bool = True
    cost: Cost = Cost.zero()
    is_uncounted: bool = False


@attrs.frozen
class EndpointBatch:
    """A batch as the endpoint reports it.

    :param status: the status in the endpoint's own words.
    :param is_ended: whether all of its items are finished.
    :param fault: the reason why no item was processed; None if items were processed.
    :param data: further data for the plugin.
    """

    id: str
    status: str
    is_ended: bool
    fault: str | None = attrs.field(default=None, converter=attrs.converters.optional(_cut))
    data: Mapping[str, Any] = attrs.field(factory=dict)


class BatchEndpoint(Protocol):
    """The batches of a provider. Methods raise CallFault if there is no usable response, and AccessRefused if no later call can succeed."""

    max_items: int
    max_bytes: int

    def check(self, request: ChatRequest) -> None:
        """Refuse a request that the model cannot answer in any batch.

        :raises dicast.AccessRefused: naming the option to change.
        """
        ...

    def line(self, item_id: str, request: ChatRequest) -> bytes:
        """Return the item of *request* as it is sent."""
        ...

    def bound(self, request: ChatRequest) -> Cost:
        """Return the upper bound of the cost of *request*."""
        ...

    def completed(self, request: ChatRequest, reply: Reply) -> Reply:
        """Return *reply* to *request* with the cost, if its item has no usage, and the adapted parameters."""
        ...

    async def upload(self, key: str, lines: Sequence[bytes]) -> Any:
        """Send the requests that cost nothing, such as an upload. The result is passed to :meth:`create`."""
        ...

    async def create(self, key: str, uploaded: Any) -> EndpointBatch:
        """Create the batch with one request, which is not repeated.

        :raises Unconfirmed: if it may have been created.
        """
        ...

    async def find(self, key: str, since: datetime, size: int) -> Sequence[EndpointBatch]:
        """Return the batches of *size* items with *key*, which was drawn at *since*."""
        ...

    async def status(self, batch_id: str) -> EndpointBatch:
        """Return the batch as it is now."""
        ...

    def results(self, batch: EndpointBatch) -> AsyncIterator[tuple[str, Reply | ItemFault]]:
        """Yield the items of a batch that is ended, in any order, with their costs."""
        ...

    async def cancel(self, batch_id: str) -> None:
        """Ask the endpoint to end the batch."""
        ...


def seconds_of(span: str) -> float:
    """Return the seconds of *span*, such as ``24h``, ``30m`` or ``90s``.

    :raises ValueError: if it is no such text.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", span)
    if match is None or not float(match[1]):
        raise ValueError(f"{span!r} is no span of time: write 24h, or a number with s, m, h or d")
    return float(match[1]) * _SPANS[match[2]]
