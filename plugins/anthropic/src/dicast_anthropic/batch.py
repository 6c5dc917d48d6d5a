"""``anthropic/batch``: its options, and the connection to the API."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Any, Literal

import attrs
from attrs.validators import min_len

from dicast import ChatModel, ChatRequest, Cost, Price, RunContext, Secret
from dicast.toolkit.batches import options as batches
from dicast.toolkit.endpoint import options
from dicast.toolkit.endpoint.prices import ListedPrice

from .accepted import Accepted
from .chat import ANTHROPIC, Chat

_CHAT = attrs.fields(Chat)
_COLD: float | None = 0.0
_NOT_COUNTED = {"counts": False}

MAX_ITEMS = 100_000


@attrs.frozen(slots=False)
class Batch:
    """A model behind Anthropic's Message Batches API: half the price, and replies within a day.

    Collecting, resuming and cancelling work as with ``openai/batch``. The API stores no key with a batch. If it did not confirm a batch, or the
    run was killed before the confirmation, the run waits for all batches created since that moment. It finds its batch by the results.

    :param model: the model's name, such as ``claude-haiku-4-5``.
    :param base_url: the address of the API, as in ``anthropic/chat``.
    :param api_key: sent as ``x-api-key``. For Anthropic's own address it is ``$ANTHROPIC_API_KEY`` by default; another address is never
        sent the environment's key.
    :param price: ``free``, or ``{input_per_mtok, output_per_mtok, cached_input_per_mtok, cache_write_per_mtok}`` in usd per million tokens, as
        batches are billed. By default half of the price that genai-prices lists for the model.
    :param poll: seconds between two requests for the state of a batch.
    :param max_items: the most calls in one batch; more become several batches.
    :param temperature: 0 by default; ``null`` leaves it to the model.
    :param top_p: not sent by default.
    :param stop: texts that end the reply.
    :param thinking: as in ``anthropic/chat``.
    :param reasoning_effort: sent as ``output_config.effort``.
    :param max_reasoning_tokens: the tokens for thinking, as in ``anthropic/chat``.
    :param response_format: how a schema is sent, as in ``anthropic/chat``.
    :param cache_control: whether the part that is equal in every request is marked for the prompt cache.
    :param timeout: seconds for one request, such as a look at a batch; not for a batch.
    :param retries: the number of further tries of a request without costs.
    :param extra_headers: further headers, such as ``anthropic-beta``; values may be secrets.
    :param extra_body: further fields of each request.
    :param proxy: the address of an HTTP proxy, with its password if it has one; none by default.
    """

    name = "batch"
    cost, identity = batches.usage_cost, batches.batch_identity

    model: str = attrs.field(validator=min_len(1))
    base_url: str = attrs.field(default=ANTHROPIC, validator=_CHAT.base_url.validator)
    api_key: Secret | None = options.key()
    price: Literal["free"] | Price | None = attrs.field(
        default=None, validator=_CHAT.price.validator, metadata=_NOT_COUNTED
    )
    poll: float = batches.poll()
    max_items: int = batches.max_items(MAX_ITEMS)
    temperature: float | None = attrs.field(default=_COLD, validator=_CHAT.temperature.validator)
    top_p: float | None = attrs.field(default=None, validator=_CHAT.top_p.validator)
    stop: tuple[str, ...] = ()
    thinking: Literal["auto", "adaptive", "enabled", "disabled"] = "auto"
    reasoning_effort: str | None = None
    max_reasoning_tokens: int | None = attrs.field(default=None, validator=_CHAT.max_reasoning_tokens.validator)
    response_format: Literal["auto", "json_schema", "tool", "text"] = "auto"
    cache_control: bool = attrs.field(default=True, metadata=_NOT_COUNTED)
    timeout: float = options.timeout(300.0)
    retries: int = options.retries()
    extra_headers: Mapping[str, str | Secret] = options.headers()
    extra_body: Mapping[str, Any] = attrs.field(factory=dict, validator=_CHAT.extra_body.validator)
    proxy: Secret | None = options.proxy()

    def __attrs_post_init__(self) -> None:
        _ = self.chat  # refuses an address, or a key that is missing

    @cached_property
    def chat(self) -> Chat:
        """The same model without batches: it has the form of requests, their tokens and the list price."""
        return Chat(**{name: getattr(self, name) for name in _SHARED})

    @property
    def is_anthropic(self) -> bool:
        """True if the address is Anthropic's own."""
        return Chat.is_anthropic.fget(self)  # type: ignore[attr-defined,no-any-return]

    @property
    def key(self) -> Secret | None:
        """The key that is sent: ``api_key``, else that of the environment for Anthropic's own address."""
        return Chat.key.fget(self)  # type: ignore[attr-defined,no-any-return]

    @property
    def listed(self) -> ListedPrice | None:
        """The listed price of the model."""
        return Chat.listed.fget(self)  # type: ignore[attr-defined,no-any-return]

    @property
    def is_assumed_free(self) -> bool:
        """True if the price is free because the file has a loopback address, no price and no key."""
        return Chat.is_assumed_free.fget(self)  # type: ignore[attr-defined,no-any-return]

    def assumptions(self) -> list[str]:
        """Return the values of options that the component assumes, for the summary."""
        return self.chat.assumptions()

    def estimate(self, request: ChatRequest) -> Cost:
        """Return the most that *request* may cost at the price of batches."""
        return self.estimate_for(request, Accepted())

    def estimate_for(self, request: ChatRequest, accepted: Accepted) -> Cost:
        """Return the most that *request* may cost, with the room for reasoning that *accepted* allows."""
        return batches.at_batch_price(self, self.chat.estimate_for(request, accepted))

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[ChatModel]:
        """Open one client for the whole run, with the batches of earlier processes of the run."""
        # httpx and aiohttp take a while to import, and `dicast check` needs neither.
        from .batch_requests import open_batches

        async with open_batches(self, run) as model:
            yield model


_SHARED = [field.name for field in attrs.fields(Batch) if field.name in attrs.fields_dict(Chat)]
