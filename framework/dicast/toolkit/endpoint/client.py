"""The client: connections, tries, limits and the reading of responses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol, TypeVar

import attrs
import httpx

from ..._kernel.values import Cost, Failure, Reply
from ..._kernel.values.endpoint_errors import AccessRefused
from ..http_reply import IDENTITY, ReplyReader, ReplyRefused, retry_after
from ..rate_limit import WIRE, RateLimiter, Reachability, RequestTrace
from .answers import Answer, joined_line
from .faults import CallFault, ConnectionFault
from .options import Address, ClientLimits
from .retries import LONGEST_WAIT, OVERLOADED, SERVER_FAULT, attempts, is_retried, may_be_billed, quiet_retries
from .transport import body_stream, connection_fault, is_long, open_transport

T = TypeVar("T")
A = TypeVar("A", bound="HasStatus")

OK = 200
_FINE = range(200, 300)
_REDIRECTS = range(300, 400)
_NO_ACCESS = (401, 402, 403, 404)
"""Statuses after which no later call can succeed: the key, the payment or the address is refused."""
_SHOWN_CHARS = 300


class HasStatus(Protocol):
    """A response."""

    @property
    def status(self) -> int: ...  # noqa: D102


@attrs.define
class Exchange:
    """A call with its tries.

    :param bound: returns the upper bound of the cost of one try; called only if the endpoint does not report the cost.
    :param limits: the limits of the client.
    :param tokens: the most tokens that one try takes, for ``tokens_per_minute``.
    :param tries: the number of tries so far.
    :param spent: the cost of failed tries, or its upper bound.
    :param history: the failed tries.
    :param connected: whether a try got a connection.
    :param path: the path of the last request.
    :param adapted: the parameters that the last request left out or translated.
    """

    bound: Callable[[], Cost]
    limits: ClientLimits
    tokens: int = 0
    tries: int = 0
    spent: Cost = Cost.zero()
    history: list[Mapping[str, object]] = attrs.field(factory=list)
    connected: bool = False
    path: str = ""
    adapted: tuple[str, ...] = ()

    @property
    def most(self) -> Cost:
        """The upper bound of the cost of one try."""
        return self.bound()

    def retry(self) -> Mapping[str, Any]:
        """Return the tries as JSON data, in the form of ``Reply.retry``."""
        return {"attempts": self.tries, "max_attempts": self.limits.retries + 1, "history": self.history}

    def paid(self, reply: Reply, cost: Cost) -> Reply:
        """Return *reply* with *cost*, the expense of failed tries, and their history."""
        return attrs.evolve(reply, cost=self.spent + cost, retry=self.retry() if self.history else None)


@asynccontextmanager
async def connect(
    address: Address,
    limits: ClientLimits,
    concurrency: int,
    *,
    headers: Mapping[str, str] | None = None,
    secrets: Iterable[str] = (),
    proxy: str | None = None,
) -> AsyncIterator[Client]:
    """Open the client of *address* for a run that judges *concurrency* subjects at the same time.

    :param headers: sent with each request.
    :param secrets: texts that are masked in replies and messages.
    :param proxy: the address of an HTTP proxy.
    """
    quiet_retries()
    async with open_transport(address.base, proxy) as transport:
        yield Client(address, limits, concurrency, transport, headers or {}, secrets)


class Client:
    """Client for the requests of one component to one endpoint."""

    def __init__(
        self,
        address: Address,
        limits: ClientLimits,
        concurrency: int,
        transport: httpx.AsyncBaseTransport,
        headers: Mapping[str, str],
        secrets: Iterable[str],
    ) -> None:
        """Take the parts that :func:`connect` made."""
        self.address, self.limits, self.transport = address, limits, transport
        at_start = max(limits.unreachable_at_start, concurrency)
        self.reachability = Reachability(at_start, limits.unreachable_later, model=address.model, url=address.base)
        self.limiter = RateLimiter(limits.requests_per_minute, limits.tokens_per_minute)
        self._secrets = frozenset(secrets)
        self._readers: dict[int, ReplyReader] = {}
        self.reader = self._reader(limits.max_reply_bytes)
        self._headers = httpx.Headers({"Accept": "application/json", "User-Agent": "dicast", **IDENTITY, **headers})
        self._json_headers = self._headers.copy()
        self._json_headers["Content-Type"] = "application/json"
        self._urls: dict[str, httpx.URL] = {}
        self._timeout = {"pool": limits.connecting}

    def new_call(self, bound: Callable[[], Cost] = Cost.zero, tokens: int = 0) -> Exchange:
        """Return a call whose tries cost at most *bound* each and take *tokens*."""
        return Exchange(bound, self.limits, tokens)

    async def call(self, call: Exchange, attempt: Callable[[], Awaitable[T]]) -> T | Failure:
        """Return the result of *attempt*, which is run again after a CallFault that allows it, or the Failure of the last.

        :raises dicast.AccessRefused: from *attempt*, and if too many calls in a row get no connection.
        """
        return await self.reachability.watch(self._call(call, attempt))

    async def _call(self, call: Exchange, attempt: Callable[[], Awaitable[T]]) -> tuple[T | Failure, bool]:
        """Return the result, and whether the endpoint was reached."""
        try:
            return await self._try(call, attempt), True
        except CallFault as fault:
            first = fault
        try:
            return await self._try_again(call, attempt, first), True
        except CallFault as fault:
            failure = fault.failure(call.spent, call.retry())
            return attrs.evolve(failure, adapted=call.adapted), call.connected

    async def _try_again(self, call: Exchange, attempt: Callable[[], Awaitable[T]], fault: CallFault | None) -> T:
        """Continue after *fault* of the first try. Only these calls use stamina's loop, which takes as long as a request."""
        async for context in attempts(self.limits.retries):
            with context:
                if fault is not None:
                    first, fault = fault, None
                    raise first
                return await self._try(call, attempt)
        raise AssertionError("stamina ends with a result or an exception")

    async def _try(self, call: Exchange, attempt: Callable[[], Awaitable[T]]) -> T:
        call.tries += 1
        try:
            return await attempt()
        except CallFault as fault:
            self.record(call, fault)
            raise

    def record(self, call: Exchange, fault: CallFault) -> None:
        """Count the expense of a failed try of *call*."""
        call.spent += fault.cost
        self.limiter.spent(fault.cost)
        call.history.append({"attempt": call.tries, "error": str(fault)})

    async def reserve(self, call: Exchange, cost: Cost) -> None:
        """Reserve *cost* for the next try of *call*, if it is higher than the estimate when the call started.

        :raises CallFault: if a cap has too little remaining budget.
        """
        reserve = (WIRE.get() or RequestTrace()).reserve
        failure = None if reserve is None or cost.is_zero else await reserve(cost, call.spent)
        if failure is not None:
            raise CallFault(failure.message, again=False, kind=failure.kind, throttled_reason=failure.throttled_reason)

    async def send(
        self,
        call: Exchange,
        method: str,
        path: str = "",
        content: bytes | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        max_bytes: int | None = None,
        masked: bool = True,
    ) -> Answer:
        """Send one request when the limits allow it, and return the response, of any status.

        :param path: appended to the address of the endpoint.
        :param headers: sent with this request; by default its content is JSON.
        :param max_bytes: the most bytes of the response, in place of ``max_reply_bytes``.
        :param masked: whether secrets are masked in the response.
        :raises CallFault: if there is no connection, no whole response in time, or a response that is too long.
        """
        call.path = path
        return await self.paced(
            call,
            lambda: self._send(
                call, self.fetch(method, path, content, headers=headers, max_bytes=max_bytes, masked=masked)
            ),
        )

    async def paced(self, call: Exchange, send: Callable[[], Awaitable[A]]) -> A:
        """Return the response of *send*, which is called when the limits allow it; its status changes the limits."""
        async with self.limiter.turn(call.tokens) as number:
            answer = await send()
            headers = answer.headers if isinstance(answer, Answer) else {}
            if answer.status == OVERLOADED or answer.status >= SERVER_FAULT:
                wait = retry_after(headers) or 0.0
                self.limiter.overloaded(number, wait if wait <= LONGEST_WAIT else 0.0)
            elif answer.status in _FINE:
                self.limiter.eased()
        return answer

    async def _send(self, call: Exchange, answer: Awaitable[Answer]) -> Answer:
        """Return *answer*. A request that may have reached the endpoint may have been billed.

        :raises CallFault: for a ReplyRefused, a TimeoutError or a ConnectionFault of *answer*.
        """
        try:
            result = await answer
        except ReplyRefused as error:
            call.connected = True
            raise self.fault(call, str(error), again=False, cost=call.most, kind="judge_output_invalid") from error
        except TimeoutError as error:
            call.connected = True
            message = f"no reply within {self.limits.timeout:g} s"
            raise self.fault(call, message, again=False, cost=call.most, kind="timeout") from error
        except ConnectionFault as error:
            raise self.broken(call, error) from error
        call.connected = True
        return result

    async def fetch(
        self,
        method: str,
        path: str = "",
        content: bytes | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        max_bytes: int | None = None,
        masked: bool = True,
        seconds: float | None = None,
    ) -> Answer:
        """Send one request at once, outside of any call and its limits, and return the response, of any status.

        :param seconds: the time for it, in place of ``timeout``.
        :raises TimeoutError: without a whole response in time.
        :raises ConnectionFault: without a connection, and if it breaks.
        :raises dicast.toolkit.http_reply.ReplyRefused: for a response that is too long, or that cannot be decoded.
        """
        request = self._request(method, path, content, headers)
        reader = self.reader if max_bytes is None else self._reader(max_bytes)
        try:
            async with asyncio.timeout(self.limits.timeout if seconds is None else seconds):
                response = await self.transport.handle_async_request(request)
                try:
                    status, fields = response.status_code, response.headers
                    assert isinstance(response.stream, httpx.AsyncByteStream)
                    data = await reader.read(response.stream, fields, cut=status not in _FINE, masked=masked)
                finally:
                    await response.aclose()
                return Answer(status, fields, data)
        except TimeoutError:
            raise
        except (httpx.HTTPError, OSError) as error:
            raise connection_fault(error) from error

    def _request(
        self, method: str, path: str, content: bytes | None, headers: Mapping[str, str] | None
    ) -> httpx.Request:
        url = self._urls.get(path)
        if url is None:
            url = self._urls[path] = httpx.URL(self.address.url(path))
        fields = self._headers if content is None and not headers else self._json_headers
        if headers or is_long(content):
            fields = fields.copy()
            fields.update(headers or {})
        return httpx.Request(
            method, url, headers=fields, extensions={"timeout": self._timeout}, **body_stream(content, fields)
        )

    def _reader(self, most: int) -> ReplyReader:
        if most not in self._readers:
            self._readers[most] = ReplyReader(self._secrets, most, self.address.reply_option)
        return self._readers[most]

    def broken(self, call: Exchange, error: Exception) -> CallFault:
        """Return the fault of a connection that was never made, or that broke: then the request may have been billed."""
        fault = error if isinstance(error, ConnectionFault) else connection_fault(error)
        call.connected = call.connected or fault.is_connected
        match fault.kind:
            case "certificate":
                return self.fault(call, str(fault), again=False)
            case "refused":
                message = f"{fault}; start the server, or correct {self.address.option}"
                return self.fault(call, message, again=self.reachability.patient)
            case "silent":
                # A silent host takes all that time for each try: the endpoint has to answer once before a call is tried again.
                message = f"no connection within {self.limits.connecting:g} s"
                return self.fault(call, message, again=self.reachability.reached)
        return self.fault(call, f"the connection broke: {fault}", cost=call.most)

    def fault(self, call: Exchange, message: str, **options: Any) -> CallFault:
        """Return a CallFault of the last request of *call*; *message* is cut and has no secrets."""
        return CallFault(self.message(message, call.path), **options)

    def refusal(self, call: Exchange, answer: Answer) -> Exception:
        """Return the exception for a response with an error status: AccessRefused, which ends the run, or a CallFault."""
        status, complaint = answer.status, answer.complaint()
        message = self.message(f"HTTP {status}: {complaint.message}", call.path)
        if answer.is_out_of_money:
            return AccessRefused(message, call.spent)
        if answer.is_refused_by_policy:
            return CallFault(message, again=False, kind="refused")
        if status in _NO_ACCESS:
            return AccessRefused(message, call.spent)
        if status in _REDIRECTS:
            location = answer.headers.get("Location", "")
            return self.fault(call, f"HTTP {status}: redirects to {location}; redirects are not followed", again=False)
        if not is_retried(status):
            return CallFault(message, again=False)
        cost = call.most if may_be_billed(status) else None
        wait = retry_after(answer.headers)
        if wait is not None and wait > LONGEST_WAIT:
            message = f"{message}; it asks to wait {wait:,.0f} s, and dicast waits {LONGEST_WAIT:g} s at most"
            return CallFault(message, again=False, wait=wait, cost=cost)
        return CallFault(message, wait=wait, cost=cost)

    def message(self, text: str, path: str = "") -> str:
        """Return *text* on one line with the address, cut, and without secrets, which an endpoint may repeat."""
        line = joined_line(self.reader.message(text))
        cut = line if len(line) <= _SHOWN_CHARS else f"{line[:_SHOWN_CHARS]}…"
        return f"{self.address.display(path)}: {cut}"
