"""``litellm/chat``: its options, checked without a request."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from decimal import Decimal
from math import inf
from typing import Any, Literal

import attrs
from attrs.validators import min_len

from dicast import (
    ChatModel,
    ChatRequest,
    ConfigError,
    Cost,
    Price,
    Problem,
    RunContext,
    Secret,
    Usage,
    Within,
)
from dicast.toolkit.endpoint import options
from dicast.toolkit.endpoint.options import is_loopback
from dicast.toolkit.media_tokens import most_input_tokens

from .prices import Tariff, listed

_COLD: float | None = 0.0
_FREE = Tariff(Price(Decimal(0), Decimal(0)))
_LATER: dict[str, Any] = {"later": True}
_RESERVED = (
    "messages",
    "max_tokens",
    "max_completion_tokens",
    "stream",
    "n",
    "logprobs",
    "top_logprobs",
    "num_retries",
    "max_retries",
)
_LATER_IDENTITY = ("top_p", "seed", "stop", "system_role", "reasoning_effort", "max_reasoning_tokens", "extra_body")

_REASONING_MODELS = re.compile(
    r"(o[134](-|$)|gpt-5(?!.*chat)|gpt-oss|codex-mini|deepseek-(reasoner|r1)|grok-(3-mini|4(?!.*non-reasoning)|code)|qwq|magistral|gemini-(2\.5|[3-9])"
    r"|claude-(opus|sonnet|haiku|fable|mythos)-([5-9]|\d\d)|.*(thinking|reasoning)(?!.*non))"
)
"""Beginnings of the names of models that reason before they answer, without the provider's name."""


def _check_extra_body(chat: Chat, attribute: attrs.Attribute[Any], body: Mapping[str, Any]) -> None:
    for name in body:
        if name in _RESERVED or name in attrs.fields_dict(Chat):
            raise ValueError(f"extra_body cannot have {name!r}; use the options and the judge's limits")


OTHER_HOSTS = {"huggingface": ("huggingface.co",), "replicate": ("api.replicate.com", "huggingface.co")}
"""Hosts that litellm asks for a provider's models although ``api_base`` names another host."""


@attrs.frozen
class Chat:
    """A model of one of the many providers that litellm supports.

    litellm is imported at the first call, which takes seconds. It fetches no price list, sends no telemetry and logs nothing,
    unless the environment variable ``LITELLM_LOG`` is set; a ``.env`` file is not read.

    Redirects are not followed. A proxy is taken from ``HTTPS_PROXY`` and ``NO_PROXY`` for an endpoint with https, where the key
    is encrypted; an endpoint with http is called without a proxy.

    Calls are repeated after refused and broken connections, 408, 409, 429, 5xx and replies that cannot be read. The waits
    double from about 0.25 s to 20 s; a ``Retry-After`` of up to 300 s is respected, and a longer one fails the call. A call that
    ran into ``timeout`` is not repeated, since it may be billed. 401, 403 and 404 end the run, and so does an endpoint that
    many calls in a row cannot connect to.

    A parameter that the model or the provider refuses is left out or translated once, and remembered for the run; the summary, the
    document and each verdict list it under ``adapted``. Parameters that a confidence or the form of the reply depends on
    (``logprobs``, ``response_format`` without a seal) are never left out: such a refusal ends the run.

    The cost of a call is computed from the provider's token counts. A try with an unknown end (a timeout, a broken connection) and a reply without
    token counts cost as much as the estimate, which is for one try. Tokens read from a prompt cache or
    written to it are charged as litellm lists them; its prices for very long prompts and for service tiers are ignored.

    :param model: the model as litellm names it: ``anthropic/claude-haiku-4-5``, ``azure/DEPLOYMENT`` …
    :param api_key: the key; by default the value of the provider's own environment variable (``ANTHROPIC_API_KEY`` …).
    :param api_base: an endpoint other than the provider's. For models of ``huggingface`` and ``replicate`` litellm still calls hosts of the
        provider; such a model needs ``allow_hosts``.
    :param allow_hosts: hosts that may be called in addition to the host of ``api_base``.
    :param price: ``free``, or ``{input_per_mtok, output_per_mtok}`` in usd per million tokens, with ``cached_input_per_mtok`` and
        ``cache_write_per_mtok`` for input from a prompt cache. By default the price in the list inside the installed litellm. It is required
        for a model that litellm does not list, except that a loopback ``api_base`` without ``api_key`` is taken to be free.
    :param temperature: 0 by default; ``null`` leaves it to the model.
    :param top_p: the share of probability that tokens are sampled from; left to the model by default.
    :param seed: the seed of sampling; none by default.
    :param stop: texts at which a reply ends; none by default.
    :param system_role: the role of system messages. ``auto`` is ``system`` and, if the endpoint refuses it, ``developer`` or ``user``,
        which puts the text in front of the user message.
    :param reasoning_effort: passed on to a model that reasons, such as ``low``; left to the model by default.
    :param max_reasoning_tokens: the tokens for reasoning, added to the limit of output tokens. 4,096 by default if the name of the model, or
        its usage, shows that it reasons.
    :param timeout: seconds for one try.
    :param requests_per_minute: spaces the tries evenly; no limit by default.
    :param tokens_per_minute: spaces the tries by the most tokens of each try; no limit by default.
    :param retries: the number of further tries of a call. After a 429 or a 5xx, fewer calls are made at the same time.
    :param unreachable_at_start: the number of calls in a row without a connection that ends the run, before the first connection; at
        least the number of calls at the same time.
    :param unreachable_later: the same number after the first connection.
    :param response_format: the form of a schema in the request. ``auto`` sends it as ``json_schema``. If the endpoint refuses that
        with 400 or 422, it asks for a ``json_object``, then sends no schema (``text``). The accepted form is used for the rest of the run.
    :param max_reply_bytes: the most bytes of a reply, decoded. A longer one fails the call as ``judge_output_invalid``.
    :param extra_body: further arguments of litellm's ``acompletion``, such as ``{top_k: 1}`` or a provider's ``{aws_region_name: eu-west-1}``.
    :param extra_headers: further headers; their values may be secrets.
    :param tls: ``verified`` checks the endpoint's certificate regardless of the environment; ``environment`` lets ``SSL_VERIFY=False``
        and litellm's own setting switch that off.
    """

    model: str = attrs.field(validator=min_len(1))
    api_key: Secret | None = options.key()
    api_base: str | None = attrs.field(default=None, validator=options.check_url)
    price: Literal["free"] | Price | None = attrs.field(default=None, metadata={"counts": False})
    temperature: float | None = attrs.field(default=_COLD, validator=Within(0, inf, "0 or more"))
    timeout: float = options.timeout()
    requests_per_minute: float | None = options.per_minute()
    tokens_per_minute: float | None = options.per_minute()
    retries: int = options.retries()
    unreachable_at_start: int = options.unreachable(10)
    unreachable_later: int = options.unreachable(50)
    response_format: Literal["auto", "json_schema", "json_object", "text"] = "auto"
    max_reply_bytes: int = options.reply_bytes()
    tls: Literal["verified", "environment"] = attrs.field(default="verified", metadata={"counts": False})
    allow_hosts: tuple[str, ...] = attrs.field(default=(), metadata={"counts": False, "later": True})
    top_p: float | None = attrs.field(default=None, validator=Within(0, 1, "from 0 to 1"), metadata=_LATER)
    seed: int | None = attrs.field(default=None, metadata=_LATER)
    stop: tuple[str, ...] = attrs.field(default=(), metadata=_LATER)
    system_role: Literal["auto", "system", "developer", "user"] = attrs.field(default="auto", metadata=_LATER)
    reasoning_effort: str | None = attrs.field(default=None, metadata=_LATER)
    max_reasoning_tokens: int | None = attrs.field(default=None, validator=Within(0, inf, "0 or more"), metadata=_LATER)
    extra_body: Mapping[str, Any] = attrs.field(factory=dict, validator=_check_extra_body, metadata=_LATER)
    extra_headers: Mapping[str, str | Secret] = options.headers(later=True)
    tariff: Tariff = attrs.field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        if self.api_base is not None:
            options.check_address(self.api_base, "api_base", "api_key")
        provider = self.model.partition("/")[0].lower()
        hosts = () if self.api_base is None else OTHER_HOSTS.get(provider, ())
        if missing := [host for host in hosts if host not in self.allow_hosts]:
            message = f"litellm asks {' and '.join(missing)} for models of {provider}, next to api_base; add allow_hosts: [{', '.join(hosts)}]"
            raise ConfigError(Problem(message, path="allow_hosts", value=list(self.allow_hosts)))
        object.__setattr__(self, "tariff", self._tariff())  # frozen, and looked up once

    def _tariff(self) -> Tariff:
        if self.price is not None:
            return Tariff(self.price) if isinstance(self.price, Price) else _FREE
        tariff = listed(self.model)
        if self.is_assumed_free:
            return _FREE
        if tariff is None:
            raise ConfigError(
                f"the price of {self.model!r} is not known to the installed litellm; write price: free or "
                "price: {input_per_mtok: ..., output_per_mtok: ...} (usd per million tokens)"
            )
        return tariff

    @property
    def is_assumed_free(self) -> bool:
        """True if the price is free because the file has a loopback address, no price and no key."""
        is_local = self.api_base is not None and is_loopback(self.api_base) and self.api_key is None
        return self.price is None and is_local and listed(self.model) is None

    def assumptions(self) -> list[str]:
        """Return the values of options that the component assumes, for the summary."""
        if self.api_base is None or not self.is_assumed_free:
            return []
        return options.assumed_free(self.model, self.api_base)

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[ChatModel]:
        """Open the connections of one run; nothing is imported or connected before the first call."""
        from .live import open_live  # httpx and aiohttp are not for `dicast check` to import

        async with open_live(self, run.concurrency) as live:
            yield live

    def estimate(self, request: ChatRequest, room: int | None = None) -> Cost:
        """Return the most that one try of *request* may cost, with *room* for reasoning."""
        room = self.reasoning_room() if room is None else room
        usage = Usage(self.most_input_tokens(request), request.max_output_tokens + room)
        is_marked = self.cache_control and any(message.cache for message in request.messages)
        return self.tariff.most(usage, marked=is_marked)

    def cost(self, usage: Usage) -> Cost:
        """Return the cost of *usage*."""
        return self.tariff.cost(usage)

    def most_input_tokens(self, request: ChatRequest) -> int:
        """Return an upper estimate of the input tokens of *request*; the schema is sent as a ``json_schema`` alone."""
        is_unsent = self.response_format in ("json_object", "text")
        return most_input_tokens(self.model, attrs.evolve(request, schema=None) if is_unsent else request)

    def reasoning_room(self, *, has_reasoned: bool = False) -> int:
        """Return the tokens for reasoning in one try; *has_reasoned* if the model was seen to reason."""
        return options.reasoning_tokens(self, _REASONING_MODELS, has_reasoned=has_reasoned)

    @property
    def cache_control(self) -> bool:
        """True if the fixed part of a request is marked for caching: Claude requires marks, other models cache automatically."""
        return "claude" in self.model.lower()

    def identity(self) -> dict[str, object]:
        """Return the options that decide a reply, next to the request, for components that keep replies."""
        return {
            "model": self.model,
            "api_base": self.api_base,
            "temperature": self.temperature,
            "response_format": self.response_format,
            **options.changed_options(self, _LATER_IDENTITY),
        }
