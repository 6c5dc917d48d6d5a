"""A pipeline behind HTTP: requests bring candidates, which one run reads as the subjects of a live source."""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from ipaddress import ip_address
from typing import Any

import attrs
import orjson
from aiohttp import ClientError, web

from dicast import Due, Event, ReadCounts, RunContext, Subject
from dicast.toolkit.connections import ACCEPTED_AT_ONCE, WAITING, Connections, connection_limit, listening_socket

from .result import parsed
from .served import BadPayload, NoScore, result, subject_of

MAX_BODY_BYTES = 10_000_000
MAX_BATCH = 10_000
BODY_SECONDS = 30.0
HEAD_SECONDS = 30.0
CLOSE_SECONDS = 1.0

Answer = asyncio.Future[Sequence[Event]]


@attrs.frozen
class Serving:
    """Options of ``dicast evaluator serve``.

    *kind* is the kind of subject of a candidate; *on* the label whose score counts; *ready* is called with the address.
    """

    host: str
    port: int
    token: str | None
    kind: str
    on: str | None
    ready: Callable[[str], object]

    live = True
    ordered = False

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of its subjects."""
        return (self.kind,)

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Server]:
        """Yield the listening server.

        :raises ConfigError: when the address is not available.
        """
        server = Server(self)
        runner = web.ServerRunner(_Front(server), shutdown_timeout=CLOSE_SECONDS)
        await runner.setup()
        try:
            listening = listening_socket(self.host, self.port)
            site = web.SockSite(runner, listening, backlog=ACCEPTED_AT_ONCE)
            await site.start()
            listening.listen(WAITING)
            host, port = runner.addresses[0][:2]
            self.ready(f"http://{f'[{host}]' if ':' in host else host}:{port}/")
            yield server
        finally:
            server.close()
            await runner.cleanup()


class _Front(web.Server):
    """Connections of *server*. A connection without a request within :data:`HEAD_SECONDS` is closed."""

    def __init__(self, server: Server) -> None:
        # Invalid HTTP is answered with 400 and needs no traceback.
        quiet = logging.getLogger(f"{__name__}.http")
        quiet.setLevel(logging.CRITICAL)
        super().__init__(self._handle, access_log=None, logger=quiet)
        self._server = server
        self._silent: set[object] = set()
        self._transports: dict[web.RequestHandler, asyncio.Transport] = {}
        self._open = Connections(connection_limit())

    def connection_made(self, handler: web.RequestHandler, transport: asyncio.Transport) -> None:
        """Count a connection, and wait for the head of its request."""
        super().connection_made(handler, transport)
        self._silent.add(handler)
        self._transports[handler] = transport
        self._open.add(transport)
        asyncio.get_running_loop().call_later(HEAD_SECONDS, self._look, handler)

    def connection_lost(self, handler: web.RequestHandler, exc: BaseException | None = None) -> None:
        """Forget a connection."""
        super().connection_lost(handler, exc)
        self._silent.discard(handler)
        if (transport := self._transports.pop(handler, None)) is not None:
            self._open.remove(transport)

    async def _handle(self, request: web.BaseRequest) -> web.Response:
        self._silent.discard(request.protocol)
        if (transport := self._transports.get(request.protocol)) is not None:
            self._open.has_request(transport)
        return await self._server.handle(request, partial(self._has_come, transport))

    def _has_come(self, transport: asyncio.Transport | None) -> None:
        """Keep a connection whose complete request has arrived."""
        if transport is not None:
            self._open.has_body(transport)

    def _look(self, handler: web.RequestHandler) -> None:
        if handler in self._silent:
            self._silent.discard(handler)
            handler.force_close()
            self._transports[handler].abort()


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach *host*."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class Refused(Exception):
    """A refused request, with its status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Server:
    """Server that yields the candidates of its requests to the run."""

    live = True
    ordered = False

    def __init__(self, options: Serving) -> None:
        self._options = options
        self.kinds = options.kinds
        self._coming: asyncio.Queue[Due] = asyncio.Queue()
        self._open: set[Answer] = set()
        self._counts = {"requests": 0, "scored": 0, "failed": 0}
        self._refused = 0

    def read_counts(self) -> ReadCounts:
        """Return the number of payloads, and of invalid ones among them."""
        dropped = {"bad_payload": self._refused} if self._refused else {}
        return ReadCounts(self._counts["requests"], dropped=dropped)

    async def subjects(self) -> AsyncIterator[Due]:
        """Yield the candidates in the order of arrival."""
        while True:
            yield await self._coming.get()

    def close(self) -> None:
        """Answer waiting requests with the end of the run."""
        for answer in self._open:
            if not answer.done():
                answer.set_exception(Refused(503, "the run is over"))

    async def handle(self, request: web.BaseRequest, has_come: Callable[[], None]) -> web.Response:
        """Serve one request; *has_come* is called when it has arrived completely."""
        try:
            return await self._served(request, has_come)
        except Refused as error:
            headers = {"WWW-Authenticate": "Bearer"} if error.status == 401 else {}
            return _json({"error": {"kind": "request", "message": str(error)}}, error.status, headers)
        except Exception as error:
            logging.getLogger(__name__).exception("a request could not be served")
            return _json({"error": {"kind": "defect", "message": f"{type(error).__name__}: {error}"}}, 500)

    async def _served(self, request: web.BaseRequest, has_come: Callable[[], None]) -> web.Response:
        self._check_host(request)
        route = (request.method, request.path)
        if route == ("GET", "/health"):
            return _json({"ok": True, **self._counts, "waiting": len(self._open)})
        if request.path not in {"/", "/batch"}:
            raise Refused(404, f"there is no {request.path}: POST / and /batch, GET /health")
        if request.method != "POST":
            raise Refused(405, f"{request.path} takes POST")
        self._check_token(request)
        value = await _body(request)
        has_come()
        if request.path == "/":
            status, results = await self._judged(value)
            return _json(results, status)
        if not isinstance(value, list):
            raise Refused(400, "a batch is a JSON array of payloads")
        if len(value) > MAX_BATCH:
            raise Refused(413, f"a batch has at most {MAX_BATCH:,} payloads")
        return _json([results for _, results in await asyncio.gather(*map(self._judged, value))])

    def _check_host(self, request: web.BaseRequest) -> None:
        """Refuse requests forged through a browser: for another host than the served one, or from another site's page."""
        name = re.sub(r":\d*$", "", request.headers.get("Host") or "").strip("[]").lower()
        if is_loopback(self._options.host) and not is_loopback(name):
            raise Refused(403, "this host is not served here")
        if "Origin" in request.headers and self._options.token is None:
            raise Refused(403, "pages of other sites are not served")

    def _check_token(self, request: web.BaseRequest) -> None:
        if (token := self._options.token) is not None:
            authorization = request.headers.get("Authorization", "").encode(errors="replace")
            if not hmac.compare_digest(authorization, f"Bearer {token}".encode()):
                raise Refused(401, "the request needs the header Authorization: Bearer TOKEN")

    async def _judged(self, payload: object) -> tuple[int, dict[str, Any]]:
        """Return status and result of one *payload*."""
        self._counts["requests"] += 1
        try:
            document = result(await self._answer(subject_of(payload, self._options.kind)), self._options.on)
        except BadPayload as error:
            self._refused += 1
            return 400, {"error": {"kind": "payload", "message": str(error)}}
        except NoScore as error:
            self._counts["failed"] += 1
            return 500, {"error": {"kind": error.kind, "message": str(error)}}
        self._counts["scored"] += 1
        return 200, document

    async def _answer(self, subject: Subject) -> Sequence[Event]:
        answer: Answer = asyncio.get_running_loop().create_future()

        def answered(events: Sequence[Event]) -> None:
            if not answer.done():  # the client may have left
                answer.set_result(events)

        self._open.add(answer)
        try:
            self._coming.put_nowait(Due(subject, answered=answered))
            return await answer
        finally:
            self._open.discard(answer)


async def _body(request: web.BaseRequest) -> object:
    """Return the JSON value of the request, within limits of size and time."""
    if (request.content_length or 0) > MAX_BODY_BYTES:
        raise Refused(413, f"the body has more than {MAX_BODY_BYTES:,} bytes")
    data = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in request.content.iter_any():
                data += chunk
                if len(data) > MAX_BODY_BYTES:
                    raise Refused(413, f"the body has more than {MAX_BODY_BYTES:,} bytes")
    except TimeoutError as error:
        raise Refused(408, f"the body did not come within {BODY_SECONDS:g} s") from error
    except (web.RequestPayloadError, ClientError, ConnectionError, RuntimeError) as error:
        # the client left, which aiohttp also reports as a RuntimeError, or named an unknown encoding
        raise Refused(400, "the body cannot be read") from error
    try:
        return parsed(bytes(data))
    except ValueError as error:
        raise Refused(400, f"the body is not valid JSON: {error}") from error


def _json(value: object, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    try:
        body = orjson.dumps(value)
    except TypeError:
        body = json.dumps(value, default=str).encode()
    return web.Response(body=body, status=status, content_type="application/json", headers=headers)
