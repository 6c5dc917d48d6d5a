"""The command ``dicast ledger migrate``."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from dicast import ConfigError, Secret
from dicast.commands import as_json, ledger_path, ledger_section, print_json
from dicast.toolkit.printable import one_line

from .component import Ledger

_NAME = "postgres/ledger"


@click.command()
@ledger_path
@as_json
def migrate(ledger: Path | str | None, as_json: bool) -> None:
    """Change the tables of a ledger in PostgreSQL from an older version to the newest. End all runs first, and make a backup."""
    component = _component_of(ledger_section(ledger))
    place, before, after = asyncio.run(_migrated(component))
    if as_json:
        print_json({"version_before": before, "version": after})
    elif before == after:
        click.echo(one_line(f"{place}: version {after} is the newest: nothing to do"))
    else:
        click.echo(one_line(f"{place}: version {before} is now version {after}"))


def _component_of(section: object) -> Ledger:
    """Return the component of a section ``ledger``.

    :raises ConfigError: if it is another ledger.
    """
    options = section.get(_NAME) if isinstance(section, dict) else None
    if not isinstance(options, dict) or not isinstance(options.get("url"), str):
        raise ConfigError(f"--ledger is no {_NAME}: name it as postgresql://USER@HOST/DATABASE")
    return Ledger(Secret(options["url"]), schema=str(options.get("schema", "dicast")))


async def _migrated(component: Ledger) -> tuple[str, int, int]:
    import psycopg  # importing it takes 100 ms

    from .server import Server
    from .versions import migrate as migrate_schema

    server = Server.of(component.url.value, component.schema)
    try:
        async with await server.connect() as connection:
            return (server.place, *await migrate_schema(connection, server))
    except psycopg.Error as error:
        raise server.refused(error) from error
