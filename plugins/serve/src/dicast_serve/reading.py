"""Repeated reading of one ledger."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

import attrs

import dicast
import dicast.reading
from dicast import Ledger

from .judge_kinds import JudgeKinds

T = TypeVar("T")


@attrs.define(eq=False, slots=False)
class ServedLedger:
    """Reader of the ledger at *place*. It looks up the plugin of a file once, since a look-up takes longer than most answers.

    If *may_be_missing*, a file that no run has written yet is read as an empty ledger. A file that was there and is gone is an error.
    """

    place: Path | str
    may_be_missing: bool = False
    judges: JudgeKinds = attrs.field(init=False, factory=JudgeKinds)
    """The kinds of its judges, for the names of people who label."""

    @cached_property
    def _ledger(self) -> Any:
        return _file(Path(self.place).absolute())

    def read(self, function: Callable[[Ledger], T]) -> T:
        """Return the result of *function* on the ledger; like :func:`dicast.read_ledger`, in a thread without an event loop.

        :raises dicast.LedgerRefused: when the file does not exist or is not a ledger.
        """
        if isinstance(self.place, str):
            return dicast.read_ledger(self.place, function)

        if self.may_be_missing and not Path(self.place).exists():
            with TemporaryDirectory(prefix="dicast-serve-") as folder:
                return asyncio.run(_read(_file(Path(folder, "empty.db")), function, create=True))
        self.may_be_missing = False
        return asyncio.run(_read(self._ledger, function, create=False))

    def head(self) -> dicast.Head | None:
        """Return the newest row."""
        return self.read(lambda live: live.head())


async def _read(component: Any, function: Callable[[Ledger], T], *, create: bool) -> T:
    async with component.open(None, create=create) as ledger:
        return function(ledger)


def _file(path: Path) -> Any:
    return dicast.component("ledger", {"ledger/sqlite": {"path": str(path)}})


@cache
def reader(name: str) -> dicast.reading.Reader:
    """Return :func:`dicast.reading.reader` of *name*, cached: a search through the installed plugins takes longer than many answers.

    :raises dicast.PluginError: when no plugin has this reader, or it cannot be imported.
    """
    return dicast.reading.reader(name)
