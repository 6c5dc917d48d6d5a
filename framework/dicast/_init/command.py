"""The command ``dicast init``."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

import attrs
import click

from .._kernel.cli.options import as_json
from .._kernel.cli.output import only_document, print_json
from .._kernel.cli.runs import run_and_print, try_rows
from .._kernel.pipeline.build import load_pipeline
from .._kernel.run.request import Request
from .._kernel.run.suite import load_experiments
from .._kernel.timing.event_loop import in_loop
from .._kernel.values.errors import RequestError
from ..toolkit.printable import one_line
from ..toolkit.terminal import print_wrapped
from .draft import Draft, Wishes, drafted
from .guesses import FIELDS, given_fields
from .local import LOCAL, local_model
from .starter import ROWS
from .written import refuse_existing, write_new

TRIED = 3
"""The number of rows that are tried."""

_FILE = click.Path(path_type=Path)
_FROM = (click.Choice(["promptfoo"]), _FILE)


@click.command()
@click.argument("data", nargs=-1, metavar="[DATA]")
@click.option(
    "--out",
    type=_FILE,
    default=Path("pipeline.yaml"),
    show_default=True,
    help="The pipeline file to write; an existing file is kept.",
)
@click.option(
    "--kind",
    type=click.Choice(["rows", "turns"]),
    help="The content of DATA: rows, or conversations whose turns are judged.",
)
@click.option(
    "--fields", multiple=True, metavar="FIELD=COLUMN", help=f"The column of a field ({', '.join(FIELDS)}); repeatable."
)
@click.option("--encoding", metavar="NAME", help="The encoding of a file that is not UTF-8, such as cp1252.")
@click.option("--sheet", metavar="NAME", help="The sheet of an Excel workbook with several sheets.")
@click.option("--delimiter", metavar="CHAR", help="The delimiter of a CSV file, if the guess is wrong.")
@click.option(
    "--no-header", is_flag=True, help="The CSV file's first line is a row: its columns are column_1, column_2 …"
)
@click.option(
    "--model",
    metavar="NAME",
    help="A model that makes missing outputs, or judges if no metric fits; local: a model in this process.",
)
@click.option(
    "--gguf",
    metavar="FILE|PACKAGE",
    help="The GGUF file of --model local, or an installed package with one; by default init asks for it.",
)
@click.option(
    "--from", "origin", type=_FROM, metavar="promptfoo FILE", help="Convert a promptfoo configuration instead."
)
@click.option("--try/--no-try", "tries", default=True, help=f"Try {TRIED} rows, unless that may cost money.")
@as_json
def init(
    data: tuple[str, ...], out: Path, kind: str | None, fields: tuple[str, ...], encoding: str | None, sheet: str | None, delimiter: str | None,
    no_header: bool, model: str | None, gguf: str | None, origin: tuple[str, Path] | None, tries: bool, as_json: bool,
) -> None:  # fmt: skip
    """Write a pipeline for DATA: a file of rows (CSV, TSV, JSON, JSON lines, YAML, Excel, Parquet) or of conversations, gzip too.

    It looks at the first rows, guesses the meaning of each column, and explains its guesses in the file. Without DATA it writes
    a small example with its own rows.
    """  # fmt: skip
    misplaced = [text for text in data if text.partition("=")[0] in (*FIELDS, "context") and not Path(text).exists()]
    named = [text for text in data if text not in misplaced]
    if len(named) + bool(origin) > 1:
        raise click.UsageError(
            f"init takes one file, and got {' and '.join(named + [str(name) for name in (origin or ())[1:]])}"
        )
    reading = {"encoding": encoding, "sheet": sheet, "delimiter": delimiter, "header": False if no_header else None}
    reading = {name: value for name, value in reading.items() if value is not None}
    given_fields((*fields, *misplaced), None)
    refuse_existing([out])
    if gguf is not None and model != LOCAL:
        raise click.UsageError("--gguf is for --model local")
    chosen = local_model(gguf, out) if model == LOCAL else model
    wishes = Wishes(kind, (*fields, *misplaced), chosen, reading)
    if origin is not None:
        from .._promptfoo import taken_over  # imported here: few users need it

        draft = taken_over(origin[1], out, chosen)
    elif named:
        is_interactive = sys.stdin.isatty() and sys.stdout.isatty() and not as_json and not wishes.fields
        draft = drafted(Path(named[0]), out, attrs.evolve(wishes, is_interactive=is_interactive))
    else:
        rows = out.with_name("answers.csv")
        write_new({rows: ROWS})
        draft = drafted(rows, out, wishes)
        draft = attrs.evolve(draft, document={**draft.document, "files": [str(rows), str(out)]})
    write_new(draft.files)
    _finish(draft, out, tries=tries, as_json=as_json)


def _finish(draft: Draft, out: Path, *, tries: bool, as_json: bool) -> None:
    """Print the written files, try some rows, and print the next commands."""
    files: Sequence[str] = draft.document.get("files") or [str(path) for path in draft.files]
    why, tried = draft.untried if tries else "--no-try", None
    if not as_json:
        print_wrapped("\n".join([*draft.says, f"Wrote {' and '.join(files)}."]))
    if why is None:
        try:
            tried = _tried(out, as_json=as_json)
        except RequestError as error:  # the file is written, and dicast run reports the same error
            why = one_line(str(error))
    elif tries:
        why += _faults(out)
    run, check = (f"dicast {command} {quote(str(out))}" for command in ("run", "check"))
    run += " --yes" if draft.document.get("code") else ""  # the printed lines advise to read the code first
    following = [check, *([f"{run} --head {TRIED}"] if why is not None else []), run, "dicast show last"]
    if draft.first is not None:
        following = [draft.first, check]
    if as_json:
        document = {"pipeline": str(out), "files": files, "untried": why, "tried": tried, "next": following}
        print_json({**draft.document, **document})
        return
    if why is not None:
        print_wrapped(f"Tried no rows: {why}.")
    click.echo("\nNext:\n" + "\n".join(f"  {command}" for command in following))


def _faults(out: Path) -> str:
    """Return the problems that ``dicast check`` finds in the file, such as a missing extra, as text; empty without problems."""
    try:
        load_experiments(out, ())
    except RequestError as error:
        return f"; dicast check says: {one_line('; '.join(map(str, error.problems)))}"
    return ""


def _tried(out: Path, *, as_json: bool) -> Mapping[str, Any] | None:
    """Judge the first rows. Return the document with *as_json*, else print as ``dicast run --head`` does and return None."""
    if not as_json:
        click.echo(f"\nThe first {TRIED} rows:")
        run_and_print(out, lambda _: Request(TRIED), head=True, as_json=False)
        return None
    with only_document(as_json):
        return in_loop(try_rows(load_pipeline(out), Request(TRIED))).document
