"""``dicast bisect``: report which of several changes moved the score."""

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
from .factors import between_files, named_cells, named_factors

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
    help="A change to FILE, as for --set; repeat the NAME to change several places together.",
)
@click.option(
    "--cell",
    "cell_runs",
    multiple=True,
    metavar="NAMES=RUN",
    help="Use this run for the cell with these factors swapped, such as model+prompt=last; =RUN names the run of FILE itself.",
)
@click.option("--on", metavar="LABEL", help="Label of the scores; by default all metrics, else the only judge.")
@click.option("--yes", is_flag=True, help="Judge missing cells without asking.")
@click.option("--seed", default=0, show_default=True, help="Seed of the resamples.")
@as_json
def bisect(
    file: Path,
    other: Path | None,
    factors: tuple[str, ...],
    cell_runs: tuple[str, ...],
    on: str | None,
    yes: bool,
    seed: int,
    as_json: bool,
) -> None:
    """Report how far each change moved the score. The measure is the Shapley value of each of several changes.

    The changes are the --factor options, or the differences between FILE and OTHER, another pipeline file: each differing place is a factor, named by its path.

    Every combination of changes is a cell, which is a run. A cell with a finished run in the ledger is not judged again. The command reports the greatest cost of the missing cells
    and asks before it judges them. Without a terminal or --yes it judges none; a factor is then null if no two recorded runs differ in it alone.
    """
    changes = named_factors(factors) if other is None else between_files(file, other, factors)
    work = Bisection(file, changes, on)
    cells = work.recorded(named_cells(cell_runs, changes))
    missing = [cell for cell in every_cell([*changes]) if cell not in cells]
    if missing and work.confirm(missing, yes=yes):
        cells |= work.judge(missing)
    if frozenset() not in cells or len(cells) < 2:
        raise ConfigError(
            f"the ledger has {len(cells)} of {2 ** len(changes)} cells, too few to compare: run FILE with and without the changes, or add --yes to judge them"
        )
    result = document(cells, [*changes], seed)
    if as_json:
        print_json(result)
    else:
        print_lines(_lines(result))


@attrs.frozen
class CellRun:
    """Run of a cell: its id, whether it was in the ledger already, and its scores."""

    run_id: str
    cached: bool
    scores: Scores


@attrs.frozen
class Bisection:
    """Cells of *file* with its *changes*, and their runs."""

    file: Path
    changes: Mapping[str, Sequence[str]]
    on: str | None

    def _judges(self, cell: Cell) -> PipelineJudges:
        return pipeline_judges(self.file, self._overrides(cell))

    def _overrides(self, cell: Cell) -> list[str]:
        return [change for name in self.changes if name in cell for change in self.changes[name]]

    def recorded(self, named_runs: Mapping[Cell, str]) -> dict[Cell, CellRun]:
        """Return the cells with a finished run in the ledger: the runs in *named_runs*, else the newest run with the same fingerprints."""
        every = every_cell([*self.changes])
        fingerprints = {cell: self._judges(cell).fingerprints for cell in every if cell not in named_runs}

        def read(ledger: Ledger) -> dict[Cell, CellRun]:
            runs = {cell: named_run(ledger, run_id) for cell, run_id in named_runs.items()}
            runs |= _newest_runs(ledger, fingerprints)
            return {
                cell: CellRun(runs[cell], True, read_scores(ledger, runs[cell], self.on))
                for cell in every
                if cell in runs
            }

        return self._judges(frozenset()).read_ledger(read)

    def confirm(self, missing: Sequence[Cell], *, yes: bool) -> bool:
        """Report the greatest cost of the *missing* cells and ask whether to judge them; return False without a terminal to ask at."""
        costs, subjects = {"usd": Cost.zero(), "msat": Cost.zero("msat")}, 0
        for cell in missing:
            forecast = self._judges(cell).forecast()
            subjects = forecast.subjects
            costs["usd"], costs["msat"] = costs["usd"] + forecast.usd, costs["msat"] + forecast.msat
        most = " and ".join(str(cost) for cost in costs.values() if not cost.is_zero)
        message = f"{len(missing)} of {2 ** len(self.changes)} cells have to be judged, {subjects:,} subjects each, "
        message += f"for at most {most} under the budget of {self.file}" if most else "at no cost"
        click.echo(one_line(message), err=True)
        if yes:
            return True
        if not sys.stdin.isatty():
            click.echo("nothing is judged: standard input is not a terminal to ask at; add --yes to agree", err=True)
            return False
        return click.confirm("Judge them?", err=True)

    def judge(self, missing: Sequence[Cell]) -> dict[Cell, CellRun]:
        """Run the *missing* cells and return the completed ones."""
        cells = {}
        for cell in missing:
            result = run(self.file, overrides=self._overrides(cell), kind="tool")
            if result.run_id is None or result.stopped is not None:
                reason = (result.stopped or {}).get("reason", "it was disabled")
                click.echo(one_line(f"cell {_name(cell)} did not complete: {reason}"), err=True)
                continue
            scores = self._judges(cell).read_ledger(partial(read_scores, run_id=result.run_id, label=self.on))
            cells[cell] = CellRun(result.run_id, False, scores)
        return cells


def _newest_runs(ledger: Ledger, fingerprints: Mapping[Cell, Mapping[str, str]]) -> dict[Cell, str]:
    """Return the newest finished run with the fingerprints of each cell."""
    finished = {entry.event.run_id for entry in ledger.read(Query(types=("run.completed",)))}
    runs: dict[Cell, str] = {}
    for entry in ledger.read(Query(types=("run.started",), newest_first=True)):
        payload: Mapping[str, Any] = entry.event.payload
        if entry.event.run_id not in finished or payload.get("preview") or payload.get("limit") is not None:
            continue
        run_prints = {key: value for key, value in payload["fingerprints"].items() if key != "data"}
        for cell, cell_fingerprints in fingerprints.items():
            if run_prints == dict(cell_fingerprints):
                runs.setdefault(cell, entry.event.run_id)
    return runs


def document(cells: Mapping[Cell, CellRun], factors: Sequence[str], seed: int) -> dict[str, Any]:
    """Return the result of the *cells* as JSON data.

    :raises ConfigError: if they have no subject in common.
    """
    import numpy as np

    first = cells[frozenset()].scores
    common = [
        factor_share
        for factor_share in first.scores
        if all(_has_same_content(judged.scores, first, factor_share) for judged in cells.values())
    ]
    if not common:
        raise ConfigError("the cells have no common subject with the same content: judge the same data in each")
    columns: dict[Cell, NDArray[Any]] = {
        cell: np.array([judged.scores.scores[subject] for subject in common]) for cell, judged in cells.items()
    }
    by_factor, all_swapped = shares(factors, columns, seed), frozenset(factors)
    total = columns[all_swapped] - columns[frozenset()] if all_swapped in columns else None
    ends = (None, None) if total is None else interval(total, seed)
    return {
        "label": first.label,
        "n": len(common),
        "total": {"difference": None if total is None else float(total.mean()), "ci_low": ends[0], "ci_high": ends[1]},
        "factors": {name: _share_document(share) for name, share in by_factor.items()},
        "cells": [
            {"swapped": sorted(cell), "run_id": judged.run_id, "cached": judged.cached, "mean": float(columns[cell].mean())}
            for cell, judged in sorted(cells.items(), key=lambda item: (len(item[0]), sorted(item[0])))
        ],
        "reasons": {name: "no two cells differ in this factor alone" for name, factor_share in by_factor.items() if factor_share.value is None},
    }  # fmt: skip


def _has_same_content(scores: Scores, first: Scores, subject: Subject) -> bool:
    return subject in scores.scores and scores.contents.get(subject) == first.contents.get(subject)


def _share_document(share: Share) -> dict[str, Any]:
    ends = {"shapley": share.value, "ci_low": share.low, "ci_high": share.high}
    return {**ends, "exact": share.is_exact, "pairs": share.pairs, "of_pairs": share.of}


def _name(cell: Cell) -> str:
    return "+".join(sorted(cell)) or "FILE itself"


def _lines(result: Mapping[str, Any]) -> Iterator[Any]:
    total = result["total"]
    effect = (
        "not judged" if total["difference"] is None else f"{total['difference']:+.4f}, 95 % interval {_between(total)}"
    )
    yield f"{result['label']}, {result['n']:,} subjects"
    yield f"all changes together: {effect}"
    yield ""
    heads = ("factor", "moves it by", "95 % interval", "pairs of cells")
    rows = [
        (name, "-" if row["shapley"] is None else f"{row['shapley']:+.4f}", _between(row), f"{row['pairs']} of {row['of_pairs']}")
        for name, row in result["factors"].items()
    ]  # fmt: skip
    yield TextTable(heads, rows, right=heads[1:2])
    yield from (f"{name}: not known, {why}" for name, why in result["reasons"].items())
    yield ""
    cells = [
        ("+".join(row["swapped"]) or "(none)", row["mean"], row["run_id"], "yes" if row["cached"] else "no")
        for row in result["cells"]
    ]
    yield TextTable(
        ("swapped", "mean", "run", "recorded"),
        [(name, f"{mean:.4f}", *columns) for name, mean, *columns in cells],
        right=("mean",),
    )


def _between(figure: Mapping[str, Any]) -> str:
    return "" if figure["ci_low"] is None else f"{figure['ci_low']:+.4f} to {figure['ci_high']:+.4f}"
