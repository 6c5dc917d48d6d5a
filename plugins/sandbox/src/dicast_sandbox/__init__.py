"""Commands and tests on untrusted output, in a sandbox."""

from __future__ import annotations

from dicast import Metric, Sandbox, hookimpl

from .bubblewrap import Bubblewrap
from .command import Command
from .delta import VerificationDelta
from .docker import Docker
from .none import Unconfined
from .passing import PassingTests

__all__ = ["Bubblewrap", "Command", "Docker", "PassingTests", "Unconfined", "VerificationDelta"]


@hookimpl
def dicast_sandboxes() -> list[type[Sandbox]]:
    """Offer ``sandbox/bubblewrap``, ``sandbox/docker`` and ``sandbox/none``."""
    return [Bubblewrap, Docker, Unconfined]


@hookimpl
def dicast_metrics() -> list[type[Metric]]:
    """Offer the metrics that run something."""
    return [Command, PassingTests, VerificationDelta]
