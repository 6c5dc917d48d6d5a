"""Optional members of a ledger with which a run has one owner at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, runtime_checkable

from ..values import Lease


@runtime_checkable
class Leasing(Protocol):
    """Optional members of a live ledger, in addition to :class:`Ledger`, with which a run has one owner at a time.

    A live object holds at most one lease. While it does, each :meth:`~Ledger.append` and :meth:`~Ledger.reserve` of the object
    compares the lease's token in its own transaction. The call raises LedgerError if another owner has taken the lease, and
    renews the lease if that is due. :meth:`~Ledger.reserve` also ends the reservations of runs whose lease is over. Without
    these methods, a second process can take over a run that is under way, and reservations end at their ``lease_until``.
    The methods may be called from any thread.
    """

    def take_lease(self, run_id: str, owner: str, seconds: float, dead: Callable[[Lease], bool]) -> Lease | None:
        """Take the lease of a run for *seconds*.

        Return None, or the lease in the way: a lease that is neither over nor *dead*.
        """
        ...

    def renew_lease(self) -> None:
        """Renew the lease that this object holds, even if the lease is over, as long as no other owner has taken it.

        :raises LedgerError: when another owner has taken it.
        """
        ...

    def release_lease(self) -> None:
        """End the lease that this object holds; do nothing if the lease was lost."""
        ...

    def lease_of(self, run_id: str) -> Lease | None:
        """Return the newest lease of a run, even if the lease is over; None if the run never had a lease."""
        ...
