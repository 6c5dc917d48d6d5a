"""``litellm/chat``: the options, and what they say without asking anyone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from math import inf
from typing import Any, Literal
from urllib.parse import urlsplit

import attrs
from attrs.validators import min_len

from dicast import (
    MAX_REPLY_BYTES,
    ChatModel,
    ChatRequest,
    ConfigError,
    Cost,
    Message,
    Price,
    Problem,
    RunContext,
    Secret,
    Within,
)

from .prices import Tariff, listed

_COLD: float | None = 0.0
_FREE = Tariff(Price(Decimal(0), Decimal(0)))


def _check_url(chat: Chat, attribute: attrs.Attribute[Any], url: str | None) -> None:
    if url is None or _has_password(url):
        return  # a password is refused by the class: what a check of the field raises is told with the field's value
    if not _is_address(url):
        raise ValueError(f"invalid value for api_base, expected an http:// or https:// address, got {url!r}")


def _has_password(url: str) -> bool:
    """Whether there is one, or what is no address may be meant to hold one; an ``@`` in an address's path is none."""
    return "@" in (urlsplit(url).netloc if _is_address(url) else url)


def _is_address(url: str) -> bool:
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # for what is no host or port, in words that may hold a password
        return False


OTHER_HOSTS = {"huggingface": ("huggingface.co",), "replicate": ("api.replicate.com", "huggingface.co")}
"""Hosts that litellm asks for a provider's models although ``api_base`` names another host."""


@attrs.frozen
class Chat:
    """Asks a model of one of the many providers that litellm knows.

    litellm is imported at the first call, which takes seconds. It fetches no price list, sends no telemetry and logs nothing,
    unless the environment variable ``LITELLM_LOG`` says so; a ``.env`` file is not read.

    Redirects are not followed. A proxy is taken from ``HTTPS_PROXY`` and ``NO_PROXY`` for an endpoint with https, through which the key
    passes encrypted; an endpoint with http is asked without one.

    Refused connections, broken ones, 408, 409, 429, 5xx and replies that cannot be read are asked again, after waits that
    double from about 0.25 s to 20 s; a ``Retry-After`` of up to 300 s is kept, and a longer one fails the call. A call that
    ran into ``timeout`` is not asked again: it may have been paid for. 401, 403 and 404 end the run, and so does an endpoint that
    many calls in a row cannot connect to.

    A call costs what the provider counted. A try whose end is not known (a timeout, a broken connection) and a reply without
    token counts are taken to have cost as much as the estimate, which is for one try. Tokens read from a prompt cache or
    written to it are charged as litellm lists them; its prices for very long prompts and for service tiers are not regarded.

    :param model: the model as litellm names it: ``anthropic/claude-haiku-4-5``, ``azure/DEPLOYMENT`` …
    :param api_key: by default what the provider's own environment variable holds (``ANTHROPIC_API_KEY`` …).
    :param api_base: an endpoint other than the provider's. For models of ``huggingface`` and ``replicate`` litellm asks hosts of the
        provider all the same; such a model needs ``allow_hosts``.
    :param allow_hosts: hosts that may be asked next to the one of ``api_base``.
    :param price: ``free``, or ``{input_per_mtok, output_per_mtok}`` in usd per million tokens. By default what the list inside
        the installed litellm says, and a model that it does not list needs one.
    :param temperature: 0 by default; ``null`` leaves it to the model. What a model does not take is left out.
    :param timeout: seconds for one try.
    :param requests_per_minute: spaces the tries evenly; no limit by default.
    :param tokens_per_minute: likewise, by the most tokens that a try can take; no limit by default.
    :param retries: how often a call is tried again. Only after a 429 or a 5xx the number of calls at once is limited too.
    :param unreachable_at_start: how many calls in a row without a connection end the run while none has had one; at least as many
        as the run makes at once.
    :param unreachable_later: how many end it once the endpoint was reached.
    :param response_format: how a schema is sent. ``auto`` sends it as ``json_schema`` and, where the endpoint refuses that
        with 400 or 422, asks for a ``json_object``, then for nothing (``text``); what was taken is kept for the run.
    :param max_reply_bytes: how long a reply may be, decoded. A longer one fails the call as ``judge_output_invalid``.
    :param tls: ``verified`` checks the endpoint's certificate whatever the environment says; ``environment`` lets ``SSL_VERIFY=False``
        and litellm's own setting switch that off.
    """

    model: str = attrs.field(validator=min_len(1))
    api_key: Secret | None = attrs.field(default=None, metadata={"counts": False})
    api_base: str | None = attrs.field(default=None, validator=_check_url)
    price: Literal["free"] | Price | None = attrs.field(default=None, metadata={"counts": False})
    temperature: float | None = attrs.field(default=_COLD, validator=Within(0, inf, "0 or more"))
    timeout: float = attrs.field(
        default=60.0, validator=Within(0, inf, "more than 0 seconds", open=True), metadata={"counts": False}
    )
    requests_per_minute: float | None = attrs.field(
        default=None, validator=Within(0, inf, "more than 0", open=True), metadata={"counts": False}
    )
    tokens_per_minute: float | None = attrs.field(
        default=None, validator=Within(0, inf, "more than 0", open=True), metadata={"counts": False}
    )
    retries: int = attrs.field(default=3, validator=Within(0, inf, "0 or more"), metadata={"counts": False})
    unreachable_at_start: int = attrs.field(
        default=10, validator=Within(1, inf, "1 or more"), metadata={"counts": False}
    )
    unreachable_later: int = attrs.field(default=50, validator=Within(1, inf, "1 or more"), metadata={"counts": False})
    response_format: Literal["auto", "json_schema", "json_object", "text"] = "auto"
    max_reply_bytes: int = attrs.field(
        default=MAX_REPLY_BYTES, validator=Within(1, inf, "1 or more"), metadata={"counts": False}
    )
    tls: Literal["verified", "environment"] = attrs.field(default="verified", metadata={"counts": False})
    allow_hosts: tuple[str, ...] = attrs.field(default=(), metadata={"counts": False, "later": True})
    tariff: Tariff = attrs.field(init=False, repr=False, eq=False)

    def __attrs_post_init__(self) -> None:
        if self.api_base is not None and _has_password(self.api_base):
            raise ConfigError("api_base holds a user name or a password; give them as api_key")
        provider = self.model.partition("/")[0].lower()
        hosts = () if self.api_base is None else OTHER_HOSTS.get(provider, ())
        if missing := [host for host in hosts if host not in self.allow_hosts]:
            message = f"litellm asks {' and '.join(missing)} for models of {provider}, next to api_base; add allow_hosts: [{', '.join(hosts)}]"
            raise ConfigError(Problem(message, path="allow_hosts", value=list(self.allow_hosts)))
        object.__setattr__(self, "tariff", self._tariff())  # frozen, and looked up once

    def _tariff(self) -> Tariff:
        if self.price is not None:
            return Tariff(self.price) if isinstance(self.price, Price) else _FREE
        found = listed(self.model)
        if found is None:
            raise ConfigError(
                f"the price of {self.model!r} is not known to the installed litellm; write price: free or "
                "price: {input_per_mtok: ..., output_per_mtok: ...} (usd per million tokens)"
            )
        return found

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[ChatModel]:
        """The connections of one run; nothing is imported or connected before the first call."""
        from .live import LiveChat  # stamina is not for `dicast check` to import

        live = LiveChat(self, run.concurrency)
        try:
            yield live
        finally:
            await live.close()

    def estimate(self, request: ChatRequest) -> Cost:
        """What one try of *request* may cost at most."""
        return self.tariff.most(request, any(map(self.marks, request.messages)))

    def marks(self, message: Message) -> bool:
        """Whether the end of *message* is marked for caching: Claude wants that, other models cache by themselves."""
        return message.cache and "claude" in self.model.lower()

    def identity(self) -> dict[str, object]:
        """What decides a reply, beside the request: for those that keep replies."""
        return {
            "model": self.model,
            "api_base": self.api_base,
            "temperature": self.temperature,
            "response_format": self.response_format,
        }
