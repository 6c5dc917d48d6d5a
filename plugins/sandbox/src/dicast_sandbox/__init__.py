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
    """Return the sandboxes ``sandbox/bubblewrap``, ``sandbox/docker`` and ``sandbox/none``."""
    return [Bubblewrap, Docker, Unconfined]


@hookimpl
def dicast_metrics() -> list[type[Metric]]:
    """Return the metrics ``sandbox/command``, ``sandbox/tests_pass`` and ``sandbox/verification_delta``."""
    return [Command, PassingTests, VerificationDelta]
