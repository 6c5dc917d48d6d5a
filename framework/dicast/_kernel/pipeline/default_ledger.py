"""The default ledger: a SQLite file."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ..contract.kinds import Component
from ..contract.registry import Registry
from ..stream.opening_context import opening

T = TypeVar("T")

_PATH = re.compile(r"(?!\s*\{|[a-z][a-z0-9+.-]*://|[a-z][a-z0-9_]*/[a-z][a-z0-9_]*:\s)")
"""The beginning of a path; a URL or a component begins in another way."""

FILE = "ledger/sqlite"
"""The component for a file."""

LEDGER_PATH = Path(".dicast") / "ledger.db"
"""Default path, relative to the current folder."""


def ledger_component(place: Path | str | None) -> tuple[Component, Any]:
    """Return the ledger at *place* and its configuration, by default at ``$DICAST_LEDGER`` or ``.dicast/ledger.db``.

    A path, also as text, is a file of ``ledger/sqlite``. Another text is a URL, or a component ``{plugin/name: {options}}``.

    :raises ConfigError: if a URL or a component cannot be used.
    """
    text = place or os.environ.get("DICAST_LEDGER") or LEDGER_PATH
    if isinstance(text, str) and not _PATH.match(text):
        from .ledger_places import component_at  # imported late: a file needs no YAML

        return component_at(text)
    component = Registry().find(FILE, ("ledger",))
    return component, component.cls(path=Path(text))


def ledger_place(text: str) -> Path | str:
    """Return the path in *text*, or *text* itself if it is a URL or a component."""
    return Path(text) if _PATH.match(text) else text


async def reading(component: Any, function: Callable[[Any], T]) -> T:
    """Return the result of *function* on the live ledger of *component*, which must exist."""
    async with opening(component, None, create=False) as ledger:
        return function(ledger)
