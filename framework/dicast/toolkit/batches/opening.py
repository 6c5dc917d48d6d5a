"""Opening the live object of a chat model with batches. Imports the HTTP client."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Protocol

import attrs

from ..._kernel.values import BatchLog, ChatRequest, Cost, RunContext, Secret, Usage
from ..endpoint import Address, ClientLimits
from ..endpoint.client import Client, connect
from .endpoint import BatchEndpoint
from .model import BatchModel, open_batches

RESULT_BYTES = 2**31
"""The most bytes of a file of results."""


class SingleCalls(Protocol):
    """The same model without batches."""

    def sent_headers(self) -> dict[str, str]: ...  # noqa: D102
    def secrets(self) -> set[str]: ...  # noqa: D102


class BatchOptions(Protocol):
    """The options of a chat model with batches; *chat* is the same model without batches."""

    @property
    def model(self) -> str: ...  # noqa: D102
    @property
    def proxy(self) -> Secret | None: ...  # noqa: D102
    @property
    def poll(self) -> float: ...  # noqa: D102
    @property
    def max_items(self) -> int: ...  # noqa: D102
    @property
    def chat(self) -> SingleCalls: ...  # noqa: D102

    def estimate(self, request: ChatRequest) -> Cost: ...  # noqa: D102
    def cost(self, usage: Usage) -> Cost: ...  # noqa: D102
    def identity(self) -> dict[str, object]: ...  # noqa: D102


@asynccontextmanager
async def open_batch_model(
    options: BatchOptions,
    run: RunContext,
    name: str,
    address: str,
    window: float,
    make_endpoint: Callable[[Client], BatchEndpoint],
) -> AsyncIterator[BatchModel]:
    """Open the live object of *options* for *run*, with the batches of earlier processes of the run.

    :param name: the component's name, such as ``openai/batch``.
    :param window: seconds in which the endpoint processes a batch.
    """
    # The first request shows whether the endpoint exists; once a batch is in progress, an endpoint may be away for hours.
    limits = attrs.evolve(
        ClientLimits.of(options), max_reply_bytes=RESULT_BYTES, unreachable_at_start=1, unreachable_later=sys.maxsize
    )
    proxy = options.proxy.value if options.proxy else None
    headers, secrets = options.chat.sent_headers(), options.chat.secrets()
    target = Address(address, model=options.model)
    async with connect(target, limits, 1, headers=headers, secrets=secrets, proxy=proxy) as client:
        endpoint = make_endpoint(client)

        def make(log: BatchLog) -> BatchModel:
            return BatchModel(
                endpoint,
                log,
                model=options.model,
                shown=Address(address).display(),
                identity=options.identity(),
                window=window,
                poll=options.poll,
            )

        async with open_batches(run, name, make) as model:
            yield model
