"""Tasks that put rows to commands, to HTTP services and to Python functions."""

from __future__ import annotations

from dicast import hookimpl

from .command import Command
from .http import Http
from .python import Python


@hookimpl
def dicast_tasks() -> list[type]:
    """Return the tasks ``task/command``, ``task/http`` and ``task/python``."""
    return [Command, Http, Python]
