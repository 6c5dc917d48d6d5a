"""Faults of one try of a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from ..._kernel.values import Cost, Failure


class CallFault(Exception):
    """A failed try. It becomes the Failure of the call unless a later try succeeds.

    :param again: whether the call may be tried again.
    :param wait: the seconds that the endpoint asks to wait.
    :param cost: the cost of the try, or its upper bound if the endpoint may have billed it.
    :param kind: the kind of the Failure.
    :param finish_reason: the endpoint's reason for the end of a reply that cannot be used.
    :param throttled_reason: the cap whose remaining budget is too low for the try.
    """

    def __init__(
        self,
        message: str,
        *,
        again: bool = True,
        wait: float | None = None,
        cost: Cost | None = None,
        kind: str = "judge_call_failed",
        finish_reason: str | None = None,
        throttled_reason: str | None = None,
    ) -> None:
        super().__init__(message)
        self.again, self.wait, self.cost, self.kind = again, wait, cost or Cost.zero(), kind
        self.finish_reason, self.throttled_reason = finish_reason, throttled_reason

    def failure(self, cost: Cost, retry: Mapping[str, Any]) -> Failure:
        """Return the Failure of a call that ended with this fault."""
        message = f"{self} ({retry['attempts']} tries)" if retry["attempts"] > 1 else str(self)
        is_retryable = self.again or self.wait is not None or self.kind == "timeout"
        return Failure(
            self.kind,
            message,
            retryable=is_retryable,
            cost=cost,
            retry=retry,
            finish_reason=self.finish_reason,
            throttled_reason=self.throttled_reason,
        )


class ConnectionFault(Exception):
    """A connection that was never made, or that broke.

    :param kind: ``refused`` (no connection), ``silent`` (none in time), ``certificate`` (not trusted) or ``broken``.
    """

    def __init__(self, message: str, kind: Literal["refused", "silent", "certificate", "broken"]) -> None:
        super().__init__(message)
        self.kind = kind

    @property
    def is_connected(self) -> bool:
        """True if there was a connection, so that the server may have worked on the request."""
        return self.kind == "broken"


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield *error* and the exceptions from which, or during which, it was raised."""
    current: BaseException | None = error
    while current is not None:
        yield current
        current = current.__cause__ or current.__context__
