"""Requests of batch APIs: requests that may be repeated, and requests that create or cancel a batch."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson

from ..._kernel.values import Failure
from ..endpoint.answers import Answer, json_bytes
from ..endpoint.client import Client, Exchange
from ..endpoint.faults import CallFault
from ..http_reply import MAX_REPLY_BYTES
from .endpoint import Unconfirmed

FINE = range(200, 300)
_UNCERTAIN = (408, 409)
_TRY_LATER = 429
_SERVER_FAULT = 500
_HAS_ENDED = (400, 409)

MOST_PAGES = 1_000
"""The most pages that are read of a list of batches: an endpoint may announce further pages without end."""


class BatchClient:
    """Client of a batch API, based on the one HTTP client."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def create(self, path: str, content: bytes) -> Mapping[str, Any]:
        """Return the response to the one request that creates a batch. It is repeated only if the endpoint has certainly not created the batch.

        :raises Unconfirmed: if the batch may have been created.
        :raises CallFault: if it was not created.
        """
        call = self._client.new_call()
        while True:
            try:
                answer = await self._client.send(call, "POST", path, content, max_bytes=MAX_REPLY_BYTES)
            except CallFault as fault:
                if call.connected:
                    raise Unconfirmed(str(fault)) from fault
                raise
            if answer.status != _TRY_LATER or call.tries >= self._client.limits.retries:
                break
            call.tries += 1
            await _pause(self._client.refusal(call, answer))
        if answer.status in _UNCERTAIN or answer.status >= _SERVER_FAULT:
            raise Unconfirmed(answer.complaint().message)
        if answer.status not in FINE:
            raise self._client.refusal(call, answer)
        try:
            return json_object(answer)
        except CallFault as fault:
            raise Unconfirmed(str(fault)) from fault

    async def cancel(self, path: str) -> None:
        """Ask the endpoint to end a batch. A batch that has ended is no error."""
        call = self._client.new_call()
        answer = await self._client.send(call, "POST", path, b"{}", max_bytes=MAX_REPLY_BYTES)
        if answer.status not in FINE and answer.status not in _HAS_ENDED:
            raise self._client.refusal(call, answer)

    async def ask(
        self,
        method: str,
        path: str,
        content: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        max_bytes: int = MAX_REPLY_BYTES,
    ) -> Answer:
        """Return the response to a request that may be repeated. Pass *max_bytes* for results, which are longer than other responses.

        :raises CallFault: if no try has a usable response.
        """
        call = self._client.new_call()
        answer = await self._client.call(call, lambda: self._attempt(call, method, path, content, headers, max_bytes))
        if isinstance(answer, Failure):
            raise CallFault(answer.message, again=answer.retryable, kind=answer.kind)
        return answer

    async def _attempt(
        self,
        call: Exchange,
        method: str,
        path: str,
        content: bytes | None,
        headers: Mapping[str, str] | None,
        max_bytes: int,
    ) -> Answer:
        answer = await self._client.send(call, method, path, content, headers=headers, max_bytes=max_bytes)
        if answer.status not in FINE:
            raise self._client.refusal(call, answer)
        return answer


async def _pause(refusal: Exception) -> None:
    """Wait for as long as the endpoint's *refusal* asks, or for a second.

    :raises CallFault: if the request must not be repeated.
    :raises dicast.AccessRefused: if no later request can succeed.
    """
    if not isinstance(refusal, CallFault) or not refusal.again:
        raise refusal
    await asyncio.sleep(refusal.wait or 1.0)


def batches_on(page: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the batches on a *page* of a list.

    :raises CallFault: if it has no list of objects.
    """
    data = page.get("data") or []
    if not isinstance(data, list) or not all(isinstance(item, dict) for item in data):
        raise CallFault(f"the endpoint's list of batches is not a list of objects: {json_bytes(page)[:100]!r}")
    return data


def endless_list() -> CallFault:
    """Return the fault of a list of batches that has no end."""
    return CallFault(f"the endpoint's list of batches goes on after {MOST_PAGES:,} pages", again=False)


def json_object(answer: Answer) -> Mapping[str, Any]:
    """Return the JSON object in *answer*.

    :raises CallFault: if there is none.
    """
    try:
        body = orjson.loads(answer.data)
    except orjson.JSONDecodeError:
        body = None
    if not isinstance(body, dict):
        raise CallFault(f"the endpoint's answer is no JSON object: {answer.data[:100]!r}")
    return body
