"""The path of a ledger file, as text of ``--ledger`` and ``$DICAST_LEDGER``."""

from __future__ import annotations

import re
from pathlib import Path

_PATH = re.compile(r"(?!\s*\{|[a-z][a-z0-9+.-]*://|[a-z][a-z0-9_]*/[a-z][a-z0-9_]*:\s)")
"""The beginning of a path; a URL or a component begins in another way."""

FILE = "ledger/sqlite"
"""The component for a file."""

LEDGER_PATH = Path(".dicast") / "ledger.db"
"""Default path, relative to the current folder."""


def ledger_place(text: str) -> Path | str:
    """Return the path in *text*, or *text* itself if it is a URL or a component."""
    return Path(text) if _PATH.match(text) else text
