"""The command that starts a run, for pages of a ledger without one."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from dicast.toolkit.files import read_text

_SUFFIXES = (".yaml", ".yml")
_SUBJECTS, _WORK = re.compile(r"^source *:", re.MULTILINE), re.compile(r"^(metrics|judges|task) *:", re.MULTILINE)


def run_command(folder: Path, judges: Path | None = None) -> str:
    """Return ``dicast run FILE`` for the pipeline file *judges* that the server was given, else for the first pipeline file of *folder*.

    Without such a file, FILE is the name that ``dicast init`` writes.
    """
    files = (
        [judges] if judges is not None else [Path(path.name) for path in sorted(folder.iterdir()) if _is_pipeline(path)]
    )
    return f"dicast run {shlex.quote(str(files[0] if files else 'pipeline.yaml'))}"


def _is_pipeline(path: Path) -> bool:
    """Return whether *path* is a file with subjects and metrics, judges or a task. False for an unreadable file, because no run could read it."""
    if path.suffix not in _SUFFIXES or not path.is_file():
        return False
    try:
        text = read_text(path)
    except (OSError, UnicodeDecodeError):
        return False
    return _SUBJECTS.search(text) is not None and _WORK.search(text) is not None
