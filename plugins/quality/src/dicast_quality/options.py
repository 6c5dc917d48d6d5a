"""Option types of the commands: shares, times, a ledger, and names that must be in it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from datetime import UTC, datetime

import click

from dicast import ConfigError, Problem, nearest


def share(ctx: click.Context, param: click.Parameter, value: float) -> float:
    """Return *value* after a check that it is from 0 to 1; NaN is refused."""
    if not 0 <= value <= 1:
        raise click.BadParameter(f"{value} is not a number from 0 to 1", ctx, param)
    return value


def moment(ctx: click.Context, param: click.Parameter, value: str | None) -> datetime | None:
    """Return *value*, an ISO 8601 time, in UTC. A time without an offset is UTC; a date without a time is the start of the day."""
    if value is None:
        return None
    try:
        time = datetime.fromisoformat(value)
    except ValueError as error:
        wrong = f"{value!r} is not an ISO 8601 time; write it like 2026-01-31T12:00:00Z"
        raise click.BadParameter(wrong, ctx, param) from error
    return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)


def written(moment: datetime) -> str:
    """Return *moment* (in UTC) in the ledger's notation, so that texts can be compared."""
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{moment.microsecond // 1000:03d}Z"


def check_labels(labels: Collection[str], known_labels: Collection[str], which: str = "") -> None:
    """Check that *labels* are among *known_labels*; *which* describes their source.

    :raises ConfigError: naming every unknown label, and the nearest known one.
    """
    names = ", ".join(sorted(known_labels))
    wrong = [
        Problem(
            f"no judge {label!r} in this ledger{which}; its judges are {names}",
            value=label,
            hint=nearest(label, known_labels),
        )
        for label in dict.fromkeys(labels)
        if label not in known_labels
    ]
    if wrong:
        raise ConfigError(wrong)


def as_texts(numbers: Callable[[float], str], *values: float | None) -> tuple[str, ...]:
    """Return *values* as texts, with a dash for None."""
    return tuple("-" if value is None else numbers(value) for value in values)
