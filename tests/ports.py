"""Ports for servers that start later, or again on the same port. The system gives none of them to a connection meanwhile."""

from __future__ import annotations

import random
import socket

FIRST, EACH, WORKERS = 10_000, 2_000, 10
"""Each process of pytest has its own ports. All are below those that Linux draws for connections, 32768 to 60999."""


class Ports:
    """The ports of one process of pytest, the *worker* with that number."""

    def __init__(self, worker: int) -> None:
        first = FIRST + EACH * (worker % WORKERS)
        self._drawn = random.sample(range(first, first + EACH), EACH)

    def unused(self) -> int:
        """Return a port on which nobody listens, and another one each time."""
        while True:
            port = self._drawn.pop()
            with socket.socket() as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                try:
                    probe.bind(("127.0.0.1", port))
                except OSError:  # another program has it
                    continue
                return port
