"""Sink that writes a run as one page."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from math import inf
from pathlib import Path

import attrs

from dicast import Event, Query, RunContext, Within
from dicast.toolkit.atomic_file import AtomicFile, output_path

from .page import page
from .run_page import ENDS, Origin, PageOptions, RunPage, RunReader
from .subjects import STARTED, event_of


@attrs.frozen
class Html:
    """One self-contained HTML file about the run: its gate, scores, labels, baseline, rows and provenance.

    The file loads nothing from elsewhere, and judged content cannot run in it. It is written from the ledger when the run ends, also when it is
    interrupted; until then an older file remains.

    :param path: the file to write; missing folders are created.
    :param rows: the most rows in the page. Figures of a longer run are of all its rows. The page then shows rows without
        a score, then the lowest scores on half of the remaining rows, and others drawn by a keyed hash of the subjects' ids.
    :param content: show judged content, reasons and rationales; without it the page has numbers and ids only. Content that the ledger
        does not store cannot be shown.
    """

    name = "html"
    wants = (STARTED, *ENDS)

    path: Path = attrs.field(converter=Path)
    rows: int = attrs.field(default=10_000, validator=Within(1, inf, "1 or more"))
    content: bool = True

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[HtmlFile]:
        """Create the file's folder and yield the writer. Paths are relative to the pipeline's folder.

        :raises ConfigError: when the file cannot be written.
        """
        place = output_path(run.base, self.path, None)
        AtomicFile(place, run=run.run_id).discard()
        live = HtmlFile(place, PageOptions(self.rows, self.content), run)
        yield live
        live.close()


@attrs.define
class HtmlFile:
    """Page of a running run."""

    place: Path
    options: PageOptions
    run: RunContext
    _started: Event | None = None
    _end: Event | None = None

    def write(self, events: Sequence[Event]) -> int:
        """Store the start and the end of the run; the rows are read from the ledger."""
        for event in events:
            if event.type == STARTED:
                self._started = event
            else:
                self._end = event
        return 0

    def close(self) -> int:
        """Write the file, and return the number of its rows. A run without an end leaves no file. May be repeated after an error."""
        if self._end is None:
            return 0
        started = self._started or event_of(self.run.read, self.run.run_id, STARTED)
        if started is None:
            return 0
        head = next((entry.digest for entry in self.run.read(Query(newest_first=True, limit=1))), None)
        path = self.run.ledger_path
        reader = RunReader(self.run.read, self.options, Origin(None if path is None else shown_path(path), head))
        page = reader.page(started, self._end, title=self.run.name, prefix="")
        write_page(self.place, self.run.name, [page], self.run.run_id)
        self._end = None
        return len(page.rows["table"]["ids"])


def write_page(
    place: Path, title: str, runs: Sequence[RunPage], run_id: str | None = None, *, replaces: bytes = b""
) -> int:
    """Write the page of *runs* to *place* atomically, and return its number of bytes.

    :raises ConfigError: when the existing file does not start with *replaces*.
    """
    size = 0
    with AtomicFile(place, run=run_id, replaces=replaces) as file:
        for part in page(title, runs):
            file.write(part)
            size += len(part)
        file.commit()
    return size


def shown_path(path: Path) -> str:
    """Return *path* as a user in the current directory would type it."""
    directory = Path.cwd()
    return str(path.relative_to(directory)) if path.is_absolute() and path.is_relative_to(directory) else str(path)
