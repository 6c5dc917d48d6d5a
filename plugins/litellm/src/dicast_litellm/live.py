"""Asking through litellm: one set of connections, one limiter, and what the model was found to take."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import aiohttp
import attrs
import stamina

from dicast import (
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

from .chat import Chat
from .faults import LONGEST_WAIT, Fault, backoff, causes, quiet_retries
from .library import forget_clients, load, secrets_around
from .replies import Counted, counted, read

_FORMATS: Mapping[str, Sequence[str]] = {"auto": ("json_schema", "json_object", "text")}
_NO_ACCESS = (401, 403, 404)
_REFUSED = (400, 422)
_TRY_AGAIN = (408, 409, 429)
_OVERLOADED = 429
_SERVER_FAULT = 500
_MODEL_MAY_HAVE_RUN = (504, 524)
"""What a gateway says when the model behind it did not answer in time."""
_COMPLAINT_CHARS = 300
_NEVER_ASKED = ("ConnectError", "ConnectTimeout", "ClientConnectorError", "ConnectionTimeoutError")
"""What the HTTP libraries call a connection that did not come about."""


@attrs.define
class _Call:
    """A request with its tries so far. *most* is what one try may cost; *history* has the failed ones, *spent* what they did cost,
    or may have; *connected* says that one of them got a connection.
    """

    request: ChatRequest
    tokens: int
    options: Chat
    most: Cost
    tries: int = 0
    spent: Cost = Cost.zero()
    history: list[Mapping[str, object]] = attrs.field(factory=list)
    connected: bool = False

    def retry(self) -> Mapping[str, Any]:
        """How it was tried."""
        return {"attempts": self.tries, "max_attempts": self.options.retries + 1, "history": self.history}


class LiveChat:
    """Answers requests by asking through litellm."""

    def __init__(self, options: Chat, concurrency: int) -> None:
        quiet_retries()
        at_start = max(options.unreachable_at_start, concurrency)
        self._reachability = Reachability(
            at_start, options.unreachable_later, model=options.model, url=options.api_base
        )
        self._options = options
        self._limiter = RateLimiter(options.requests_per_minute, options.tokens_per_minute)
        self._formats = _FORMATS.get(options.response_format, (options.response_format,))
        self._litellm: Any = None
        self._loading = asyncio.Lock()
        self._session: aiohttp.ClientSession | None = None
        self._wire: Any = None
        given = [] if options.api_key is None else [options.api_key.value]
        self._reader = ReplyReader(given + secrets_around())

    def estimate(self, request: ChatRequest) -> Cost:
        """What one try of *request* may cost at most."""
        return self._options.estimate(request)

    def identity(self) -> dict[str, object]:
        """What decides a reply, beside the request."""
        return self._options.identity()

    async def close(self) -> None:
        """Close the connections."""
        if self._litellm is not None:
            forget_clients(self._litellm)
        if self._session is not None:
            await self._session.close()

    async def complete(self, request: ChatRequest) -> Reply | Failure:
        """Ask, again if need be.

        :raises dicast.AccessRefused: for 401, 403 and 404, without a key, for a provider that litellm does not know, and where
            too many calls in a row get no connection.
        """
        return await self._reachability.watch(self._complete(request))

    async def _complete(self, request: ChatRequest) -> tuple[Reply | Failure, bool]:
        """The answer, and whether the endpoint was reached."""
        if self._litellm is None:
            await self._load()
        tokens = 0 if self._options.tokens_per_minute is None else request.input_tokens + request.max_output_tokens
        call = _Call(request, tokens, self._options, self.estimate(request))
        attempts = stamina.retry_context(
            backoff, self._options.retries + 1, timeout=None, wait_initial=0.25, wait_max=20, wait_jitter=0.25
        )
        try:
            async for attempt in attempts:
                with attempt:
                    return await self._try(call), True
        except Fault as fault:
            return fault.failure(call.spent, call.retry()), call.connected
        raise AssertionError("stamina ends with a result or an exception")

    async def _load(self) -> None:
        async with self._loading:
            if self._litellm is None:
                litellm = await asyncio.to_thread(load)  # may be cancelled
                # How many calls there are at once is for the run to say, not for the pool.
                self._session = aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(limit=0), cookie_jar=aiohttp.DummyCookieJar()
                )
                from .wire import Wire  # it needs litellm

                forget_clients(litellm)  # of others in this process, which lead elsewhere
                self._wire = Wire.laid(self._session, self._options)
                self._litellm = litellm

    async def _try(self, call: _Call) -> Reply:
        call.tries += 1
        try:
            completion = await self._ask(call)
            count = counted(completion)
            reply = self._read(call, completion, count)
        except Fault as fault:
            call.spent += fault.cost
            self._limiter.spent(fault.cost)
            call.history.append({"attempt": call.tries, "error": str(fault)})
            raise
        cost = call.spent + self._cost(call, count)
        return attrs.evolve(reply, cost=cost, retry=call.retry() if call.history else None)

    async def _ask(self, call: _Call) -> Any:
        """Ask in the best format that the endpoint takes, and keep in mind which that is."""
        formats = self._formats if call.request.schema is not None else ("text",)
        for form in formats:
            try:
                completion = await self._send(call, form)
            except Exception as error:  # the border to litellm, whose errors share no class
                if form == formats[-1] or not self._is_about_format(error):
                    raise self._fault(call, error) from error
            else:
                if form != formats[0]:
                    self._formats = formats[formats.index(form) :]
                return completion
        raise AssertionError("the last format returns or raises")

    async def _send(self, call: _Call, form: str) -> Any:
        async with self._limiter.turn(call.tokens) as number:
            with self._watched(number):
                async with asyncio.timeout(self._options.timeout):
                    with self._wire.used():
                        completion = await self._litellm.acompletion(**self._arguments(call.request, form))
                self._limiter.eased()
                return completion

    @contextmanager
    def _watched(self, number: int) -> Iterator[None]:
        """Tell the limiter when the endpoint has too much."""
        try:
            yield
        except Exception as error:
            headers, status = _headers(error), _status(error)
            if headers is not None and (status == _OVERLOADED or status >= _SERVER_FAULT):
                wait = retry_after(headers) or 0.0
                self._limiter.overloaded(number, wait if wait <= LONGEST_WAIT else 0.0)
            raise

    def _arguments(self, request: ChatRequest, form: str) -> dict[str, Any]:
        options = self._options
        arguments: dict[str, Any] = {
            "model": options.model,
            "api_base": options.api_base,
            "api_key": options.api_key.value if options.api_key else None,
            "messages": [self._message(message) for message in request.messages],
            "max_tokens": request.max_output_tokens,
            "temperature": options.temperature if request.temperature is None else request.temperature,
            "timeout": options.timeout,
            # Neither litellm nor the provider's own library tries again by itself.
            "num_retries": 0,
            "max_retries": 0,
            "drop_params": True,
            "no-log": True,
        }
        if request.logprobs:
            arguments["logprobs"] = True
        if form == "json_schema":
            schema = {"name": "reply", "schema": request.schema, "strict": True}
            arguments["response_format"] = {"type": form, "json_schema": schema}
        elif form == "json_object":
            arguments["response_format"] = {"type": form}
        return arguments

    def _message(self, message: Message) -> dict[str, Any]:
        # JSON knows no halves of a surrogate pair, which judged text may hold.
        text = message.content if message.content.isascii() else message.content.encode(errors="replace").decode()
        if not self._options.marks(message):
            return {"role": message.role, "content": text}
        part = {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}
        return {"role": message.role, "content": [part]}

    def _read(self, call: _Call, completion: Any, count: Counted | None) -> Reply:
        reply = read(completion)
        if reply is None:
            raise Fault(self._said("the reply has no choices, or no text in them"), cost=self._cost(call, count))
        return attrs.evolve(reply, usage=None if count is None else count.usage)

    def _cost(self, call: _Call, count: Counted | None) -> Cost:
        if count is None:
            return call.most
        return self._options.tariff.cost(count.usage, count.cache_read, count.cache_written)

    def _is_about_format(self, error: Exception) -> bool:
        """Whether a refusal may be cured by another format."""
        other = (self._litellm.ContextWindowExceededError, self._litellm.ContentPolicyViolationError)
        return _status(error) in _REFUSED and _headers(error) is not None and not isinstance(error, other)

    def _fault(self, call: _Call, error: Exception) -> Exception:
        """What to raise for an exception of litellm's."""
        refused = next((one for one in causes(error) if isinstance(one, ReplyRefused)), None)
        if refused is not None:
            call.connected = True
            return Fault(self._said(str(refused)), again=False, cost=call.most, kind="judge_output_invalid")
        status, headers, said = _status(error), _headers(error), self._said(str(error))
        never_asked = any(type(one).__name__ in _NEVER_ASKED for one in causes(error))
        call.connected = call.connected or not never_asked
        if status in _NO_ACCESS or _is_no_access(error):
            return AccessRefused(said, call.spent)
        if isinstance(error, self._litellm.ContentPolicyViolationError):
            return Fault(said, again=False, kind="refused")
        if isinstance(error, TimeoutError | self._litellm.Timeout) and headers is None and not never_asked:
            message = self._said(f"no reply within {self._options.timeout:g} s")
            return Fault(message, again=False, cost=call.most, kind="timeout")
        if status not in _TRY_AGAIN and status < _SERVER_FAULT:
            return Fault(said, again=False)
        billed = not never_asked if headers is None else status in _MODEL_MAY_HAVE_RUN
        cost, wait = call.most if billed else None, retry_after(headers or {})
        if wait is not None and wait > LONGEST_WAIT:
            message = f"{said}; it asks to wait {wait:,.0f} s, and dicast waits {LONGEST_WAIT:g} s at most"
            return Fault(message, again=False, wait=wait, cost=cost)
        return Fault(said, again=not never_asked or self._reachability.patient, wait=wait, cost=cost)

    def _said(self, message: str) -> str:
        """*message* with who said it, without the secrets, which an endpoint may repeat."""
        line = " ".join(self._reader.message(message).split())
        cut = line if len(line) <= _COMPLAINT_CHARS else f"{line[:_COMPLAINT_CHARS]}…"
        at = f" at {self._options.api_base}" if self._options.api_base else ""
        return f"{self._options.model}{at}: {cut}"


def _status(error: Exception) -> int:
    """The HTTP status, or what litellm makes of other faults; 500 where there is none."""
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) else _SERVER_FAULT


def _headers(error: Exception) -> Mapping[str, str] | None:
    """The headers of the endpoint's answer; None where it gave none."""
    headers: Mapping[str, str] | None = getattr(error, "litellm_response_headers", None)
    return headers


def _is_no_access(error: Exception) -> bool:
    """Whether litellm did not even ask, for want of a key or of a provider."""
    keyless = any((type(one).__module__, type(one).__name__) == ("openai", "OpenAIError") for one in causes(error))
    return keyless or (_headers(error) is None and "LLM Provider NOT provided" in str(error))
