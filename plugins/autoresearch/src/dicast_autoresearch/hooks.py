"""Hooks of the session: ``.auto/hooks/before.sh`` and ``after.sh`` get the state as JSON on stdin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from .running import run_within
from .session import FOLDER

SECONDS = 30.0
MOST = 8192


def run_hook(root: Path, report: dict[str, Any]) -> None:
    """Run the hook for the report's event, if there is one. At most 8 KB of its output go to stderr."""
    path = root / FOLDER / "hooks" / f"{report['event']}.sh"
    if not path.is_file():
        return
    captured = bytearray()
    try:
        end = run_within(
            ["bash", str(path)],
            root,
            SECONDS,
            lambda piece: captured.extend(piece[: MOST - len(captured)]),
            json.dumps(report).encode(),
        )
        problem = f"took longer than {SECONDS:g} s" if end is None else f"exited {end.code}" if end.code else ""
    except OSError as error:
        problem = f"could not be started: {error.strerror or error}"
    output = bytes(captured) if len(captured) < MOST else bytes(captured).rpartition(b"\n")[0]
    if text := output.decode(errors="ignore").rstrip("\n"):
        click.echo(text, err=True)
    if problem:
        click.echo(f"[{report['event']} hook {problem}]", err=True)
