"""Feeding a sink: it receives its events, is tried again when it fails, and never stops the scoring."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from ..classes import define
from ..contract.plugin_errors import is_plugins_own
from ..contract.protocols import Sink
from ..plan.sections import Slot
from ..values import Event
from ..values.rationale import for_sink

ATTEMPTS = 3
"""How often a sink that fails is sent a batch."""

SINK_SECONDS = 30.0
"""How long a sink may take for one batch; one that takes longer at every attempt is sent no more."""

CLOSE_SECONDS = 600.0
"""How long the ``def`` that closes a sink may take: it may write everything then."""

PAUSE_SECONDS = 0.1
"""Before the second attempt; doubled before each further one."""


class Silence(Exception):
    """A sink has not answered in time."""


Action = Callable[[], int | Awaitable[int | None] | None]
"""What a sink is asked for."""

Ask = Callable[[Action, float, float], Awaitable[object]]
"""Calls a sink: what a ``def`` does in so many seconds, and what is awaited in so many; raises :class:`Silence` when it takes longer."""


def output(sink: Slot, base: Path) -> str:
    """Where *sink* writes: its ``path``, as it is from the pipeline's folder *base*, or without one the digest of its options."""
    path = getattr(sink.component, "path", None)
    if isinstance(path, Path):
        return str(path.relative_to(base) if path.is_relative_to(base) else path.absolute())
    return sink.setup


@define
class SinkFeed:
    """One open sink with what became of its events: records *written*, events *lost*, and the last *error*."""

    label: str
    sink: Sink
    wants: frozenset[str]
    rewrites: bool
    ask: Ask
    content: bool = False
    """Whether the sink gets rationales and replies that are for the ledger."""
    written: int = 0
    lost: int = 0
    error: str | None = None
    closed: bool = False
    _silent: bool = False

    @classmethod
    def of(cls, label: str, config: object, live: Sink, ask: Ask, *, keeps_content: bool) -> SinkFeed:
        """Feed *live*, the open object of the component *config*, calling it by *ask*.

        :param keeps_content: whether the ledger keeps what was judged; else no sink gets texts that are for the ledger.
        """
        content = keeps_content and getattr(live, "content", getattr(config, "content", None)) is True
        wants = frozenset(getattr(live, "wants", getattr(config, "wants", ())))
        rewrites = bool(getattr(live, "rewrites", getattr(config, "rewrites", False)))
        return cls(label, live, wants, rewrites, ask, content)

    async def send(self, events: Sequence[Event]) -> None:
        """Tell the sink those of *events* that it wants."""
        wanted = [event for event in events if event.type in self.wants] if self.wants else list(events)
        wanted = [for_sink(event, content=self.content) for event in wanted]
        if wanted and self._silent:
            self.lost += len(wanted)
        elif wanted:
            await self._attempt(lambda: self.sink.write(wanted), len(wanted), SINK_SECONDS)

    async def close(self) -> None:
        """Close the sink; what it could not finish counts as one lost event."""
        self.closed = True
        await self._attempt(self.sink.close, 0, CLOSE_SECONDS)

    def status(self, ahead: int = 0) -> dict[str, object]:
        """What became of the events; *ahead* are still to be sent if the sink is open."""
        written = self.written + (0 if self.closed else ahead)
        status: dict[str, object] = {"written": written, "lost": self.lost}
        return status if self.error is None or not self.lost else status | {"error": self.error}

    async def _attempt(self, action: Action, count: int, seconds: float) -> None:
        pause = PAUSE_SECONDS
        for left in range(0 if self._silent else ATTEMPTS - 1, -1, -1):
            try:
                self._silent = False
                written = _count(await self.ask(action, seconds, SINK_SECONDS), count)
            except Silence as error:
                self._silent, self.error = True, str(error)
            except BaseException as error:  # the border: its fault is reported in the summary, and in the exit code
                if not is_plugins_own(error):
                    raise
                self.error = f"{type(error).__name__}: {error}"
            else:
                self.written += written
                return
            if left:
                await asyncio.sleep(pause)
                pause *= 2
        self.lost += max(1, count)


def _count(written: object, sent: int) -> int:
    """How many records a sink says it wrote; one an event where it does not say.

    :raises TypeError: for what is no count.
    """
    if written is None:
        return sent
    if isinstance(written, bool) or not isinstance(written, int) or written < 0:
        raise TypeError(f"the sink returned {written!r:.100}, not how many records it wrote")
    return written
