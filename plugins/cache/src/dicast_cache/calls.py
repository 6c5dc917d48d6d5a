"""Code shared by ``cache/chat`` and ``replay/chat``: of equal requests at the same time, one is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping

import attrs

from dicast import AccessRefused, ChatRequest, Cost, Failure, KeptReply, Reply

Send = Callable[[], Awaitable[Reply | Failure]]
"""Function that sends the request to the model, and records the answer."""


class SharedCalls:
    """The calls that are waiting for an answer, by the digest of their request."""

    def __init__(self) -> None:
        self._pending: dict[str, asyncio.Future[KeptReply | Failure]] = {}

    async def answer(
        self,
        request: ChatRequest,
        digest: str,
        *,
        find: Callable[[str], KeptReply | None],
        send: Send,
        metrics: Mapping[str, object],
    ) -> Reply | Failure:
        """Return the recorded answer to *request*, which costs nothing, or else the answer of *send*.

        Of equal requests at the same time, one is sent. The others wait for its reply or its failure, which costs them nothing.

        :param digest: equal for equal requests.
        :param find: returns the recorded reply with a digest, or None.
        :param metrics: added to the metrics of a reply that *send* did not return.
        """
        while (pending := self._pending.get(digest)) is not None:
            await asyncio.wait([pending])  # a bare await would cancel it for all when one waiting call is cancelled
            if not pending.cancelled():
                return _repeated(pending.result(), request, metrics)
        reply = find(digest)
        return await self._send(request, digest, send) if reply is None else _repeated(reply, request, metrics)

    async def _send(self, request: ChatRequest, digest: str, send: Send) -> Reply | Failure:
        """Send the request, and give the answer to the waiting calls."""
        pending = self._pending[digest] = asyncio.get_running_loop().create_future()
        try:
            answer = await send()
            pending.set_result(KeptReply(answer, request.nonces) if isinstance(answer, Reply) else answer)
        except Exception as error:
            pending.set_exception(error.unpaid() if isinstance(error, AccessRefused) else error)
            pending.exception()  # if no call is waiting, asyncio would report that the exception was never retrieved
            raise
        finally:
            del self._pending[digest]
            pending.cancel()  # without an answer: this call was cancelled, and one of the waiting calls is sent
        return answer


def _repeated(answer: KeptReply | Failure, request: ChatRequest, metrics: Mapping[str, object]) -> Reply | Failure:
    """Return *answer*, which an equal call has paid for, as an answer to *request* that costs nothing."""
    if isinstance(answer, Failure):
        return attrs.evolve(answer, cost=Cost.zero())
    reply = answer.renew(request.nonces)
    return attrs.evolve(reply, cost=Cost.zero(), metrics={**reply.metrics, **metrics})
