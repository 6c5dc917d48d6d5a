"""Tasks that put rows to commands and to HTTP services."""

from __future__ import annotations

from dicast import hookimpl

from .command import Command
from .http import Http


@hookimpl
def dicast_tasks() -> list[type]:
    """Offer what this plugin has."""
    return [Command, Http]
