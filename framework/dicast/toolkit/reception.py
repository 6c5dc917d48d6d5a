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
    """The surroundings of a receiver.

    :param address: where to listen; None if it only ends the work of an earlier process (``--once``).
    :param spool: a path for the data that the receiver has taken and not given yet; it survives the process and belongs to the run.
    :param name_call: names a tool call in the trace, unique among the sessions of the run.
    :param report: shows a line to the user.
    :param wake: asks for a call of ``sessions``, from any thread.
    """

    address: ListenAddress | None
    spool: Path
    name_call: NameCall
    report: Callable[[str], None]
    wake: Callable[[], None]


@attrs.frozen
class ReceivedSession:
    """A *session* as far as it is known, or a failed one. It may grow unless *is_over*."""

    session: Session | Failed
    is_over: bool


class Receiver(Protocol):
    """An open receiver. It has taken data durably before it answers their sender."""

    @property
    def unread(self) -> int:
        """The bytes that were taken, and whose sessions were not given yet."""
        ...

    def sessions(self, now: float) -> Sequence[ReceivedSession]:
        """Return some sessions that are new or have grown by *now*, in seconds since the epoch; none if there are none.

        The same sessions come again until :meth:`settle` was called, in a later process, too.
        """
        ...

    def settle(self) -> None:
        """Note that the sessions of the last call are in the ledger."""
        ...

    def deadline(self) -> float | None:
        """Return the time at which a session is due if no data comes, None if nothing waits."""
        ...
