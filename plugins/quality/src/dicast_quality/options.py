"""What the commands are told: shares, times, a ledger, and names that have to be in it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime
from pathlib import Path

import click

from dicast import ConfigError, Problem, nearest

ledger_path = click.option(
    "--ledger", type=click.Path(path_type=Path), help="The ledger; $DICAST_LEDGER or .dicast/ledger.db without it."
)
as_json = click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON document to stdout, and nothing else there."
)


def share(ctx: click.Context, param: click.Parameter, value: float) -> float:
    """*value*, which has to be from 0 to 1; NaN is not."""
    if not 0 <= value <= 1:
        raise click.BadParameter(f"{value} is not a number from 0 to 1", ctx, param)
    return value


def moment(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    """*value*, an ISO 8601 time, in UTC; one without an offset is UTC, a date alone is its first moment."""
    if value is None:
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError as error:
        wrong = f"{value!r} is no ISO 8601 time; write it like 2026-01-31T12:00:00Z"
        raise click.BadParameter(wrong, ctx, param) from error
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)


def written(moment: datetime) -> str:
    """*moment* (in UTC) as the ledger writes it, so that texts can be compared."""
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def check_labels(given: Collection[str], known: Collection[str], which: str = "") -> None:
    """See that *given* labels are *known* ones; *which* says where these are from.

    :raises ConfigError: naming every other, and the nearest right one.
    """
    names = ", ".join(sorted(known))
    wrong = [
        Problem(f"no judge {label!r} in this ledger{which}; there are {names}", value=label, hint=nearest(label, known))
        for label in dict.fromkeys(given)
        if label not in known
    ]
    if wrong:
        raise ConfigError(wrong)


def shown(numbers: Callable[[float], str], *values: float | None) -> tuple[str, ...]:
    """Each of *values* as text, a dash where there is none."""
    return tuple("-" if value is None else numbers(value) for value in values)
