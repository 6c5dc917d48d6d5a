"""Connections to the server, and the errors of psycopg as errors of the ledger."""

from __future__ import annotations

import time
from typing import Any

import attrs
import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from dicast import LedgerError, LedgerRefused

LEAST_SERVER = 14
"""The oldest supported version of the server."""

CONNECT_SECONDS = 10
"""Seconds to wait for one attempt to connect."""

NAPS = 0.05, 1.0
"""Seconds between two attempts to connect: first, and at most."""

LEASE_LOST, STALE = "DC001", "DC002"
"""SQLSTATEs that the functions of the schema raise: another process took the lease, or closed a reservation first."""

_TRANSIENT = frozenset(("40P01", "40001"))
"""SQLSTATEs of a deadlock and of a conflict: the transaction was rolled back, and can be repeated at once."""

_GONE = ("08", "57P", "53300")
"""Beginnings of the SQLSTATEs of a lost connection, and of a server that has no free connection."""

_KEEPALIVES = {"keepalives_idle": 5, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 15_000}
"""Settings with which a dead network is noticed after 20 seconds."""


@attrs.frozen
class Server:
    """A server with the schema of a ledger. *place* names both without a password."""

    url: str = attrs.field(repr=False)
    schema: str
    place: str

    @classmethod
    def of(cls, url: str, schema: str) -> Server:
        """Return the server of a URL.

        :raises LedgerRefused: if libpq cannot read the URL.
        """
        try:
            parts = conninfo_to_dict(url)
        except psycopg.Error:
            # The message of libpq quotes the URL, which may have a password.
            raise LedgerRefused(
                "postgres/ledger: url cannot be read: write postgresql://USER:PASSWORD@HOST/DATABASE, and %XX for special characters in "
                "the password"
            ) from None
        return cls(url, schema, f"{_place_of(parts)} (schema {schema})")

    def options(self) -> dict[str, Any]:
        """Return the arguments of a connection."""
        return {"autocommit": True, "connect_timeout": CONNECT_SECONDS, "application_name": "dicast", **_KEEPALIVES}

    def setting(self) -> sql.Composed:
        """Return the statement for a new connection. A commit that returns is durable, also where the server's default is another."""
        return sql.SQL(
            "SET search_path TO {}; SET timezone TO 'UTC'; SET default_transaction_isolation TO 'read committed'; "
            "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
        ).format(sql.Identifier(self.schema))

    async def connect(self) -> psycopg.AsyncConnection[Any]:
        """Return a connection for changes.

        :raises psycopg.Error: if the server cannot be reached.
        """
        connection = await psycopg.AsyncConnection.connect(self.url, **self.options())
        await connection.execute(self.setting())
        return connection

    def connect_reader(self) -> psycopg.Connection[Any]:
        """Return a connection for readers.

        :raises psycopg.Error: if the server cannot be reached.
        """
        connection = psycopg.Connection.connect(self.url, **self.options())
        connection.execute(self.setting())
        return connection

    def refused(self, error: psycopg.Error) -> LedgerRefused:
        """Return the refusal to open a ledger."""
        return LedgerRefused(
            f"{self.place}: {reason_of(error)}. Check that the server runs, that url is right, and that your user may do this"
        )

    def fault(self, error: psycopg.Error) -> LedgerError:
        """Return an error of a statement as an error of the ledger."""
        if error.sqlstate == LEASE_LOST:
            return LedgerError(
                "the run has lost its lease: another process has taken over the run. The recorded events stay, and this process records "
                "nothing more"
            )
        if isinstance(error, psycopg.errors.UniqueViolation) and error.diag.table_name == "reservations":
            return LedgerError(f"{self.place}: a reservation is made twice: {error.diag.message_detail}")
        return LedgerError(f"{self.place}: {reason_of(error)}")


@attrs.define
class Naps:
    """Waits between the attempts of one statement or reading, for *timeout* seconds after its first lost connection."""

    timeout: float
    _deadline: float | None = attrs.field(init=False, default=None)
    _seconds: float = attrs.field(init=False, default=NAPS[0])

    def next_nap(self, error: psycopg.Error) -> float | None:
        """Return the seconds until the next attempt after *error*; None if its connection was not lost, or the time is over."""
        now = time.monotonic()
        self._deadline = now + self.timeout if self._deadline is None else self._deadline
        if not is_lost(error) or now >= self._deadline:
            return None
        nap, self._seconds = min(self._seconds, self._deadline - now), min(2 * self._seconds, NAPS[1])
        return nap


def _place_of(parts: dict[str, Any]) -> str:
    """Return the URL of a server without the user and the password. A folder of a socket is a parameter."""
    host, port, name = (str(parts.get(key) or "") for key in ("host", "port", "dbname"))
    if host.startswith("/"):
        return f"postgresql:///{name}?host={host}" + (f"&port={port}" if port else "")
    return f"postgresql://{host}{f':{port}' if port else ''}/{name}"


def reason_of(error: psycopg.Error) -> str:
    """Return the message of the server, or of libpq, on one line."""
    return " ".join((error.diag.message_primary or str(error)).split()).rstrip(".?") or type(error).__name__


def is_lost(error: psycopg.Error) -> bool:
    """Return True if the connection of a statement was lost, so its commit is unknown."""
    return isinstance(error, psycopg.OperationalError) and (error.sqlstate is None or error.sqlstate.startswith(_GONE))


def is_transient(error: psycopg.Error) -> bool:
    """Return True if the transaction was rolled back for another transaction, and can be repeated."""
    return error.sqlstate in _TRANSIENT
