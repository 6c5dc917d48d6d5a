"""The input of a watch whose source receives sessions of other programs."""

from __future__ import annotations

from collections.abc import Sequence

from dicast.toolkit.reception import ReceivedSession, Receiver

from .lines import Line
from .tail import Position


class Receiving:
    """An open receiver in the place of a file: it has no lines, and no positions, since it keeps its data itself."""

    is_at_end = False
    is_behind = False
    file_count = 0

    def __init__(self, receiver: Receiver) -> None:
        self._receiver = receiver

    def restore(self, positions: Sequence[Position]) -> None:
        """Do nothing: the receiver returns sessions again that are not in the ledger."""

    def read(self, most: int) -> Sequence[Line]:
        """Return no lines."""
        return ()

    def rest(self) -> Sequence[Line]:
        """Return no lines."""
        return ()

    def positions(self) -> list[Position]:
        """Return no positions."""
        return []

    def sessions(self, now: float) -> Sequence[ReceivedSession]:
        """Return some sessions that are new or have grown by *now*."""
        return self._receiver.sessions(now)

    def settle(self) -> None:
        """Report to the receiver that the newest sessions are in the ledger."""
        self._receiver.settle()

    def deadline(self) -> float | None:
        """Return the time at which a session is due if no data comes."""
        return self._receiver.deadline()

    @property
    def unread(self) -> int:
        """Number of bytes whose sessions were not returned yet."""
        return self._receiver.unread
