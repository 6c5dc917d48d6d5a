"""A small HTTP server for programs of this machine, with limits on connections, times and sizes.

A plugin makes a subclass of :class:`Handler` with ``get`` and ``post``, and serves it with :func:`serving`.
"""

from __future__ import annotations

import hmac
import ipaddress
import socket
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar
from urllib.parse import urlsplit

import attrs
import orjson

from dicast import ConfigError

from .connections import WAITING, connection_limit

MAX_BODY = 64 * 2**20
"""Bytes that one request may have."""

_DIGITS = 20
"""The most digits of a length that are read as a number; int() refuses thousands of digits."""

MAX_CONNECTIONS = 256
"""Connections that may be open at the same time. A further one closes the oldest that waits for a request, or is refused with 503."""

_BUSY = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

IDLE_SECONDS = 30.0
"""The most seconds that a connection may be silent, and that the whole head of a request may take."""

PLACE_SECONDS = 0.5
"""The most seconds that a new connection waits for the end of the connection that is closed for it."""

SENDING_SECONDS = 2.0
"""The most seconds that a client may go on sending after it was refused."""

_PIECE = 2**16


@attrs.frozen
class ListenAddress:
    """Address to listen on: a *host* of this machine and a *port*, 0 for any free port."""

    host: str
    port: int

    @classmethod
    def parse(cls, text: str, option: str = "--listen", *, is_local: bool = True) -> ListenAddress:
        """Return the address ``[HOST:]PORT``, the value of *option*. With *is_local* it must not be reachable from other machines.

        :raises ConfigError: if *text* is not an address, or other machines can reach it.
        """
        host, _, port = text.rpartition(":")
        host = host.removeprefix("[").removesuffix("]") or "127.0.0.1"
        if not port.isascii() or not port.isdigit() or int(port) > 65535:
            raise ConfigError(
                f"{option} {text}: {port!r} is not a port; write [HOST:]PORT, such as 8765 or 127.0.0.1:8765"
            )
        if is_local and host != "localhost" and not _is_loopback(host):
            raise ConfigError(
                f"{option} {text}: {host!r} can be reached from other machines; only 127.0.0.1, ::1 and localhost may be used"
            )
        return cls("127.0.0.1" if host == "localhost" else host, int(port))

    @property
    def is_local(self) -> bool:
        """True if only this machine reaches the host."""
        return _is_loopback(self.host)


def _is_here(url: str) -> bool:
    """Return True if the host of *url* is a name or an address of this machine alone."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    return host == "localhost" or _is_loopback(host)


@contextmanager
def serving(address: ListenAddress, handler: type[Handler], option: str = "--listen") -> Iterator[str]:
    """Serve *handler* in threads while the context is open; yield the address of the server as an URL.

    :raises ConfigError: if the *address*, the value of *option*, cannot be used.
    """
    try:
        server = Server(address, handler)
    except OSError as error:
        raise ConfigError(f"{option} {address.host}:{address.port}: {error.strerror}") from error
    host = f"[{address.host}]" if ":" in address.host else address.host
    threading.Thread(target=server.serve_forever, args=(0.2,), daemon=True, name="dicast-listen").start()
    try:
        yield f"http://{host}:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


class Server(ThreadingHTTPServer):
    """Server with a thread for each connection, a limit of them, and a time for each request."""

    daemon_threads = True
    request_queue_size = WAITING  # with 5, as is usual, a burst of connections waits for seconds

    def __init__(self, address: ListenAddress, handler: type[BaseHTTPRequestHandler]) -> None:
        limit = min(MAX_CONNECTIONS, connection_limit())
        self._free = threading.BoundedSemaphore(limit)
        self._waiting: OrderedDict[Any, float] = OrderedDict()  # connection: start of its wait, the oldest first
        self._sending: OrderedDict[Any, None] = OrderedDict()  # connections whose body is not whole, the oldest first
        self._lock = threading.Lock()
        self.address_family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
        super().__init__((address.host, address.port), handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a new thread. Over the limit, the oldest connection without a whole request is closed first, or this one is refused."""
        if self._free.acquire(blocking=False) or self._make_place():
            self.wait_for_head(request)
            super().process_request(request, client_address)
            return
        with suppress(OSError):  # it does not listen
            request.settimeout(0)
            request.sendall(_BUSY)
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer the connection, then release its slot."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.request_has_come(request)
            self._free.release()

    def wait_for_head(self, request: Any) -> None:
        """Start the time limit for the head of the next request."""
        with self._lock:
            self._waiting.pop(request, None)
            self._waiting[request] = time.monotonic()

    def head_has_come(self, request: Any) -> None:
        """End the time limit for the head, and wait for the body."""
        with self._lock:
            if self._waiting.pop(request, None) is not None:
                self._sending[request] = None

    def request_has_come(self, request: Any) -> None:
        """Note that no part of a request is awaited: the connection is not closed for another."""
        with self._lock:
            self._waiting.pop(request, None)
            self._sending.pop(request, None)

    def service_actions(self) -> None:
        """Close the connections whose head takes too long, a few times a second."""
        limit = time.monotonic() - IDLE_SECONDS
        with self._lock:
            late = [request for request, began in self._waiting.items() if began < limit]
        for request in late:
            self._close(request)

    def _make_place(self) -> bool:
        """Close the oldest connection without a whole head, or else body; return whether its place is free."""
        with self._lock:
            oldest = next(iter(self._waiting), None) or next(iter(self._sending), None)
        if oldest is None:
            return False
        self._close(oldest)
        return self._free.acquire(timeout=PLACE_SECONDS)

    def _close(self, request: Any) -> None:
        self.request_has_come(request)
        with suppress(OSError):  # the client has closed it
            request.shutdown(socket.SHUT_RDWR)  # its thread sees the end of the connection and ends

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a client that left before its answer."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # passed through unchanged


class Handler(BaseHTTPRequestHandler):
    """Handler of requests. *token* is the bearer token that each request needs, empty for none; *paths* lists the valid paths for error messages.

    With *is_local* the headers Host and Origin must name this machine. A body may have *max_body* bytes.
    """

    token: ClassVar[str] = ""
    paths: ClassVar[str] = ""
    is_local: ClassVar[bool] = True
    max_body: ClassVar[int] = MAX_BODY
    encodings: ClassVar[tuple[str, ...]] = ("identity",)

    protocol_version = "HTTP/1.1"
    server_version = "dicast"
    sys_version = ""
    timeout = IDLE_SECONDS
    server: Server
    disable_nagle_algorithm = (
        True  # the body follows the head at once: with it each answer would wait 40 ms for the client
    )

    def handle_one_request(self) -> None:
        """Serve one request, whose head has to come in time."""
        self.server.wait_for_head(self.connection)
        super().handle_one_request()

    def parse_request(self) -> bool:
        """Read the head of a request."""
        is_whole = super().parse_request()
        self.server.head_has_come(self.connection)
        return is_whole

    def do_GET(self) -> None:
        """Answer a request of the method GET."""
        self.get()

    def do_POST(self) -> None:
        """Answer a request of the method POST."""
        self.post()

    def get(self) -> None:
        """Answer a request of the method GET; a subclass defines it."""
        self.is_allowed("")

    def post(self) -> None:
        """Answer a request of the method POST; a subclass defines it."""
        self.is_allowed("")

    def is_allowed(self, path: str) -> bool:
        """Return True if the request has the token and *path*; else answer it with the error and return False."""
        authorization = self.headers.get("Authorization", "").encode()
        host, origin = self.headers.get("Host"), self.headers.get("Origin")
        if (
            self.is_local and host is not None and not _is_here(f"//{host}")
        ):  # a page that gave its own name this address (DNS rebinding)
            self.refuse(
                421, f"the header Host must be this machine's: 127.0.0.1, [::1] or localhost, not {host!r:.100}"
            )
        elif origin is not None and not (self.is_local and _is_here(origin)):
            self.refuse(403, f"a page of {origin!r:.100} may not ask here")
        elif self.token and not hmac.compare_digest(authorization, f"Bearer {self.token}".encode()):
            self.refuse(401, "the header Authorization must be: Bearer TOKEN", {"WWW-Authenticate": "Bearer"})
        elif self.path.partition("?")[0] != path:
            self.refuse(404, f"there is no {self.command} {self.path}; there are {self.paths}")
        else:
            return True
        return False

    def body(self) -> bytes | None:
        """Return the request's body; None if it was refused and answered."""
        length = self.headers.get("Content-Length")
        if length is None:
            self.refuse(411, "a request needs Content-Length")
        elif not length.isascii() or not length.isdigit():
            self.refuse(400, f"Content-Length must be a number of bytes, not {length!r:.40}")
        elif len(length) > _DIGITS or int(length) > self.max_body:
            self.refuse(413, f"a request may have {self.max_body:,} bytes, not {length:.20}; send less at a time")
        elif self.headers.get("Content-Encoding", "identity") not in self.encodings:
            self.refuse(415, f"a body is sent as {' or '.join(self.encodings)}; compress it otherwise, or not at all")
        else:
            body = self.rfile.read(int(length))
            if len(body) == int(length):
                return body
            self.refuse(400, "the request was cut off")
        return None

    def refuse(self, code: int, message: str, headers: Mapping[str, str] | None = None) -> None:
        """Answer with an error, and close the connection."""
        self.close_connection = True  # its body may not have been read
        self.answer(code, {"error": message}, headers)
        self._read_on()

    def _read_on(self) -> None:
        """Read the rest of a client's request for a while. Else the client would meet a closed connection before it reads its answer."""
        until = time.monotonic() + SENDING_SECONDS
        with suppress(OSError):  # the client closed the connection, or sends nothing more
            self.connection.shutdown(socket.SHUT_WR)
            while (remaining := until - time.monotonic()) > 0:
                self.connection.settimeout(remaining)
                if not self.rfile.read1(_PIECE):
                    break

    def answer(self, code: int, document: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> None:
        """Send an answer of JSON."""
        self.answer_bytes(code, orjson.dumps(document), {"Content-Type": "application/json", **(headers or {})})

    def answer_bytes(self, code: int, body: bytes, headers: Mapping[str, str]) -> None:
        """Send an answer."""
        self.send_response(code)
        sent_headers = {"Content-Length": str(len(body)), **headers}
        for name, value in (sent_headers | ({"Connection": "close"} if self.close_connection else {})).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing: stderr is for the watch's own status."""


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
