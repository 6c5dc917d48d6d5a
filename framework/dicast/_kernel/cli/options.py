"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path

import click

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document to stdout and nothing else.")
"""Decorator of a command: the option ``--json``, as the argument ``as_json``."""
ledger_path = click.option(
    "--ledger",
    type=click.Path(path_type=Path),
    help="Path of the ledger. Default: $DICAST_LEDGER, else .dicast/ledger.db.",
)
"""Decorator of a command: the option ``--ledger PATH``, as the argument ``ledger``; None without it."""
overrides = click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="PATH=VALUE",
    help="Replace a value of the file by this YAML value; repeatable.",
)
"""Decorator of a command: the option ``--set PATH=VALUE``, as the argument ``overrides``, a tuple of texts."""
full = click.option(
    "--full", is_flag=True, help="Print every figure, with methods, digests and notes, instead of one screen."
)
"""Decorator of a command: the option ``--full``, as the argument ``full``."""
