"""The session's hooks: ``.auto/hooks/before.sh`` and ``after.sh``, told the state as JSON on stdin."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from .measure import run_text
from .session import FOLDER

SECONDS = 30.0
MOST = 8192


def run_hook(root: Path, report: dict[str, Any]) -> None:
    """Run the hook for the report's event, if there is one; what it prints goes to stderr, at most 8 KB of it."""
    path = root / FOLDER / "hooks" / f"{report['event']}.sh"
    if not path.is_file():
        return
    said, problem = run_text(["bash", str(path)], root, SECONDS, json.dumps(report).encode(), MOST)
    if said:
        click.echo(said, err=True)
    if problem:
        click.echo(f"[{report['event']} hook {problem}]", err=True)
