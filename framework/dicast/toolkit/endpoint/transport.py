"""The transport: aiohttp's connections behind httpx's interface."""

from __future__ import annotations

import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import httpx
from httpx_aiohttp import AiohttpTransport

from .faults import ConnectionFault

_PIECE = 1 << 20
"""Bytes; aiohttp warns of a longer body that is not a stream."""


@asynccontextmanager
async def open_transport(address: str, proxy: str | None = None) -> AsyncIterator[httpx.AsyncBaseTransport]:
    """Open connections to *address*. The number of calls at the same time is limited by the run, not by the pool."""
    # An empty context trusts no certificate, and takes no time to make.
    is_encrypted = address.startswith("https:")
    context = ssl.create_default_context() if is_encrypted else ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    async with aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=context),
        cookie_jar=aiohttp.DummyCookieJar(),
        timeout=aiohttp.ClientTimeout(total=None),
        proxy=proxy,
    ) as session:
        yield AiohttpTransport(verify=context, trust_env=False, client=session)


class _Pieces(httpx.AsyncByteStream):
    """A body in pieces."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for start in range(0, len(self._data), _PIECE):
            yield self._data[start : start + _PIECE]


def is_long(content: bytes | None) -> bool:
    """Return whether *content* is sent in pieces."""
    return content is not None and len(content) > _PIECE


def body_stream(content: bytes | None, headers: httpx.Headers) -> dict[str, Any]:
    """Return the arguments of a request with *content*; a long one becomes a stream with its length in *headers*."""
    if content is None or not is_long(content):
        return {"content": content}
    headers["Content-Length"] = str(len(content))
    return {"stream": _Pieces(content)}


def connection_fault(error: Exception) -> ConnectionFault:
    """Return the fault for *error* of the transport. Its cause, aiohttp's error, shows whether there was a connection."""
    cause = error.__cause__ if isinstance(error, httpx.HTTPError) and error.__cause__ else error
    if isinstance(cause, aiohttp.ClientSSLError):
        return ConnectionFault(str(cause), "certificate")
    if isinstance(cause, aiohttp.ClientConnectorError):
        system = cause.os_error
        number = system.errno or 0  # a resolver's are negative
        reason = os.strerror(number) if number > 0 else system.strerror or str(system)
        return ConnectionFault(f"no connection to {cause.host}:{cause.port} ({reason})", "refused")
    if isinstance(cause, aiohttp.ConnectionTimeoutError):
        return ConnectionFault("no connection in time", "silent")
    return ConnectionFault(f"{type(cause).__name__}: {cause}", "broken")
