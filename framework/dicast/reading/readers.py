"""Readers by name: functions with which a plugin gets the document of another plugin's command."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from .._kernel.contract.registry import load_offer, readers
from .._kernel.values.errors import PluginError
from .._kernel.values.names import nearest
from ..toolkit.installing import how_to_install

Reader = Callable[..., Mapping[str, Any]]
"""A function of a ledger, and of options by name. It returns the document that the command of the same name prints with ``--json``."""

_EXTRAS = {"compare": "stats", **dict.fromkeys(("conversation", "run_rows", "run_table", "run_texts"), "report")}


def reader(name: str) -> Reader:
    """Return the reader *name*, from the entry-point group ``dicast.readers``.

    :raises PluginError: if there is no such reader, or it cannot be imported.
    """
    offer = readers().get(name)
    if offer is None:
        near = nearest(name, readers())
        hint = how_to_install(_EXTRAS[name]) if name in _EXTRAS else f"did you mean {near!r}?" if near else ""
        raise PluginError(f"no reader {name!r} is installed; {hint}")
    function: Reader = load_offer("dicast.readers", offer)
    return function
