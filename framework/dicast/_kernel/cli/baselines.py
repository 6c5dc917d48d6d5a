"""``dicast baseline``: runs saved under a permanent name, and a run as a file for another machine."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import click

from ...toolkit.atomic_file import AtomicFile
from ...toolkit.printable import one_line
from ...toolkit.terminal import print_lines
from ...toolkit.text_table import TextTable
from ..api.runs import read_ledger
from ..contract.protocols import Ledger
from ..events import RUN_COMPLETED, RUN_STARTED
from ..records.baseline import find_results
from ..records.portable import PREFIX, portable
from ..resume.named_runs import LAST, find_run, limited_run_text, newest_run, started_runs
from ..resume.queries import document
from ..resume.saved import check_name, remove_baseline, save_baseline, saved_baselines
from ..values import Query, Results
from ..values.errors import ConfigError, Problem
from .options import as_json, ledger_path
from .output import print_json
from .summary import short_run


@click.group()
def baseline() -> None:
    """Name a run as a baseline for later runs, or write it to a file for another machine.

    Use it in a pipeline with baseline: {run: NAME} or {run: FILE}, and in dicast compare with the same NAME or FILE.
    """


@baseline.command()
@click.argument("name")
@click.argument("run", default=LAST, required=False)
@click.option(
    "--file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write the run to this file, for another machine.",
)
@ledger_path
@as_json
def save(name: str, run: str, file: Path | None, ledger: Path | str | None, as_json: bool) -> None:
    """Save RUN as NAME: a run, or the newest finished run of the pipeline that RUN names.

    The default is the last completed run of any pipeline. An existing NAME moves to RUN.
    """
    check_name(name)
    entry = read_ledger(ledger, lambda open_ledger: _save(open_ledger, name, run, file))
    if as_json:
        print_json(entry)
        return
    if "warning" in entry:
        click.echo(f"warning: {one_line(entry['warning'])}", err=True)
    file_note = "" if file is None else f", and wrote it to {file}"
    click.echo(one_line(f"saved run {entry['run_id']} ({entry['pipeline']}) as {name}{file_note}"))


def _save(ledger: Ledger, name: str, run: str, file: Path | None) -> dict[str, Any]:
    results = find_results(ledger, run, Path())
    if results is None or find_run(ledger, results.run_id) is None:
        none_completed = "no run in this ledger was completed; dicast runs lists the runs"
        problem = none_completed if results is None else f"{run} is a file; name a run of this ledger"
        raise ConfigError(Problem(problem, path="RUN", value=run))
    run_document = document(ledger, results.run_id)
    early = None if results.stopped is None else _stopped_text(results.run_id, results.stopped)
    warning = early
    if run == LAST:
        warning = early or _open_run_text(ledger, results) or _others_text(ledger, results, name)
    elif run == results.name:
        warning = early or _open_run_text(ledger, results, run) or limited_run_text(ledger, run, results.run_id)
    warnings = [text for text in (warning, _moved_text(ledger, results, name)) if text is not None]
    output = None if file is None else AtomicFile(file, replaces=PREFIX)
    if output is None:
        save_baseline(ledger, name, results.run_id)
    else:
        _write(output, portable(results, run_document or {}, save_baseline(ledger, name, results.run_id)))
    return {
        "name": name,
        "run_id": results.run_id,
        "pipeline": results.name,
        "file": None if file is None else str(file),
        **({"warning": "; ".join(warnings)} if warnings else {}),
    }


def _open_run_text(ledger: Ledger, results: Results, pipeline: str | None = None) -> str | None:
    """Return the message that a run newer than *results*, of *pipeline* if it is given, was not completed; None if there is no such run."""
    if pipeline is None:
        run_id = newest_run(ledger.read)
    else:
        starts = (entry.event for entry in started_runs(ledger.read))
        run_id = next((start.run_id for start in starts if start.payload.get("name") == pipeline), None)
        run_id = None if any(ledger.read(Query(run_id, (RUN_COMPLETED,), limit=1))) else run_id
    if run_id is None or run_id == results.run_id:
        return None
    name = next(entry.event.payload.get("name") for entry in ledger.read(Query(run_id, (RUN_STARTED,), limit=1)))
    return (
        f"the newest run, {run_id} ({name}), was not completed, so the run before it was saved: "
        f"{results.run_id} ({results.name})"
    )


def _moved_text(ledger: Ledger, results: Results, name: str) -> str | None:
    """Return the message that *name* was a run of another pipeline than *results*, whose gates compare with it; None if it was not."""
    saved = saved_baselines(ledger).get(name)
    pipeline = None if saved is None else (document(ledger, saved.run_id) or {}).get("name")
    if pipeline is None or pipeline == results.name:
        return None
    command = f"dicast baseline save {shlex.quote(f'{pipeline}-{name}')} {shlex.quote(pipeline)}"
    return (
        f"{name} was a run of {pipeline}, and is a run of {results.name} from now on: a gate of {pipeline} with baseline: {name} "
        f"compares with no run of its own; give each pipeline a name of its own, as in {command}"
    )


def _others_text(ledger: Ledger, results: Results, name: str) -> str | None:
    """Return the message that the ledger has runs of other pipelines than *results*; None if it has none."""
    names = dict.fromkeys(str(entry.event.payload.get("name")) for entry in started_runs(ledger.read))
    if not (others := [other for other in names if other != results.name]):
        return None
    command = f"dicast baseline save {name} {shlex.quote(results.name)}"
    return f"the last run was saved, a run of {results.name}; the ledger also has runs of {', '.join(others)}: name the pipeline, as in {command}"


def _stopped_text(run_id: str, reason: str) -> str:
    """Return the message that the run was stopped before its end."""
    return f"run {run_id} was stopped before its end ({reason}), so no gate compares with it"


def _write(output: AtomicFile, content: bytes) -> None:
    try:
        with output:
            output.write(content)
            output.commit()
    except OSError as error:  # such as a full disk
        raise ConfigError(
            f"the baseline is saved, but cannot write {output.path}: {error.strerror or error}"
        ) from error


@baseline.command("list")
@ledger_path
@as_json
def list_(ledger: Path | str | None, as_json: bool) -> None:
    """List the saved baselines."""
    entries = read_ledger(ledger, _entries)
    if as_json:
        print_json({"baselines": entries})
    elif entries:
        columns = ("name", "run", "pipeline", "saved at (UTC)", "score")
        rows = [
            (
                entry["name"],
                short_run(entry["run_id"]),
                entry["pipeline"],
                entry["saved_at"][:16].replace("T", " "),
                None if entry["score"] is None else f"{entry['score']:.4f}",
            )
            for entry in entries
        ]
        print_lines([TextTable(columns, rows, right=("score",))])
    else:
        click.echo("no baselines found; dicast baseline save NAME saves the last run", err=True)


def _entries(ledger: Ledger) -> list[dict[str, Any]]:
    entries = []
    for saved in saved_baselines(ledger).values():
        run_document = document(ledger, saved.run_id) or {}
        score = (run_document.get("score") or {}).get("mean")
        identity = {"name": saved.name, "run_id": saved.run_id, "pipeline": run_document.get("name")}
        entries.append({**identity, "saved_at": saved.saved_at, "score": score})
    return entries


@baseline.command()
@click.argument("name")
@ledger_path
@as_json
def rm(name: str, ledger: Path | str | None, as_json: bool) -> None:
    """Remove NAME. The run stays in the ledger, and so does the record of its name."""
    removed = read_ledger(ledger, lambda open_ledger: remove_baseline(open_ledger, name))
    if as_json:
        print_json({"name": removed.name, "run_id": removed.run_id})
    else:
        click.echo(one_line(f"{removed.name} is no longer a baseline; run {removed.run_id} stays"))
