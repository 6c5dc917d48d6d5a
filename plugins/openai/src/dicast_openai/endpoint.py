"""The live model: requests and replies in the OpenAI chat format."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Protocol

import orjson

from dicast import Cost, Secret
from dicast.toolkit.endpoint import Address, Answer, CallFault, ClientLimits
from dicast.toolkit.endpoint.chat_form import ChatOptions
from dicast.toolkit.endpoint.chat_loop import ChatLoop, ReadReply
from dicast.toolkit.endpoint.client import Client, Exchange, connect

from .answers import ErrorInside, Unreadable, read_body, read_reply, shows_reasoning
from .usage import reported_cost

_PATH = "/chat/completions"


class EndpointOptions(ChatOptions, Protocol):
    """The options of ``openai/chat``, with the address, the headers and the secrets of its requests."""

    @property
    def address(self) -> str: ...  # noqa: D102
    @property
    def proxy(self) -> Secret | None: ...  # noqa: D102

    def sent_headers(self) -> dict[str, str]: ...  # noqa: D102
    def secrets(self) -> set[str]: ...  # noqa: D102


@asynccontextmanager
async def open_endpoint(options: EndpointOptions, concurrency: int) -> AsyncIterator[ChatLoop[Answer]]:
    """Open the live object of *options* for a run that judges *concurrency* subjects at the same time."""
    address = Address(options.address, model=options.model)
    proxy = options.proxy.value if options.proxy else None
    async with connect(
        address,
        ClientLimits.of(options),
        concurrency,
        headers=options.sent_headers(),
        secrets=options.secrets(),
        proxy=proxy,
    ) as client:
        yield ChatLoop(options, client, Endpoint(options, client))


class Endpoint:
    """Sender of requests to the endpoint, and reader of its completions."""

    def __init__(self, options: EndpointOptions, client: Client) -> None:
        self._options, self._client = options, client

    async def prepare(self) -> None:
        """Do nothing: the client is open."""

    async def send(self, call: Exchange, body: dict[str, Any]) -> Answer:
        """Return the response to *body*, of any status."""
        return await self._client.send(call, "POST", _PATH, orjson.dumps(body))

    def read(self, call: Exchange, answer: Answer) -> ReadReply:
        """Return the reply in *answer*."""
        try:
            completion = read_body(answer)
            reply = read_reply(completion)
        except Unreadable as error:
            raise self._unreadable(call, error) from error
        cost = reported_cost(completion, answer.headers)
        return ReadReply(reply, shows_reasoning(completion, reply.usage), cost)

    def _unreadable(self, call: Exchange, error: Unreadable) -> Exception:
        if isinstance(error, ErrorInside) and error.answer is not None:
            refusal = self._client.refusal(call, error.answer)
            if isinstance(refusal, CallFault) and error.usage is not None:
                refusal.cost = self._options.cost(error.usage)
            return refusal
        cost = call.most if error.usage is None else self._options.cost(error.usage)
        return self._client.fault(call, str(error), cost=Cost.zero() if error.is_free else cost)
