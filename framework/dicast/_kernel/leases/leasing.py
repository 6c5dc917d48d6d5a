"""What a ledger may offer so that a run has one owner at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from ..values import Lease


@runtime_checkable
class Leasing(Protocol):
    """What a live ledger may offer beside :class:`Ledger`, so that a run has one owner at a time.

    A live object holds one lease at most. From then on each :meth:`~Ledger.append` and :meth:`~Ledger.reserve` of this object
    compares the lease's token in its own transaction, refuses with LedgerError where another owner has taken the lease, and
    renews it where that is due. :meth:`~Ledger.reserve` also ends the reservations of runs whose lease is over. Without these
    methods nobody is kept from taking up a run that is under way, and reservations end at their ``lease_until``. Methods may
    be called from any thread.
    """

    def take_lease(self, run_id: str, owner: str, seconds: float, dead: Callable[[Lease], bool]) -> Lease | None:
        """Take the lease of a run for *seconds*; return the one that is in the way, neither over nor *dead*, or None."""
        ...

    def renew_lease(self) -> None:
        """Renew the lease that this object holds, also where it is over and nobody has taken it.

        :raises LedgerError: when another owner has taken it.
        """
        ...

    def release_lease(self) -> None:
        """End the lease that this object holds; nothing happens where it was lost."""
        ...

    def lease_of(self, run_id: str) -> Lease | None:
        """The newest lease of a run, also one that is over; None where it never had one."""
        ...
