"""Measure a checkout: the checks first, then the command, whose METRIC lines are the values."""

from __future__ import annotations

import time
from collections.abc import Mapping

import attrs

from dicast.toolkit.metric_lines import Measurements, MetricLines

from .checkout import Checkout
from .decision import Measured
from .session import Session

_ERROR_CHARS = 2000


@attrs.frozen(kw_only=True)
class Measurement:
    """Result of measuring a checkout.

    :ivar failure: ``checks_failed`` or ``crash``; None if the command succeeded.
    :ivar said: message about the failure, with the end of the output.
    """

    metrics: Mapping[str, float] = attrs.field(factory=dict)
    asi: Mapping[str, object] = attrs.field(factory=dict)
    seconds: float = 0.0
    failure: str | None = None
    said: str = ""

    def measured(self, session: Session) -> Measured:
        """Return the run for a decision."""
        guard = None if session.validation is None else self.metrics.get(session.validation)
        return Measured(self.metrics.get(session.primary), self.failure != "checks_failed", guard)

    def secondary(self, session: Session) -> dict[str, float]:
        """Return all metrics but the primary one."""
        return {name: value for name, value in self.metrics.items() if name != session.primary}


def measure(session: Session, checkout: Checkout) -> Measurement:
    """Run the checks and the command of *session* in *checkout*.

    The command starts with the committed files: changes by the checks are reverted.
    """
    began = time.monotonic()
    if session.checks is not None:
        message = _failure(session, session.checks, checkout, session.checks_timeout)[0]
        if message:
            return Measurement(failure="checks_failed", said=message, seconds=time.monotonic() - began)
        checkout.reset()
    message, measurements = _failure(session, session.command, checkout, session.timeout)
    return Measurement(
        metrics=measurements.metrics,
        asi=measurements.asi,
        seconds=time.monotonic() - began,
        failure="crash" if message else None,
        said=message,
    )


def _failure(session: Session, command: str, checkout: Checkout, seconds: float) -> tuple[str, Measurements]:
    """Return the failure message of *command*, empty if it succeeded, and its measurements."""
    lines = MetricLines()
    try:
        end = checkout.run(session.words(command), seconds, lines.feed)
    except OSError as error:
        return f"{command} could not be started: {error.strerror or error}", Measurements()
    measurements = lines.result()
    if end is None:
        return f"it took longer than {seconds:g} s", measurements
    if end.code:
        errors = end.errors.decode(errors="replace").strip()[-_ERROR_CHARS:]
        return f"{end.how}" + (f": {errors}" if errors else ""), measurements
    return "", measurements
