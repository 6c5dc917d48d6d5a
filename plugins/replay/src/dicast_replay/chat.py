"""``replay/chat``: the options, and the live object that answers from the file."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import attrs

from dicast import (
    AccessRefused,
    ChatModel,
    ChatRequest,
    ConfigError,
    Cost,
    Failure,
    KeptReply,
    Reply,
    RunContext,
    estimate,
    maybe_await,
)
from dicast.toolkit.files import file_sha256

from .recording import Recording


@attrs.frozen
class Chat:
    """Answers from a file of recorded replies, so that a run can be repeated exactly and for nothing.

    A reply is found by the digest of its request alone, whatever model gave it: messages, schema, temperature, log
    probabilities, limit of tokens, attempt and rollout. Seals and delimiters, drawn anew for each call, do not count; those
    that a recorded reply quotes become the ones of the call it now answers. A reply from the file costs nothing.

    :param path: the recording, JSON lines. With ``record`` it is created, readable by its owner alone.
    :param record: a chat model that is asked where the file has no reply; what it replies is appended and paid for. Without
        it such a request fails. Failures are not recorded.
    """

    path: Path = attrs.field(converter=Path)
    record: ChatModel | None = None

    def __attrs_post_init__(self) -> None:
        if self.record is None and not self.path.is_file():
            raise ConfigError(f"no recording at {self.path}: name one, or set 'record' to a chat model that makes it")

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Live]:
        """Read which replies there are.

        :raises dicast.ConfigError: for every line that is no recorded reply, and when the file cannot be read, or written to.
        """
        with closing(Recording(self.path, write=self.record is not None)) as recording:
            yield Live(recording, self.record)

    def estimate(self, request: ChatRequest) -> Cost:
        """What ``record`` may cost at most: which replies there are is known only once the file is open."""
        return Cost.zero() if self.record is None else estimate(self.record, request)

    def reads(self, base: Path) -> dict[str, Path]:
        """The recording, which with ``record`` grows: then what counts is the model's."""
        return {"recording": self.path} if self.record is None else {}

    def identity(self) -> dict[str, object]:
        """The digest of the file, which decides every reply; with ``record``, the file's name and that model's identity."""
        return _identity(self.path, self.record)


class Live:
    """Answers from *recording*; asks *model*, if there is one, for what it does not have."""

    def __init__(self, recording: Recording, model: ChatModel | None) -> None:
        self._recording = recording
        self._model = model
        self._asking: dict[str, asyncio.Future[KeptReply | Failure]] = {}

    async def complete(self, request: ChatRequest) -> Reply | Failure:
        """Answer *request*; ``metrics`` of a reply from the file say that it was ``cached``.

        Of equal requests at the same time, one is asked; the others wait, and get its reply or its failure for nothing.
        """
        digest = request.digest({})
        while (asking := self._asking.get(digest)) is not None:
            await asyncio.wait([asking])  # a bare await would cancel it for all when one of them is cancelled
            if not asking.cancelled():
                return _told(asking.result(), request)
        kept = self._recording.find(digest)
        return await self._ask(digest, request) if kept is None else _told(kept, request)

    async def _ask(self, digest: str, request: ChatRequest) -> Reply | Failure:
        """Ask the model, and tell those who wait."""
        asking = self._asking[digest] = asyncio.get_running_loop().create_future()
        try:
            answer = await self._recorded(digest, request)
            asking.set_result(KeptReply(answer, request.nonces) if isinstance(answer, Reply) else answer)
        except Exception as error:
            asking.set_exception(error.unpaid() if isinstance(error, AccessRefused) else error)
            asking.exception()  # there may be nobody who waits, which asyncio would complain of
            raise
        finally:
            del self._asking[digest]
            asking.cancel()  # without an answer, that is when this call was cancelled, one of those who wait asks
        return answer

    async def _recorded(self, digest: str, request: ChatRequest) -> Reply | Failure:
        if self._model is None:
            return Failure(
                "judge_call_failed",
                f"{self._recording.path} has no reply to the request {digest}: set 'record' to a chat model that is asked "
                "for it, or record it anew if the prompt, the subject or an option has changed since",
            )
        answer = await maybe_await(self._model.complete(request))
        if isinstance(answer, Reply):
            try:
                self._recording.append(digest, request, answer)
            except (OSError, TypeError) as error:  # TypeError: no JSON can hold it
                return Failure(
                    "judge_call_failed", f"{self._recording.path} could not be added to: {error}", cost=answer.cost
                )
        return answer

    def estimate(self, request: ChatRequest) -> Cost:
        """Nothing for what is recorded, else what the model may cost."""
        if self._model is None or request.digest({}) in self._recording:
            return Cost.zero()
        return estimate(self._model, request)

    def identity(self) -> dict[str, object]:
        """See :meth:`Chat.identity`."""
        return _identity(self._recording.path, self._model)


def _told(answer: KeptReply | Failure, request: ChatRequest) -> Reply | Failure:
    """*answer* for *request*, for which it was not asked: it cost nothing."""
    if isinstance(answer, Failure):
        return attrs.evolve(answer, cost=Cost.zero())
    reply = answer.told(request.nonces)
    return attrs.evolve(reply, cost=Cost.zero(), metrics={**reply.metrics, "cached": True})


def _identity(path: Path, model: ChatModel | None) -> dict[str, object]:
    if model is None:
        return {"replay": file_sha256(path)}
    own = getattr(model, "identity", None)
    return {"replay": str(path), "record": own() if own else None}
