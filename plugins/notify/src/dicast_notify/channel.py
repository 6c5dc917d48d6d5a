"""The connection to a webhook."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Self
from urllib.parse import urlsplit

import attrs

from dicast import DicastError, Secret
from dicast.toolkit.endpoint import Address, Answer, ClientLimits, options
from dicast.toolkit.endpoint.faults import ConnectionFault
from dicast.toolkit.endpoint.retries import is_retried
from dicast.toolkit.http_reply import ReplyRefused, retry_after

if TYPE_CHECKING:
    from dicast.toolkit.endpoint.client import Client

LONGEST_WAIT = 10.0
"""Seconds; a longer wait that the receiver asks for is not kept, since a run waits for its end."""

_COMPLAINT_CHARS = 300
_FIXES = {
    400: "correct form, json or text",
    401: "correct url or headers",
    403: "correct url or headers",
    404: "correct url",
    410: "correct url",
    415: "correct form, json or text",
    422: "correct form, json or text",
}
"""Next step after the status of a refusal that stays."""

_SECRET_CHARS = 8
"""A part of the address with at least this many characters is masked alone too, because a receiver may repeat it."""


class WebhookError(DicastError):
    """The receiver did not accept a message."""


@attrs.define
class Channel:
    """The receiver at *origin*, the address without its path, which is the password of a channel.

    *refusal* is the error of the last message if no further try can succeed.
    """

    origin: str
    _client: Client
    refusal: tuple[str, WebhookError] | None = None

    @classmethod
    @asynccontextmanager
    async def connected(cls, url: Secret, headers: Mapping[str, str | Secret], seconds: float) -> AsyncIterator[Self]:
        """Yield the channel at *url*. One request may take *seconds*."""
        from dicast.toolkit.endpoint.client import connect  # importing httpx and aiohttp is slow

        parts = urlsplit(url.value)
        origin = f"{parts.scheme}://{parts.hostname}" + (f":{parts.port}" if parts.port else "")
        secrets = {*_parts(url.value), *options.secret_values(headers)}
        limits, plain = ClientLimits(timeout=seconds), options.plain_headers(headers)
        async with connect(Address(url.value, option="url"), limits, 1, headers=plain, secrets=secrets) as client:
            yield cls(origin, client)

    async def send(self, body: bytes, message_id: str) -> None:
        """Send the JSON text *body*. A receiver can recognize a repetition by the header ``Idempotency-Key``, the *message_id*.

        :raises WebhookError: if the receiver did not accept it.
        """
        if self.refusal is not None and self.refusal[0] == message_id:
            raise self.refusal[1]
        fields = {"Content-Type": "application/json", "Idempotency-Key": message_id}
        try:
            answer = await self._client.fetch("POST", "", body, headers=fields)
        except TimeoutError as error:
            raise self._error(f"no answer within {self._client.limits.timeout:g} s", "raise timeout") from error
        except ConnectionFault as error:
            raise self._error(str(error), "start the receiver, or correct url") from error
        except ReplyRefused as error:
            raise self._error(str(error)) from error
        if 200 <= answer.status < 300:
            return
        refusal = self._refused(answer)
        if not is_retried(answer.status):
            self.refusal = message_id, refusal
        elif (wait := retry_after(answer.headers)) is not None:
            await asyncio.sleep(min(wait, LONGEST_WAIT))
        raise refusal

    def _refused(self, answer: Answer) -> WebhookError:
        if 300 <= answer.status < 400:
            return self._error(
                f"HTTP {answer.status}: it redirects to another address, which is not followed; correct url"
            )
        complaint = answer.complaint().message or "the reply has no text"
        return self._error(f"HTTP {answer.status}: {complaint}", _FIXES.get(answer.status, ""))

    def _error(self, reason: str, fix: str = "") -> WebhookError:
        text = " ".join(self._client.reader.message(reason).split())
        return WebhookError(f"{self.origin} did not accept the message: {text[:_COMPLAINT_CHARS]}{fix and f'; {fix}'}")


def _parts(url: str) -> Iterator[str]:
    """Yield the address and its secret parts: its path, its query and their long members."""
    parts = urlsplit(url)
    yield url
    yield url.partition("?")[0]
    texts = (parts.path, parts.query, *parts.path.split("/"), *parts.query.replace("=", "&").split("&"))
    yield from (text for text in texts if len(text) >= _SECRET_CHARS)
