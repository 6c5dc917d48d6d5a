"""Measuring the working tree: the checks first, then the command, whose METRIC lines are the values."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
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


def run_lines(
    words: list[str], folder: Path, seconds: float, data: bytes = b""
) -> tuple[CommandEnd | None, Measurements]:
    """How a command ended, None when it took longer than *seconds*, and what its METRIC and ASI lines say.

    :raises OSError: when it cannot be started.
    """
    lines = MetricLines()

    async def run() -> CommandEnd | None:
        try:
            async with asyncio.timeout(seconds):
                return await call_command(words, data, folder=folder, receive=lines.feed)
        except TimeoutError:
            return None

    end = asyncio.run(run())
    return end, lines.result()


def measure(session: Session, root: Path) -> Measurement:
    """Run the checks and the command of *session* in *root*."""
    began = time.monotonic()
    if session.checks is not None:
        said = _failure(session, session.checks, root, session.checks_timeout)[0]
        if said:
            seconds = time.monotonic() - began
            return Measurement(failure="checks_failed", said=said, seconds=seconds)
    said, found = _failure(session, session.command, root, session.timeout)
    return Measurement(
        metrics=found.metrics,
        asi=found.asi,
        seconds=time.monotonic() - began,
        failure="crash" if said else None,
        said=said,
    )


def _failure(session: Session, command: str, root: Path, seconds: float) -> tuple[str, Measurements]:
    """Why *command* failed, nothing where it did not, and what it measured."""
    try:
        end, found = run_lines(session.words(command), root, seconds)
    except OSError as error:
        return f"{command} could not be started: {error.strerror or error}", Measurements()
    if end is None:
        return f"it took longer than {seconds:g} s", found
    if end.code:
        said = end.errors.decode(errors="replace").strip()[-_TOLD:]
        return f"{end.how}" + (f": {said}" if said else ""), found
    return "", found


def run_text(words: list[str], folder: Path, seconds: float, data: bytes, most: int) -> tuple[str, str]:
    """The first *most* bytes that a command prints, cut at a line, and how it failed; nothing where it did not."""
    kept = bytearray()

    async def run() -> CommandEnd | None:
        try:
            async with asyncio.timeout(seconds):
                return await call_command(
                    words, data, folder=folder, receive=lambda piece: kept.extend(piece[: most - len(kept)])
                )
        except TimeoutError:
            return None

    try:
        end = asyncio.run(run())
    except OSError as error:
        return "", f"could not be started: {error.strerror or error}"
    cut = bytes(kept) if len(kept) < most else bytes(kept).rpartition(b"\n")[0]
    problem = f"took longer than {seconds:g} s" if end is None else f"exited {end.code}" if end.code else ""
    return cut.decode(errors="ignore").rstrip("\n"), problem
