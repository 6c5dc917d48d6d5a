"""Options that several commands share."""

from __future__ import annotations

import os
from pathlib import Path

import click

as_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON document to stdout and nothing else.")
"""Decorator of a command: the option ``--json``, as the argument ``as_json``."""


class LedgerPlace(click.ParamType[Path | str]):
    """Option with a path, or with the URL or the component of a ledger, which stays text."""

    name = "path"

    def convert(self, value: str | Path, param: click.Parameter | None, ctx: click.Context | None) -> Path | str:
        """Return the path, or the text."""
        if not isinstance(value, str):
            return value
        from ..pipeline.ledger_path import ledger_place  # imported late: most commands get no --ledger

        return ledger_place(value)


LEDGER = LedgerPlace()

ledger_path = click.option(
    "--ledger",
    type=LEDGER,
    help="Ledger: a path, a URL or '{plugin/name: {options}}'. Default: $DICAST_LEDGER, else .dicast/ledger.db.",
)
"""Decorator of a command: the option ``--ledger PLACE``, as the argument ``ledger``; None without it. A URL or a component is text."""


def _or_default(ctx: click.Context, param: click.Parameter, places: tuple[Path | str, ...]) -> tuple[Path | str, ...]:
    return places or (LEDGER.convert(os.environ.get("DICAST_LEDGER") or ".dicast/ledger.db", param, ctx),)


ledger_paths = click.option(
    "--ledger",
    "ledgers",
    multiple=True,
    type=LEDGER,
    callback=_or_default,
    help="Ledger: a path, a URL or '{plugin/name: {options}}'; repeatable. Default: $DICAST_LEDGER, else .dicast/ledger.db.",
)
"""Decorator of a command: the repeatable option ``--ledger PLACE``, as the argument ``ledgers``, a tuple with one place at least."""
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
