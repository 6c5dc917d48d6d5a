"""``anthropic/chat``: its options, and the connection to the API."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from math import inf
from typing import Any, Literal
from urllib.parse import urlsplit

import attrs
from attrs.validators import min_len

from dicast import ChatModel, ChatRequest, ConfigError, Cost, Price, RunContext, Secret, Usage, Within
from dicast.toolkit.endpoint import options
from dicast.toolkit.endpoint.options import is_loopback
from dicast.toolkit.endpoint.prices import ListedPrice, listed_price
from dicast.toolkit.media_tokens import most_input_tokens

from .accepted import Accepted

ANTHROPIC = "https://api.anthropic.com"
VERSION = "2023-06-01"
_COLD: float | None = 0.0
_NOT_COUNTED = {"counts": False}


def _at(url: str) -> str:
    """Return the words for the address *url*; none for one with a password."""
    return "" if options.has_password(url) else f" at {url.partition('?')[0]}"


def _check_price(chat: Chat, attribute: attrs.Attribute[Any], price: object) -> None:
    if price is None and not chat.is_assumed_free and chat.listed is None:
        raise ValueError(
            f"no price is listed for {chat.model!r}{_at(chat.base_url)}; write price: free or "
            "price: {input_per_mtok: ..., output_per_mtok: ...} (usd per million tokens)"
        )


def _check_extra_body(chat: Chat, attribute: attrs.Attribute[Any], body: Mapping[str, Any]) -> None:
    for name in ("model", "messages", "max_tokens", "stream"):
        if name in body:
            raise ValueError(f"extra_body cannot replace {name!r}; use the options for it")


@attrs.frozen
class Chat:
    """A model behind Anthropic's Messages API.

    With ``ANTHROPIC_API_KEY`` in the environment, ``model`` is the only required option. Requests go only to ``base_url``: redirects are
    not followed, and proxies of the environment are not used.

    Retries, waits and the end of the run work as with ``openai/chat``; 529 (overloaded) is retried like any 5xx. An account without
    credit, or at its spend limit, ends the run.

    If the model refuses a parameter, the rest of the run leaves it out or sends it in another form, and lists it as ``adapted``. Such
    parameters are ``temperature``, ``top_p``, ``reasoning_effort``, ``thinking``, ``response_format``, and a token limit above the
    model's maximum.

    :param model: the model's name, such as ``claude-haiku-4-5``.
    :param base_url: the address of the API; ``/v1/messages`` is appended, or ``/messages`` if it ends in ``/v1``.
    :param api_key: sent as ``x-api-key``. For Anthropic's own address it is ``$ANTHROPIC_API_KEY`` by default; another address is never
        sent the environment's key.
    :param price: ``free``, or ``{input_per_mtok, output_per_mtok, cached_input_per_mtok, cache_write_per_mtok}`` in usd per million tokens.
        By default the price that genai-prices lists for the model at Anthropic's own address. It is required for another address, except that
        a loopback address without ``api_key`` is taken to be free for a model that genai-prices does not list.
    :param temperature: 0 by default; ``null`` leaves it to the model. It is not sent with ``thinking``, which allows no other than 1.
    :param top_p: not sent by default.
    :param stop: texts that end the reply.
    :param thinking: ``auto`` leaves it to the model; ``adaptive`` lets the model decide how long it thinks, ``enabled`` sets a budget of
        ``max_reasoning_tokens``, ``disabled`` switches it off.
    :param reasoning_effort: sent as ``output_config.effort``: ``low``, ``medium``, ``high``, ``xhigh`` or ``max``.
    :param max_reasoning_tokens: the tokens for thinking, added to the limit of the answer. By
        default 4,096 for a model that thinks (generation 5 and later, one with ``thinking``, or one whose replies report
        thinking), else 0. A reply that thinking used up is asked for again once, with twice the room.
    :param response_format: how a schema is sent. ``json_schema`` sends it as ``output_config.format``, ``tool`` as the only tool, which the
        reply has to call, ``text`` not at all. ``auto`` begins with the first and goes on to the next if the model refuses it.
    :param cache_control: whether the part that is equal in every request is marked for the prompt cache.
    :param timeout: seconds for one try, from connecting to the end of the reply.
    :param requests_per_minute: spaces the tries evenly; no limit by default.
    :param tokens_per_minute: spaces the tries by the highest number of tokens of each try; no limit by default.
    :param retries: the number of further tries of a call.
    :param unreachable_at_start: the number of calls in a row without a connection that ends the run, before the first connection; at
        least the number of calls at the same time.
    :param unreachable_later: the same number after the first connection.
    :param max_reply_bytes: the most bytes of a reply, decoded. A longer one fails the call as ``judge_output_invalid``.
    :param extra_headers: further headers, such as ``anthropic-beta``; values may be secrets.
    :param extra_body: further fields of the request.
    :param proxy: the address of an HTTP proxy, with its password if it has one; none by default.
    """

    name = "chat"

    model: str = attrs.field(validator=min_len(1))
    base_url: str = attrs.field(default=ANTHROPIC, validator=options.check_url)
    api_key: Secret | None = options.key()
    price: Literal["free"] | Price | None = attrs.field(default=None, validator=_check_price, metadata=_NOT_COUNTED)
    temperature: float | None = attrs.field(default=_COLD, validator=Within(0, 1, "from 0 to 1"))
    top_p: float | None = attrs.field(default=None, validator=Within(0, 1, "from 0 to 1"))
    stop: tuple[str, ...] = ()
    thinking: Literal["auto", "adaptive", "enabled", "disabled"] = "auto"
    reasoning_effort: str | None = None
    max_reasoning_tokens: int | None = attrs.field(default=None, validator=Within(0, inf, "0 or more"))
    response_format: Literal["auto", "json_schema", "tool", "text"] = "auto"
    cache_control: bool = attrs.field(default=True, metadata=_NOT_COUNTED)
    timeout: float = options.timeout()
    requests_per_minute: float | None = options.per_minute()
    tokens_per_minute: float | None = options.per_minute()
    retries: int = options.retries()
    unreachable_at_start: int = options.unreachable(10)
    unreachable_later: int = options.unreachable(50)
    max_reply_bytes: int = options.reply_bytes()
    extra_headers: Mapping[str, str | Secret] = options.headers()
    extra_body: Mapping[str, Any] = attrs.field(factory=dict, validator=_check_extra_body)
    proxy: Secret | None = options.proxy()

    def __attrs_post_init__(self) -> None:
        options.check_address(self.base_url, "base_url")
        if self.is_anthropic and not (self.key and self.key.value):
            raise ConfigError(
                f"{self.base_url} needs a key: set ANTHROPIC_API_KEY, or write api_key; or name another base_url"
            )

    @property
    def is_anthropic(self) -> bool:
        """True if the address is Anthropic's own."""
        parts = urlsplit(self.base_url)
        return parts.scheme == "https" and parts.hostname == urlsplit(ANTHROPIC).hostname and parts.port in (None, 443)

    @property
    def key(self) -> Secret | None:
        """The key that is sent: ``api_key``, else that of the environment for Anthropic's own address."""
        value = os.environ.get("ANTHROPIC_API_KEY") if self.api_key is None and self.is_anthropic else None
        return Secret(value) if value else self.api_key

    @property
    def listed(self) -> ListedPrice | None:
        """The listed price of the model."""
        return listed_price(self.model, self.base_url)

    @property
    def is_assumed_free(self) -> bool:
        """True if the price is free because the file has a loopback address, no price and no key."""
        is_local = self.price is None and is_loopback(self.base_url) and self.key is None
        return is_local and listed_price(self.model, ANTHROPIC) is None

    def assumptions(self) -> list[str]:
        """Return the values of options that the component assumes, for the summary."""
        if not self.is_assumed_free:
            return []
        return options.assumed_free(self.model, self.base_url)

    def sent_headers(self) -> dict[str, str]:
        """Return the headers of each request."""
        key = {"x-api-key": self.key.value} if self.key is not None and self.key.value else {}
        return {"anthropic-version": VERSION, **key, **options.plain_headers(self.extra_headers)}

    @property
    def path(self) -> str:
        """The path that is appended to the address."""
        return "/messages" if urlsplit(self.base_url).path.rstrip("/").endswith("/v1") else "/v1/messages"

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[ChatModel]:
        """Open one client for the whole run."""
        # httpx and aiohttp take a while to import, and `dicast check` needs neither.
        from .live import open_live

        async with open_live(self, run.concurrency) as live:
            yield live

    def estimate(self, request: ChatRequest) -> Cost:
        """Return the upper bound of the cost of one try of *request*."""
        return self.estimate_for(request, Accepted())

    def estimate_for(self, request: ChatRequest, accepted: Accepted) -> Cost:
        """Return the upper bound of the cost of one try, with the room for reasoning that *accepted* allows."""
        if self.price == "free" or self.is_assumed_free:
            return Cost.zero()
        tokens = most_input_tokens(self.model, request)
        is_written = self.cache_control and any(message.cache for message in request.messages)
        usage = Usage(tokens, accepted.room(self, request).total)
        stored = attrs.evolve(usage, cache_written_tokens=tokens if is_written else 0)
        return max((self._most(usage), self._most(stored)), key=lambda cost: cost.amount or 0)

    def _most(self, usage: Usage) -> Cost:
        if self.price is None and self.listed is not None:
            return self.listed.most(usage)
        return self.cost(usage)

    def cost(self, usage: Usage) -> Cost:
        """Return the cost of *usage*."""
        if isinstance(self.price, Price):
            return self.price.cost(usage)
        return self.listed.cost(usage) if self.price is None and self.listed is not None else Cost.zero()

    def secrets(self) -> set[str]:
        """Return the texts that neither a reply nor a message may have."""
        return options.secret_values(self.key, self.proxy, self.extra_headers)

    def identity(self) -> dict[str, object]:
        """Return the options that decide a reply, next to the request."""
        names = (
            "base_url",
            "model",
            "temperature",
            "top_p",
            "stop",
            "thinking",
            "reasoning_effort",
            "response_format",
            "extra_body",
        )
        return {name: getattr(self, name) for name in names}
