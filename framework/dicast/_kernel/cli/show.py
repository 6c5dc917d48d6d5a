"""The command ``dicast show``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from shlex import split
from typing import Any

import click

from ...toolkit.terminal import print_lines
from ..api.runs import read_ledger
from ..contract.protocols import Ledger
from ..events import RUN_STARTED
from ..pipeline.ledger_path import ledger_option, printed_place
from ..pipeline.slots import ledger_at
from ..resume.named_runs import LAST, by_part, find_run, run_ids, started_runs
from ..resume.open_runs import RunCommand, command_of
from ..resume.queries import document, runs_of
from ..resume.saved import saved_baselines
from ..resume.shard_roots import read_root
from ..values import Query
from ..values.errors import ConfigError
from .options import as_json, chosen_run, full, ledger_path, refuse_options
from .output import print_json
from .screen import screen_parts
from .subjects import SubjectHistory, subject_history, whole_id
from .summary import run_parts


@click.command()
@click.argument("name", metavar="RUN|SUBJECT", required=False)
@click.option("--run", "run_id", metavar="RUN", help="Show this run, or the subject as this run judged it.")
@click.option("--all", "every", is_flag=True, help="Show the subject in every run that judged it.")
@click.option(
    "--browse",
    "browses",
    is_flag=True,
    help="Show each case in full, with keys for the next failed case, the next label and the report. Without a terminal: print it.",
)
@full
@ledger_path
@as_json
def show(
    name: str | None,
    run_id: str | None,
    every: bool,
    browses: bool,
    full: bool,
    ledger: Path | str | None,
    as_json: bool,
) -> None:
    """Show a run or a subject.

    A run is named by its id, by a saved baseline's or its pipeline's name (the newest run over all subjects), or by the word last. A subject is named by its id, or by the first characters of its session's id (at least 4), and is shown with its verdicts from the newest run that judged it. Nothing of it is cut: the policy, the prompt of a task, the input, the messages, reasoning and tool calls of its turns, the output and the reference with their difference, and each label with its reasons.
    """
    if browses:
        excluded = {"--all": every, "--full": full, "--json": as_json}
        refuse_options("--browse shows the cases of one run to a person", excluded)
        read_ledger(ledger, lambda open_ledger: _browse(open_ledger, name, run_id))
        return
    if every and run_id is not None:
        raise click.UsageError("--all shows every run and --run only one; remove one of the two")
    if name is None and (run_id is None or every):
        raise click.UsageError("Missing argument 'RUN|SUBJECT': dicast show last")
    result, started = read_ledger(ledger, lambda open_ledger: _find(open_ledger, name, run_id, every=every))
    if full and isinstance(result, SubjectHistory):
        raise click.UsageError(f"{name!r} is a subject, and --full shows every figure of a run; remove --full")
    if isinstance(result, dict) and isinstance(ledger, str):
        slot = ledger_at(ledger)
        result["ledger"]["place"] = printed_place(slot.name, slot.component)
    command = command_of(started, *split(ledger_option(result["ledger"]))) if isinstance(result, dict) else None
    if as_json:
        print_json(result.json() if isinstance(result, SubjectHistory) else result)
    else:
        print_lines(
            _history_lines(result)
            if isinstance(result, SubjectHistory)
            else (run_parts if full else screen_parts)(result, command)
        )


def _history_lines(history: SubjectHistory) -> Iterator[str]:
    """Yield the subject in each shown run, the newest run first."""
    from ..._browse.case import case_lines, shown_width  # the other forms of the command do not need it

    for number, case in enumerate(history.runs):
        yield from ["", *case_lines(case, shown_width())] if number else case_lines(case, shown_width())
    if history.other_runs:
        yield ""
        yield f"also judged in {history.other_runs:,} other run{'s' * (history.other_runs > 1)}; --all shows them"


def _browse(ledger: Ledger, name: str | None, run_id: str | None) -> None:
    """Show the cases of the run *name*, by default the newest; or the subject *name* in the run *run_id*, by default the newest with it."""
    from ..._browse.browse import browse  # the other forms of the command do not need it

    only = None if run_id is None else chosen_run(ledger, run_id)
    if name is None:
        browse(ledger, only or chosen_run(ledger, LAST), None)
    elif only is None and (run := _named_run(ledger, name)) is not None:
        browse(ledger, run, None)
    else:
        subject = _subject(ledger, name, only, every=False).runs[0]
        browse(ledger, subject.start.run_id, str(subject.subject["id"]))


def _find(
    ledger: Ledger, name: str | None, run_id: str | None, *, every: bool
) -> tuple[dict[str, Any] | SubjectHistory, Mapping[str, Any]]:
    """Return the document of a run with the payload of its ``run.started``, or a subject. Without a *name* it is the run that *run_id* names.

    If a run and a subject have the same name, the run is returned if *name* is its full id, else the subject.
    """
    only = None if run_id is None else chosen_run(ledger, run_id)
    if name is None:
        return _run(ledger, str(only))
    if not every and only is None and (run := _named_run(ledger, name)) is not None:
        return _run(ledger, run)
    return _subject(ledger, name, only, every=every), {}


def _subject(ledger: Ledger, name: str, only: str | None, *, every: bool) -> SubjectHistory:
    """Return the subject *name*, or the only subject whose id begins with it, in the run *only*, or in *every* run."""
    starts = runs_of(ledger, name)
    if not starts and (id_ := whole_id(ledger, name)) is not None:
        name, starts = id_, runs_of(ledger, id_)
    return subject_history(ledger, name, starts, only, every=every)


def _named_run(ledger: Ledger, name: str) -> str | None:
    """Return the run *name*; None if only a subject has that name, or neither."""
    if name == LAST:
        return chosen_run(ledger, name)
    if (run := find_run(ledger, name)) is not None or runs_of(ledger, name):
        return run
    return _run_by_name(ledger, name)


def _run_by_name(ledger: Ledger, name: str) -> str | None:
    """Return the run of the saved baseline or of the pipeline *name*, or the run with this part of an id; None if the ledger has no such run."""
    started = started_runs(ledger.read, tools=True)
    if name in saved_baselines(ledger) or any(entry.event.payload.get("name") == name for entry in started):
        return chosen_run(ledger, name)
    return by_part(name, run_ids(ledger))


def _run(ledger: Ledger, run_id: str) -> tuple[dict[str, Any], Mapping[str, Any]]:
    from ..run.end import ledger_json

    started = next(entry.event.payload for entry in ledger.read(Query(run_id, (RUN_STARTED,), limit=1)))
    done = document(ledger, run_id)
    if done is None:
        command = command_of(started) or RunCommand("FILE")
        resuming = f"; {command.resuming(run_id)} resumes it" if command.is_resumable else ""
        raise ConfigError(f"run {run_id} is not completed{resuming}")
    return dict(done) | {"ledger": ledger_json(ledger, root=read_root(ledger, run_id))}, started
