"""Requests to chat models that the ledger does not record."""

from __future__ import annotations

from collections.abc import Mapping

from ..classes import define
from ..values import Failure, Reply


@define
class UnpaidTries:
    """Numbers of requests to chat models that the ledger does not record.

    *failed* counts the calls without a reply, and *free* the failed calls without a cost. *repeated* counts the requests of a call after its first request.
    """

    failed: int = 0
    free: int = 0
    repeated: int = 0

    def add(self, answer: Reply | Failure) -> None:
        """Count the tries of *answer*."""
        attempts = answer.retry.get("attempts") if isinstance(answer.retry, Mapping) else None
        if isinstance(attempts, int):  # a plugin's retry of another form fails its own row, when it is recorded
            self.repeated += max(attempts - 1, 0)
        if isinstance(answer, Failure):
            self.failed += 1
            self.free += answer.cost.is_zero
