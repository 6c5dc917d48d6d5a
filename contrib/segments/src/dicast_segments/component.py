"""Component ``segments/ledger``: its options, and the opening of the live ledger."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import ClassVar, Literal

import attrs

from dicast import ConfigError, LedgerError, LedgerRefused, RunContext

from .commits import LOG
from .live import SegmentLedger
from .log import Log
from .segment import SEGMENTS
from .stores import BucketStore, FolderStore, Store


@attrs.frozen
class Ledger:
    """Keep every event of every run as files in a folder or objects in S3, append-only and chained by SHA-256.

    Finished runs are Parquet files, which DuckDB, pandas and Spark read. Several processes and machines may write at the same time: a name is written once,
    so caps, leases and the chain are exact without a database.

    :param path: the folder. It is created when a run first writes to it, readable by its owner alone. Give a path or a URL.
    :param url: the place in S3, ``s3://BUCKET/PREFIX``. The store must support conditional writes (``If-None-Match``). Credentials, region and endpoint
        are those of the environment: ``AWS_ACCESS_KEY_ID``, ``AWS_REGION``, ``AWS_ENDPOINT_URL``.
    :param content: ``store`` keeps the texts of users. ``digest`` keeps digests in their place, as in ``ledger/sqlite``.
    """

    schemes: ClassVar[Sequence[str]] = ("s3",)

    path: Path | None = None
    url: str | None = None
    content: Literal["store", "digest"] = "store"

    def __attrs_post_init__(self) -> None:
        if (self.path is None) == (self.url is None):
            raise ConfigError("give a path or a url: {segments/ledger: {path: logs}}")

    @property
    def is_async_ledger(self) -> bool:
        """True in S3: an append waits for the network, so it has a thread of its own. A thread for a folder would only collect events in memory."""
        return self.url is not None

    @asynccontextmanager
    async def open(self, run: RunContext | None = None, create: bool = True) -> AsyncIterator[SegmentLedger]:
        """Open the ledger. With *create* False, for reading only, a missing ledger is refused.

        :raises dicast.LedgerRefused: if the place is no ledger, cannot be read or written, or does not exist.
        """
        try:
            log = Log(self._store(create=create))
            if create:
                log.create()
            else:
                log.find()
        except LedgerRefused:
            raise
        except LedgerError as error:
            raise LedgerRefused(str(error)) from error
        with closing(SegmentLedger(log, store_content=self.content == "store")) as live:
            yield live

    def _store(self, *, create: bool) -> Store:
        if self.url is not None:
            return BucketStore(self.url)
        path = Path() if self.path is None else self.path
        if path.exists() and not path.is_dir():
            raise LedgerRefused(f"{path} is a file, but this ledger is a folder. Name a folder, or use ledger/sqlite")
        store = FolderStore(path)
        if create:
            store.create((LOG, SEGMENTS))
        return store
