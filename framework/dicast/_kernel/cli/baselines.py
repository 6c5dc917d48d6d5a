"""``dicast baseline``: runs under names that stay, and a run as a file for another machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ...toolkit.atomic_file import AtomicFile
from ...toolkit.printable import one_line
from ...toolkit.terminal import print_lines
from ...toolkit.text_table import TextTable
from ..api.runs import read_ledger
from ..contract.protocols import Ledger
from ..records.baseline import find_results
from ..records.portable import BEGINS, portable
from ..records.saved import check_name, remove_baseline, save_baseline, saved_baselines
from ..resume.named_runs import LAST, find_run
from ..resume.reading import document
from ..values.errors import ConfigError, Problem
from .options import as_json, ledger_path
from .output import print_json
from .summary import short_run


@click.group()
def baseline() -> None:
    """Give a run a name that later runs are compared with, or write it to a file for another machine.

    A pipeline names it with baseline: {run: NAME} or {run: FILE}, dicast compare by the same words.
    """


@baseline.command()
@click.argument("name")
@click.argument("run", default=LAST, required=False)
@click.option(
    "--file", type=click.Path(path_type=Path, dir_okay=False), help="Also write it to this file, to be read elsewhere."
)
@ledger_path
@as_json
def save(name: str, run: str, file: Path | None, ledger: Path | None, as_json: bool) -> None:
    """Save RUN, by default the last that has ended, as NAME. A NAME that is there moves to RUN."""
    check_name(name)
    found = read_ledger(ledger, lambda live: _save(live, name, run, file))
    if as_json:
        print_json(found)
        return
    written = "" if file is None else f", and wrote it to {file}"
    click.echo(one_line(f"saved run {found['run_id']} ({found['pipeline']}) as {name}{written}"))


def _save(live: Ledger, name: str, run: str, file: Path | None) -> dict[str, Any]:
    found = find_results(live, run, Path())
    if found is None or find_run(live, found.run_id) is None:
        why = "no run in this ledger has ended in order" if found is None else f"{run} is a file: name a run"
        raise ConfigError(Problem(why, path="RUN", value=run))
    done = document(live, found.run_id)
    output = None if file is None else AtomicFile(file, replaces=BEGINS)
    if output is None:
        save_baseline(live, name, found.run_id)
    else:
        _write(output, portable(found, done or {}, save_baseline(live, name, found.run_id)))
    return {
        "name": name,
        "run_id": found.run_id,
        "pipeline": found.name,
        "file": None if file is None else str(file),
    }


def _write(output: AtomicFile, content: bytes) -> None:
    try:
        with output:
            output.write(content)
            output.commit()
    except OSError as error:  # such as a disk that is full
        raise ConfigError(
            f"the baseline is saved, but cannot write {output.path}: {error.strerror or error}"
        ) from error


@baseline.command("list")
@ledger_path
@as_json
def list_(ledger: Path | None, as_json: bool) -> None:
    """List the saved baselines."""
    found = read_ledger(ledger, _listed)
    if as_json:
        print_json({"baselines": found})
    elif found:
        columns = ("name", "run", "pipeline", "saved at (UTC)", "score")
        rows = [
            (
                one["name"],
                short_run(one["run_id"]),
                one["pipeline"],
                one["saved_at"][:16].replace("T", " "),
                None if one["score"] is None else f"{one['score']:.4f}",
            )
            for one in found
        ]
        print_lines([TextTable(columns, rows, right=("score",))])
    else:
        click.echo("no baselines found; dicast baseline save NAME saves the last run", err=True)


def _listed(live: Ledger) -> list[dict[str, Any]]:
    listed = []
    for one in saved_baselines(live).values():
        done = document(live, one.run_id) or {}
        score = (done.get("score") or {}).get("mean")
        about = {"name": one.name, "run_id": one.run_id, "pipeline": done.get("name")}
        listed.append({**about, "saved_at": one.saved_at, "score": score})
    return listed


@baseline.command()
@click.argument("name")
@ledger_path
@as_json
def rm(name: str, ledger: Path | None, as_json: bool) -> None:
    """Take NAME away. The run stays, and so does the record that it had the name."""
    found = read_ledger(ledger, lambda live: remove_baseline(live, name))
    if as_json:
        print_json({"name": found.name, "run_id": found.run_id})
    else:
        click.echo(one_line(f"{found.name} is no baseline any more; run {found.run_id} stays"))
