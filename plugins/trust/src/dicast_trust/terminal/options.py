"""Options that several commands share, and the checks of their values."""

from __future__ import annotations

from pathlib import Path

import click

from dicast import ConfigError
from dicast.toolkit.atomic_file import AtomicFile
from dicast.toolkit.overwriting import refuse_overwrite

any_output = click.option(
    "--any-output",
    is_flag=True,
    help="Compare labels with verdicts on every output of a subject, also on outputs of a task.",
)
"""Option of commands that compare labels with verdicts."""


def rate(ctx: click.Context, param: click.Parameter, value: float) -> float:
    """Return *value* if it lies strictly between 0 and 1.

    :raises BadParameter: for any other value, NaN included.
    """
    if not 0 < value < 1:
        raise click.BadParameter(
            f"{value} does not lie between 0 and 1; write a number such as {param.get_default(ctx)}", ctx, param
        )
    return value


def share(ctx: click.Context, param: click.Parameter, value: float) -> float:
    """Return *value* if it is from 0 to 1.

    :raises BadParameter: for any other value, NaN included.
    """
    if not 0 <= value <= 1:
        raise click.BadParameter(f"{value} is not a number from 0 to 1", ctx, param)
    return value


def names(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names in *value*, split at commas, without repeats."""
    return tuple(dict.fromkeys(name.strip() for text in value for name in text.split(",") if name.strip()))


def check_out(out: Path | None, *inputs: Path | str, replaces: bytes) -> None:
    """Refuse to overwrite one of the *inputs*, or a file that does not begin with *replaces*.

    :raises BadParameter: with the name of the file.
    """
    if out is None:
        return
    try:
        refuse_overwrite(out, inputs)
        AtomicFile(out, replaces=replaces).discard()
    except ConfigError as error:
        raise click.BadParameter(str(error)) from error


def write_out(out: Path, content: bytes, replaces: bytes) -> None:
    """Write *content* to the file *out*, which may replace only a file that begins with *replaces*.

    :raises ConfigError: if the file cannot be written, or has other content.
    """
    with AtomicFile(out, replaces=replaces) as file:
        file.write(content)
        file.commit()
