"""Component ``ledger/sqlite``: its options, and the opening of the live ledger."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import attrs

from dicast import RunContext, Within

from .file import open_file
from .format4.live import BlockLedger
from .format4.schema import VERSIONS

if TYPE_CHECKING:
    from .old import OldLedger


@attrs.frozen
class Sqlite:
    """Keep every event of every run in one SQLite file, append-only and chained by SHA-256.

    :param path: the file. The file and its folders are created when a run first writes to it, readable by its owner alone.
    :param content: ``store`` keeps the judged texts, once per digest. ``digest`` keeps digests in place of the judged texts and of
        the payloads of trace events, and blanks the texts that may quote them (``details``, ``feedback``,
        ``error_message``), so the ledger holds no user's text. Scores, kinds, signals and money are kept in full.
    :param busy_timeout: seconds to wait for another process that is writing to the same file.
    """

    path: Path
    content: Literal["store", "digest"] = "store"
    busy_timeout: float = attrs.field(default=5.0, validator=Within(0, inf, "0 or more seconds"))

    @asynccontextmanager
    async def open(self, run: RunContext | None = None, create: bool = True) -> AsyncIterator[OldLedger | BlockLedger]:
        """Open the ledger. With *create* False, for reading only, a missing file is refused, and a read-only file can be opened.

        :raises dicast.LedgerRefused: when the file is not a ledger, has an older or newer format, is locked beyond
            ``busy_timeout``, cannot be written to, or does not exist. A ledger of an older format is for reading only.
        """
        with closing(open_file(self.path, create=create, timeout=self.busy_timeout)) as connection:
            (number,) = connection.execute("PRAGMA user_version").fetchone()
            live = _ledger_class(number)(
                self.path, connection, store_content=self.content == "store", timeout=self.busy_timeout
            )
            with closing(live):
                yield live


def _ledger_class(number: int) -> type[OldLedger | BlockLedger]:
    """Return the class of an open ledger of the version *number*."""
    if number in VERSIONS:
        return BlockLedger
    from .old import OldLedger  # few ledgers have an older format

    return OldLedger
