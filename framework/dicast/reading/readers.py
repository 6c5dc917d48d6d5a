"""Readers of ledgers by name: the documents of commands, for other plugins."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from .._kernel.contract.registry import readers
from .._kernel.values.errors import PluginError
from .._kernel.values.names import nearest
from ..toolkit.installing import how_to_install

Reader = Callable[..., Mapping[str, Any]]
"""Takes a ledger, and options by their names; returns the document that the command of the same name prints with ``--json``."""

_EXTRAS = {"compare": "stats", "conversation": "report"}


def reader(name: str) -> Reader:
    """Return the reader *name*, from the entry-point group ``dicast.readers``.

    :raises PluginError: when there is none, or it cannot be imported.
    """
    offer = readers().get(name)
    if offer is None or offer.error:
        near = nearest(name, readers())
        hint = how_to_install(_EXTRAS[name]) if name in _EXTRAS else f"did you mean {near!r}?" if near else ""
        raise PluginError(offer.error if offer and offer.error else f"no reader {name!r} is installed; {hint}")
    module, _, function = offer.target.partition(":")
    try:
        function_object: Reader = getattr(import_module(module), function)
    except Exception as error:  # the border to other people's code
        why = f"({offer.distribution} {offer.version}) failed to import: {type(error).__name__}: {error}"
        raise PluginError(f"reader {name!r} {why}") from error
    return function_object
