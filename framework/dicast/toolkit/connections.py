"""Limits of a server's connections, so that silent clients cannot lock out others."""

from __future__ import annotations

import socket
from asyncio import BaseTransport, Transport
from collections import OrderedDict

from .._kernel.values.errors import ConfigError

CONNECTIONS = 2_000
"""Connections that a server keeps open at the same time, if its process may open that many files."""

RESERVED_FILES = 160
"""Descriptors that are left for ledgers, modules and connections that are being accepted."""

ACCEPTED_AT_ONCE = 16
"""The backlog for asyncio, which accepts as many in one turn of its loop; a few turns pass before a connection is counted."""

WAITING = 1024
"""The backlog for the kernel: call ``listen(WAITING)`` on the socket once asyncio listens on it."""


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket that listens on *host* and *port*, 0 for any free port.

    :raises ConfigError: if the address is not available.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        server = socket.socket(family, kind, protocol)  # with protocol 0, asyncio would delay short answers
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.bind(address)
        server.listen(WAITING)
    except OSError as error:
        message = f"cannot listen on {host}:{port}: {error.strerror}; choose another --port or --host"
        raise ConfigError(message) from error
    return server


def connection_limit() -> int:
    """Return the most connections that may be open, given the limit of open files.

    The soft limit of files is raised to the number that :data:`CONNECTIONS` need, as far as the hard limit allows.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return CONNECTIONS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = CONNECTIONS + RESERVED_FILES
    if soft != resource.RLIM_INFINITY and soft < needed:
        soft = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return CONNECTIONS if soft == resource.RLIM_INFINITY else max(min(CONNECTIONS, soft - RESERVED_FILES), 8)


class Connections:
    """The open connections of a server, and the connections that have not sent a whole request yet.

    A connection over *limit* closes the oldest connection without a whole head; if there is none, the oldest without a whole body.
    """

    def __init__(self, limit: int) -> None:
        self._limit, self._open = limit, 0
        self._silent: OrderedDict[BaseTransport, None] = OrderedDict()  # the oldest first
        self._sending: OrderedDict[BaseTransport, None] = OrderedDict()  # a body, the oldest first

    def add(self, transport: BaseTransport) -> None:
        """Count a new connection."""
        self._open += 1
        self._silent[transport] = None
        if self._open > self._limit:
            candidates = self._sending if len(self._silent) == 1 and self._sending else self._silent
            oldest, _ = candidates.popitem(last=False)
            if isinstance(oldest, Transport):
                oldest.abort()

    def has_request(self, transport: BaseTransport) -> None:
        """Note that the head of a request has come over *transport*: silent connections are closed before it."""
        if transport in self._silent:
            self._sending[transport] = self._silent.pop(transport)

    def has_body(self, transport: BaseTransport) -> None:
        """Note that a whole request has come over *transport*: it stays open."""
        self._sending.pop(transport, None)

    def remove(self, transport: BaseTransport) -> None:
        """Forget a connection that is closed."""
        self._open -= 1
        self._silent.pop(transport, None)
        self._sending.pop(transport, None)
