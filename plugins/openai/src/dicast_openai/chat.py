"""``openai/chat``: its options, and opening the endpoint."""

from __future__ import annotations

import os
import re
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from math import inf
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import attrs
from attrs.validators import min_len

from dicast import ChatModel, ChatRequest, ConfigError, Cost, Price, RunContext, Secret, Usage, Within
from dicast.toolkit.endpoint import options
from dicast.toolkit.endpoint.options import is_loopback
from dicast.toolkit.endpoint.prices import ListedPrice, listed_price

from .tokens import most_input_tokens

_COLD: float | None = 0.0


OPENAI = "https://api.openai.com/v1"

_REASONING_MODELS = re.compile(
    r"(?!.*non-?(reasoning|thinking))(o[134](-|$)|gpt-5(?!.*chat)|gpt-oss|codex-mini|deepseek-(reasoner|r1)|grok-(3-mini|4|code)|qwq|magistral"
    r"|gemini-(2\.5|[3-9])|.*(thinking|reasoning))"
)
"""Pattern of the beginning of a model's name, after the provider's name, for models that reason before they answer."""

_JUDGE_LIMIT = "the judge's max_output_tokens is the limit, and max_reasoning_tokens the room for reasoning"
_OWN_OPTIONS: Mapping[str, str] = {
    **{
        name: f"write the option {name}"
        for name in ("model", "temperature", "top_p", "seed", "stop", "reasoning_effort", "response_format")
    },
    "max_tokens": _JUDGE_LIMIT,
    "max_completion_tokens": _JUDGE_LIMIT,
    "messages": "the judge makes the messages",
    "stream": "replies are read as a whole",
    "n": "a call has one reply; scoring.rollouts repeats it",
    "logprobs": "the judge asks for them where it needs them",
    "top_logprobs": "the judge asks for them where it needs them",
}
"""Fields that *extra_body* cannot have, because they would change a projection or the reading of replies, with the advice for each."""

LATER: dict[str, Any] = {"later": True}


def _at(url: str) -> str:
    """Return *url* without its query as words for a message; empty if *url* has a password."""
    return "" if options.has_password(url) else f" at {url.partition('?')[0]}"


def _check_price(chat: Chat, attribute: attrs.Attribute[Any], price: object) -> None:
    if price is None and not chat.is_assumed_free and listed_price(chat.model, chat.address) is None:
        raise ValueError(
            f"no price is listed for {chat.model!r}{_at(chat.address)}; write price: free or "
            "price: {input_per_mtok: ..., output_per_mtok: ...} (usd per million tokens)"
        )


def _check_extra_body(chat: Chat, attribute: attrs.Attribute[Any], body: Mapping[str, Any]) -> None:
    for name in body:
        if (instead := _OWN_OPTIONS.get(name)) is not None:
            raise ValueError(f"extra_body cannot have {name!r}; {instead}")


@attrs.frozen
class Chat:
    """A model behind any endpoint that speaks the OpenAI chat format.

    With ``OPENAI_API_KEY`` in the environment, ``model`` is the only required option. Requests go only to ``base_url``: redirects are
    not followed, and proxies of the environment are not used.

    If the endpoint refuses a parameter (``temperature``, ``seed``, ``response_format`` …), the rest of the run leaves it out or sends it in another
    form. The summary, the document and each verdict list it under ``adapted``. Some parameters are never left out, because a confidence or
    the form of the reply depends on them (``logprobs``, ``response_format`` without a seal): such a refusal ends the run.

    A model that reasons spends output tokens before it answers. The request's limit is the sum of the judge's ``max_output_tokens`` and
    ``max_reasoning_tokens``, and the projection covers the sum. If the limit ended an empty reply, the call is repeated once, with twice the
    ``max_reasoning_tokens``.

    A call is tried again after a refused or broken connection, 408, 409, 429, 5xx or an unreadable reply. The waits double from
    about 0.25 s to 20 s. A ``Retry-After`` of up to 300 s is kept, and a longer one fails the call. A call that exceeded ``timeout``
    is not tried again: it may have been paid for. 401, 402, 403 and 404 end the run. So do an account without quota, and
    many calls in a row without a connection.

    The cost of a call comes from the endpoint's ``usage``. If a try has no ``usage``, or one without input tokens, its cost is the
    estimate for one try. So is the cost of a try with an unknown end (a timeout, a broken connection), and a call that is retried after
    such a try may cost more than its estimate.

    :param base_url: the endpoint, mostly ending in ``/v1``; ``/chat/completions`` is appended to its path. By default
        ``$OPENAI_BASE_URL``, or OpenAI's own.
    :param model: the model's name at the endpoint.
    :param api_key: sent as a bearer token. Without a ``base_url`` it is ``$OPENAI_API_KEY`` by default; an address that the file
        names is never sent the environment's key.
    :param price: ``free``, or ``{input_per_mtok, output_per_mtok}`` in usd per million tokens, with ``cached_input_per_mtok`` and
        ``cache_write_per_mtok`` for input from a prompt cache. By default the price that genai-prices lists for the model at this endpoint. It is
        required where genai-prices lists none, except that a loopback address without ``api_key`` is taken to be free.
    :param temperature: 0 by default; ``null`` leaves it to the endpoint, as some models want.
    :param top_p: the share of probability that tokens are sampled from; left to the endpoint by default.
    :param seed: the seed of sampling; none by default.
    :param stop: texts at which a reply ends; none by default.
    :param system_role: the role of system messages. ``auto`` is ``system`` and, where the endpoint refuses it, ``developer`` or ``user``,
        which puts the text in front of the user message.
    :param reasoning_effort: passed on to a model that reasons, such as ``low``; left to the model by default.
    :param max_reasoning_tokens: the room for reasoning, added to the limit of output tokens. 4,096 by default if the name of the model, or
        its usage, shows that it reasons.
    :param timeout: seconds for one try, from connecting to the end of the reply.
    :param requests_per_minute: spaces the tries evenly; no limit by default.
    :param tokens_per_minute: spaces the tries by the highest number of tokens of each try; no limit by default.
    :param retries: the number of further tries of a call. After a 429 or a 5xx, fewer calls are made at the same time.
    :param response_format: the form of a schema in the request. ``auto`` sends it as ``json_schema``. If the endpoint refuses that
        with 400 or 422, it asks for a ``json_object``, then sends no schema (``text``). The accepted form is used for the rest of the run.
    :param cache_control: mark the messages for the prompt cache, for endpoints that cache only marked text.
    :param unreachable_at_start: the number of calls in a row without a connection that ends the run, before the first connection; at
        least the number of calls at the same time.
    :param unreachable_later: the same number after the first connection.
    :param max_reply_bytes: the most bytes of a reply, decoded. A longer one fails the call as ``judge_output_invalid``.
    :param extra_body: further fields of the request, such as ``{top_k: 1}``; they are never left out.
    :param extra_headers: further headers; their values are secrets.
    :param headers: the older name of ``extra_headers``.
    :param proxy: the address of an HTTP proxy, with its password if it has one; none by default.
    """

    name = "chat"

    model: str = attrs.field(validator=min_len(1))
    base_url: str | None = attrs.field(default=None, validator=options.check_url)
    api_key: Secret | None = options.key()
    price: Literal["free"] | Price | None = attrs.field(
        default=None, validator=_check_price, metadata={"counts": False}
    )
    temperature: float | None = attrs.field(default=_COLD, validator=Within(0, inf, "0 or more"))
    top_p: float | None = attrs.field(default=None, validator=Within(0, 1, "from 0 to 1"), metadata=LATER)
    seed: int | None = attrs.field(default=None, metadata=LATER)
    stop: tuple[str, ...] = attrs.field(default=(), metadata=LATER)
    system_role: Literal["auto", "system", "developer", "user"] = attrs.field(default="auto", metadata=LATER)
    reasoning_effort: str | None = attrs.field(default=None, metadata=LATER)
    max_reasoning_tokens: int | None = attrs.field(default=None, validator=Within(0, inf, "0 or more"), metadata=LATER)
    timeout: float = options.timeout()
    requests_per_minute: float | None = options.per_minute()
    tokens_per_minute: float | None = options.per_minute()
    retries: int = options.retries()
    response_format: Literal["auto", "json_schema", "json_object", "text"] = "auto"
    cache_control: bool = attrs.field(default=False, metadata={"counts": False})
    unreachable_at_start: int = options.unreachable(10)
    unreachable_later: int = options.unreachable(50)
    max_reply_bytes: int = options.reply_bytes()
    extra_body: Mapping[str, Any] = attrs.field(factory=dict, validator=_check_extra_body, metadata=LATER)
    extra_headers: Mapping[str, Secret] = options.headers(later=True)
    headers: Mapping[str, Secret] = options.headers()
    proxy: Secret | None = options.proxy()

    def __attrs_post_init__(self) -> None:
        option = "base_url" if self.base_url is not None else "OPENAI_BASE_URL"
        options.check_address(self.address, option)
        if self.is_openai and not (self.key and self.key.value):
            raise ConfigError(
                f"{self.address} needs a key: set OPENAI_API_KEY, or write api_key; or name another endpoint as base_url"
            )

    @property
    def address(self) -> str:
        """The endpoint: ``base_url``, else the environment's address, else OpenAI's."""
        return self.base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI

    @property
    def is_openai(self) -> bool:
        """True if the address is OpenAI's own."""
        parts = urlsplit(self.address)
        return parts.scheme == "https" and parts.hostname == urlsplit(OPENAI).hostname and parts.port in (None, 443)

    @property
    def key(self) -> Secret | None:
        """The key that is sent: ``api_key``, else the environment's where the file names no address."""
        value = os.environ.get("OPENAI_API_KEY") if self.api_key is None and self.base_url is None else None
        return Secret(value) if value else self.api_key

    def reads(self, base: Path) -> dict[str, str]:
        """Return the endpoint if the environment names it: another endpoint is another model."""
        return {} if self.base_url is not None else {"base_url": self.address}

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[ChatModel]:
        """Open one client with its connections for the whole run."""
        # httpx and aiohttp take a while to import, and `dicast check` needs neither.
        from .endpoint import open_endpoint

        async with open_endpoint(self, run.concurrency) as endpoint:
            yield endpoint

    def estimate(self, request: ChatRequest, room: int | None = None) -> Cost:
        """Return the most that one try of *request* may cost, with *room* for reasoning."""
        if self.is_free:
            return Cost.zero()
        room = self.reasoning_room() if room is None else room
        usage = Usage(self.most_input_tokens(request), request.max_output_tokens + room)
        if isinstance(self.price, Price):
            return self.price.most(usage)
        return self._listed.most(usage)

    def reasoning_room(self, *, has_reasoned: bool = False) -> int:
        """Return the tokens for reasoning in one try. *has_reasoned* is true if a reply of the model has reported reasoning."""
        return options.reasoning_tokens(self, _REASONING_MODELS, has_reasoned=has_reasoned)

    @property
    def is_assumed_free(self) -> bool:
        """True if the price is free because the file has a loopback address, no price and no key."""
        return (
            self.price is None
            and is_loopback(self.address)
            and self.key is None
            and listed_price(self.model, None) is None
        )

    @property
    def is_free(self) -> bool:
        """True if calls cost nothing."""
        return self.price == "free" or self.is_assumed_free

    def assumptions(self) -> list[str]:
        """Return the values of options that the component assumes, for the summary."""
        if not self.is_assumed_free:
            return []
        return options.assumed_free(self.model, self.address)

    def most_input_tokens(self, request: ChatRequest) -> int:
        """Return an upper bound of the tokens that *request* sends; a schema is sent only as a ``json_schema``."""
        unsent = self.response_format in ("json_object", "text")
        return most_input_tokens(self.model, attrs.evolve(request, schema=None) if unsent else request)

    def cost(self, usage: Usage) -> Cost:
        """Return the cost of *usage*."""
        if self.is_free:
            return Cost.zero()
        return self.price.cost(usage) if isinstance(self.price, Price) else self._listed.cost(usage)

    @property
    def _listed(self) -> ListedPrice:
        price = listed_price(self.model, self.address)
        assert price is not None  # or else the component is not made
        return price

    def secrets(self) -> set[str]:
        """Return the texts that neither a reply nor a message may contain."""
        return options.secret_values(self.key, self.proxy, self.headers, self.extra_headers)

    def sent_headers(self) -> dict[str, str]:
        """Return the headers of each request."""
        key = self.key
        bearer = {"Authorization": f"Bearer {key.value}"} if key is not None and key.value else {}
        return bearer | options.plain_headers(self.headers) | options.plain_headers(self.extra_headers)

    def identity(self) -> dict[str, object]:
        """Return the options that decide a reply, next to the request, for components that keep replies."""
        return {
            "base_url": self.address,
            "model": self.model,
            "temperature": self.temperature,
            "response_format": self.response_format,
            **options.changed_options(self, _LATER_IDENTITY),
        }


_LATER_IDENTITY = ("top_p", "seed", "stop", "system_role", "reasoning_effort", "max_reasoning_tokens", "extra_body")
