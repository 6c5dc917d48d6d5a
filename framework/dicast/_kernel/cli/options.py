"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path

import click

as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document to stdout, and nothing else there."
)
ledger_path = click.option(
    "--ledger", type=click.Path(path_type=Path), help="The ledger; $DICAST_LEDGER or .dicast/ledger.db without it."
)
overrides = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="PATH=VALUE",
    help="Use a YAML value instead of the file's; repeatable.",
)
