"""The one HTTP client of dicast: chat models, evaluators, tasks and telemetry send their requests with it.

A component declares the options with :mod:`.options`, checks its address in ``__attrs_post_init__``, and opens one client for a run::

    @attrs.frozen
    class Chat:
        base_url: str
        api_key: Secret | None = options.key()
        timeout: float = options.timeout()  # likewise retries, requests_per_minute, tokens_per_minute, …
        extra_headers: Mapping[str, str | Secret] = options.headers()

        def __attrs_post_init__(self) -> None:
            options.check_address(self.base_url, "base_url")

        @asynccontextmanager
        async def open(self, run: RunContext) -> AsyncIterator[ChatModel]:
            from dicast.toolkit.endpoint.client import connect  # imports httpx and aiohttp

            address = Address(self.base_url, model=self.model)
            secrets = options.secret_values(self.api_key, self.extra_headers)
            headers = {"X-Api-Key": self.api_key.value, **options.plain_headers(self.extra_headers)}
            async with connect(address, ClientLimits.of(self), run.concurrency, headers=headers, secrets=secrets) as client:
                yield Live(self, client)

The live object makes an :class:`.client.Exchange` for each request to the model. ``client.call`` runs *attempt* again after a
:class:`CallFault` that allows it, counts the expense of failed tries, and returns the result or a ``Failure``::

    async def complete(self, request: ChatRequest) -> Reply | Failure:
        call = self._client.new_call(lambda: self.estimate(request), tokens=...)
        return await self._client.call(call, lambda: self._attempt(call, request))

    async def _attempt(self, call: Exchange, request: ChatRequest) -> Reply:
        answer = await self._client.send(call, "POST", "/messages", body)  # an Answer of any status; CallFault without one
        if answer.status != 200:
            raise self._client.refusal(call, answer)  # AccessRefused or CallFault
        return call.paid(read_reply(answer), cost)  # adds the expense of failed tries and their history

Each request follows these rules. It goes to the address in the pipeline file alone: no redirects, no proxy of the environment, no
cookies. Certificates are checked. The whole try, from connecting to the end of the reply, takes at most ``timeout`` seconds. At most
``max_reply_bytes`` of the reply are read. Secrets that the server repeats are masked in replies and messages.

A component without calls, limits or costs uses ``client.fetch``, which sends one request and raises :class:`.faults.ConnectionFault`.

This package, :mod:`.options`, :mod:`.faults`, :mod:`.retries` and :mod:`.answers` import neither httpx nor an event loop; :mod:`.client` does. A plugin that
opens a client depends on ``dicast-kernel[endpoint]``.
"""

from __future__ import annotations

from . import options
from .answers import Answer, Complaint
from .faults import CallFault
from .options import Address, ClientLimits
from .retries import LONGEST_WAIT

__all__ = ["LONGEST_WAIT", "Address", "Answer", "CallFault", "ClientLimits", "Complaint", "options"]
