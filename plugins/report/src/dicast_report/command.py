"""``dicast report``: runs of a ledger as a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shlex import quote
from typing import Any

import attrs
import click
import orjson

from dicast import ConfigError, Event, Ledger, Query, read_ledger, started_runs
from dicast.commands import chosen_run, ledger_path
from dicast.reading import reader, resume_command
from dicast.toolkit.printable import one_line

from .html import shown_path, write_page
from .page import BEGINS
from .run_page import ENDS, Origin, PageOptions, RunPage, RunReader
from .subjects import STARTED, event_of

OUT = Path("report.html")
LAST = "last"
"""The default run."""


@click.command()
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@click.option("--out", type=click.Path(path_type=Path), default=OUT, show_default=True, help="The file to write.")
@click.option("--open", "show", is_flag=True, help="Open it in the browser.")
@click.option("--baseline", metavar="RUN", help="Compare the run with this one, as dicast compare does.")
@ledger_path
@click.option(
    "--rows",
    type=click.IntRange(1),
    default=PageOptions().rows,
    show_default=True,
    help="The most rows of a run in the page.",
)
@click.option("--no-content", is_flag=True, help="Leave out judged content, reasons and rationales.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document to stdout and nothing else.")
def report(
    runs: tuple[str, ...],
    out: Path,
    show: bool,
    baseline: str | None,
    ledger: Path | str | None,
    rows: int,
    no_content: bool,
    as_json: bool,
) -> None:
    """Write a page about runs. The page is one file that loads nothing.

    Several runs are shown side by side. Without RUN, the page shows the run that started last, labels aside.

    RUN is an id, its first or last characters, a saved baseline, the name of a pipeline (its newest run over all subjects counts), or 'last'.
    The name of a suite, or 'last' for a suite, shows all its experiments.
    """
    options = PageOptions(rows, not no_content)
    done = read_ledger(ledger, lambda live: _PageRequest(live, ledger, options, baseline).write(runs, out))
    if as_json:
        click.echo(orjson.dumps(done, option=orjson.OPT_INDENT_2))
    else:
        counts = " and ".join(f"{run['shown']:,} of {run['rows']:,} rows of {run['name']}" for run in done["runs"])
        click.echo(f"{done['path']}: {counts}, {done['bytes'] / 1e6:.1f} MB")
        if not show:
            click.echo(f"next: {_next_command(out)}")
    if show:
        click.launch(out.resolve().as_uri())


def _next_command(out: Path) -> str:
    """Return the command that opens the page *out*: ``dicast view`` opens the file with this name, not another page of the run."""
    if out.suffix != ".html":
        return f"open {quote(out.resolve().as_uri())} in a browser"
    return f"dicast view {quote(str(out))}"


@attrs.frozen
class _PageRequest:
    """A request for a page."""

    live: Ledger
    path: Path | str | None
    options: PageOptions
    baseline: str | None

    def write(self, names: Sequence[str], out: Path) -> dict[str, Any]:
        """Write the page, and return a summary of it."""
        starts = list(dict.fromkeys(self._starts(names)))
        if self.baseline is not None and len(starts) > 1:
            raise ConfigError(
                "--baseline compares one run with another: leave it out to show several runs side by side"
            )
        ends = [self._end(event) for event in starts]
        pages = [self._page(start, end, len(starts) > 1) for start, end in zip(starts, ends, strict=True)]
        try:
            size = write_page(out, _title(starts), pages, replaces=BEGINS)
        except OSError as error:  # such as a full disk
            raise ConfigError(f"cannot write {out}: {error.strerror or error}") from error
        summaries = [
            {
                "run_id": page.report["key"],
                "name": page.report["title"],
                "rows": page.report["rows"]["total"],
                "shown": len(page.rows["table"]["ids"]),
            }
            for page in pages
        ]
        return {"path": str(out), "bytes": size, "runs": summaries}

    def _starts(self, names: Sequence[str]) -> Iterator[_StartedRun]:
        """Yield the ``run.started`` of each requested run."""
        for name in names or (LAST,):
            if (of_suite := self._of_suite(name)) is not None:
                yield from self._suite(of_suite)
                continue
            event = event_of(self.live.read, self._run_id(name), STARTED)
            assert event is not None  # the name was resolved by this event
            yield from self._suite(event) if name == LAST and event.payload.get("suite") else [_StartedRun(event)]

    def _of_suite(self, name: str) -> Event | None:
        """Return the newest ``run.started`` of an experiment of the suite *name*, over all subjects if there is one; None if that match is not a suite."""
        newest = None
        for limited in (False, True):
            started = (entry.event for entry in started_runs(self.live.read, tools=True, limited=limited))
            meant = (event for event in started if name in (event.payload.get("name"), suite_of(event.payload)))
            newest = newest or next(meant, None)
        return newest if newest is not None and suite_of(newest.payload) == name else None

    def _run_id(self, name: str) -> str:
        """Return the run that *name* names."""
        return chosen_run(self.live, name)

    def _suite(self, event: Event) -> Iterator[_StartedRun]:
        """Yield the newest run of each experiment of the suite of *event*, in the suite's order."""
        suite: Any = event.payload["suite"]
        starts: dict[str, Event] = {}
        for entry in self.live.read(Query(types=(STARTED,))):
            theirs: Any = entry.event.payload.get("suite")
            if theirs and theirs["id"] == suite["id"]:
                starts[str(entry.event.payload["name"])] = entry.event
        yield from (_StartedRun(start, name.rpartition("/")[2]) for name, start in starts.items())

    def _end(self, start: _StartedRun) -> Event:
        event = event_of(self.live.read, start.event.run_id, *ENDS)
        if event is None:
            run = start.event.run_id
            command = resume_command(start.event.payload, run, self.live)
            fix = "run its pipeline again" if command is None else f"resume it: {command}"
            raise ConfigError(
                f"run {run} has not ended, so it has no document yet; wait for it, or if its process is gone, {fix}"
            )
        return event

    def _page(self, start: _StartedRun, end: Event, several: bool) -> RunPage:
        place = self.path or getattr(self.live, "path", None)
        head = self.live.head()
        shown = shown_path(Path(place)) if isinstance(place, Path) else None  # a URL may have a password
        origin = Origin(shown, None if head is None else head.digest)
        compared = None if self.baseline is None else self._compared(self.baseline, start.event.run_id)
        reader = RunReader(self.live.read, self.options, origin)
        return reader.page(
            start.event, end, title=start.title, prefix=start.prefix if several else "", compared=compared
        )

    def _compared(self, baseline: str, run_id: str) -> Mapping[str, Any]:
        """Return the document of ``dicast compare``; print the reasons if the runs are not comparable.

        :raises ConfigError: if there is no such baseline.
        :raises PluginError: if the plugin with the command is missing.
        """
        try:
            document: Mapping[str, Any] = reader("compare")(self.live, a=baseline, b=run_id, allow_incomparable=True)
        except ConfigError as error:
            raise ConfigError(f"--baseline {baseline}: {error}") from error
        if faults := document.get("faults"):
            text = f"NOT COMPARABLE: {baseline} and {run_id} differ in {', '.join(faults)}; the report marks the comparison"
            click.echo(one_line(text), err=True)
        return document


@attrs.frozen
class _StartedRun:
    """A shown run: its ``run.started``, and its *experiment* if it is part of a suite."""

    event: Event = attrs.field(eq=lambda event: event.run_id)
    experiment: str | None = None

    @property
    def title(self) -> str:
        """The title of the run."""
        return self.experiment or str(self.event.payload.get("name"))

    @property
    def suite(self) -> str:
        """The name of the suite; empty for a run of its own."""
        return suite_of(self.event.payload) if self.experiment else ""

    @property
    def prefix(self) -> str:
        """The prefix of the paths of its numbers when several runs are shown. A suite's document has its experiments by name."""
        return f"experiments.{self.experiment}." if self.experiment else f"{self.event.run_id}."

    def __hash__(self) -> int:
        return hash(self.event.run_id)


def suite_of(started: Mapping[str, Any]) -> str:
    """Return the name of the suite of a run; empty if it is not an experiment."""
    return str(started.get("name")).rpartition("/")[0] if started.get("suite") else ""


def _title(starts: Sequence[_StartedRun]) -> str:
    """Return the title of a page. Experiments of a suite follow the suite's name."""
    titles: dict[str, list[str]] = {}
    for start in starts:
        titles.setdefault(start.suite, []).append(start.title)
    named = (
        f"{suite}: {' · '.join(experiment_titles)}" if suite else " · ".join(dict.fromkeys(experiment_titles))
        for suite, experiment_titles in titles.items()
    )
    return " · ".join(named)
