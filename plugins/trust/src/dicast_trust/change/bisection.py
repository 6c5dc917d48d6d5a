"""``dicast bisect``: which of several changes moved the score."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs
import click

from dicast import ConfigError, Cost, Ledger, PipelineJudges, Query, named_run, pipeline_judges, run
from dicast.commands import as_json, print_json
from dicast.toolkit.printable import one_line
from dicast.toolkit.terminal import print_lines
from dicast.toolkit.text_table import TextTable

from ..statistics.shapley import Cell, Share, every_cell, interval, shares
from .bridge import Scores, Subject, read_scores
from .factors import between_files, given_cells, named_factors

if TYPE_CHECKING:
    from numpy.typing import NDArray


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("other", type=click.Path(path_type=Path), required=False)
@click.option(
    "--factor",
    "factors",
    multiple=True,
    metavar="NAME=PATH=VALUE",
    help="A change to FILE, as after --set; the same NAME twice changes two places at once.",
)
@click.option(
    "--cell",
    "given",
    multiple=True,
    metavar="NAMES=RUN",
    help="Take this run for the cell where these factors are swapped: model+prompt=last; =RUN is FILE as it is.",
)
@click.option("--on", metavar="LABEL", help="Whose scores; by default those of all metrics, else of the only judge.")
@click.option("--yes", is_flag=True, help="Buy what cells are missing without asking.")
@click.option("--seed", default=0, show_default=True, help="Of the resamples.")
@as_json
def bisect(
    file: Path,
    other: Path | None,
    factors: tuple[str, ...],
    given: tuple[str, ...],
    on: str | None,
    yes: bool,
    seed: int,
    as_json: bool,
) -> None:
    """Say which of several changes moved the score. By how much is the Shapley value of each.

    The changes are the --factor options, or what differs between FILE and OTHER, another pipeline file: each place in them is a factor, named by its path.

    Every combination of changes is a cell, which is a run. Cells that the ledger has a finished run of are not judged again; what the others may cost is said, and asked. Without a
    terminal, and without --yes, nothing is bought: a factor that no two recorded runs differ in alone is null then.
    """
    changes = named_factors(factors) if other is None else between_files(file, other, factors)
    work = Bisection(file, changes, on)
    cells = work.cached(given_cells(given, changes))
    missing = [cell for cell in every_cell([*changes]) if cell not in cells]
    if missing and work.agreed(missing, yes=yes):
        cells |= work.bought(missing)
    if frozenset() not in cells or len(cells) < 2:
        raise ConfigError(
            f"the ledger has {len(cells)} of {2 ** len(changes)} cells, which says nothing: run FILE with and without the changes, or add --yes to buy them"
        )
    found = document(cells, [*changes], seed)
    if as_json:
        print_json(found)
    else:
        print_lines(_lines(found))


@attrs.frozen
class Judged:
    """A cell that was judged: by which run, whether it was there already, and the scores."""

    run_id: str
    cached: bool
    scores: Scores


@attrs.frozen
class Bisection:
    """The cells of *file* with its *changes*, and what is known of them."""

    file: Path
    changes: Mapping[str, Sequence[str]]
    on: str | None

    def _built(self, cell: Cell) -> PipelineJudges:
        return pipeline_judges(self.file, self._overrides(cell))

    def _overrides(self, cell: Cell) -> list[str]:
        return [change for name in self.changes if name in cell for change in self.changes[name]]

    def cached(self, given: Mapping[Cell, str]) -> dict[Cell, Judged]:
        """The cells that the ledger has a finished run of: those that are *given*, else the newest with the same fingerprints."""
        every = every_cell([*self.changes])
        prints = {cell: self._built(cell).fingerprints for cell in every if cell not in given}

        def read(ledger: Ledger) -> dict[Cell, Judged]:
            runs = {cell: named_run(ledger, run_id) for cell, run_id in given.items()}
            runs |= _recorded(ledger, prints)
            return {
                cell: Judged(runs[cell], True, read_scores(ledger, runs[cell], self.on))
                for cell in every
                if cell in runs
            }

        return self._built(frozenset()).read_ledger(read)

    def agreed(self, missing: Sequence[Cell], *, yes: bool) -> bool:
        """Say what the *missing* cells may cost, and ask whether to buy them; False where nobody can be asked."""
        costs, subjects = {"usd": Cost.zero(), "msat": Cost.zero("msat")}, 0
        for cell in missing:
            found = self._built(cell).forecast()
            subjects = found.subjects
            costs["usd"], costs["msat"] = costs["usd"] + found.usd, costs["msat"] + found.msat
        most = " and ".join(str(cost) for cost in costs.values() if not cost.is_zero)
        told = f"{len(missing)} of {2 ** len(self.changes)} cells are to be judged, {subjects:,} subjects each, "
        told += f"for at most {most} under the budget of {self.file}" if most else "at no cost"
        click.echo(one_line(told), err=True)
        if yes:
            return True
        if not sys.stdin.isatty():
            click.echo(
                "nothing is bought: nobody can be asked, as standard input is no terminal; --yes agrees", err=True
            )
            return False
        return click.confirm("Judge them?", err=True)

    def bought(self, missing: Sequence[Cell]) -> dict[Cell, Judged]:
        """Run the *missing* cells; those that do not end in order stay missing."""
        found = {}
        for cell in missing:
            done = run(self.file, overrides=self._overrides(cell), kind="tool")
            if done.run_id is None or done.stopped is not None:
                reason = (done.stopped or {}).get("reason", "it was switched off")
                click.echo(one_line(f"cell {_name(cell)} did not end in order: {reason}"), err=True)
                continue
            scores = self._built(cell).read_ledger(partial(read_scores, run_id=done.run_id, label=self.on))
            found[cell] = Judged(done.run_id, False, scores)
        return found


def _recorded(ledger: Ledger, prints: Mapping[Cell, Mapping[str, str]]) -> dict[Cell, str]:
    """The newest finished run with the fingerprints of each cell."""
    finished = {entry.event.run_id for entry in ledger.read(Query(types=("run.completed",)))}
    found: dict[Cell, str] = {}
    for entry in ledger.read(Query(types=("run.started",), newest_first=True)):
        payload: Mapping[str, Any] = entry.event.payload
        if entry.event.run_id not in finished or payload.get("preview") or payload.get("limit") is not None:
            continue
        own = {key: value for key, value in payload["fingerprints"].items() if key != "data"}
        for cell, wanted in prints.items():
            if own == dict(wanted):
                found.setdefault(cell, entry.event.run_id)
    return found


def document(cells: Mapping[Cell, Judged], factors: Sequence[str], seed: int) -> dict[str, Any]:
    """What the *cells* come to.

    :raises ConfigError: when they have no subject in common.
    """
    import numpy as np

    first = cells[frozenset()].scores
    common = [one for one in first.scores if all(_same(judged.scores, first, one) for judged in cells.values())]
    if not common:
        raise ConfigError("the cells have no subject in common with the same content: judge the same data in each")
    columns: dict[Cell, NDArray[Any]] = {
        cell: np.array([judged.scores.scores[subject] for subject in common]) for cell, judged in cells.items()
    }
    found, whole = shares(factors, columns, seed), frozenset(factors)
    total = columns[whole] - columns[frozenset()] if whole in columns else None
    ends = (None, None) if total is None else interval(total, seed)
    return {
        "label": first.label,
        "n": len(common),
        "total": {"difference": None if total is None else float(total.mean()), "ci_low": ends[0], "ci_high": ends[1]},
        "factors": {name: _shown(share) for name, share in found.items()},
        "cells": [
            {"swapped": sorted(cell), "run_id": judged.run_id, "cached": judged.cached, "mean": float(columns[cell].mean())}
            for cell, judged in sorted(cells.items(), key=lambda one: (len(one[0]), sorted(one[0])))
        ],
        "reasons": {name: "no two cells differ in it alone: it was never swapped alone" for name, one in found.items() if one.value is None},
    }  # fmt: skip


def _same(scores: Scores, first: Scores, subject: Subject) -> bool:
    return subject in scores.scores and scores.contents.get(subject) == first.contents.get(subject)


def _shown(share: Share) -> dict[str, Any]:
    ends = {"shapley": share.value, "ci_low": share.low, "ci_high": share.high}
    return {**ends, "exact": share.exact, "pairs": share.pairs, "of_pairs": share.of}


def _name(cell: Cell) -> str:
    return "+".join(sorted(cell)) or "FILE as it is"


def _lines(found: Mapping[str, Any]) -> Iterator[Any]:
    total = found["total"]
    told = "not judged" if total["difference"] is None else f"{total['difference']:+.4f}, 95 % {_between(total)}"
    yield f"{found['label']}, {found['n']:,} subjects"
    yield f"all changes together: {told}"
    yield ""
    heads = ("factor", "moves it by", "95 % interval", "pairs of cells")
    rows = [
        (name, "-" if one["shapley"] is None else f"{one['shapley']:+.4f}", _between(one), f"{one['pairs']} of {one['of_pairs']}")
        for name, one in found["factors"].items()
    ]  # fmt: skip
    yield TextTable(heads, rows, right=heads[1:2])
    yield from (f"{name}: not known, {why}" for name, why in found["reasons"].items())
    yield ""
    cells = [
        ("+".join(one["swapped"]) or "(none)", one["mean"], one["run_id"], "yes" if one["cached"] else "no")
        for one in found["cells"]
    ]
    yield TextTable(
        ("swapped", "mean", "run", "recorded"),
        [(name, f"{mean:.4f}", *more) for name, mean, *more in cells],
        right=("mean",),
    )


def _between(one: Mapping[str, Any]) -> str:
    return "" if one["ci_low"] is None else f"{one['ci_low']:+.4f} to {one['ci_high']:+.4f}"
