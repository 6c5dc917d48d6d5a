"""``openai/chat``: the options, and opening the endpoint they name."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from math import inf
from pathlib import Path
from typing import Any, Literal

import attrs
from attrs.validators import min_len

from dicast import ChatModel, ChatRequest, ConfigError, Cost, Price, RunContext, Secret, Usage, Within
from dicast.toolkit.endpoint import options

from .prices import ListedPrice, listed
from .tokens import most_input_tokens

_COLD: float | None = 0.0


OPENAI = "https://api.openai.com/v1"


def _check_url(chat: Chat, attribute: attrs.Attribute[str | None], url: str | None) -> None:
    if url is None or options.has_password(url):
        return  # refused by the class: the error of a field's validator shows the value
    if not options.is_address(url):
        raise ValueError(f"invalid value for base_url, expected an http:// or https:// address, got {url!r}")


def _check_price(chat: Chat, attribute: attrs.Attribute[Any], price: object) -> None:
    if price is None and listed(chat.model, chat.address) is None:
        raise ValueError(
            f"the price of {chat.model!r} is not known; write price: free or "
            "price: {input_per_mtok: ..., output_per_mtok: ...} (usd per million tokens)"
        )


@attrs.frozen
class Chat:
    """Asks a model behind any endpoint that speaks the OpenAI chat format.

    Where ``OPENAI_API_KEY`` is in the environment, ``model`` is all that it needs. Requests go to ``base_url`` and nowhere else: redirects are not followed, and no proxy is taken from the environment.

    Refused connections, broken ones, 408, 409, 429, 5xx and replies that cannot be read are asked again, after waits that
    double from about 0.25 s to 20 s; a ``Retry-After`` of up to 300 s is kept, and a longer one fails the call. A call that
    ran into ``timeout`` is not asked again: it may have been paid for. 401, 403 and 404 end the run, and so does an endpoint that
    many calls in a row cannot connect to.

    A call costs what the endpoint counted. A try whose end is not known (a timeout, a broken connection) and a reply without
    ``usage``, or with one of no input tokens, are taken to have cost as much as the estimate, which is for one try: a call
    that was retried after such a try may cost more than its estimate.

    :param base_url: the endpoint, mostly ending in ``/v1``; ``/chat/completions`` is appended to its path. By default
        ``$OPENAI_BASE_URL``, or OpenAI's own.
    :param model: the model's name at the endpoint.
    :param api_key: sent as a bearer token. Without a ``base_url`` it is ``$OPENAI_API_KEY`` by default; an address that the file
        names is never sent the environment's key.
    :param price: ``free``, or ``{input_per_mtok, output_per_mtok}`` in usd per million tokens. By default what genai-prices lists for
        the model at this endpoint; it has to be given where that knows none.
    :param temperature: 0 by default; ``null`` leaves it to the endpoint, as some models want.
    :param timeout: seconds for one try, from connecting to the end of the reply.
    :param requests_per_minute: spaces the tries evenly; no limit by default.
    :param tokens_per_minute: likewise, by the most tokens that a try can take; no limit by default.
    :param retries: how often a call is tried again. Only after a 429 or a 5xx the number of calls at once is limited too.
    :param response_format: how a schema is sent. ``auto`` sends it as ``json_schema`` and, where the endpoint refuses that
        with 400 or 422, asks for a ``json_object``, then for nothing (``text``); what was taken is kept for the run.
    :param cache_control: mark the messages that are to be cached, for endpoints that do not cache by themselves.
    :param unreachable_at_start: how many calls in a row without a connection end the run while none has had one; at least as many
        as the run makes at once.
    :param unreachable_later: how many end it once the endpoint was reached.
    :param max_reply_bytes: how long a reply may be, decoded. A longer one fails the call as ``judge_output_invalid``.
    :param headers: further headers; their values are secrets.
    :param proxy: the address of an HTTP proxy, with its password if it has one; none by default.
    """

    name = "chat"

    model: str = attrs.field(validator=min_len(1))
    base_url: str | None = attrs.field(default=None, validator=_check_url)
    api_key: Secret | None = options.key()
    price: Literal["free"] | Price | None = attrs.field(
        default=None, validator=_check_price, metadata={"counts": False}
    )
    temperature: float | None = attrs.field(default=_COLD, validator=Within(0, inf, "0 or more"))
    timeout: float = options.timeout()
    requests_per_minute: float | None = options.per_minute()
    tokens_per_minute: float | None = options.per_minute()
    retries: int = options.retries()
    response_format: Literal["auto", "json_schema", "json_object", "text"] = "auto"
    cache_control: bool = attrs.field(default=False, metadata={"counts": False})
    unreachable_at_start: int = options.unreachable(10)
    unreachable_later: int = options.unreachable(50)
    max_reply_bytes: int = options.reply_bytes()
    headers: Mapping[str, Secret] = options.headers()
    proxy: Secret | None = options.proxy()

    def __attrs_post_init__(self) -> None:
        said = "base_url" if self.base_url is not None else "OPENAI_BASE_URL"
        options.check_address(self.address, said)
        if self.address == OPENAI and self.key is None:
            raise ConfigError(
                "openai/chat needs a key: set OPENAI_API_KEY, or write api_key; or name another endpoint as base_url"
            )

    @property
    def address(self) -> str:
        """The endpoint: ``base_url``, else what the environment says, else OpenAI's own."""
        return self.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI

    @property
    def key(self) -> Secret | None:
        """The key that is sent: ``api_key``, else the environment's where the file names no address."""
        own = os.environ.get("OPENAI_API_KEY") if self.api_key is None and self.base_url is None else None
        return Secret(own) if own else self.api_key

    def reads(self, base: Path) -> dict[str, str]:
        """The endpoint, where the environment names it: another one is another model."""
        return {} if self.base_url is not None else {"base_url": self.address}

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[ChatModel]:
        """One client with its connections, for the whole run."""
        # httpx and aiohttp take a while to import, and `dicast check` needs neither.
        from .endpoint import open_endpoint

        async with open_endpoint(self, run.concurrency) as endpoint:
            yield endpoint

    def estimate(self, request: ChatRequest) -> Cost:
        """What one try of *request* may cost at most."""
        if self.price == "free":
            return Cost.zero()
        usage = Usage(self.most_input_tokens(request), request.max_output_tokens)
        if self.price is None:
            return self._listed.most(usage)
        return self.price.cost(usage)

    def most_input_tokens(self, request: ChatRequest) -> int:
        """How many tokens what is sent of *request* takes at most; the schema is sent as a ``json_schema`` alone."""
        unsent = self.response_format in ("json_object", "text")
        return most_input_tokens(self.model, attrs.evolve(request, schema=None) if unsent else request)

    def cost(self, usage: Usage) -> Cost:
        """What *usage* costs."""
        if self.price is None:
            return self._listed.cost(usage)
        return self.price.cost(usage) if isinstance(self.price, Price) else Cost.zero()

    @property
    def _listed(self) -> ListedPrice:
        found = listed(self.model, self.address)
        assert found is not None  # or else the component is not made
        return found

    def secrets(self) -> set[str]:
        """What neither a reply nor a message may hold."""
        return options.secret_values(self.key, self.proxy, self.headers)

    def sent_headers(self) -> dict[str, str]:
        """Return the headers of each request."""
        key = self.key
        bearer = {"Authorization": f"Bearer {key.value}"} if key is not None and key.value else {}
        return bearer | options.plain_headers(self.headers)

    def identity(self) -> dict[str, object]:
        """What decides a reply, beside the request: for those that keep replies."""
        return {
            "base_url": self.address,
            "model": self.model,
            "temperature": self.temperature,
            "response_format": self.response_format,
        }
