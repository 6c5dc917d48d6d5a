"""The live model: requests in the OpenAI chat format, and the formats that the endpoint accepts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs
import orjson

from dicast import ChatRequest, Cost, Failure, Message, Reply
from dicast.toolkit.endpoint import Address, Answer, ClientLimits
from dicast.toolkit.endpoint.client import OK, Client, Exchange, connect
from dicast.toolkit.endpoint.media import MediaReader, count_media, refused_kinds

from .answers import Unreadable, read_reply
from .chat import Chat
from .parts import content_of, is_carried

_FORMATS: Mapping[str, Sequence[str]] = {"auto": ("json_schema", "json_object", "text")}
_PATH = "/chat/completions"
_REFUSED = (400, 422)


@asynccontextmanager
async def open_endpoint(options: Chat, concurrency: int) -> AsyncIterator[Endpoint]:
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
        yield Endpoint(options, client)


class Endpoint:
    """Answers requests by asking the endpoint."""

    def __init__(self, options: Chat, client: Client) -> None:
        self._options, self._client = options, client
        self._formats = _FORMATS.get(options.response_format, (options.response_format,))
        self._limit_name = "max_tokens"
        self._media = MediaReader(is_carried)

    def estimate(self, request: ChatRequest) -> Cost:
        """Return the upper bound of the cost of one try of *request*."""
        return self._options.estimate(request)

    def identity(self) -> dict[str, object]:
        """Return the options that decide a reply, next to the request."""
        return self._options.identity()

    async def complete(self, request: ChatRequest) -> Reply | Failure:
        """Ask, and ask again after faults that may pass.

        :raises dicast.AccessRefused: for 401, 402, 403, 404 and an account without quota, and if too many calls in a row get no
            connection.
        """
        is_paced = self._options.tokens_per_minute is not None
        tokens = self._options.most_input_tokens(request) + request.max_output_tokens if is_paced else 0
        call = self._client.new_call(lambda: self.estimate(request), tokens)
        return await self._client.call(call, lambda: self._attempt(call, request))

    async def _attempt(self, call: Exchange, request: ChatRequest) -> Reply:
        sent = self._media.sent(request)
        answer = await self._ask(call, sent)
        while answer.status != OK and self._media.learn(answer, sent):
            sent = self._media.sent(request)
            answer = await self._ask(call, sent)
        if answer.status != OK:
            raise self._client.refusal(call, answer)
        try:
            reply = attrs.evolve(read_reply(answer), media=dict(count_media(sent)))
        except Unreadable as error:
            cost = call.most if error.usage is None else self._options.cost(error.usage)
            raise self._client.fault(call, str(error), cost=cost) from error
        return call.paid(reply, call.most if reply.usage is None else self._options.cost(reply.usage))

    async def _ask(self, call: Exchange, request: ChatRequest) -> Answer:
        """Ask in the best format that the endpoint accepts, and remember it."""
        if request.schema is None:
            return await self._post_within(call, request, "text")
        formats = self._formats
        for form in formats:
            answer = await self._post_within(call, request, form)
            if answer.status not in _REFUSED or refused_kinds(answer, request):
                break
        # A refusal of each format is not about the format.
        if answer.status == OK and form != formats[0]:
            self._formats = formats[formats.index(form) :]
        return answer

    async def _post_within(self, call: Exchange, request: ChatRequest, form: str) -> Answer:
        """Post; once more if the endpoint wants the limit of tokens under its newer name."""
        name = self._limit_name
        answer = await self._client.send(call, "POST", _PATH, self._body(request, form, name))
        if answer.status in _REFUSED and name == "max_tokens" and "max_completion_tokens" in answer.complaint().message:
            self._limit_name = "max_completion_tokens"
            return await self._client.send(call, "POST", _PATH, self._body(request, form, self._limit_name))
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
        content = content_of(message)
        if message.cache and self._options.cache_control:
            parts = [{"type": "text", "text": content}] if isinstance(content, str) else content
            content = [*parts[:-1], {**parts[-1], "cache_control": {"type": "ephemeral"}}]
        return {"role": message.role, "content": content}
