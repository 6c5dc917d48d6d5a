"""Options that several commands share."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..contract.protocols import Ledger
    from ..source.shard import Shard

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


class ShardPart(click.ParamType["Shard"]):
    """Option with the number of a shard and the number of shards, such as ``3/8``."""

    name = "shard"

    def convert(self, value: str | Shard, param: click.Parameter | None, ctx: click.Context | None) -> Shard:
        """Return the shard."""
        from ..source.shard import MOST_SHARDS, Shard  # imported late: few runs are a shard

        if isinstance(value, Shard):
            return value
        match = re.fullmatch(r"([0-9]{1,9})/([0-9]{1,9})", value)
        number, of = map(int, match.groups()) if match else (0, 0)
        if not 1 <= number <= of <= MOST_SHARDS:
            self.fail(
                f"{value!r} is no shard; write I/N with I from 1 to N and N up to {MOST_SHARDS:,}, such as 3/8",
                param,
                ctx,
            )
        return Shard(number, of)


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
    help="Replace a value of the file by this YAML value; repeatable. A key with dots is in quotes: 'experiments.NAME.set.\"task.user\"=TEXT'.",
)
"""Decorator of a command: the option ``--set PATH=VALUE``, as the argument ``overrides``, a tuple of texts."""
full = click.option(
    "--full", is_flag=True, help="Print every figure, with methods, digests and notes, instead of one screen."
)
"""Decorator of a command: the option ``--full``, as the argument ``full``."""


def refuse_options(reason: str, options: Mapping[str, bool]) -> None:
    """Refuse the options that are present for *reason*; *options* is whether each option is present.

    :raises click.UsageError: naming the present options, to remove.
    """
    names = [name for name, is_present in options.items() if is_present]
    if names:
        raise click.UsageError(f"{reason}; remove {' and '.join(filter(None, (', '.join(names[:-1]), names[-1])))}")


def chosen_run(ledger: Ledger, name: str) -> str:
    """Return the id of the run that *name* selects, as :func:`dicast.named_run` does; print a note if a run over a part of the subjects or labels is involved.

    :raises ConfigError: if the ledger has no such run, or several.
    """
    from ...toolkit.printable import one_line
    from ...toolkit.terminal import print_wrapped
    from ..resume.named_runs import limited_run_text, named_run  # imported late: most commands read no run

    run_id = named_run(ledger, name)
    if (note := limited_run_text(ledger, name, run_id)) is not None:
        print_wrapped(one_line(f"note: {note}"), err=True)
    return run_id
