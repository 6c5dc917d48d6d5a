"""The command ``dicast cost``: sums of the spending in a ledger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import attrs
import click
import orjson

from dicast import ConfigError, Event, Ledger, Query, named_run, read_ledger
from dicast.commands import chosen_run, ledger_path
from dicast.reading import milliseconds, read_pricing_version
from dicast.reading.blocks.spent import AGENT, SPENT
from dicast.toolkit.printable import one_line

from .accounts import EVALS, GROUPS, Accounts, Group, Tally


def moment(_context: click.Context, _option: click.Parameter, text: str | None) -> datetime | None:
    """Return the ISO 8601 time *text*. A time without an offset is UTC; a date without a time is the start of the day."""
    if text is None:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise click.BadParameter(f"{text!r} is not an ISO 8601 time: write it like 2026-01-31T12:00:00Z") from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)


@click.command()
@click.option("--include-eval", is_flag=True, help="Add the spending of judges and metrics to the agent's own calls.")
@click.option("--group-by", "group", type=click.Choice(GROUPS), default="model", show_default=True)
@click.option("--run", "run_id", metavar="RUN", help="Only spending of this run.")
@click.option("--from", "start", metavar="TIME", callback=moment, help="From this ISO 8601 time on; all by default.")
@click.option("--to", "end", metavar="TIME", callback=moment, help="Before this time; all by default.")
@ledger_path
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document to stdout and nothing else.")
def cost(
    include_eval: bool,
    group: Group,
    run_id: str | None,
    start: datetime | None,
    end: datetime | None,
    ledger: Path | str | None,
    as_json: bool,
) -> None:
    """Add up the spending. The agent's calls in its trace count; with --include-eval, the calls of judges and metrics count too."""
    window = Window.of(start, end)
    if as_json:
        read = partial(read_cost, group_by=group, include_eval=include_eval, run=run_id, start=start, end=end)
        click.echo(orjson.dumps(read_ledger(ledger, read), option=orjson.OPT_INDENT_2))
        return
    accounts = read_ledger(ledger, lambda live: _read(live, group, run_id, window, include_eval=include_eval))
    for line in _lines(accounts, group):
        click.echo(one_line(line))
    if not include_eval:
        click.echo("only the agent's own calls; --include-eval adds the cost of judging them", err=True)


def read_cost(
    ledger: Ledger,
    *,
    group_by: Group = "model",
    include_eval: bool = False,
    run: str | None = None,
    start: datetime | None = None,
    end: datetime | None = None,
) -> dict[str, Any]:
    """Return the document of ``dicast cost --json`` of *ledger*, of events from *start*, inclusive, to *end*, exclusive.

    :raises ConfigError: when the window is empty, or there is no such run.
    """
    window = Window.of(start, end)
    document = _document(_read(ledger, group_by, run, window, include_eval=include_eval), group_by)
    prices = read_pricing_version(ledger, None if run is None else named_run(ledger, run))
    return {"window": window.document(), "current_pricing_version": prices, **document}


@attrs.frozen
class Window:
    """A window of time: *first*, inclusive, and *last*, exclusive, in milliseconds since 1970; None is an open end."""

    first: int | None = None
    last: int | None = None

    @classmethod
    def of(cls, start: datetime | None, end: datetime | None) -> Window:
        """Return the window from *start* to *end*.

        :raises ConfigError: when it ends before it begins.
        """
        if start is not None and end is not None and start >= end:
            raise ConfigError(f"--from {_written(start)} is not before --to {_written(end)}")
        return cls(*(None if moment is None else milliseconds(moment) for moment in (start, end)))

    @property
    def is_open(self) -> bool:
        """True if the window contains all times."""
        return self.first is None and self.last is None

    def has(self, event: Event) -> bool:
        """Return True if *event* is in the window. Events of verdicts always count, because they name the rubric of a cost."""
        if self.is_open or event.type in EVALS:
            return True
        time = datetime.fromisoformat(event.time)
        at = milliseconds(time if time.tzinfo else time.replace(tzinfo=UTC))
        return (self.first is None or self.first <= at) and (self.last is None or at < self.last)

    def document(self) -> dict[str, str | None]:
        """Return the two ends as ISO 8601 times; null is an open end."""
        ends = {"from": self.first, "to": self.last}
        return {
            name: None if end is None else _written(datetime.fromtimestamp(end / 1000, UTC))
            for name, end in ends.items()
        }


def _written(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _read(ledger: Ledger, group: Group, run_id: str | None, window: Window, *, include_eval: bool) -> Accounts:
    run_id = None if run_id is None else chosen_run(ledger, run_id)
    reservations = ledger.reservations(run_id) if include_eval else ()
    accounts = _read_spent(ledger, group, run_id, window, include_eval=include_eval)
    accounts.add_open(entry.event for entry in reservations if window.has(entry.event))
    return accounts


def _read_spent(ledger: Ledger, group: Group, run_id: str | None, window: Window, *, include_eval: bool) -> Accounts:
    reads = getattr(ledger, "spent", None) if group != "rubric" else None
    if reads is not None and (spent := reads(run_id)) is not None:
        mine = spent if window.is_open else spent.within(window.first, window.last)
        return Accounts(group).read_lines(mine, run_id, include_eval=include_eval)
    types = (AGENT, *(SPENT if include_eval else ()), *(EVALS if include_eval and group == "rubric" else ()))
    events = (entry.event for entry in ledger.read(Query(run_id=run_id, types=types)))
    return Accounts(group).read(event for event in events if window.has(event))


def _document(accounts: Accounts, group: Group) -> dict[str, Any]:
    """Return the JSON document. Amounts are decimal strings, or null if a price is unknown; amounts of other kinds have fields of their own."""
    data = [{group: name, **_sums(tally)} for name, tally in _sorted(accounts, group)]
    total = _sums(accounts.total)
    named = {"usd": "total_usd", "msat": "total_msat", "known_usd": "known_usd", "unpriced": "unpriced"}
    extra = {"lost": accounts.lost, "unsettled": accounts.unsettled}
    amounts = {f"{name}_{unit}": amount for name, tally in extra.items() for unit, amount in _nonzero(tally)}
    return {"data": data, **{name: total[key] for key, name in named.items() if key in total}, **amounts}


def _sums(tally: Tally) -> dict[str, Any]:
    amount = tally.usd.decimal
    sums = {"usd": None if tally.unpriced else amount, "calls": tally.calls, "tokens": tally.tokens}
    if not tally.msat.is_zero:
        sums["msat"] = tally.msat.decimal
    return sums | ({"unpriced": tally.unpriced, "known_usd": amount} if tally.unpriced else {})


def _nonzero(tally: Tally) -> Iterator[tuple[str, str | None]]:
    """Yield the units of *tally* with an amount, and their amounts."""
    yield from ((unit, cost.decimal) for unit, cost in (("usd", tally.usd), ("msat", tally.msat)) if not cost.is_zero)


def _sorted(accounts: Accounts, group: Group) -> Sequence[tuple[str | None, Tally]]:
    """Return the groups: days in their order, other groups with the most expensive first. The amounts without a group come last."""
    if group == "day":
        return sorted(accounts.groups.items(), key=lambda item: item[0] or "")
    return sorted(
        accounts.groups.items(),
        key=lambda item: (item[0] is None, -(item[1].usd.amount or 0), -(item[1].msat.amount or 0), item[0] or ""),
    )


def _lines(accounts: Accounts, group: Group) -> Iterator[str]:
    rows = [(name or "(none)", *_cells(tally)) for name, tally in _sorted(accounts, group)]
    with_msat = not accounts.total.msat.is_zero
    heads = (group, "usd", "calls", "tokens", *(["msat"] if with_msat else []))
    table = [heads, *(row[: len(heads)] for row in rows), ("total", *_cells(accounts.total))[: len(heads)]]
    widths = [max(len(row[column]) for row in table) for column in range(len(heads))]
    for first, *rest in table:
        yield "  ".join(
            [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))]
        )
    if accounts.total.unpriced:
        yield f"+: plus {accounts.total.unpriced:,} calls with an unknown price"
    for unit, amount in _nonzero(accounts.unsettled):
        yield f"not settled: at most {amount} {unit}, reserved for calls without a recorded cost; not in the sums"


def _cells(tally: Tally) -> tuple[str, str, str, str]:
    usd = f"{tally.usd.decimal}{'+' if tally.unpriced else ''}"
    return usd, f"{tally.calls:,}", "-" if tally.tokens is None else f"{tally.tokens:,}", str(tally.msat.decimal)
