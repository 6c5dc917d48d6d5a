"""``dicast view``: the newest report in the browser, else the dashboard."""

from __future__ import annotations

import re
import webbrowser
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from shlex import quote as quote_word
from typing import Any
from urllib.parse import quote

import click

from .._kernel.api.runs import read_ledger
from .._kernel.cli.options import chosen_run, ledger_path
from .._kernel.contract.protocols import Ledger
from .._kernel.events import RUN_STARTED, SINKS_ADDED
from .._kernel.resume.named_runs import newest_run
from .._kernel.values import Query
from .._kernel.values.errors import PluginError
from .._kernel.values.names import path_from_here
from ..toolkit.files import open_file
from ..toolkit.printable import one_line

_REPORT = ".html"
_PIECE = 1 << 20
_KEY = b'"key":"%s"'
"""Text of a page that shows a run. Pages also name the runs that they compare with."""

_ID = 26
"""Number of characters of a run's id."""

_SHOWN = re.compile(rb'"key":"([0-9A-Z]{%d})"' % _ID)
"""Pattern of the id of the run that a page shows."""

_MOST_PAGES = 100
"""Most pages of ``dicast report`` that are read in search of a run, the newest first."""

_NOT_OPENED = "no browser could be opened; open it yourself"


@click.command()
@click.argument("run", metavar="[RUN]", required=False)
@click.option("--serve", "live", is_flag=True, help="Start the dashboard even if there is a report.")
@click.option("--no-open", is_flag=True, help="Print the address and open no browser.")
@ledger_path
def view_report(run: str | None, live: bool, no_open: bool, ledger: Path | str | None) -> int | None:
    """Open the newest report, the report of RUN, or the report in the file RUN.html, in the browser.

    A report is a page that the run wrote, or a page of dicast report in this folder or in a folder directly below it. Without RUN, the report of the newest run is opened, else the newest page. If there is no HTML report, the dashboard of dicast serve starts on a free port and opens; Ctrl-C ends it.
    """
    notes: Sequence[str] = ()
    if run is not None and not live and run.endswith(_REPORT) and Path(run).is_file():
        report: Path | None = Path(run).resolve()
    else:
        find = _newest_report if run is None else partial(_report, run)
        report, notes = (None, ()) if live else read_ledger(ledger, find)
    if report is None:
        return _serve(ledger, opens=not no_open)
    click.echo(one_line(str(report)))
    for note in notes:
        click.echo(one_line(note), err=True)
    if not no_open and not open_page(report.as_uri()):
        click.echo(_NOT_OPENED, err=True)
    return None


def _report(run: str, ledger: Ledger) -> tuple[Path | None, Sequence[str]]:
    return report_of(ledger, chosen_run(ledger, run)), ()


def _newest_report(ledger: Ledger) -> tuple[Path | None, Sequence[str]]:
    """Return the report of the newest run, else the newest page of a run of *ledger*, and notes with its run and the choice of another page."""
    newest = newest_run(ledger.read)
    report = None if newest is None else report_of(ledger, newest)
    runs = {path: run_id for path in _newest_pages() if (run_id := _run_of(path)) is not None}
    names = {
        run_id: _name_of(ledger, run_id) for run_id in dict.fromkeys([*runs.values(), *([newest] if newest else [])])
    }
    pages = [path for path, run_id in runs.items() if names[run_id] is not None]
    page_run = newest if report is not None else next((runs[path] for path in pages), None)
    report = report or next(iter(pages), None)
    if report is None or page_run is None:
        return None, ()
    notes = [
        f"run {page_run} ({names[page_run]})"
        + ("" if page_run == newest else f"; the newest run, {newest}, has no report")
    ]
    pages_left = [path for path in pages if path.resolve() != report.resolve()]
    if pages_left:
        count = f"{len(pages_left):,} more report{'s' * (len(pages_left) != 1)}"
        notes.append(f"{count}, such as: dicast view {quote_word(path_from_here(pages_left[0]))}")
    return report, notes


def _run_of(path: Path) -> str | None:
    """Return the id of the first run that the page at *path* shows; None if it is no report."""
    end = b""
    with open_file(path) as file:
        while piece := file.read(_PIECE):
            if (match := _SHOWN.search(end + piece)) is not None:
                return match[1].decode()
            end = piece[-len(_KEY) - _ID :]
    return None


def _name_of(ledger: Ledger, run_id: str) -> str | None:
    """Return the name of a run; None if *ledger* does not have the run."""
    entries: Iterator[Any] = ledger.read(Query(run_id, (RUN_STARTED,), limit=1))
    return next((str(entry.event.payload.get("name")) for entry in entries), None)


def report_of(ledger: Ledger, run_id: str) -> Path | None:
    """Return the HTML report of the run: a page of one of its sinks, else the newest page of ``dicast report`` in this folder or one below it.

    None without one. A page that does not show the run is a report of another run.
    """
    starts: list[Mapping[str, Any]] = [
        entry.event.payload for entry in ledger.read(Query(run_id, (RUN_STARTED, SINKS_ADDED)))
    ]
    if not starts:
        return None
    outputs: list[Any] = [output for payload in starts for output in payload.get("outputs", ())]
    folder = _folder(str(starts[0].get("file")))
    names = [Path(output) for output in outputs if isinstance(output, str) and output.endswith(_REPORT)]
    candidates = [*(folder / name for name in names), *_newest_pages()]
    return next((path for path in candidates if path.is_file() and _has_text(path, _KEY % run_id.encode())), None)


def _newest_pages() -> list[Path]:
    """Return the HTML files in the current folder and directly below it, the newest first."""
    pages = sorted(_pages(Path.cwd()), key=lambda path: path.stat().st_mtime_ns, reverse=True)
    return pages[:_MOST_PAGES]


def _pages(folder: Path) -> Iterator[Path]:
    """Yield the HTML files in *folder* and in the folders directly below it, without hidden ones."""
    for pattern in (f"*{_REPORT}", f"*/*{_REPORT}"):
        for path in folder.glob(pattern):
            if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts):
                yield path


def _has_text(path: Path, text: bytes) -> bool:
    """Return whether the file at *path*, which may be large, has *text* in it.

    :raises OSError: if the file cannot be read.
    """
    end = b""
    with open_file(path) as file:
        while piece := file.read(_PIECE):
            if text in end + piece:
                return True
            end = piece[-len(text) :]
    return False


def _folder(file: str) -> Path:
    """Return the folder of the pipeline file with the identity *file*; the current folder for a pipeline without a file."""
    return Path.cwd() if file.startswith("<") else Path(file.partition("#")[0]).parent


def open_page(address: str) -> bool:
    """Open *address* in the browser; return False if there is none."""
    try:
        return webbrowser.open(address)
    except webbrowser.Error:
        return False


def row_address(report: Path, kind: str, subject_id: str) -> str:
    """Return the address of a subject's row in *report*."""
    return f"{report.as_uri()}#row={quote(f'{kind}/{subject_id}', safe='')}"


def _serve(ledger: Path | str | None, *, opens: bool) -> int | None:
    """Start ``dicast serve``, which prints its address and opens it."""
    from .._kernel.cli.group import dicast  # the group imports this module

    command = dicast.get_command(click.Context(dicast), "serve")
    if command is None:
        from ..toolkit.installing import how_to_install

        raise PluginError(
            f"the run wrote no HTML report, and the dashboard is not installed; {how_to_install('serve')}; "
            "or write a report: dicast run FILE --out report.html"
        )
    arguments = ["--port", "0", *(["--open"] if opens else []), *([] if ledger is None else ["--ledger", str(ledger)])]
    code: int | None = command.main(arguments, prog_name="dicast serve", standalone_mode=False)
    return code
