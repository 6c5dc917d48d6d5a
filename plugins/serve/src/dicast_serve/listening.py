"""The listening socket and its HTTP server."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

import h11
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from dicast.toolkit.connections import ACCEPTED_AT_ONCE, WAITING, Connections, connection_limit

HEAD_SECONDS = 10
"""Time limit for the head of a request and for an idle connection."""

LEAVE_SECONDS = 2


class Impatient(H11Protocol):
    """HTTP protocol that closes a connection whose request does not arrive in time. A client without a token could otherwise hold many connections."""

    open_connections: Connections
    _late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Wait for the head of the first request."""
        super().connection_made(transport)
        self._late = self.loop.call_later(HEAD_SECONDS, transport.close)
        self.open_connections.add(transport)

    def data_received(self, data: bytes) -> None:
        """Wait for the rest of a head. Stop reading a body once its request is answered."""
        try:
            super().data_received(data)
        except h11.LocalProtocolError:  # invalid HTTP arrived while the previous answer was sent
            self.transport.close()
            return
        state = self.conn.their_state
        if state is not h11.IDLE:
            self._stop_waiting()
            self.open_connections.has_request(self.transport)
            if state is not h11.SEND_BODY:
                self.open_connections.has_body(self.transport)
        elif self._late is None:
            self._late = self.loop.call_later(HEAD_SECONDS, self.transport.close)
        if state is h11.SEND_BODY and self.cycle.response_complete:
            self.transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        self._stop_waiting()
        self.open_connections.remove(self.transport)
        super().connection_lost(exc)

    def _stop_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


def hosts_of(host: str, port: int, names: Sequence[str]) -> list[str]:
    """Return the values that the Host header of a request may have."""
    plain = ["localhost", "127.0.0.1", "[::1]", f"[{host}]" if ":" in host else host, *names]
    return [*(f"{name}:{port}" for name in plain), *(plain if port == 80 else ()), *names]


def without_answers_to_nobody(app: ASGIApp) -> ASGIApp:
    """Return *app* with its answer dropped if the client meanwhile sent invalid HTTP and got an error for it."""

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        is_over = False

        async def sending(message: Message) -> None:
            nonlocal is_over
            if not is_over:
                try:
                    await send(message)
                except h11.LocalProtocolError:
                    is_over = True

        await app(scope, receive, sending)

    return serve


class Server(uvicorn.Server):
    """Server that accepts few connections at once and lets many wait.

    asyncio accepts as many connections in a row as the backlog has, before it checks the limit.
    """

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start to accept connections, with the longer queue."""
        await super().startup(sockets)
        for listener in sockets or ():
            listener.listen(WAITING)


def listen(app: ASGIApp, listener: socket.socket) -> None:
    """Serve until interrupted."""
    limit = connection_limit()
    config = uvicorn.Config(
        without_answers_to_nobody(app),
        log_level="error",  # a warning for each invalid request would fill a disk
        access_log=False,
        server_header=False,
        date_header=True,
        lifespan="off",
        limit_concurrency=limit + ACCEPTED_AT_ONCE,
        backlog=ACCEPTED_AT_ONCE,
        timeout_keep_alive=HEAD_SECONDS,
        timeout_graceful_shutdown=LEAVE_SECONDS,
        h11_max_incomplete_event_size=16_384,
        http=type("Protocol", (Impatient,), {"open_connections": Connections(limit)}),
        ws="none",
        proxy_headers=False,
    )
    Server(config).run([listener])
