"""The check of a whole ledger, in one or several processes."""

from __future__ import annotations

from contextlib import closing

from dicast import LedgerError, Verification

from .check import Check
from .stores import Store
from .stretches import Stretches


def verify(store: Store, head: str | None, jobs: int = 1) -> Verification:
    """Check all segments and commits of a ledger. With *head*, a row must have this digest: without it, a ledger whose end was cut off looks complete.

    :param jobs: the number of processes that check segments. The result is the same with any number.
    """
    check = Check(store, head)
    try:
        if jobs > 1:
            with closing(Stretches(store, head, jobs)) as stretches:
                check.run(stretches.results)
        else:
            check.run({})
        if not check.is_met:
            raise LedgerError(f"no row has the digest {head}")
    except LedgerError as error:
        return Verification(check.seq, check.head, check.seq + 1, str(error), check.absent)
    return Verification(check.seq, check.head, absent=check.absent)
