"""The endpoint itself: one client with its connections, one limiter, and what it was found to take."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import aiohttp
import attrs
import orjson
import stamina
from yarl import URL

from dicast import (
    IDENTITY,
    AccessRefused,
    ChatRequest,
    Cost,
    Failure,
    Message,
    RateLimiter,
    Reachability,
    Reply,
    ReplyReader,
    ReplyRefused,
    retry_after,
)

from .answers import Answer, Unreadable
from .chat import Chat
from .faults import LONGEST_WAIT, Fault, backoff, quiet_retries

_FORMATS: Mapping[str, Sequence[str]] = {"auto": ("json_schema", "json_object", "text")}
_OK = 200
_NO_ACCESS = (401, 403, 404)
_REDIRECTS = range(300, 400)
_REFUSED = (400, 422)
_TRY_AGAIN = (408, 409, 429)
_OVERLOADED = 429
_SERVER_FAULT = 500
_MODEL_MAY_HAVE_RUN = (504, 524)
"""What a gateway says when the model behind it did not answer in time."""
_COMPLAINT_CHARS = 300
_PIECE = 1 << 20
"""Bytes above so many aiohttp wants as a stream, and warns of otherwise."""
_CONNECT_SECONDS = 20.0


@asynccontextmanager
async def connect(options: Chat, concurrency: int) -> AsyncIterator[Endpoint]:
    """The live object of *options* for a run that judges *concurrency* subjects at once."""
    quiet_retries()
    headers = {"Content-Type": "application/json", "Accept": "application/json", "User-Agent": "dicast", **IDENTITY}
    if (key := options.key) is not None and key.value:
        headers["Authorization"] = f"Bearer {key.value}"
    async with aiohttp.ClientSession(
        headers=headers | {name: secret.value for name, secret in options.headers.items()},
        # How many calls there are at once is for the run to say, not for the pool.
        connector=aiohttp.TCPConnector(limit=0),
        timeout=aiohttp.ClientTimeout(options.timeout, connect=_connecting(options)),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,  # the reader does it, within its limit
        proxy=options.proxy.value if options.proxy else None,
    ) as session:
        yield Endpoint(options, session, concurrency)


@attrs.define
class _Call:
    """A request with its tries so far; *history* has the failed ones, *spent* what they did cost, or may have; *connected* says that one of
    them got a connection.
    """

    request: ChatRequest
    tokens: int
    options: Chat
    tries: int = 0
    spent: Cost = Cost.zero()
    history: list[Mapping[str, object]] = attrs.field(factory=list)
    connected: bool = False

    @property
    def most(self) -> Cost:
        """What one try may cost; counted where the endpoint does not say, for it takes as long as a tenth of the call."""
        return self.options.estimate(self.request)

    def retry(self) -> Mapping[str, Any]:
        """How it was tried."""
        return {"attempts": self.tries, "max_attempts": self.options.retries + 1, "history": self.history}


class Endpoint:
    """Answers requests by asking the endpoint."""

    def __init__(self, options: Chat, session: aiohttp.ClientSession, concurrency: int) -> None:
        self._options, self._session = options, session
        at_start = max(options.unreachable_at_start, concurrency)
        self._reachability = Reachability(at_start, options.unreachable_later, model=options.model, url=options.address)
        parts = urlsplit(options.address)
        path = f"{parts.path.rstrip('/')}/chat/completions"
        self._url = URL(urlunsplit(parts._replace(path=path, fragment="")))
        self._who = f"{options.model} at {urlunsplit(parts._replace(path=path, query='', fragment=''))}"
        self._limiter = RateLimiter(options.requests_per_minute, options.tokens_per_minute)
        self._formats = _FORMATS.get(options.response_format, (options.response_format,))
        self._limit_name = "max_tokens"
        self._reader = ReplyReader(options.secrets(), options.max_reply_bytes)

    def estimate(self, request: ChatRequest) -> Cost:
        """What one try of *request* may cost at most."""
        return self._options.estimate(request)

    def identity(self) -> dict[str, object]:
        """What decides a reply, beside the request."""
        return self._options.identity()

    async def complete(self, request: ChatRequest) -> Reply | Failure:
        """Ask, again if need be.

        :raises dicast.AccessRefused: for 401, 403 and 404, and where too many calls in a row get no connection.
        """
        return await self._reachability.watch(self._complete(request))

    async def _complete(self, request: ChatRequest) -> tuple[Reply | Failure, bool]:
        """The answer, and whether the endpoint was reached."""
        limited = self._options.tokens_per_minute is not None
        tokens = self._options.most_input_tokens(request) + request.max_output_tokens if limited else 0
        call = _Call(request, tokens, self._options)
        try:
            return await self._try(call), True
        except Fault as fault:
            first = fault
        try:
            return await self._try_again(call, first), True
        except Fault as fault:
            return fault.failure(call.spent, call.retry()), call.connected

    async def _try_again(self, call: _Call, fault: Fault | None) -> Reply:
        """Go on after *fault*, the first try's; nearly all calls have none, and stamina takes as long as a request."""
        attempts = stamina.retry_context(
            backoff, self._options.retries + 1, timeout=None, wait_initial=0.25, wait_max=20, wait_jitter=0.25
        )
        async for attempt in attempts:
            with attempt:
                if fault is not None:
                    first, fault = fault, None
                    raise first
                return await self._try(call)
        raise AssertionError("stamina ends with a result or an exception")

    async def _try(self, call: _Call) -> Reply:
        call.tries += 1
        try:
            reply = self._read(call, await self._ask(call))
        except Fault as fault:
            call.spent += fault.cost
            self._limiter.spent(fault.cost)
            call.history.append({"attempt": call.tries, "error": str(fault)})
            raise
        cost = call.most if reply.usage is None else self._options.cost(reply.usage)
        return attrs.evolve(reply, cost=call.spent + cost, retry=call.retry() if call.history else None)

    async def _ask(self, call: _Call) -> Answer:
        """Ask in the best format that the endpoint takes, and keep in mind which that is."""
        if call.request.schema is None:
            return await self._post_within(call, "text")
        formats = self._formats
        for form in formats:
            answer = await self._post_within(call, form)
            if answer.status not in _REFUSED:
                break
        # What no format cures is not about the format.
        if answer.status == _OK and form != formats[0]:
            self._formats = formats[formats.index(form) :]
        return answer

    async def _post_within(self, call: _Call, form: str) -> Answer:
        """Post; once more where the endpoint wants the limit of tokens under its newer name."""
        name = self._limit_name
        answer = await self._post(call, self._body(call.request, form, name))
        if answer.status in _REFUSED and name == "max_tokens" and "max_completion_tokens" in answer.complaint():
            self._limit_name = "max_completion_tokens"
            return await self._post(call, self._body(call.request, form, self._limit_name))
        return answer

    def _body(self, request: ChatRequest, form: str, limit_name: str) -> bytes:
        body: dict[str, Any] = {
            "model": self._options.model,
            "messages": [self._message(message) for message in request.messages],
            limit_name: request.max_output_tokens,
        }
        temperature = self._options.temperature if request.temperature is None else request.temperature
        if temperature is not None:
            body["temperature"] = temperature
        if request.logprobs:
            body["logprobs"] = True
        if form == "json_schema":
            schema = {"name": "reply", "schema": request.schema, "strict": True}
            body["response_format"] = {"type": form, "json_schema": schema}
        elif form == "json_object":
            body["response_format"] = {"type": form}
        return orjson.dumps(body)

    def _message(self, message: Message) -> dict[str, Any]:
        # JSON knows no halves of a surrogate pair, which judged text may hold.
        text = message.content if message.content.isascii() else message.content.encode(errors="replace").decode()
        if not (message.cache and self._options.cache_control):
            return {"role": message.role, "content": text}
        part = {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}
        return {"role": message.role, "content": [part]}

    async def _post(self, call: _Call, body: bytes) -> Answer:
        async with self._limiter.turn(call.tokens) as number:
            answer = await self._send(call, body)
            if answer.status == _OVERLOADED or answer.status >= _SERVER_FAULT:
                wait = retry_after(answer.headers) or 0.0
                self._limiter.overloaded(number, wait if wait <= LONGEST_WAIT else 0.0)
            elif answer.status == _OK:
                self._limiter.eased()
        return answer

    async def _send(self, call: _Call, body: bytes) -> Answer:
        try:
            data = body if len(body) <= _PIECE else BytesIO(body)
            async with self._session.post(self._url, data=data, allow_redirects=False) as response:
                call.connected = True
                chunks, status, told = response.content.iter_any(), response.status, response.headers
                return Answer(status, told, await self._reader.read(chunks, told, cut=status != _OK))
        except ReplyRefused as error:
            raise Fault(self._said(f"{error}"), again=False, cost=call.most, kind="judge_output_invalid") from error
        except aiohttp.ClientSSLError as error:
            raise Fault(self._said(f"{error}"), again=False) from error
        except aiohttp.ClientConnectorError as error:
            raise Fault(self._said(_unconnected(error)), again=self._reachability.patient) from error
        except aiohttp.ConnectionTimeoutError as error:
            message = f"no connection within {_connecting(self._options):g} s"
            # A silent host takes all that time for each try: one has to answer before it is worth another.
            raise Fault(self._said(message), again=self._reachability.reached) from error
        except TimeoutError as error:
            call.connected = True
            message = f"no reply within {self._options.timeout:g} s"
            raise Fault(self._said(message), again=False, cost=call.most, kind="timeout") from error
        except (aiohttp.ClientError, OSError) as error:
            call.connected = True
            message = f"the connection broke: {type(error).__name__}: {error}"
            raise Fault(self._said(message), cost=call.most) from error

    def _read(self, call: _Call, answer: Answer) -> Reply:
        if answer.status != _OK:
            raise self._refusal(call, answer)
        try:
            return answer.reply()
        except Unreadable as error:
            cost = call.most if error.usage is None else self._options.cost(error.usage)
            raise Fault(self._said(str(error)), cost=cost) from error

    def _refusal(self, call: _Call, answer: Answer) -> Exception:
        """What to raise for a status other than 200."""
        status = answer.status
        said = self._said(f"HTTP {status}: {answer.complaint()}")
        if status in _NO_ACCESS:
            return AccessRefused(said, call.spent)
        if status in _REDIRECTS:
            location = answer.headers.get("Location", "")
            return Fault(self._said(f"HTTP {status}: redirects to {location}; redirects are not followed"), again=False)
        if status not in _TRY_AGAIN and status < _SERVER_FAULT:
            return Fault(said, again=False)
        cost = call.most if status in _MODEL_MAY_HAVE_RUN else None
        wait = retry_after(answer.headers)
        if wait is not None and wait > LONGEST_WAIT:
            message = f"{said}; it asks to wait {wait:,.0f} s, and dicast waits {LONGEST_WAIT:g} s at most"
            return Fault(message, again=False, wait=wait, cost=cost)
        return Fault(said, wait=wait, cost=cost)

    def _said(self, message: str) -> str:
        """*message* with who said it, without the secrets, which an endpoint may repeat."""
        message = self._reader.message(message)
        cut = message if len(message) <= _COMPLAINT_CHARS else f"{message[:_COMPLAINT_CHARS]}…"
        return f"{self._who}: {cut}"


def _connecting(options: Chat) -> float:
    """Seconds in which a connection has to stand: less than a try has, to tell a call that was never made from a slow one."""
    return min(options.timeout / 2, _CONNECT_SECONDS)


def _unconnected(error: aiohttp.ClientConnectorError) -> str:
    """Which host gave no connection, why in the system's words, and what to do about it."""
    cause = error.os_error
    number = cause.errno or 0  # a resolver's are negative
    why = os.strerror(number) if number > 0 else cause.strerror or str(cause)
    return f"no connection to {error.host}:{error.port} ({why}); start the server, or correct base_url"
