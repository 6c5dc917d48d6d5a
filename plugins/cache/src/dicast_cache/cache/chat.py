"""``cache/chat``: its options, and the live model that sends only requests without a stored reply."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from pathlib import Path

import attrs

from dicast import (
    COMPLETE,
    ChatModel,
    ChatRequest,
    Cost,
    Failure,
    Reply,
    RunContext,
    estimate,
    normalize_stop_reason,
)

from ..calls import SharedCalls
from .identity import identity
from .store import Store


@attrs.frozen
class Chat:
    """Asks a chat model each request only once, and stores its replies; a stored reply costs nothing.

    A reply is stored under everything that determines it: the model with its options, the messages, schema, temperature,
    limit of tokens, attempt and rollout; ``dicast cache PATH`` shows them. Seals and delimiters do not count, because they are drawn anew for each
    call. Failures, refusals, and replies that are cut off or empty are never stored.

    :param model: the chat model to ask.
    :param path: the SQLite file. It is created readable by its owner alone; any number of processes may share it.
    """

    model: ChatModel
    path: Path = attrs.field(converter=Path, metadata={"counts": False})

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Live]:
        """Open the file, and create it if it is missing.

        :raises dicast.ConfigError: if the file is not a cache, is damaged or cannot be written to, or if the model has no identity.
        """
        name = identity(self.model)
        with closing(Store(self.path, create=True)) as store:
            yield Live(store, self.model, name)

    def estimate(self, request: ChatRequest) -> Cost:
        """Return the largest cost of a call of the model: the stored replies are unknown until the file is open."""
        return estimate(self.model, request)

    def identity(self) -> dict[str, object]:
        """Return the identity of the model: the cache changes no reply."""
        return identity(self.model)


class Live:
    """Live model that answers from *store*, and asks *model*, whose identity is *name*, if there is no stored reply."""

    def __init__(self, store: Store, model: ChatModel, name: Mapping[str, object]) -> None:
        self._store = store
        self._model = model
        self._name = name
        self._calls = SharedCalls()

    async def complete(self, request: ChatRequest) -> Reply | Failure:
        """Answer *request*. Its ``metrics`` have ``cached``, and ``cache_key``, the digest of the request.

        Of equal requests at the same time, one is sent. The others wait for its reply or its failure, which costs them nothing.
        """
        digest = request.digest(self._name)

        async def send() -> Reply | Failure:
            answer = await self._model.complete(request)
            self._store_answer(digest, request, answer)
            if isinstance(answer, Failure):
                return answer
            return attrs.evolve(answer, metrics={"cached": False, **answer.metrics, "cache_key": digest})

        metrics = {"cached": True, "cache_key": digest}
        return await self._calls.answer(request, digest, find=self._store.find, send=send, metrics=metrics)

    def _store_answer(self, digest: str, request: ChatRequest, answer: Reply | Failure) -> None:
        key = {"model": self._name, **request.key()}
        try:
            self._store.put(digest, key, request.nonces, answer, _unfit_reason(request, answer))
        except (sqlite3.Error, TypeError) as error:  # TypeError: no JSON can hold it
            # The reply is valid and paid for: the run uses it, and the next equal request is sent again.
            logging.getLogger(__name__).warning("a reply could not be stored in %s: %s", self._store.path, error)

    def estimate(self, request: ChatRequest) -> Cost:
        """Return no cost for a stored reply, else the largest cost of a call of the model."""
        if self._store.find(request.digest(self._name)) is not None:
            return Cost.zero()
        return estimate(self._model, request)

    def identity(self) -> dict[str, object]:
        """Return the identity of the model; see :meth:`Chat.identity`."""
        return dict(self._name)


def _unfit_reason(request: ChatRequest, answer: Reply | Failure) -> str | None:
    """Return the reason why *answer* to *request* must not be reused, or None if it may be.

    A request for the probabilities of one token has the limit of one token. The limit cuts every reply, and the text does not matter.
    """
    if isinstance(answer, Failure):
        return answer.kind
    ending = normalize_stop_reason(answer.stop_reason)
    if request.top_logprobs and request.max_output_tokens == 1 and ending in (*COMPLETE, "max_tokens"):
        return None if answer.logprobs else "no log probabilities"
    if ending not in COMPLETE:
        return answer.stop_reason
    return None if answer.text.strip() else "empty"
