"""Component ``postgres/ledger``: its options, and the opening of the live ledger."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, ClassVar, Literal

import attrs

from dicast import ConfigError, RunContext, Secret, Within

if TYPE_CHECKING:
    from .live import PostgresLedger

_MOST_BYTES = 63
"""Longest name of a schema."""


def _check_url(_instance: object, _option: object, url: Secret) -> None:
    if url.value.partition("://")[0] not in Ledger.schemes:
        raise ConfigError("url is not a PostgreSQL URL: write postgresql://USER:PASSWORD@HOST/DATABASE")


def _check_schema(_instance: object, _option: object, name: str) -> None:
    if not name or "\0" in name or len(name.encode()) > _MOST_BYTES:
        raise ConfigError(f"schema is a name of 1 to {_MOST_BYTES} bytes, not {name!r}")


@attrs.frozen
class Ledger:
    """Keep every event of every run in a PostgreSQL database that many processes and machines write to.

    :param url: the database, as ``postgresql://USER:PASSWORD@HOST/DATABASE``. Parts that are left out come from libpq's variables and files, such as
        ``PGPASSWORD``, ``PGSSLMODE`` and ``~/.pgpass``.
    :param schema: the schema of the ledger's tables. The first run creates it.
    :param content: ``store`` keeps the judged texts, once per digest. ``digest`` keeps digests in place of the judged texts and of
        the payloads of trace events, and blanks the texts that may quote them.
    :param timeout: seconds to wait for the server after a lost connection, before the run stops.
    """

    schemes: ClassVar[Sequence[str]] = ("postgresql", "postgres")
    is_async_ledger: ClassVar[bool] = True

    url: Secret = attrs.field(validator=_check_url)
    schema: str = attrs.field(default="dicast", validator=_check_schema)
    content: Literal["store", "digest"] = "store"
    timeout: float = attrs.field(default=60.0, validator=Within(0, 3600, "0 to 3600 seconds"))

    @asynccontextmanager
    async def open(self, run: RunContext | None = None, create: bool = True) -> AsyncIterator[PostgresLedger]:
        """Open the ledger. With *create* a missing schema is created; else it is refused.

        :raises dicast.LedgerRefused: if the server cannot be reached, or the schema has another version.
        """
        from .live import open_ledger  # importing psycopg takes 100 ms

        keeps = self.content == "store"
        opening = open_ledger(self.url.value, self.schema, store_content=keeps, seconds=self.timeout, create=create)
        async with opening as live:
            yield live
