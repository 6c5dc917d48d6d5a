"""Optional members of ledgers that keep columns along with their events; :mod:`dicast.optional` exports these protocols too."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from . import Entry, Event, Head, JudgedRow, Verification
    from .reading import ActivityColumns, VerdictColumns


class HasIsAsyncLedger(Protocol):
    """Ledgers; on the class."""

    @property
    def is_async_ledger(self) -> bool:
        """True if methods of the live object are ``async def``. They are called in a thread with an event loop. Without it, no method may be ``async def``."""


class HasSchemes(Protocol):
    """Ledgers; on the class."""

    @property
    def schemes(self) -> Sequence[str]:
        """Return the schemes of the URLs that its option ``url`` takes, as in ``--ledger postgresql://host/name``. Without it, no URL names the ledger."""


class HasAppendJudged(Protocol):
    """Ledgers; on the live object."""

    def append_judged(self, records: Sequence[Event | JudgedRow]) -> Head:
        """Append *records* in their order in one transaction, as ``append`` does; a judged subject is in the place of its three events, which ``read`` yields. Without it, the events are appended; also if the class has an ``append`` of its own and inherits this member."""


class HasReadJudged(Protocol):
    """Ledgers; on the live object."""

    def read_judged(self, run_id: str, after: int = 0) -> Iterator[tuple[int, Event | JudgedRow]]:
        """Yield the events of a run after the row *after*, each with its number; a judged subject that the ledger keeps as one value is in the place of its three events, with the number of the first. A run that is split transfers such subjects without making their events. Without it, the events are read."""


class HasVerdictColumns(Protocol):
    """Ledgers; on the live object."""

    def verdict_columns(self, run_id: str | None) -> VerdictColumns:
        """Return the verdicts and failures of the ledger, or of one run, as columns. Without it, they are read from the events."""


class HasPricingVersion(Protocol):
    """Ledgers; on the live object."""

    def pricing_version(self, run_id: str | None) -> str | None:
        """Return the version of the price list of the newest verdict of the ledger, or of one run, that has one. Without it, the columns of all verdicts are read."""


class HasActivityColumns(Protocol):
    """Ledgers; on the live object."""

    def activity_columns(self, run_id: str | None, types: Sequence[str]) -> ActivityColumns:
        """Return the events of *types* about reads, records and models as columns. Without it, they are read from the events."""


class HasDigests(Protocol):
    """Ledgers whose entries have no digests; on the live object."""

    def digest_of(self, seq: int) -> str | None:
        """Return the digest up to the row *seq*, as in ``Head``, or None if the ledger has no digest at this row. Without it, an entry has its digest."""


class HasOpenJudgments(Protocol):
    """Ledgers; on the live object."""

    def open_judgments(self, run_id: str | None) -> Sequence[Entry]:
        """Return the ``eval.started`` entries without a verdict or failure. Without it, all events are read."""


class HasVerifyIn(Protocol):
    """Ledgers; on the live object."""

    def verify_in(self, jobs: int, head: str | None = None) -> Verification:
        """Return the result of ``verify(head)``, which *jobs* processes compute. Without it, ``dicast ledger verify`` uses one process."""


class HasProofs(Protocol):
    """Ledgers of the lines of format 4; on the live object."""

    def prove(self, eval_id: str, until: int | None = None) -> dict[str, Any]:
        """Return a document which shows without the ledger that it has the verdict or failure *eval_id*: the result of :func:`~dicast.toolkit.ledger_lines.proof_of`. It leads to the digest of the newest row of the verdict's chain, or of the row *until*. Without it, ``dicast ledger prove`` refuses the ledger.

        :raises LedgerError: if the ledger does not have the verdict, or no row *until*.
        """
