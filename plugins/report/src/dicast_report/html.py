"""The sink that writes a run as one page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from math import inf
from pathlib import Path

import attrs

from dicast import Event, Query, RunContext, Within
from dicast.toolkit.atomic_file import AtomicFile, output_path

from .page import page
from .run_page import ENDS, STARTED, Origin, RunPage, RunReader, Wanted, event_of


@attrs.frozen
class Html:
    """One self-contained HTML file about the run: its gate, scores, labels, baseline, rows and provenance.

    The file loads nothing from anywhere, and what was judged cannot run in it. It is written when the run ends, also when it is
    interrupted, from what the ledger has; until then an older one stays.

    :param path: the file to write; folders above it are made.
    :param rows: the most rows that are in the page. Of a longer run all figures are of the whole, and the rows are those without
        a score, then half of what is left with the lowest scores, and the rest drawn by a keyed hash of the subjects' ids.
    :param content: show what was judged, reasons and rationales; without it the page has numbers and ids alone. What the ledger
        does not store cannot be shown.
    """

    name = "html"
    wants = (STARTED, *ENDS)

    path: Path = attrs.field(converter=Path)
    rows: int = attrs.field(default=10_000, validator=Within(1, inf, "1 or more"))
    content: bool = True

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[HtmlFile]:
        """Make the file's folder for *run*; paths are relative to the pipeline's folder.

        :raises ConfigError: when the file cannot be written.
        """
        place = output_path(run.base, self.path, None)
        AtomicFile(place, run=run.run_id).discard()
        live = HtmlFile(place, Wanted(self.rows, self.content), run)
        yield live
        live.close()


@attrs.define
class HtmlFile:
    """The page of a run that goes on."""

    place: Path
    wanted: Wanted
    run: RunContext
    _started: Event | None = None
    _ended: Event | None = None

    def write(self, events: Sequence[Event]) -> int:
        """Note how the run began and how it ended; the rows are read from the ledger."""
        for event in events:
            if event.type == STARTED:
                self._started = event
            else:
                self._ended = event
        return 0

    def close(self) -> int:
        """Write the file, and return how many rows it has. A run that never ended leaves none; may be repeated after an error."""
        if self._ended is None:
            return 0
        started = self._started or event_of(self.run.read, self.run.run_id, STARTED)
        if started is None:
            return 0
        head = next((entry.digest for entry in self.run.read(Query(newest_first=True, limit=1))), None)
        path = self.run.ledger_path
        reader = RunReader(self.run.read, self.wanted, Origin(None if path is None else shown_path(path), head))
        found = reader.page(started, self._ended, title=self.run.name, prefix="")
        write_page(self.place, self.run.name, [found], self.run.run_id)
        self._ended = None
        return len(found.rows["table"]["ids"])


def write_page(
    place: Path, title: str, runs: Sequence[RunPage], run_id: str | None = None, *, replaces: bytes = b""
) -> int:
    """Write the page of *runs* to *place*, whole or not at all, and return how many bytes it has.

    :raises ConfigError: when there is a file that does not begin with *replaces*.
    """
    size = 0
    with AtomicFile(place, run=run_id, replaces=replaces) as file:
        for part in page(title, runs):
            file.write(part)
            size += len(part)
        file.commit()
    return size


def shown_path(path: Path) -> str:
    """*path* as somebody in the current directory would type it."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_absolute() and path.is_relative_to(here) else str(path)
