"""The transport of litellm's requests, for all providers, by dicast's rules for replies, redirects, proxies and certificates."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import aiohttp
import httpx
from litellm.llms.custom_httpx.aiohttp_transport import LiteLLMAiohttpTransport
from litellm.llms.custom_httpx.http_handler import AsyncHTTPHandler, get_ssl_configuration

from dicast.toolkit.endpoint import Answer
from dicast.toolkit.http_reply import IDENTITY, ReplyReader

from .passage import Passage

_IN_USE: ContextVar[tuple[Wire, Passage] | None] = ContextVar("dicast_litellm_wire", default=None)
_KEYS = ("auth", "key", "token", "secret")
_OF_THE_BODY = ("content-encoding", "content-length", "transfer-encoding")
_OK = 200
_REDIRECTS = range(300, 400)


class Wire(LiteLLMAiohttpTransport):
    """Wire for the requests of one model."""

    def __init__(self, session: aiohttp.ClientSession, certificates: Any, most: int) -> None:
        super().__init__(client=session, ssl_verify=certificates, owns_session=False)
        self._most = most

    @contextmanager
    def used(self) -> Iterator[Passage]:
        """Send the requests that this task makes through litellm by this wire; the passage records them."""
        passage = Passage()
        token = _IN_USE.set((self, passage))
        try:
            yield passage
        finally:
            _IN_USE.reset(token)

    async def pass_on(self, request: httpx.Request, passage: Passage) -> httpx.Response:
        """Send *request*; the reply is read within its limit, and has no key of the request.

        :raises dicast.toolkit.http_reply.ReplyRefused: if it is too long, or cannot be decoded.
        """
        passage.answer, passage.error = None, None
        try:
            answer = passage.answer = await self._answer(request)
        except Exception as error:
            passage.error = error
            raise
        body, headers = answer.data, dict(answer.headers)
        if answer.status in _REDIRECTS:  # without an address none is followed
            headers.pop("location", None)
        return httpx.Response(answer.status, headers=headers, content=body, request=request)

    async def _answer(self, request: httpx.Request) -> Answer:
        request.headers.update(IDENTITY)
        reader = ReplyReader(_secrets(request), self._most)
        response = await super().handle_async_request(request)
        try:
            is_fine = response.status_code == _OK
            body = await reader.read(response.aiter_raw(), response.headers, cut=not is_fine)
        finally:
            await response.aclose()
        masked = {name: reader.message(value) for name, value in response.headers.items() if name not in _OF_THE_BODY}
        return Answer(response.status_code, httpx.Headers(masked), body)

    async def _get_proxy_settings(self, request: httpx.Request) -> str | None:
        """Return the environment's proxy if the connection through it is encrypted."""
        return await super()._get_proxy_settings(request) if request.url.scheme == "https" else None


def wire_of(session: aiohttp.ClientSession, tls: str, max_reply_bytes: int) -> Wire:
    """Return a wire that litellm uses for each request while it is in use.

    :param tls: ``verified`` checks certificates although the environment switches this off.
    """
    certificates = get_ssl_configuration()
    if certificates is False and tls == "verified":
        certificates = get_ssl_configuration(ssl_verify=True)
    if not getattr(AsyncHTTPHandler.create_async_transport, "by_dicast", False):
        _divert()
    return Wire(session, certificates, max_reply_bytes)


class _Switch(httpx.AsyncBaseTransport):
    """A transport that uses the current wire; for other users of the same litellm client, the transport that litellm *makes*."""

    def __init__(self, makes: Callable[[], httpx.AsyncBaseTransport | None]) -> None:
        self._makes = makes
        self._other: httpx.AsyncBaseTransport | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if (in_use := _IN_USE.get()) is not None:
            wire, passage = in_use
            return await wire.pass_on(request, passage)
        self._other = self._other or self._makes() or httpx.AsyncHTTPTransport()
        return await self._other.handle_async_request(request)

    async def aclose(self) -> None:
        if self._other is not None:
            await self._other.aclose()


def _divert() -> None:
    """Route clients that litellm makes while a wire is in use through that wire; litellm has no option for it that all providers respect."""
    makes = AsyncHTTPHandler.create_async_transport

    def create_async_transport(
        ssl_context: ssl.SSLContext | None = None, ssl_verify: bool | None = None, shared_session: Any = None
    ) -> httpx.AsyncBaseTransport | None:
        arguments = {"ssl_context": ssl_context, "ssl_verify": ssl_verify, "shared_session": shared_session}
        return makes(**arguments) if _IN_USE.get() is None else _Switch(lambda: makes(**arguments))

    create_async_transport.by_dicast = True  # type: ignore[attr-defined]
    for name in ("create_async_transport", "_create_async_transport"):  # it is called by both
        setattr(AsyncHTTPHandler, name, staticmethod(create_async_transport))


def _secrets(request: httpx.Request) -> list[str]:
    """Return the keys of *request*, in its headers or its address."""
    carried = [*request.headers.items(), *request.url.params.items()]
    return [value for name, value in carried if any(word in name.lower() for word in _KEYS)]
