"""The HTTP transport of Microsoft's exporter. It limits the size and time of replies, and ignores redirects and proxies."""

from __future__ import annotations

import time
from collections.abc import Iterator
from io import BytesIO
from typing import Any, Protocol

import requests
from azure.core.pipeline.transport import RequestsTransport

from dicast.toolkit.http_reply import IDENTITY, ReplyReader, ReplyRefused

_PIECE = 65_536


class Session(requests.Session):
    """HTTP session whose replies *reader* reads, each within *seconds*.

    *refused* is why the newest reply was not read completely; the exporter would only log it.
    """

    def __init__(self, reader: ReplyReader, seconds: float) -> None:
        super().__init__()
        self.trust_env = False
        self.refused: ReplyRefused | None = None
        self._reader, self._seconds = reader, seconds

    def transport(self) -> RequestsTransport:
        """Return the transport for azure-core."""
        return RequestsTransport(session=self, session_owner=True, use_env_settings=False)

    def send(self, request: requests.PreparedRequest, **options: Any) -> requests.Response:
        """Send *request*, and read the reply.

        :raises dicast.toolkit.http_reply.ReplyRefused: if it is too long, or cannot be decoded.
        :raises requests.ReadTimeout: if it takes too long.
        """
        request.headers.update(IDENTITY)
        until, self.refused = time.monotonic() + self._seconds, None
        response = super().send(request, **{**options, "stream": True, "allow_redirects": False})
        try:
            body = self._reader.read_now(_pieces(response.raw, until), response.headers)
        except ReplyRefused as error:
            self.refused = error
            raise
        finally:
            response.close()
        for name in ("Content-Encoding", "Content-Length", "Transfer-Encoding"):
            response.headers.pop(name, None)
        response.raw = BytesIO(body)
        return response


class _Raw(Protocol):
    def read1(self, amt: int, decode_content: bool) -> bytes: ...


def _pieces(raw: _Raw, until: float) -> Iterator[bytes]:
    """Yield data as it arrives, so that the time limit also ends a reply of one byte per second."""
    while piece := raw.read1(_PIECE, decode_content=False):
        if time.monotonic() > until:
            raise requests.ReadTimeout("the reply takes too long")
        yield piece
