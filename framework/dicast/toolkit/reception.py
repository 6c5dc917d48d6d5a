"""Sessions that a source receives while ``dicast watch`` runs (:class:`~dicast.optional.HasReceiver`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

import attrs

from .call_matching import NameCall
from .listening import ListenAddress
from .session_reading import Failed
from .sessions import Session


@attrs.frozen
class Reception:
    """The parts of a run that a receiver uses.

    :param address: the address to listen on; None if it only ends the work of a previous process (``--once``).
    :param spool: a path for data that was received and is not in the ledger yet; it survives the process and belongs to the run.
    :param name_call: returns the id of a tool call in the trace, unique among the sessions of the run.
    :param report: shows a line to the user.
    :param wake: requests a call of ``sessions``; it may be called from any thread.
    """

    address: ListenAddress | None
    spool: Path
    name_call: NameCall
    report: Callable[[str], None]
    wake: Callable[[], None]


@attrs.frozen
class ReceivedSession:
    """A *session* so far, or a failed record. It may grow unless *is_over*."""

    session: Session | Failed
    is_over: bool


class Receiver(Protocol):
    """An open receiver. It stores data durably before it answers the sender."""

    @property
    def unread(self) -> int:
        """The number of bytes that were received and whose sessions were not returned yet."""
        ...

    def sessions(self, now: float) -> Sequence[ReceivedSession]:
        """Return the next sessions that are new or have grown, empty if there are none; *now* is in seconds since the epoch.

        The same sessions are returned again until :meth:`settle` is called, also in a later process.
        """
        ...

    def settle(self) -> None:
        """Note that the sessions of the newest call are in the ledger."""
        ...

    def deadline(self) -> float | None:
        """Return the time at which a session is due if no data arrives, None if no session waits."""
        ...
