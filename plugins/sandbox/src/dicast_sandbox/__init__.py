"""Commands and tests on untrusted output, in a sandbox."""

from __future__ import annotations

from dicast import Metric, Sandbox, hookimpl

from .bubblewrap import Bubblewrap
from .command import Command
from .delta import VerificationDelta
from .none import Unconfined
from .passing import PassingTests

__all__ = ["Bubblewrap", "Command", "PassingTests", "Unconfined", "VerificationDelta"]


@hookimpl
def dicast_sandboxes() -> list[type[Sandbox]]:
    """Offer ``sandbox/bubblewrap`` and ``sandbox/none``."""
    return [Bubblewrap, Unconfined]


@hookimpl
def dicast_metrics() -> list[type[Metric]]:
    """Offer the metrics that run something."""
    return [Command, PassingTests, VerificationDelta]
