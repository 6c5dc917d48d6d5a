"""Reading one ledger again and again."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeVar

import attrs

import dicast
import dicast.reading
from dicast import Ledger

T = TypeVar("T")


@attrs.define(eq=False, slots=False)
class ServedLedger:
    """Reads the ledger at *path*; which plugin does so is looked up once, for that takes longer than most answers."""

    path: Path

    @cached_property
    def _ledger(self) -> Any:
        return dicast.component("ledger", {"ledger/sqlite": {"path": str(self.path.absolute())}})

    def read(self, function: Callable[[Ledger], T]) -> T:
        """Return what *function* makes of the ledger; as :func:`dicast.read_ledger`, in a thread without an event loop.

        :raises dicast.LedgerRefused: when it does not exist or is no ledger.
        """

        async def read() -> T:
            async with self._ledger.open(None, create=False) as ledger:
                return function(ledger)

        return asyncio.run(read())

    def head(self) -> dicast.Head | None:
        """The newest row."""
        return self.read(lambda live: live.head())


@cache
def reader(name: str) -> dicast.reading.Reader:
    """What :func:`dicast.reading.reader` finds: looking through what is installed takes longer than many answers.

    :raises dicast.PluginError: when there is none, or it cannot be imported.
    """
    return dicast.reading.reader(name)
