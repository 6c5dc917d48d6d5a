"""``openai/batch``: its options, and opening the endpoint."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import attrs
from attrs.validators import min_len

from dicast import ChatModel, ChatRequest, Cost, Price, RunContext, Secret
from dicast.toolkit.batches import options as batches
from dicast.toolkit.batches import seconds_of
from dicast.toolkit.endpoint import options

from .chat import Chat

_CHAT = attrs.fields(Chat)
_COLD: float | None = 0.0

MAX_ITEMS = 50_000


def _check_window(batch: Batch, attribute: attrs.Attribute[str], window: str) -> None:
    seconds_of(window)


@attrs.frozen(slots=False)
class Batch:
    """A model behind the batch API of any endpoint that speaks the OpenAI format: half the price, and replies within a day.

    The run collects its calls until all of them wait for replies. It then uploads them as one file, which becomes one batch, waits, and
    continues with the replies. Calls of a cascade's next stage, and repeated calls after invalid replies, become a second batch.
    Waiting calls count neither for ``concurrency`` nor for the ``timeout`` of a judge.

    If the run is killed or interrupted, its batch continues at the endpoint. ``dicast run FILE --resume`` reads its replies, and pays for no call
    twice. ``--cancel-batches`` cancels the batch. Its reservation in the budget stays open until the
    replies are booked, or until twice the window has passed.

    Items without a reply, because of an error or the end of the window, are sent again once, in a new batch.
    Only ``dicast run`` waits for a batch: watch mode, re-evaluation, servers and rewards refuse this model.

    :param base_url: the endpoint, mostly ending in ``/v1``; it needs ``/files`` and ``/batches``. By default ``$OPENAI_BASE_URL``, or OpenAI's own.
    :param model: the model's name at the endpoint.
    :param api_key: sent as a bearer token. Without a ``base_url`` it is ``$OPENAI_API_KEY`` by default; an address that the file
        names is never sent the environment's key.
    :param price: ``free``, or ``{input_per_mtok, output_per_mtok}`` in usd per million tokens, as batches are billed. By default half of the price that
        genai-prices lists for the model at this endpoint; it is required where genai-prices lists none.
    :param window: the time in which the endpoint is to process a batch, such as ``24h``; sent as ``completion_window``.
    :param poll: seconds between two requests for the state of a batch.
    :param max_items: the most calls in one batch; more become several batches.
    :param temperature: 0 by default; ``null`` leaves it to the endpoint, as some models want.
    :param top_p: the share of probability that tokens are sampled from; left to the endpoint by default.
    :param seed: the seed of sampling; none by default.
    :param stop: texts at which a reply ends; none by default.
    :param system_role: the role of system messages, as in ``openai/chat``.
    :param reasoning_effort: passed on to a model that reasons, such as ``low``; left to the model by default.
    :param max_reasoning_tokens: the room for reasoning, added to the limit of output tokens. 4,096 by default if the name of the model shows that it
        reasons.
    :param response_format: how a schema is sent, as in ``openai/chat``.
    :param cache_control: mark the messages that are to be cached, for endpoints that do not cache by themselves.
    :param timeout: seconds for one request, such as an upload or a look at a batch; not for a batch.
    :param retries: the number of further tries of a request without costs.
    :param extra_body: further fields of each request, such as ``{top_k: 1}``.
    :param extra_headers: further headers; their values are secrets.
    :param proxy: the address of an HTTP proxy, with its password if it has one; none by default.
    """

    name = "batch"
    cost, identity = batches.usage_cost, batches.batch_identity

    model: str = attrs.field(validator=min_len(1))
    base_url: str | None = attrs.field(default=None, validator=_CHAT.base_url.validator)
    api_key: Secret | None = options.key()
    price: Literal["free"] | Price | None = attrs.field(
        default=None, validator=_CHAT.price.validator, metadata={"counts": False}
    )
    window: str = attrs.field(default="24h", validator=_check_window, metadata={"counts": False})
    poll: float = batches.poll()
    max_items: int = batches.max_items(MAX_ITEMS)
    temperature: float | None = attrs.field(default=_COLD, validator=_CHAT.temperature.validator)
    top_p: float | None = attrs.field(default=None, validator=_CHAT.top_p.validator)
    seed: int | None = None
    stop: tuple[str, ...] = ()
    system_role: Literal["auto", "system", "developer", "user"] = "auto"
    reasoning_effort: str | None = None
    max_reasoning_tokens: int | None = attrs.field(default=None, validator=_CHAT.max_reasoning_tokens.validator)
    response_format: Literal["auto", "json_schema", "json_object", "text"] = "auto"
    cache_control: bool = attrs.field(default=False, metadata={"counts": False})
    timeout: float = options.timeout(300.0)
    retries: int = options.retries()
    extra_body: Mapping[str, Any] = attrs.field(factory=dict, validator=_CHAT.extra_body.validator)
    extra_headers: Mapping[str, Secret] = options.headers()
    proxy: Secret | None = options.proxy()

    def __attrs_post_init__(self) -> None:
        _ = self.chat  # refuses a bad address or a missing key

    @property
    def address(self) -> str:
        """The endpoint: ``base_url``, else the environment's address, else OpenAI's."""
        return Chat.address.fget(self)  # type: ignore[attr-defined,no-any-return]

    @property
    def key(self) -> Secret | None:
        """The key that is sent: ``api_key``, else the environment's where the file names no address."""
        return Chat.key.fget(self)  # type: ignore[attr-defined,no-any-return]

    @property
    def is_assumed_free(self) -> bool:
        """True if the price is free because the file has a loopback address, no price and no key."""
        return Chat.is_assumed_free.fget(self)  # type: ignore[attr-defined,no-any-return]

    def assumptions(self) -> list[str]:
        """Return the values of options that the component assumes, for the summary."""
        return self.chat.assumptions()

    @cached_property
    def chat(self) -> Chat:
        """The same model without batches: it has the form of requests, their tokens and the list price."""
        shared = {name: getattr(self, name) for name in _SHARED}
        return Chat(**shared)

    def reads(self, base: Path) -> dict[str, str]:
        """Return the endpoint if the environment names it: another one is another model."""
        return self.chat.reads(base)

    def estimate(self, request: ChatRequest, room: int | None = None) -> Cost:
        """Return the most that *request* may cost at the price of batches, with *room* for reasoning."""
        return batches.at_batch_price(self, self.chat.estimate(request, room))

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[ChatModel]:
        """Open one client for the whole run, with the batches of earlier processes of the run."""
        # httpx and aiohttp take a while to import, and `dicast check` needs neither.
        from .batch_requests import open_batches

        async with open_batches(self, run) as model:
            yield model


_SHARED = [field.name for field in attrs.fields(Batch) if field.name in attrs.fields_dict(Chat)]
