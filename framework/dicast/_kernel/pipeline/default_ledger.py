"""The ledger that is meant where nothing names another kind: a SQLite file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ..contract.kinds import Component
from ..contract.registry import Registry

T = TypeVar("T")

LEDGER_PATH = Path(".dicast") / "ledger.db"
"""Where it is, from the current directory, where nothing names it."""


def sqlite_ledger(path: Path | None) -> tuple[Component, Any]:
    """The ledger at *path*, by default at ``$DICAST_LEDGER`` or ``.dicast/ledger.db``, with what offers it."""
    found = Registry().find("ledger/sqlite", ("ledger",))
    return found, found.cls(path=path or Path(os.environ.get("DICAST_LEDGER") or LEDGER_PATH))


async def reading(component: Any, function: Callable[[Any], T]) -> T:
    """What *function* makes of the live ledger of *component*, which must be there."""
    async with component.open(None, create=False) as ledger:
        return function(ledger)
