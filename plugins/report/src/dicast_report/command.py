"""``dicast report``: runs of a ledger as a page."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
import click
import orjson

from dicast import ConfigError, Event, Ledger, Query, named_run, read_ledger
from dicast.toolkit.installing import how_to_install

from .html import shown_path, write_page
from .page import BEGINS
from .run_page import ENDS, STARTED, Origin, RunPage, RunReader, Wanted, event_of

OUT = Path("report.html")
LAST = "last"
"""The run that is shown where the command names none."""


@click.command()
@click.argument("runs", metavar="[RUN]...", nargs=-1)
@click.option("--out", type=click.Path(path_type=Path), default=OUT, show_default=True, help="The file to write.")
@click.option("--open", "show", is_flag=True, help="Open it in the browser.")
@click.option("--baseline", metavar="RUN", help="Compare the run with this one, as dicast compare does.")
@click.option(
    "--ledger", type=click.Path(path_type=Path), help="The ledger; $DICAST_LEDGER or .dicast/ledger.db without it."
)
@click.option(
    "--rows",
    type=click.IntRange(1),
    default=Wanted().rows,
    show_default=True,
    help="The most rows of a run in the page.",
)
@click.option("--no-content", is_flag=True, help="Leave out what was judged, reasons and rationales.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document to stdout, and nothing else there.")
def report(
    runs: tuple[str, ...],
    out: Path,
    show: bool,
    baseline: str | None,
    ledger: Path | None,
    rows: int,
    no_content: bool,
    as_json: bool,
) -> None:
    """Write a page about runs. It is one file that loads nothing. Several are shown side by side; without one it is the run that began last,
    labels aside.

    RUN is an id, its first or last characters, the name of a pipeline (its newest run counts), or 'last'; of a suite, by its name or as the
    last, all experiments are shown.
    """
    wanted = Wanted(rows, not no_content)
    done = read_ledger(ledger, lambda live: _Asked(live, ledger, wanted, baseline).write(runs, out))
    if as_json:
        click.echo(orjson.dumps(done, option=orjson.OPT_INDENT_2))
    else:
        counts = " and ".join(f"{one['shown']:,} of {one['rows']:,} rows of {one['name']}" for one in done["runs"])
        click.echo(f"{done['path']}: {counts}, {done['bytes'] / 1e6:.1f} MB")
    if show:
        click.launch(out.resolve().as_uri())


@attrs.frozen
class _Asked:
    """What is asked of a ledger."""

    live: Ledger
    path: Path | None
    wanted: Wanted
    baseline: str | None

    def write(self, names: Sequence[str], out: Path) -> dict[str, Any]:
        """Write the page, and say what is in it."""
        begun = list(dict.fromkeys(self._begun(names)))
        if self.baseline is not None and len(begun) > 1:
            raise ConfigError(
                "--baseline compares one run with another; of several runs leave it out, and they stand side by side"
            )
        ended = [self._end(event) for event in begun]
        pages = [self._page(each, end, len(begun) > 1) for each, end in zip(begun, ended, strict=True)]
        try:
            size = write_page(out, _title(begun), pages, replaces=BEGINS)
        except OSError as error:  # such as a disk that is full
            raise ConfigError(f"cannot write {out}: {error.strerror or error}") from error
        shown = [
            {
                "run_id": one.report["key"],
                "name": one.report["title"],
                "rows": one.report["rows"]["total"],
                "shown": len(one.rows["table"]["ids"]),
            }
            for one in pages
        ]
        return {"path": str(out), "bytes": size, "runs": shown}

    def _begun(self, names: Sequence[str]) -> Iterator[_Begun]:
        """The ``run.started`` of each run that is meant."""
        for name in names or (LAST,):
            if (of_suite := self._of_suite(name)) is not None:
                yield from self._suite(of_suite)
                continue
            event = event_of(self.live.read, self._run_id(name), STARTED)
            assert event is not None  # what names a run was found by this event
            yield from self._suite(event) if name == LAST and event.payload.get("suite") else [_Begun(event)]

    def _of_suite(self, name: str) -> Event | None:
        """The newest ``run.started`` of an experiment of the suite of that *name*; None where no suite, or a run, is called so."""
        started = (entry.event for entry in self.live.read(Query(types=(STARTED,), newest_first=True)))
        meant = (event for event in started if name in (event.payload.get("name"), suite_of(event.payload)))
        found = next(meant, None)
        return found if found is not None and suite_of(found.payload) == name else None

    def _run_id(self, name: str) -> str:
        """Return the run that *name* names: the newest of the pipeline of that name, the run with that id, or the newest."""
        return named_run(self.live, name)

    def _suite(self, event: Event) -> Iterator[_Begun]:
        """The newest run of each experiment of the suite that *event* belongs to, in the suite's order."""
        suite: Any = event.payload["suite"]
        found: dict[str, Event] = {}
        for entry in self.live.read(Query(types=(STARTED,))):
            theirs: Any = entry.event.payload.get("suite")
            if theirs and theirs["id"] == suite["id"]:
                found[str(entry.event.payload["name"])] = entry.event
        yield from (_Begun(one, name.rpartition("/")[2]) for name, one in found.items())

    def _end(self, begun: _Begun) -> Event:
        event = event_of(self.live.read, begun.event.run_id, *ENDS)
        if event is None:
            run = begun.event.run_id
            raise ConfigError(
                f"run {run} has not ended, so there is no document of it yet; wait for it, or where its process is gone, "
                f"dicast run FILE --resume {run} takes it up"
            )
        return event

    def _page(self, begun: _Begun, ended: Event, several: bool) -> RunPage:
        place = self.path or getattr(self.live, "path", None)
        head = self.live.head()
        origin = Origin(None if place is None else shown_path(Path(place)), None if head is None else head.digest)
        compared = None if self.baseline is None else self._compared(self.baseline, begun.event.run_id)
        reader = RunReader(self.live.read, self.wanted, origin)
        return reader.page(
            begun.event, ended, title=begun.title, prefix=begun.prefix if several else "", compared=compared
        )

    def _compared(self, baseline: str, run_id: str) -> Mapping[str, Any]:
        """What ``dicast compare`` says: it is another plugin's, which plugins reach through the command line alone."""
        from subprocess import run  # a report without a baseline starts no process

        place = self.path or getattr(self.live, "path", None)
        where = [] if place is None else ["--ledger", str(place)]
        command = [
            sys.executable,
            "-m",
            "dicast",
            "compare",
            baseline,
            run_id,
            "--allow-incomparable",
            *where,
            "--json",
        ]
        ended = run(command, capture_output=True, check=False)  # noqa: S603  # this dicast, with names as arguments
        try:
            document: dict[str, Any] = orjson.loads(ended.stdout)
        except orjson.JSONDecodeError:
            said = ended.stderr.decode(errors="replace").strip()
            raise ConfigError(f"--baseline needs dicast compare: {how_to_install('stats')} ({said})") from None
        if "error" in document:
            raise ConfigError(f"--baseline {baseline}: {document['error']['message']}")
        return document


@attrs.frozen
class _Begun:
    """A run that is shown: its ``run.started``, and its *experiment* where a suite is."""

    event: Event = attrs.field(eq=lambda event: event.run_id)
    experiment: str | None = None

    @property
    def title(self) -> str:
        """What the run is called."""
        return self.experiment or str(self.event.payload.get("name"))

    @property
    def suite(self) -> str:
        """The name of the suite; empty where the run stands for itself."""
        return suite_of(self.event.payload) if self.experiment else ""

    @property
    def prefix(self) -> str:
        """What stands before the paths of its numbers, where several runs are shown: a suite's document has its experiments by name."""
        return f"experiments.{self.experiment}." if self.experiment else f"{self.event.run_id}."

    def __hash__(self) -> int:
        return hash(self.event.run_id)


def suite_of(started: Mapping[str, Any]) -> str:
    """The name of the suite that a run is an experiment of; empty where it is none."""
    return str(started.get("name")).rpartition("/")[0] if started.get("suite") else ""


def _title(begun: Sequence[_Begun]) -> str:
    """What the runs are called; experiments of a suite stand behind its name."""
    titles: dict[str, list[str]] = {}
    for one in begun:
        titles.setdefault(one.suite, []).append(one.title)
    named = (
        f"{suite}: {' · '.join(those)}" if suite else " · ".join(dict.fromkeys(those))
        for suite, those in titles.items()
    )
    return " · ".join(named)
