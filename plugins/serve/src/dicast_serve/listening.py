"""The socket, and the server behind it."""

from __future__ import annotations

import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import uvicorn
from starlette.types import ASGIApp

from dicast import ConfigError

HEAD_SECONDS = 10
LEAVE_SECONDS = 2
CONNECTIONS = 2_000


@contextmanager
def listener(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that listens.

    :raises ConfigError: when the address cannot be had.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind)
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
        http="h11",
        ws="none",
        proxy_headers=False,
    )
    uvicorn.Server(config).run([made])
