"""Polling of a batch: repeated requests for its state until the provider has ended it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import TypeVar

from ..endpoint.faults import CallFault
from .endpoint import BatchEndpoint, EndpointBatch

T = TypeVar("T")

SLACK_SECONDS = 600.0
"""Seconds after the end of its window in which the endpoint must end a batch."""


async def ended_batch(endpoint: BatchEndpoint, batch: EndpointBatch, until: datetime, poll: float) -> EndpointBatch:
    """Return *batch* when the endpoint has ended it; its state is requested every *poll* seconds.

    :raises TimeoutError: if the batch is open :data:`SLACK_SECONDS` after *until*, the end of its window.
    """
    batch_id = batch.id
    while not batch.is_ended:
        if datetime.now(UTC) > until + timedelta(seconds=SLACK_SECONDS):
            raise TimeoutError(f"batch {batch.id} is {batch.status} {SLACK_SECONDS:g} s after its window has ended")
        await asyncio.sleep(poll)
        batch = await patiently(lambda: endpoint.status(batch_id), until, poll)
    return batch


async def patiently(request: Callable[[], Awaitable[T]], until: datetime, poll: float) -> T:
    """Return the result of *request*, which is sent until the endpoint returns a usable response. The batch continues meanwhile.

    :raises CallFault: for a fault that a repetition cannot fix, and for any fault :data:`SLACK_SECONDS` after *until*.
    """
    while True:
        try:
            return await request()
        except CallFault as fault:
            if not fault.again or datetime.now(UTC) > until + timedelta(seconds=SLACK_SECONDS):
                raise
            await asyncio.sleep(max(poll, fault.wait or 0.0))
