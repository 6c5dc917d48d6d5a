"""What goes wrong with one try, and when the next may begin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import attrs
import stamina
import stamina.instrumentation

from dicast import Cost, Failure

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from stamina.typing import RetryDetails, RetryHook

LONGEST_WAIT = 300.0
"""Seconds: an endpoint that asks for more is taken at its word, and the call fails."""


class Fault(Exception):
    """One try that came to nothing; it becomes the call's Failure unless another try goes well.

    *again* says whether there may be another, *wait* how many seconds the endpoint wants us to wait for it; *cost* is what
    the try cost, or may have.
    """

    def __init__(
        self,
        message: str,
        *,
        again: bool = True,
        wait: float | None = None,
        cost: Cost | None = None,
        kind: str = "judge_call_failed",
    ) -> None:
        super().__init__(message)
        self.again, self.wait, self.cost, self.kind = again, wait, cost or Cost.zero(), kind

    def failure(self, cost: Cost, retry: Mapping[str, Any]) -> Failure:
        """The Failure of a call that ended with this."""
        said = f"{self} ({retry['attempts']} tries)" if retry["attempts"] > 1 else str(self)
        later = self.again or self.wait is not None or self.kind == "timeout"
        return Failure(self.kind, said, retryable=later, cost=cost, retry=retry)


def backoff(error: Exception) -> bool | float:
    """Whether stamina is to try again after *error*: not, as it sees fit, or after so many seconds."""
    if not isinstance(error, Fault) or not error.again:
        return False
    return True if error.wait is None else error.wait


def causes(error: BaseException) -> Iterator[BaseException]:
    """*error*, and what it was raised from or during."""
    found: BaseException | None = error
    while found is not None:
        yield found
        found = found.__cause__ or found.__context__


@attrs.frozen
class _Quiet:
    """A hook of stamina's that is not told about dicast's own retries."""

    hook: RetryHook

    def __call__(self, details: RetryDetails) -> AbstractContextManager[None] | None:
        own = type(details.caused_by).__module__.startswith("dicast")
        return None if own else self.hook(details)


def quiet_retries() -> None:
    """Keep stamina from telling of each retry: it would log a warning or, beside structlog, print to stdout.

    The hooks are the process's, and a program around dicast keeps them for retries of its own.
    """
    hooks = stamina.instrumentation.get_on_retry_hooks()
    if not all(type(hook).__module__.startswith("dicast") for hook in hooks):
        stamina.instrumentation.set_on_retry_hooks([_Quiet(hook) for hook in hooks])
