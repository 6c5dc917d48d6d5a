"""Measuring the working tree: the checks first, then the command, whose METRIC lines are the values."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import attrs

from dicast import CommandEnd, Measurements, MetricLines, call_command

from .decision import Measured
from .session import Session

_TOLD = 2000


@attrs.frozen(kw_only=True)
class Measurement:
    """What was measured.

    :ivar failure: why nothing was: ``checks_failed`` or ``crash``; None where the command has ended in order.
    :ivar said: what there is to say about the failure, with the end of the output.
    """

    metrics: Mapping[str, float] = attrs.field(factory=dict)
    asi: Mapping[str, object] = attrs.field(factory=dict)
    seconds: float = 0.0
    failure: str | None = None
    said: str = ""

    def measured(self, session: Session) -> Measured:
        """The same, for a decision."""
        guard = None if session.validation is None else self.metrics.get(session.validation)
        return Measured(self.metrics.get(session.primary), self.failure != "checks_failed", guard)

    def secondary(self, session: Session) -> dict[str, float]:
        """All metrics but the primary one."""
        return {name: value for name, value in self.metrics.items() if name != session.primary}


def run_within(
    words: Sequence[str],
    folder: Path,
    seconds: float,
    receive: Callable[[bytes], object],
    data: bytes = b"",
    env: Mapping[str, str] | None = None,
    receive_errors: Callable[[bytes], object] | None = None,
) -> CommandEnd | None:
    """Return how a command ended whose output *receive* took; None when it took longer than *seconds*.

    :param receive_errors: takes its stderr, where that is not one stream with stdout.
    :raises OSError: when it cannot be started.
    """

    async def run() -> CommandEnd | None:
        try:
            async with asyncio.timeout(seconds):
                return await call_command(
                    words, data, folder=folder, env=env, receive=receive, receive_errors=receive_errors
                )
        except TimeoutError:
            return None

    return asyncio.run(run())


def measure(session: Session, root: Path, env: Mapping[str, str] | None = None) -> Measurement:
    """Run the checks and the command of *session* in *root*, with *env* beside the environment."""
    began = time.monotonic()
    if session.checks is not None:
        said = _failure(session, session.checks, root, session.checks_timeout, env)[0]
        if said:
            seconds = time.monotonic() - began
            return Measurement(failure="checks_failed", said=said, seconds=seconds)
    said, found = _failure(session, session.command, root, session.timeout, env)
    return Measurement(
        metrics=found.metrics,
        asi=found.asi,
        seconds=time.monotonic() - began,
        failure="crash" if said else None,
        said=said,
    )


def _failure(
    session: Session, command: str, root: Path, seconds: float, env: Mapping[str, str] | None
) -> tuple[str, Measurements]:
    """Why *command* failed, nothing where it did not, and what it measured."""
    lines = MetricLines()
    try:
        end = run_within(session.words(command), root, seconds, lines.feed, env=env)
    except OSError as error:
        return f"{command} could not be started: {error.strerror or error}", Measurements()
    found = lines.result()
    if end is None:
        return f"it took longer than {seconds:g} s", found
    if end.code:
        said = end.errors.decode(errors="replace").strip()[-_TOLD:]
        return f"{end.how}" + (f": {said}" if said else ""), found
    return "", found
