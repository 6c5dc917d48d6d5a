"""``cache/chat``: the options, and the live object that asks only what it does not remember."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path

import attrs

from dicast import (
    COMPLETE,
    AccessRefused,
    ChatModel,
    ChatRequest,
    Cost,
    Failure,
    KeptReply,
    Reply,
    RunContext,
    estimate,
    maybe_await,
    normalize_stop_reason,
)

from .identity import identity
from .store import Store


@attrs.frozen
class Chat:
    """Asks a chat model only what it was not asked before; what it remembers costs nothing.

    A reply is remembered under everything that decides it: the model with its options, the messages, schema, temperature,
    limit of tokens, attempt and rollout; ``dicast cache PATH`` shows them. Seals and delimiters, drawn anew for each call,
    do not count. Failures, refusals, and replies that are cut off or empty are never remembered.

    :param model: the chat model to ask.
    :param path: the SQLite file, created readable by its owner alone; any number of processes may share it.
    """

    model: ChatModel
    path: Path = attrs.field(converter=Path, metadata={"counts": False})

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Live]:
        """Open the file, made if it is not there.

        :raises dicast.ConfigError: when it is no cache, is damaged or cannot be written to, and when the model does not say
            what decides its replies.
        """
        named = identity(self.model)
        with closing(Store(self.path, create=True)) as store:
            yield Live(store, self.model, named)

    def estimate(self, request: ChatRequest) -> Cost:
        """What the model may cost at most: what is remembered is known only once the file is open."""
        return estimate(self.model, request)

    def identity(self) -> dict[str, object]:
        """That of the model: remembering changes no reply."""
        return identity(self.model)


class Live:
    """Answers from *store*, and asks *model*, which is *named* so, for the rest."""

    def __init__(self, store: Store, model: ChatModel, named: Mapping[str, object]) -> None:
        self._store = store
        self._model = model
        self._named = named
        self._asking: dict[str, asyncio.Future[KeptReply | Failure]] = {}

    async def complete(self, request: ChatRequest) -> Reply | Failure:
        """Answer *request*; ``metrics`` say whether it was ``cached``, and under which ``cache_key``.

        Of equal requests at the same time, one is asked; the others wait, and get its reply or its failure for nothing.
        """
        digest = request.digest(self._named)
        while (asking := self._asking.get(digest)) is not None:
            await asyncio.wait([asking])  # a bare await would cancel it for all when one of them is cancelled
            if not asking.cancelled():
                return _told(asking.result(), digest, request)
        kept = self._store.find(digest)
        return await self._ask(digest, request) if kept is None else _told(kept, digest, request)

    async def _ask(self, digest: str, request: ChatRequest) -> Reply | Failure:
        """Ask the model, and tell those who wait."""
        asking = self._asking[digest] = asyncio.get_running_loop().create_future()
        try:
            answer = await maybe_await(self._model.complete(request))
            self._keep(digest, request, answer)
            asking.set_result(KeptReply(answer, request.nonces) if isinstance(answer, Reply) else answer)
        except Exception as error:
            asking.set_exception(error.unpaid() if isinstance(error, AccessRefused) else error)
            asking.exception()  # there may be nobody who waits, which asyncio would complain of
            raise
        finally:
            del self._asking[digest]
            asking.cancel()  # without an answer, that is when this call was cancelled, one of those who wait asks
        if isinstance(answer, Failure):
            return answer
        return attrs.evolve(answer, metrics={"cached": False, **answer.metrics, "cache_key": digest})

    def _keep(self, digest: str, request: ChatRequest, answer: Reply | Failure) -> None:
        try:
            self._store.put(
                digest, {"model": self._named, **request.key()}, request.nonces, answer, _unfit(request, answer)
            )
        except (sqlite3.Error, TypeError) as error:  # TypeError: no JSON can hold it
            # The reply is good and paid for: it counts, and is asked for again another time.
            logging.getLogger(__name__).warning("a reply could not be kept in %s: %s", self._store.path, error)

    def estimate(self, request: ChatRequest) -> Cost:
        """Nothing for what is remembered, else what the model may cost at most."""
        if self._store.find(request.digest(self._named)) is not None:
            return Cost.zero()
        return estimate(self._model, request)

    def identity(self) -> dict[str, object]:
        """See :meth:`Chat.identity`."""
        return dict(self._named)


def _told(answer: KeptReply | Failure, digest: str, request: ChatRequest) -> Reply | Failure:
    """*answer* for *request*, for which it was not asked: it cost nothing."""
    if isinstance(answer, Failure):
        return attrs.evolve(answer, cost=Cost.zero())
    reply = answer.told(request.nonces)
    metrics = {**reply.metrics, "cached": True, "cache_key": digest}
    return attrs.evolve(reply, cost=Cost.zero(), metrics=metrics)


def _unfit(request: ChatRequest, answer: Reply | Failure) -> str | None:
    """Return the reason why *answer* to *request* is not given again; None if it may be.

    Of a request for the probabilities of one token, the limit of tokens cuts every reply, and the text does not matter.
    """
    if isinstance(answer, Failure):
        return answer.kind
    ending = normalize_stop_reason(answer.stop_reason)
    if request.top_logprobs and request.max_output_tokens == 1 and ending in (*COMPLETE, "max_tokens"):
        return None if answer.logprobs else "no log probabilities"
    if ending not in COMPLETE:
        return answer.stop_reason
    return None if answer.text.strip() else "empty"
