"""Retries of calls to an endpoint: the statuses that are tried again, and the waits between tries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from .faults import CallFault

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from stamina.typing import RetryDetails, RetryHook

LONGEST_WAIT = 300.0
"""Seconds; a call fails if the endpoint asks for a longer wait."""
OVERLOADED = 429
"""The status of an endpoint that receives too many requests."""
SERVER_FAULT = 500
"""The lowest status of an endpoint's own faults."""
_TRY_AGAIN = (408, 409, OVERLOADED)
_MODEL_MAY_HAVE_RUN = (504, 524)
_WAITS = {"wait_initial": 0.25, "wait_max": 20, "wait_jitter": 0.25}
"""Seconds between tries without a wait that the endpoint asks for; each wait is twice the previous."""


def is_retried(status: int) -> bool:
    """Return whether a request that was answered with *status* is sent again."""
    return status in _TRY_AGAIN or status >= SERVER_FAULT


def may_be_billed(status: int) -> bool:
    """Return whether the model may have run for a request that was answered with *status*."""
    return status in _MODEL_MAY_HAVE_RUN


def attempts(retries: int) -> Any:
    """Return stamina's loop of tries after the first: up to *retries* more, as :func:`backoff` waits."""
    import stamina

    return stamina.retry_context(backoff, retries + 1, timeout=None, **_WAITS)


def backoff(error: Exception) -> bool | float:
    """Return stamina's answer to *error*: False for no other try, True for its usual wait, or the seconds to wait."""
    if not isinstance(error, CallFault) or not error.again:
        return False
    return True if error.wait is None else error.wait


@attrs.frozen
class _Quiet:
    """A hook of stamina that ignores the retries of dicast."""

    hook: RetryHook

    def __call__(self, details: RetryDetails) -> AbstractContextManager[None] | None:
        is_ours = type(details.caused_by).__module__.startswith("dicast")
        return None if is_ours else self.hook(details)


def quiet_retries() -> None:
    """Keep stamina from reporting retries of dicast: it would log a warning or, with structlog, print to stdout.

    The hooks belong to the process; a program that uses dicast keeps them for its own retries.
    """
    import stamina.instrumentation

    hooks = stamina.instrumentation.get_on_retry_hooks()
    if not all(type(hook).__module__.startswith("dicast") for hook in hooks):
        stamina.instrumentation.set_on_retry_hooks([_Quiet(hook) for hook in hooks])
