"""Metrics that run commands and tests on untrusted output, and the sandboxes for them."""

from __future__ import annotations

from dicast import Metric, Sandbox, hookimpl

from .backends.bubblewrap.sandbox import Bubblewrap
from .backends.docker.sandbox import Docker
from .backends.none import Unconfined
from .metrics.command import Command
from .metrics.delta import VerificationDelta
from .metrics.passing import PassingTests

__all__ = ["Bubblewrap", "Command", "Docker", "PassingTests", "Unconfined", "VerificationDelta"]


@hookimpl
def dicast_sandboxes() -> list[type[Sandbox]]:
    """Offer ``sandbox/bubblewrap``, ``sandbox/docker`` and ``sandbox/none``."""
    return [Bubblewrap, Docker, Unconfined]


@hookimpl
def dicast_metrics() -> list[type[Metric]]:
    """Offer the metrics that run commands and tests."""
    return [Command, PassingTests, VerificationDelta]
