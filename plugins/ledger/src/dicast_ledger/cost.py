"""``dicast cost``: what was spent, from a ledger."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import orjson

from dicast import Ledger, Query, known_run, one_line, read_ledger

from .accounts import EVALS, GROUPS, Accounts, Group, Tally
from .spent import AGENT, SPENT


@click.command()
@click.option("--include-eval", is_flag=True, help="Add what judges and metrics have spent to the agent's own calls.")
@click.option("--group-by", "group", type=click.Choice(GROUPS), default="model", show_default=True)
@click.option("--run", "run_id", metavar="ID|last", help="Only this run's.")
@click.option(
    "--ledger", type=click.Path(path_type=Path), help="The ledger; $DICAST_LEDGER or .dicast/ledger.db without it."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document to stdout, and nothing else there.")
def cost(include_eval: bool, group: Group, run_id: str | None, ledger: Path | None, as_json: bool) -> None:
    """Add up what was spent. The agent's own calls count, as its trace tells them, and with --include-eval the judging of them."""
    found = read_ledger(ledger, lambda live: _read(live, group, run_id, include_eval=include_eval))
    if as_json:
        click.echo(orjson.dumps(_document(found, group), option=orjson.OPT_INDENT_2))
        return
    for line in _lines(found, group):
        click.echo(one_line(line))
    if not include_eval:
        click.echo("the agent's own calls alone; --include-eval adds what judging them cost", err=True)


def read_cost(
    ledger: Ledger, *, group_by: Group = "model", include_eval: bool = False, run: str | None = None
) -> dict[str, Any]:
    """What ``dicast cost --json`` prints of *ledger*.

    :raises ConfigError: when it has no such run.
    """
    return _document(_read(ledger, group_by, run, include_eval=include_eval), group_by)


def _read(ledger: Ledger, group: Group, run_id: str | None, *, include_eval: bool) -> Accounts:
    run_id = None if run_id is None else known_run(ledger, run_id)
    reads = getattr(ledger, "spent", None) if group != "rubric" else None
    if reads is not None and (spent := reads(run_id, sessions=group == "session")) is not None:
        return Accounts(group).read_lines(spent, run_id, include_eval=include_eval)
    types = (AGENT, *(SPENT if include_eval else ()), *(EVALS if include_eval and group == "rubric" else ()))
    return Accounts(group).read(entry.event for entry in ledger.read(Query(run_id=run_id, types=types)))


def _document(found: Accounts, group: Group) -> dict[str, Any]:
    """Amounts are decimal strings, null where a price is not known; what is there of other kinds stands beside."""
    data = [{group: name, **_sums(tally)} for name, tally in _sorted(found, group)]
    total = _sums(found.total)
    named = {"usd": "total_usd", "msat": "total_msat", "known_usd": "known_usd", "unpriced": "unpriced"}
    lost = {f"lost_{unit}": amount for unit in ("usd", "msat") if (amount := _lost(found, unit)) is not None}
    return {"data": data, **{name: total[key] for key, name in named.items() if key in total}, **lost}


def _sums(tally: Tally) -> dict[str, Any]:
    known = tally.usd.decimal
    sums = {"usd": None if tally.unpriced else known, "calls": tally.calls, "tokens": tally.tokens}
    if not tally.msat.is_zero:
        sums["msat"] = tally.msat.decimal
    return sums | ({"unpriced": tally.unpriced, "known_usd": known} if tally.unpriced else {})


def _lost(found: Accounts, unit: str) -> str | None:
    lost = found.lost.usd if unit == "usd" else found.lost.msat
    return None if lost.is_zero else lost.decimal


def _sorted(found: Accounts, group: Group) -> Sequence[tuple[str | None, Tally]]:
    """Days in their order; else the dearest first, and what belongs to no group last."""
    if group == "day":
        return sorted(found.groups.items(), key=lambda item: item[0] or "")
    return sorted(
        found.groups.items(),
        key=lambda item: (item[0] is None, -(item[1].usd.amount or 0), -(item[1].msat.amount or 0), item[0] or ""),
    )


def _lines(found: Accounts, group: Group) -> Iterator[str]:
    rows = [(name or "(none)", *_cells(tally)) for name, tally in _sorted(found, group)]
    with_msat = not found.total.msat.is_zero
    heads = (group, "usd", "calls", "tokens", *(["msat"] if with_msat else []))
    table = [heads, *(row[: len(heads)] for row in rows), ("total", *_cells(found.total))[: len(heads)]]
    widths = [max(len(row[column]) for row in table) for column in range(len(heads))]
    for first, *rest in table:
        yield "  ".join(
            [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))]
        )
    if found.total.unpriced:
        yield f"+: besides {found.total.unpriced:,} calls whose price is not known"
    for unit in ("usd", "msat"):
        if (lost := _lost(found, unit)) is not None:
            yield f"lost: {lost} {unit} reserved for calls that ended unheard; not in the sums"


def _cells(tally: Tally) -> tuple[str, str, str, str]:
    usd = f"{tally.usd.decimal}{'+' if tally.unpriced else ''}"
    return usd, f"{tally.calls:,}", "-" if tally.tokens is None else f"{tally.tokens:,}", str(tally.msat.decimal)
