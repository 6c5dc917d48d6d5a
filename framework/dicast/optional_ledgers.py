"""What ledgers may keep beside their events for those who read many; ``dicast.optional`` has these too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from . import Entry
    from .reading import Judged, Told


class HasJudged(Protocol):
    """Ledgers; on the live object."""

    def judged(self, run_id: str | None) -> Judged:
        """The verdicts and failures, or those of one run, as columns. Without it, they are read out of the events."""


class HasTold(Protocol):
    """Ledgers; on the live object."""

    def told(self, run_id: str | None, types: Sequence[str]) -> Told:
        """What was read, and which models traces tell of, as columns. Without it, they are read out of the events."""


class HasBegun(Protocol):
    """Ledgers; on the live object."""

    def begun(self, run_id: str | None) -> Sequence[Entry]:
        """The ``eval.started`` entries whose verdicts have neither come nor failed. Without it, all events are read."""
