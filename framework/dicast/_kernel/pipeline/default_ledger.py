"""The default ledger: a SQLite file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ..contract.kinds import Component
from ..contract.registry import Registry
from ..stream.opening_context import opening
from .ledger_path import FILE, LEDGER_PATH, ledger_place

T = TypeVar("T")


def ledger_component(place: Path | str | None) -> tuple[Component, Any]:
    """Return the ledger at *place* and its configuration, by default at ``$DICAST_LEDGER`` or ``.dicast/ledger.db``.

    A path, also as text, is a file of ``ledger/sqlite``. Another text is a URL, or a component ``{plugin/name: {options}}``.

    :raises ConfigError: if a URL or a component cannot be used.
    """
    text = place or os.environ.get("DICAST_LEDGER") or LEDGER_PATH
    at = ledger_place(text) if isinstance(text, str) else text
    if isinstance(at, str):
        from .ledger_places import component_at  # imported late: a file needs no YAML

        return component_at(at)
    component = Registry().find(FILE, ("ledger",))
    return component, component.cls(path=at)


def is_in_environment(component: Any) -> bool:
    """Return True if ``$DICAST_LEDGER`` has the URL or the configuration of *component*, so commands need no ``--ledger``."""
    text = os.environ.get("DICAST_LEDGER", "")
    return isinstance(ledger_place(text), str) and bool(ledger_component(None)[1] == component)


async def reading(component: Any, function: Callable[[Any], T]) -> T:
    """Return the result of *function* on the live ledger of *component*, which must exist."""
    async with opening(component, None, create=False) as ledger:
        return function(ledger)
