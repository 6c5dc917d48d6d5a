"""Requests through litellm: one set of connections, and the calls of the one endpoint."""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any, Protocol

import aiohttp
import attrs
import httpx
import orjson

from dicast import AccessRefused, Cost, Secret
from dicast.toolkit.endpoint import Address, Answer, CallFault, ClientLimits, options
from dicast.toolkit.endpoint.chat_form import ChatOptions
from dicast.toolkit.endpoint.chat_loop import ChatLoop, ReadReply
from dicast.toolkit.endpoint.client import OK, Client, Exchange
from dicast.toolkit.endpoint.faults import causes
from dicast.toolkit.endpoint.retries import quiet_retries
from dicast.toolkit.http_reply import ReplyRefused

from .library import forget_clients, load, secrets_around, silent_logging
from .passage import Passage
from .replies import read, read_usage

_SERVER_FAULT = 500
_BAD_REQUEST = 400
_PACKAGES = {"google": "google-auth"}
"""The packages of modules whose first name is not that of the package."""
_NO_CREDENTIALS = (
    "NoCredentialsError",
    "PartialCredentialsError",
    "ProfileNotFound",
    "DefaultCredentialsError",
    "RefreshError",
)
"""The errors of the libraries of AWS and Google Cloud without credentials."""


class LibraryOptions(ChatOptions, Protocol):
    """The options of ``litellm/chat``, with the address and the keys of its requests."""

    @property
    def api_base(self) -> str | None: ...  # noqa: D102
    @property
    def api_key(self) -> Secret | None: ...  # noqa: D102
    @property
    def extra_headers(self) -> Mapping[str, str | Secret]: ...  # noqa: D102
    @property
    def timeout(self) -> float: ...  # noqa: D102
    @property
    def tls(self) -> str: ...  # noqa: D102
    @property
    def max_reply_bytes(self) -> int: ...  # noqa: D102


@asynccontextmanager
async def open_live(chat: LibraryOptions, concurrency: int) -> AsyncIterator[ChatLoop[Completion]]:
    """Open the live object of *chat*; nothing is imported or connected before the first call."""
    secrets = options.secret_values(chat.api_key, chat.extra_headers) | set(secrets_around())
    address = Address(chat.api_base or "", model=chat.model, option="api_base")
    quiet_retries()
    # litellm makes the connections; the client counts, waits and reads faults.
    client = Client(address, ClientLimits.of(chat), concurrency, httpx.AsyncBaseTransport(), {}, secrets)
    library = Library(chat, client)
    try:
        yield ChatLoop(chat, client, library)
    finally:
        await library.close()


@attrs.frozen
class Completion:
    """A reply as litellm returns it: *data* is its ``ModelResponse``."""

    data: Any
    passage: Passage
    status: int = OK


class Library:
    """Sender of requests through litellm, which is imported with the first request."""

    def __init__(self, chat: LibraryOptions, client: Client) -> None:
        self._chat, self._client = chat, client
        self._litellm: Any = None
        self._loading = asyncio.Lock()
        self._session: aiohttp.ClientSession | None = None
        self._wire: Any = None
        self._fixed: dict[str, Any] = {
            "api_base": chat.api_base,
            "api_key": chat.api_key.value if chat.api_key else None,
            "timeout": chat.timeout,
            # Neither litellm nor the provider's own library tries again by itself.
            "num_retries": 0,
            "max_retries": 0,
            "no-log": True,
        }
        if chat.extra_headers:
            self._fixed["extra_headers"] = options.plain_headers(chat.extra_headers)

    async def close(self) -> None:
        """Close the connections."""
        if self._litellm is not None:
            forget_clients(self._litellm)
        if self._session is not None:
            await self._session.close()

    async def prepare(self) -> None:
        """Import litellm, which takes seconds."""
        if self._litellm is None:
            await self._load()

    async def send(self, call: Exchange, body: dict[str, Any]) -> Completion | Answer:
        """Return the reply to *body*, or the response that refuses it."""
        return await self._client.paced(call, lambda: self._send(call, body))

    async def _load(self) -> None:
        async with self._loading:
            if self._litellm is None:
                litellm = await asyncio.to_thread(load)  # may be cancelled
                # The run limits the number of calls at the same time, not the pool.
                self._session = aiohttp.ClientSession(
                    connector=aiohttp.TCPConnector(limit=0), cookie_jar=aiohttp.DummyCookieJar()
                )
                from .wire import wire_of  # it needs litellm

                forget_clients(litellm)  # of others in this process, which lead elsewhere
                self._wire = wire_of(self._session, self._chat.tls, self._chat.max_reply_bytes)
                self._litellm = litellm

    async def _send(self, call: Exchange, body: dict[str, Any]) -> Completion | Answer:
        with self._wire.used() as passage:
            logging = silent_logging(body["model"], body["messages"])
            try:
                async with asyncio.timeout(self._chat.timeout):
                    data = await self._litellm.acompletion(**body, **self._fixed, litellm_logging_obj=logging)
            except Exception as error:  # the border to litellm, whose errors share no class
                return self._refused(call, error, passage)
            finally:
                call.connected = call.connected or passage.is_connected
        return Completion(data, passage)

    def _refused(self, call: Exchange, error: Exception, passage: Passage) -> Completion | Answer:
        """Return the response behind *error*, an exception of litellm.

        :raises CallFault: if there is none.
        :raises dicast.AccessRefused: if litellm sent no request for want of a key or a provider.
        """
        call.connected = call.connected or passage.is_connected
        if (refused := next((cause for cause in causes(error) if isinstance(cause, ReplyRefused)), None)) is not None:
            raise self._client.fault(
                call, str(refused), again=False, cost=call.most, kind="judge_output_invalid"
            ) from error
        if passage.answer is not None:
            if passage.answer.status != OK:
                return passage.answer
            if (data := self._of_parts(passage.answer)) is not None:
                return Completion(data, passage)
            raise self._unreadable(call, str(error), passage.answer) from error
        if isinstance(error, TimeoutError | self._litellm.Timeout) and not passage.is_unconnected:
            call.connected = True
            message = f"no reply within {self._chat.timeout:g} s"
            raise self._client.fault(call, message, again=False, cost=call.most, kind="timeout") from error
        if passage.error is not None:
            raise self._client.broken(call, passage.error) from error
        if (missing := _missing_module(error)) is not None:
            package = missing.partition(".")[0]
            package = _PACKAGES.get(package, package)
            message = f"litellm needs the module {missing} for this provider; install it: pip install {package}"
            raise AccessRefused(self._client.message(message), call.spent) from error
        if _is_no_access(error):
            raise AccessRefused(self._client.message(str(error)), call.spent) from error
        call.connected = True
        if (status := _status(error)) < _SERVER_FAULT:
            return Answer(status, {}, orjson.dumps({"error": {"message": str(error)}}))
        raise self._client.fault(call, str(error), cost=call.most) from error

    def _of_parts(self, answer: Answer) -> Any:
        """Return the completion in *answer* if its content is a list of parts, which litellm does not read; else None."""
        try:
            body = orjson.loads(answer.data)
        except orjson.JSONDecodeError:
            return None
        match body:
            case {"choices": [{"message": {"content": [*parts]} as message}, *_]}:
                texts = [part.get("text") for part in parts if isinstance(part, dict) and part.get("type") == "text"]
                message["content"] = "".join(text for text in texts if isinstance(text, str))
                return self._litellm.ModelResponse(**body)
        return None

    def read(self, call: Exchange, answer: Completion) -> ReadReply:
        """Return the reply in *answer*."""
        completion = answer.data
        reply, usage = read(completion), read_usage(completion)
        if reply is None:
            raw = answer.passage.answer
            message = "the reply has no choices, or no text in them"
            if raw is not None:
                raise self._unreadable(call, message, raw)
            cost = call.most if usage is None else self._chat.cost(usage)
            raise self._client.fault(call, message, cost=cost)
        message = completion.choices[0].message
        has_reasoning = bool(usage and usage.reasoning_tokens) or bool(getattr(message, "reasoning_content", None))
        return ReadReply(attrs.evolve(reply, usage=usage), has_reasoning, _reported_cost(completion))

    def _unreadable(self, call: Exchange, message: str, answer: Answer) -> Exception:
        """Return the exception for an answer with status 200 and no reply: an error in it was not billed."""
        try:
            body = orjson.loads(answer.data)
        except orjson.JSONDecodeError as fault:
            content_type = answer.headers.get("Content-Type", "application/json")
            wrong = f"no valid JSON: {fault}" if "json" in content_type else f"{content_type}, not JSON"
            return self._client.fault(call, f"the reply is {wrong}", cost=call.most)
        message = message.partition(" Traceback")[0].strip()
        usage = read_usage(body)
        error = body.get("error") if isinstance(body, dict) else None
        if not error:
            return self._client.fault(call, message, cost=call.most if usage is None else self._chat.cost(usage))
        cost = Cost.zero() if usage is None else self._chat.cost(usage)
        code = str(error.get("code")) if isinstance(error, dict) else ""
        if code.isdecimal() and len(code) == 3 and _BAD_REQUEST <= int(code) < 600:
            refusal = self._client.refusal(call, Answer(int(code), answer.headers, answer.data))
            if isinstance(refusal, CallFault):
                refusal.cost = cost
            return refusal
        words = answer.complaint().message
        return self._client.fault(call, f"the reply has no choices but an error: {words}", cost=cost)


def _reported_cost(completion: Any) -> Decimal:
    """Return the cost in usd that the endpoint reports; 0 if it reports none."""
    cost = getattr(getattr(completion, "usage", None), "cost", None)
    is_amount = isinstance(cost, int | float) and not isinstance(cost, bool) and 0 < cost < math.inf
    return Decimal(str(cost)) if is_amount else Decimal(0)


def _status(error: Exception) -> int:
    """Return the HTTP status that litellm gives an error of its own; 500 if it gives none."""
    status = getattr(error, "status_code", None)
    return status if isinstance(status, int) and status >= _BAD_REQUEST else _SERVER_FAULT


def _missing_module(error: Exception) -> str | None:
    """Return the name of the module that a provider of litellm needs and that is not installed; None if that is not the error."""
    name = next((cause.name for cause in causes(error) if isinstance(cause, ModuleNotFoundError) and cause.name), None)
    match = re.search(r"No module named '([\w.]+)'", str(error))
    return name or (match[1] if match else None)


def _is_no_access(error: Exception) -> bool:
    """Return whether litellm sent no request, for want of a key or of a provider."""
    kinds = {(type(cause).__module__, type(cause).__name__) for cause in causes(error)}
    has_no_key = ("openai", "OpenAIError") in kinds or any(name in _NO_CREDENTIALS for _, name in kinds)
    return has_no_key or "LLM Provider NOT provided" in str(error)
