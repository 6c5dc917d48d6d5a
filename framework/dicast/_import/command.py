"""The command ``dicast import``."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

import click

from .._init.written import refuse_existing, write_new
from .._kernel.cli.options import as_json
from .._kernel.cli.output import only_document, print_json
from .._kernel.cli.requirements import requires
from .._kernel.contract.registry import commands
from .._kernel.values.errors import ConfigError, DataError, Problem
from .._kernel.values.names import nearest
from ..toolkit.beginning import read_beginning
from ..toolkit.detection import detecting_sources, detections_by
from ..toolkit.encodings import UTF_8
from ..toolkit.installing import how_to_install
from ..toolkit.scan import Scan
from ..toolkit.terminal import Line, print_lines, terminal, width_of
from .folders import SessionFolders
from .inspection import FileOptions, ImportedFile, inspect_file, inspect_folder, looks_like
from .pipelines import Sampling, check_sample, pipelines
from .summary import summary_parts

_BY_SHAPE = (
    "traces/messages",
    "traces/events",
    "rows/csv",
    "rows/json",
    "rows/jsonl",
    "rows/xlsx",
    "rows/parquet",
    "rows/yaml",
)
"""Formats that are detected without a class method of their source."""

_NO_RECORDS = {".git", ".venv", "__pycache__", "node_modules"}
"""Names of folders that are left out."""

INCOMPLETE = 3
"""Exit code if a file of a known format could not be read."""


@click.command("import")
@click.argument("paths", nargs=-1, required=True, metavar="PATH…", type=click.Path(path_type=Path))
@click.option(
    "--out", type=click.Path(path_type=Path), default=Path("pipeline.yaml"), show_default=True,
    help="The pipeline file to write; an existing file is kept.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Report the contents and write no pipeline.")
@click.option("--as", "format_", metavar="FORMAT", help="Read all files as this format, such as transcripts/codex.")
@click.option("--encoding", metavar="NAME", help="The encoding of files that are not UTF-8, such as cp1252.")
@click.option(
    "--scan", type=click.Choice(["warn", "mask", "off"]), default="warn", show_default=True,
    help="Secrets and personal data: count them, mask them in every run, or do not look for them.",
)  # fmt: skip
@click.option(
    "--sample", type=click.IntRange(min=1), metavar="N", help="Judge a random sample of N sessions, with weights."
)
@click.option("--by", metavar="model|day|KEY", help="Draw equally many sessions of each model, day, or value of a key.")
@click.option("--full", is_flag=True, help="List each file and all notes.")
@as_json
@requires(by="sample")
def import_files(
    paths: tuple[Path, ...], out: Path, dry_run: bool, format_: str | None, encoding: str | None, scan: Scan, sample: int | None,
    by: str | None, full: bool, as_json: bool,
) -> None:  # fmt: skip
    """Read files of other tools and write a pipeline for them.

    The contents of each file are reported.

    PATH is a file or a folder. The format of each file is detected by its content: sessions of coding agents, OpenTelemetry spans,
    conversations, exports of other tools, rows. Files of unknown formats are listed and left out. Folders called .git, .venv, __pycache__ and
    node_modules are not looked into. Nothing is changed or uploaded.
    """
    is_asked = sys.stdin.isatty() and sys.stdout.isatty() and not as_json
    sources = detecting_sources()
    request = FileOptions(sources, _known_format(format_, sources, paths), encoding, scan, is_asked)
    if not dry_run:
        refuse_existing([out])
    with only_document(as_json):
        unreadable: list[ImportedFile] = []
        every_path = [*_files(paths, unreadable)]
        folders = SessionFolders.below(
            paths, every_path, [item for item in sources if request.format in (None, item[0])]
        )
        files = [inspect_folder(*folder, request) for folder in folders.folders]
        alone = [path for path in every_path if path not in folders.parts]
        files += [inspect_file(path, request, is_named=path in paths) for path in _with_progress(alone)]
        files += unreadable
        files += [ImportedFile(path, reason="it repeats events of the other files") for path in folders.copies]
        _refuse_unknown(files, is_written=not dry_run)
        sampling = Sampling(sample, by)
        if sample is not None:
            check_sample(paths, files, out, request, sampling)
        drafts = {} if dry_run else pipelines(paths, files, out, request, sampling)
    write_new(drafts)
    if sample is not None and (tables := [file.path.name for file in files if file.is_known and file.is_table]):
        click.echo(f"--sample draws sessions; the pipelines of rows read all rows: {', '.join(tables)}", err=True)
    pipeline = next(iter(drafts), None)
    if as_json:
        print_json(
            {"files": [file.document() for file in files], "pipeline": None if pipeline is None else str(pipeline)}
        )
    else:
        options = {
            "--as": format_,
            "--encoding": encoding,
            "--scan": scan if scan != "warn" else None,
            "--sample": sample,
            "--by": by,
        }
        again = _command(paths, _unused(out), options)
        print_lines([*summary_parts(files, is_full=full), *_next(list(drafts)), *_missing_sources(files, again)])
    if any(file.is_broken for file in files):
        sys.exit(INCOMPLETE)


def _known_format(name: str | None, sources: Sequence[tuple[str, Any]], paths: Sequence[Path]) -> str | None:
    """Return the format *name*, which may lack its plugin, in full; None for None.

    :raises ConfigError: if there is no such format; it has the format of the first of the *paths* by its content.
    """
    if name is None:
        return None
    names = [*(component for component, _ in sources), *_BY_SHAPE]
    matches = [component for component in names if name in (component, component.partition("/")[2])]
    if len(matches) == 1:
        return matches[0]
    if matches:
        raise ConfigError(f"--as {name} is {' or '.join(matches)}; name one of them in full")
    file = next(_files(paths, []), None)
    title = None if file is None else _title(file, sources)
    if title is not None:
        raise ConfigError(Problem(f"--as {name}: no such format; {file} looks like {title}", value=name))
    message = f"--as {name}: no such format; the formats are {', '.join(sorted(names))}"
    raise ConfigError(Problem(message, value=name, hint=nearest(name, names)))


def _title(path: Path, sources: Sequence[tuple[str, Any]]) -> str | None:
    """Return the format of the file at *path* by its content, with the option that names it; None if it is unknown."""
    try:
        beginning = read_beginning(path, UTF_8)
    except (DataError, OSError):
        return None
    candidates = sorted(detections_by(sources, beginning), key=lambda detection: -detection.specificity)
    return looks_like(path, beginning, candidates)


def _with_progress(paths: Sequence[Path]) -> Iterator[Path]:
    """Yield *paths*, with the number of read files on a terminal."""
    screen = terminal(sys.stderr)
    if len(paths) < _MANY or screen is None:
        yield from paths
        return
    try:
        for count, path in enumerate(paths):
            screen.write_over(f"reading files: {count:,} of {len(paths):,}"[: width_of(screen.stream) - 1])
            yield path
    finally:
        screen.clear()


_MANY = 20
"""The fewest files with a line of progress."""


def _files(paths: Sequence[Path], unreadable: list[ImportedFile]) -> Iterator[Path]:
    """Yield the files at and below *paths*, in the order of their names, each once. Folders that cannot be read are added to *unreadable*.

    :raises DataError: with each path that does not exist and the nearest name in its folder.
    """
    missing = [path for path in paths if not path.exists()]
    if missing:
        raise DataError([_missing(path) for path in missing])
    seen: set[Path] = set()
    for path in paths:
        for file in _walk(path, unreadable) if path.is_dir() else [path]:
            if (real := file.resolve()) not in seen:
                seen.add(real)
                yield file


def _missing(path: Path) -> Problem:
    if str(path) == "-":
        return Problem("standard input cannot be read twice; write the data to a file first", "-")
    names = [entry.name for entry in path.parent.iterdir()] if path.parent.is_dir() else []
    return Problem("no such file or folder", str(path), hint=nearest(path.name, names))


def _walk(folder: Path, unreadable: list[ImportedFile]) -> Iterator[Path]:
    def note(error: OSError) -> None:
        reason = f"the folder cannot be read: {error.strerror}"
        if Path(str(error.filename)) == folder:
            raise DataError(Problem(reason, str(folder))) from error
        unreadable.append(ImportedFile(Path(str(error.filename)), reason=reason))

    for base, folders, names in os.walk(folder, onerror=note):
        folders[:] = sorted(set(folders) - _NO_RECORDS)
        yield from (Path(base, name) for name in sorted(names))


def _refuse_unknown(files: Sequence[ImportedFile], *, is_written: bool) -> None:
    """Refuse an input without a single file that a source reads, and, where a pipeline is written, without anything to judge.

    :raises DataError: with each file and the reason.
    """
    if not files:
        raise DataError("there are no files to import")
    if not any(file.is_known or (file.is_vacant and not is_written) for file in files):
        raise DataError(Problem(file.reason, str(file.path)) for file in files)


def _unused(out: Path) -> Path:
    """Return *out*, or the first path ``NAME-2``, ``NAME-3`` … that does not exist."""
    path, number = out, 1
    while path.exists():
        number += 1
        path = out.with_stem(f"{out.stem}-{number}")
    return path


def _command(paths: Sequence[Path], out: Path, options: Mapping[str, object]) -> str:
    """Return the command that imports *paths* to *out*; options with None are left out."""
    named = (f" {name} {quote(str(value))}" for name, value in options.items() if value is not None)
    return f"dicast import {' '.join(quote(str(path)) for path in paths)} --out {quote(str(out))}{''.join(named)}"


def _missing_sources(files: Sequence[ImportedFile], again: str) -> Iterator[str | Line]:
    """Yield the commands that install the sources of files that were left out and read them too; nothing without such files."""
    if extras := dict.fromkeys(file.extra for file in files if file.extra is not None):
        count = sum(file.extra is not None for file in files)
        yield ""
        yield Line(
            f"To read {count:,} more file{'s' * (count != 1)}, install the missing source{'s' * (len(extras) != 1)} and import again:"
        )
        yield f"  {how_to_install(*extras)}"
        yield f"  {again}"


def _next(written: Sequence[Path]) -> Iterator[str]:
    if not written:
        return
    yield ""
    yield f"Wrote {' and '.join(map(str, written))}."
    yield ""
    yield "Next:"
    for path in written:
        yield from (f"  dicast {command} {quote(str(path))}" for command in ("check", "run"))
    yield "  dicast show last"
    yield "  dicast report last --out report.html"
    if "report" not in dict(commands()):
        yield f"  (for the report: {how_to_install('report')})"
