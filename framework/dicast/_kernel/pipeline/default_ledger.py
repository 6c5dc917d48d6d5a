"""The default ledger: a SQLite file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ..contract.kinds import Component
from ..contract.registry import Registry

T = TypeVar("T")

LEDGER_PATH = Path(".dicast") / "ledger.db"
"""Default path, relative to the current folder."""


def sqlite_ledger(path: Path | None) -> tuple[Component, Any]:
    """Return the component ``ledger/sqlite`` and its configuration for *path*, by default ``$DICAST_LEDGER`` or ``.dicast/ledger.db``."""
    component = Registry().find("ledger/sqlite", ("ledger",))
    return component, component.cls(path=path or Path(os.environ.get("DICAST_LEDGER") or LEDGER_PATH))


async def reading(component: Any, function: Callable[[Any], T]) -> T:
    """Return the result of *function* on the live ledger of *component*, which must exist."""
    async with component.open(None, create=False) as ledger:
        return function(ledger)
