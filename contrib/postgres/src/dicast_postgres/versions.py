"""The versions of the schema: its creation, and the reasons to refuse it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

import psycopg
from psycopg import sql

from dicast import LedgerRefused

from .server import LEAST_SERVER, Server

VERSION = 3
"""The version of the schema that this code reads and writes."""

STEPS: Mapping[int, str] = {
    1: "DROP FUNCTION decide (text, numeric, text, jsonb); DROP FUNCTION expired_reservations (timestamptz, boolean)",
    2: "ALTER TABLE blocks ADD columns bytea; ALTER TABLE blocks ALTER columns SET STORAGE EXTERNAL; "
    "DROP FUNCTION add_block (text, bigint, bigint, text[], bytea, bytea, text, text, bytea, text)",
}
"""The statements that make the next version of a version, apart from the functions, which each migration makes anew."""

_CREATION = 0x646963617374
"""The key of the lock under which a schema is created or migrated."""


async def prepare(connection: psycopg.AsyncConnection[Any], server: Server, *, create: bool) -> None:
    """Check the schema. With *create*, make its tables if they are missing.

    :raises LedgerRefused: if it is missing, or has another version.
    """
    if connection.info.server_version < LEAST_SERVER * 10_000:
        number = connection.info.server_version // 10_000
        raise LedgerRefused(f"{server.place}: the server is PostgreSQL {number}: use {LEAST_SERVER} or newer")
    version = await version_of(connection)
    if version is None and create:
        await _create(connection, server)
        version = await version_of(connection)
    if version is None:
        raise LedgerRefused(f"{server.place}: no ledger: name the schema of an earlier run, or run a pipeline first")
    if version > VERSION:
        raise LedgerRefused(
            f"{server.place}: the schema has version {version}, and this dicast-postgres reads version {VERSION}: upgrade dicast-postgres"
        )
    if version < VERSION:
        word = shlex.quote("postgresql://…")
        raise LedgerRefused(
            f"{server.place}: the schema has version {version}, and this dicast-postgres reads version {VERSION}: end all runs, then "
            f"call dicast ledger migrate --ledger {word}"
        )


async def version_of(connection: psycopg.AsyncConnection[Any]) -> int | None:
    """Return the version of the schema; None if it has no ledger."""
    cursor = await connection.execute("SELECT to_regclass('version') IS NOT NULL AND to_regclass('blocks') IS NOT NULL")
    row = await cursor.fetchone()
    if row is None or not row[0]:
        return None
    row = await (await connection.execute("SELECT number FROM version")).fetchone()
    return None if row is None else int(row[0])


async def _create(connection: psycopg.AsyncConnection[Any], server: Server) -> None:
    # The lock comes before the transaction: inside, the server does not see that another process has made the schema meanwhile.
    await connection.execute("SELECT pg_advisory_lock(%s)", (_CREATION,))
    async with connection.transaction():
        if await version_of(connection) is None:
            name = sql.Identifier(server.schema)
            await connection.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(name))
            for part in ("tables", "functions", "views"):
                await connection.execute(_statements(part))
            await connection.execute("INSERT INTO version VALUES (%s)", (VERSION,))
    await connection.execute("SELECT pg_advisory_unlock(%s)", (_CREATION,))


async def migrate(connection: psycopg.AsyncConnection[Any], server: Server) -> tuple[int, int]:
    """Make the newest version of an older schema, in one transaction. Return both versions.

    :raises LedgerRefused: if the schema is missing or newer, or a process has a run's lease.
    """
    async with connection.transaction():
        await connection.execute("SELECT pg_advisory_xact_lock(%s)", (_CREATION,))
        version = await version_of(connection)
        if version is None or version >= VERSION:
            await prepare(connection, server, create=False)
            return VERSION, VERSION
        cursor = await connection.execute("SELECT run_id FROM leases WHERE until >= clock_timestamp() LIMIT 1")
        if (row := await cursor.fetchone()) is not None:
            raise LedgerRefused(f"{server.place}: run {row[0]} is running: end it, then migrate")
        for number in range(version, VERSION):
            await connection.execute(STEPS[number].encode())
        await connection.execute(_statements("functions"))
        await connection.execute("UPDATE version SET number = %s", (VERSION,))
        return version, VERSION


def _statements(part: str) -> bytes:
    return files(__package__).joinpath("sql", f"{part}.sql").read_bytes()
