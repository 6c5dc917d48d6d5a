"""The command ``dicast merge``."""

from __future__ import annotations

import shlex
from functools import partial
from pathlib import Path

import click

from ...toolkit.terminal import print_lines
from ..api.runs import not_run, switched_off
from ..pipeline.build import build_pipeline
from ..pipeline.default_ledger import ledger_component
from ..pipeline.slots import ledger_slot
from ..plan.sections import Pipeline, Slot
from ..run.merge import ShardFile, merge_ledgers
from ..timing.event_loop import in_loop
from ..values.errors import ConfigError, Problem
from .calling_command import CallingCommand
from .options import LEDGER, as_json, full
from .output import only_document, print_json
from .outputs import Outputs
from .runs import read_chosen, unrecorded_options
from .screen import screen_parts
from .summary import run_parts


@click.command("merge")
@click.argument("ledgers", metavar="LEDGER...", type=LEDGER, nargs=-1, required=True)
@click.option(
    "--ledger",
    type=LEDGER,
    metavar="PLACE",
    help="Record the merged run in this ledger instead of the file's: a path, a URL or '{plugin/name: {options}}'.",
)
@click.option(
    "--out",
    multiple=True,
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write the run to FILE.html, .md, .csv (column llm_content: a task's output), or .json (as --json). Repeatable.",
)
@full
@as_json
def merge_shards(
    ledgers: tuple[Path | str, ...], ledger: Path | str | None, out: tuple[Path, ...], full: bool, as_json: bool
) -> int:
    """Make one run of the shards in each LEDGER, which dicast run FILE --shard I/N recorded. The gate, aggregates, comparisons and sinks of
    FILE are about all subjects. Nothing is judged. Exit codes: as for dicast run; 3 also if a shard did not end.
    """
    caller = click.get_current_context().find_object(CallingCommand) or CallingCommand(("dicast", "run"))
    with Outputs(out) as outputs:
        if switched_off():
            outcome, command = not_run(Path("merge")), None
        else:
            with only_document(as_json):
                places = [(str(place), ledger_component(place)[1]) for place in _distinct(ledgers)]
                if (count := len(ledgers) - len(places)) > 0:
                    click.echo(
                        f"warning: {count:,} of {len(ledgers):,} LEDGER arguments name a ledger again, which is read once",
                        err=True,
                    )
                outcome, words = in_loop(
                    merge_ledgers(places, partial(_build, ledger=ledger, outputs=outputs, caller=caller))
                )
            command = caller.command(
                str(caller.file or words.path), words.settings, unrecorded_options(ledger), words.only
            )
        if as_json:
            print_json(outcome.document)
        else:
            print_lines((run_parts if full else screen_parts)(outcome.document, command))
        return outputs.write(outcome.document, outcome.exit_code)


def _distinct(ledgers: tuple[Path | str, ...]) -> list[Path | str]:
    """Return *ledgers*, each file once, by whichever name it was given."""
    return [*{place.resolve() if isinstance(place, Path) else place: place for place in ledgers}.values()]


def _build(
    words: ShardFile, *, ledger: Path | str | None, outputs: Outputs, caller: CallingCommand
) -> tuple[Pipeline, Slot]:
    """Return the pipeline of the shards, with the sinks of *outputs* and the settings of *caller*, and the ledger of the merged run."""
    if caller.file is not None:
        _refuse_other_file(caller.file, words)
    file, settings = caller.file or _file(words), [*words.settings, *caller.settings]
    read = read_chosen(file, settings, words.only, outputs, ledger)
    built = build_pipeline(read, needs_source=False)
    return built, ledger_slot(built)


def _refuse_other_file(file: Path, words: ShardFile) -> None:
    """Refuse another *file* than the file of the shards: it may have another gate, aggregates and sinks. If the recorded path does not exist here, the file names are compared.

    :raises ConfigError: naming both files.
    """
    places = [Path(words.path), Path(words.identity)]
    known = [path.resolve() for path in places if path.is_file()]
    if file.resolve() in known or (not known and file.name == places[0].name):
        return
    message = f"the shards judged {words.path}, and this is another file; merge with the file of the shards: dicast ci {shlex.quote(words.path)} --merge LEDGER..."
    raise ConfigError(Problem(message, str(file)))


def _file(words: ShardFile) -> Path:
    """Return the pipeline file, which is looked for under the name that the user gave, then at its path on the machine of the shards.

    :raises ConfigError: if it is at neither place.
    """
    for path in (Path(words.path), Path(words.identity)):
        if path.is_file():
            return path
    raise ConfigError(
        f"the pipeline file of the shards, {words.path}, is not in this folder; run dicast merge in the folder in which dicast run was started"
    )
