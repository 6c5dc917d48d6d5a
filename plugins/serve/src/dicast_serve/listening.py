"""The socket, and the server behind it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from dicast import ConfigError

HEAD_SECONDS = 10
"""How long the head of a request may take to come, and how long a connection may be idle."""

LEAVE_SECONDS = 2
CONNECTIONS = 2_000


class Impatient(H11Protocol):
    """Closes a connection whose request does not come: whoever may not read could hold :data:`CONNECTIONS` of them."""

    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Wait for the head of the first request."""
        super().connection_made(transport)
        self._late = self.loop.call_later(HEAD_SECONDS, transport.close)

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of a head; read no more of a body whose request was answered already."""
        try:
            super().data_received(data)
        except h11.LocalProtocolError:  # what is no HTTP came while its answer was under way
            self.transport.close()
            return
        state = self.conn.their_state
        if state is not h11.IDLE:
            self._stop_waiting()
        elif self._late is None:
            self._late = self.loop.call_later(HEAD_SECONDS, self.transport.close)
        if state is h11.SEND_BODY and self.cycle.response_complete:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


@contextmanager
def listener(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens.

    :raises ConfigError: when the address cannot be had.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)  # of TCP's own number alone asyncio sends a short answer at once
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(1024)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {host}:{port}: {error.strerror}; choose another --port or --host"
        ) from error
    with made:
        yield made


def hosts_of(host: str, port: int, names: Sequence[str]) -> list[str]:
    """What the Host of a request may be."""
    plain = ["localhost", "127.0.0.1", "[::1]", f"[{host}]" if ":" in host else host, *names]
    return [*(f"{name}:{port}" for name in plain), *(plain if port == 80 else ()), *names]


def listen(app: ASGIApp, made: socket.socket) -> None:
    """Serve until interrupted."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=True,
        lifespan="off",
        limit_concurrency=CONNECTIONS,
        timeout_keep_alive=HEAD_SECONDS,
        timeout_graceful_shutdown=LEAVE_SECONDS,
        h11_max_incomplete_event_size=16_384,
        http=Impatient,
        ws="none",
        proxy_headers=False,
    )
    uvicorn.Server(config).run([made])
