"""The live object of ``task/http``: requests to the service, and the outputs in its answers."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Protocol

import attrs

from dicast import Answered, Failure, Secret, Subject
from dicast.toolkit.endpoint import Address, ClientLimits, options
from dicast.toolkit.endpoint import client as endpoint

from .answers import answered, row_json


class HttpOptions(Protocol):
    """The options of ``task/http`` that its client reads."""

    @property
    def url(self) -> str: ...  # noqa: D102
    @property
    def headers(self) -> Mapping[str, Secret]: ...  # noqa: D102
    @property
    def retries(self) -> int: ...  # noqa: D102
    @property
    def max_output_bytes(self) -> int: ...  # noqa: D102


@asynccontextmanager
async def connect(component: HttpOptions, concurrency: int) -> AsyncIterator[Service]:
    """Open the live object of *component* for a run that makes *concurrency* rows at the same time."""
    address = Address(component.url, option="url", reply_option="max_output_bytes")
    # The run says how long a row may take.
    limits = ClientLimits(timeout=None, retries=component.retries, max_reply_bytes=component.max_output_bytes)
    headers, secrets = options.plain_headers(component.headers), options.secret_values(component.headers)
    async with endpoint.connect(address, limits, concurrency, headers=headers, secrets=secrets) as client:
        yield Service(client)


@attrs.frozen
class Service:
    """Answers rows by posting them."""

    client: endpoint.Client

    async def produce(self, subject: Subject) -> Answered | Failure:
        """Post *subject*, again after faults that may pass.

        :raises dicast.AccessRefused: for 401, 402, 403 and 404, and if too many rows in a row get no connection.
        """
        data, start, call = row_json(subject), time.monotonic(), self.client.new_call()
        result = await self.client.call(call, lambda: self._post(call, data))
        if isinstance(result, Failure):
            return result
        return answered(subject, result, time.monotonic() - start, call.retry() if call.history else None)

    async def _post(self, call: endpoint.Exchange, data: bytes) -> bytes:
        answer = await self.client.send(call, "POST", "", data)
        if not 200 <= answer.status < 300:
            raise self.client.refusal(call, answer)
        return answer.data
