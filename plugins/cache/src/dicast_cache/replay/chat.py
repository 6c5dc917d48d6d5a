"""``replay/chat``: its options, and the live model that answers from the file."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import attrs

from dicast import ChatModel, ChatRequest, ConfigError, Cost, Failure, Reply, RunContext, estimate
from dicast.toolkit.files import error_reason, file_sha256

from ..calls import SharedCalls
from .recording import Recording


@attrs.frozen
class Chat:
    """Answers from a file of recorded replies, so that a run can be repeated exactly and for nothing.

    A reply is found by the digest of its request alone, independent of the model: messages, schema, temperature, log
    probabilities, limit of tokens, attempt and rollout. Seals and delimiters do not count, because they are drawn anew for each call. If a recorded
    reply quotes one, the seal or delimiter of the new call takes its place. A reply from the file costs nothing.

    :param path: the recording, JSON lines. With ``record`` it is created, readable by its owner alone.
    :param record: a chat model that is asked if the file has no reply; its reply is appended and paid for. Without
        ``record`` such a request fails. Failures are not recorded.
    """

    path: Path = attrs.field(converter=Path)
    record: ChatModel | None = None

    def __attrs_post_init__(self) -> None:
        if self.record is None and not self.path.is_file():
            raise ConfigError(f"no recording at {self.path}: name one, or set 'record' to a chat model that makes it")

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Live]:
        """Open the file, and index its replies.

        :raises dicast.ConfigError: for every line that is not a recorded reply, and if the file cannot be read or, with ``record``, written to.
        """
        with closing(Recording(self.path, write=self.record is not None)) as recording:
            yield Live(recording, self.record)

    def estimate(self, request: ChatRequest) -> Cost:
        """Return the largest cost of a call of ``record``: the recorded replies are unknown until the file is open."""
        return Cost.zero() if self.record is None else estimate(self.record, request)

    def reads(self, base: Path) -> dict[str, Path]:
        """Return the recording as a file that counts in fingerprints. With ``record`` the file grows, and the model counts instead."""
        return {"recording": self.path} if self.record is None else {}

    def identity(self) -> dict[str, object]:
        """Return the digest of the file, which determines every reply; with ``record``, the file's name and the model's identity."""
        return _identity(self.path, self.record)


class Live:
    """Live model that answers from *recording*, and asks *model*, if there is one, for a missing reply."""

    def __init__(self, recording: Recording, model: ChatModel | None) -> None:
        self._recording = recording
        self._model = model
        self._calls = SharedCalls()

    async def complete(self, request: ChatRequest) -> Reply | Failure:
        """Answer *request*. A reply from the file has ``cached`` in its ``metrics``.

        Of equal requests at the same time, one is sent. The others wait for its reply or its failure, which costs them nothing.
        """
        digest = request.digest({})

        async def send() -> Reply | Failure:
            return await self._record(digest, request)

        return await self._calls.answer(request, digest, find=self._recording.find, send=send, metrics={"cached": True})

    async def _record(self, digest: str, request: ChatRequest) -> Reply | Failure:
        if self._model is None:
            return Failure(
                "judge_call_failed",
                f"{self._recording.path} has no reply to the request {digest}: set 'record' to a chat model that is asked "
                "for it, or record it anew if the prompt, the subject or an option has changed since",
            )
        answer = await self._model.complete(request)
        if isinstance(answer, Reply):
            try:
                self._recording.append(digest, request, answer)
            except (OSError, TypeError) as error:  # TypeError: no JSON can hold it
                return Failure(
                    "judge_call_failed",
                    f"the reply could not be appended to {self._recording.path}: {error_reason(error)}",
                    cost=answer.cost,
                )
        return answer

    def estimate(self, request: ChatRequest) -> Cost:
        """Return no cost for a recorded reply, else the largest cost of a call of the model."""
        if self._model is None or request.digest({}) in self._recording:
            return Cost.zero()
        return estimate(self._model, request)

    def identity(self) -> dict[str, object]:
        """Return the identity of the recording; see :meth:`Chat.identity`."""
        return _identity(self._recording.path, self._model)


def _identity(path: Path, model: ChatModel | None) -> dict[str, object]:
    if model is None:
        return {"replay": file_sha256(path)}
    identity = getattr(model, "identity", None)
    return {"replay": str(path), "record": identity() if identity else None}
