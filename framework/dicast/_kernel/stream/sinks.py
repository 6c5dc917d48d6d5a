"""Delivery of events to a sink: a failed sink is tried again, and never stops the scoring."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from pathlib import Path

from ..classes import define
from ..contract.plugin_errors import author_place, error_text, in_brackets, is_plugins_own, place_of
from ..contract.protocols import Sink
from ..plan.sections import Slot
from ..values import Event
from ..values.errors import DicastError
from ..values.rationale import for_sink
from ..values.read_only import seal_payload

ATTEMPTS = 3
"""Attempts to write a batch to a sink that fails."""

SINK_SECONDS = 30.0
"""Seconds for one batch; a sink that takes longer at every attempt gets no more events."""

CLOSE_SECONDS = 600.0
"""Seconds for the ``def`` that closes a sink, which may write all its data then."""

PAUSE_SECONDS = 0.1
"""Pause before the second attempt; it doubles before each further attempt."""


class Silence(Exception):
    """Raised if a sink does not answer in time."""


Action = Callable[[], int | Awaitable[int | None] | None]
"""Call of a sink."""

Ask = Callable[[Action, float, float], Awaitable[object]]
"""Calls a sink, with the seconds for a ``def`` and for an awaited call; raises :class:`Silence` if it takes longer."""


def output(sink: Slot, base: Path) -> str:
    """Return the place where *sink* writes: its ``path``, relative to the pipeline's folder *base* if it is inside.

    A sink without a path has the digest of its options.
    """
    path = getattr(sink.component, "path", None)
    if isinstance(path, Path):
        return str(path.relative_to(base) if path.is_relative_to(base) else path.absolute())
    return sink.setup


@define
class SinkFeed:
    """An open sink with the state of its delivery: records *written*, events *lost*, and the last *error*.

    *place* is the place of the sink in the pipeline file, ``FILE:LINE:COLUMN``; empty for a sink of a program or of ``--set``.
    """

    label: str
    sink: Sink
    wants: frozenset[str]
    rewrites: bool
    ask: Ask
    content: bool = False
    """True if the sink gets rationales and replies that are only for the ledger."""
    written: int = 0
    lost: int = 0
    error: str | None = None
    closed: bool = False
    place: str = ""
    _silent: bool = False

    @classmethod
    def of(cls, slot: Slot, live: Sink, ask: Ask, *, keeps_content: bool, place: str = "") -> SinkFeed:
        """Return the feed of *live*, the open object of the component of *slot*, which *ask* calls.

        :param keeps_content: whether the ledger keeps the judged content; otherwise no sink gets texts that are only for the ledger.
        """
        config = slot.component
        content = keeps_content and getattr(live, "content", getattr(config, "content", None)) is True
        wants = frozenset(getattr(live, "wants", getattr(config, "wants", ())))
        rewrites = bool(getattr(live, "rewrites", getattr(config, "rewrites", False)))
        return cls(slot.label, live, wants, rewrites, ask, content, place=place)

    async def send(self, events: Sequence[Event]) -> None:
        """Write the *events*, which have only types that the sink wants."""
        selected = [for_sink(event, content=self.content) for event in events]
        if selected and self._silent:
            self.lost += len(selected)
        elif selected:
            await self._attempt(lambda: self.sink.write(selected), len(selected), SINK_SECONDS)

    async def close(self) -> None:
        """Close the sink; a failure to close counts as one lost event."""
        self.closed = True
        await self._attempt(self.sink.close, 0, CLOSE_SECONDS)

    def status(self, ahead: int) -> dict[str, object]:
        """Return the state of the delivery as JSON data; *ahead* is the number of events that an open sink is still going to get."""
        written = self.written + (0 if self.closed else ahead)
        status: dict[str, object] = {"written": written, "lost": self.lost}
        if self.error is None or not self.lost:
            return status
        return status | {"error": f"{self.place}: {self.error}" if self.place else self.error}

    async def _attempt(self, action: Action, count: int, seconds: float) -> None:
        pause = PAUSE_SECONDS
        for attempts_left in range(0 if self._silent else ATTEMPTS - 1, -1, -1):
            try:
                self._silent = False
                written = _count(await self.ask(action, seconds, SINK_SECONDS), count, self.sink)
            except Silence as error:
                self._silent, self.error = True, str(error)
            except BaseException as error:  # the border: its fault is reported in the summary, and in the exit code
                if not is_plugins_own(error):
                    raise
                self.error = self._reason(error)
            else:
                self.written += written
                return
            if attempts_left:
                await asyncio.sleep(pause)
                pause *= 2
        self.lost += max(1, count)

    def _reason(self, error: BaseException) -> str:
        """Return the text of *error*; with its type if dicast's errors do not include it, and with the plugin's line if its code may be wrong."""
        if isinstance(error, DicastError):
            return error_text(error)
        is_outside = isinstance(error, OSError)  # a full disk is no fault of the plugin's code
        line = "" if is_outside else in_brackets(author_place(error, type(self.sink).__module__))
        return f"{type(error).__name__}: {error_text(error)}{line}"


def share_events(events: Iterable[Event], feeds: Sequence[SinkFeed]) -> None:
    """Make the events that several of *feeds* get read-only, and the events of the run that the report and the ledger share with a sink.

    The other events reach no component after their sink; a copy of each would take 2 % of the time of a run.
    """
    counts = Counter(type_ for feed in feeds for type_ in feed.wants)
    for_all = sum(not feed.wants for feed in feeds)
    for event in events if feeds else ():
        if event.subject_id is None or for_all + counts[event.type] > 1:
            seal_payload(event)


def _count(written: object, sent: int, sink: object) -> int:
    """Return the number of records that a sink reports as *written*; *sent*, the number of events, if it reports none.

    :raises TypeError: if the report is not a count.
    """
    if written is None:
        return sent
    if isinstance(written, bool) or not isinstance(written, int) or written < 0:
        place = in_brackets(place_of(type(sink)))
        raise TypeError(f"the sink returned {written!r:.100}, not the number of records that it wrote{place}")
    return written
