"""Run a command with a time limit."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from dicast.toolkit.command import CommandEnd, call_command


def run_within(
    words: Sequence[str],
    folder: Path,
    seconds: float,
    receive: Callable[[bytes], object],
    data: bytes = b"",
    env: Mapping[str, str] | None = None,
    receive_errors: Callable[[bytes], object] | None = None,
) -> CommandEnd | None:
    """Run *words* in *folder*, pass the output to *receive*, and return the end; None if it took longer than *seconds*.

    Every process that the command started has ended afterwards.

    :param receive_errors: takes stderr; without it stdout and stderr are one stream.
    :raises OSError: if the command cannot be started.
    """

    async def run() -> CommandEnd | None:
        try:
            async with asyncio.timeout(seconds):
                return await call_command(
                    words, data, folder=folder, env=env, receive=receive, receive_errors=receive_errors, adopt=True
                )
        except TimeoutError:
            return None

    return asyncio.run(run())
