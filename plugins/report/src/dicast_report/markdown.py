"""Sink that writes a run as Markdown."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from dicast import Event, RunContext
from dicast.reporting import JudgedSubject, OutcomeReader, run_markdown
from dicast.toolkit.atomic_file import AtomicFile, output_path

ENDS = ("run.completed", "run.stopped")
"""Events with the run's document."""


@attrs.frozen
class Markdown:
    """The run as Markdown: gate, score with its interval and its basis, each label, comparisons, and the subjects that did not pass.

    Numbers are rounded as in the summary on a terminal. Foreign text (ids, reasons, judged content) is set as code, so that
    markup, links, mentions and HTML in it have no effect. The file appears under its name when the run ends, also when it is interrupted.

    :param path: the file to write; missing folders are created.
    :param rows: how many subjects that did not pass are shown, in the order of reading; the others are counted.
    :param content: show the judged content of these subjects; by default if the ledger stores it.
    :param base_path: a folder that must contain *path*, links resolved; any by default.
    """

    name = "markdown"
    wants = (*OutcomeReader.wants, *ENDS)
    rewrites = True

    path: Path = attrs.field(converter=Path)
    rows: int = attrs.field(default=20, validator=attrs.validators.ge(0))
    content: bool | None = None
    base_path: Path | None = attrs.field(default=None, converter=attrs.converters.optional(Path))

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[MarkdownFile]:
        """Create the file's folder and yield the writer. Paths are relative to the pipeline's folder.

        :raises ConfigError: when the file cannot be written, or is outside *base_path*.
        """
        file = partial(AtomicFile, output_path(run.base, self.path, self.base_path), run=run.run_id)
        file().discard()
        content = run.keeps_content if self.content is None else self.content
        yield MarkdownFile(file, self.rows, content=content)


class MarkdownFile:
    """Collector of subjects that did not pass, and writer of the file."""

    def __init__(self, file: Callable[[], AtomicFile], rows: int, *, content: bool) -> None:
        self._file, self._rows, self._content = file, rows, content
        self._reader = OutcomeReader()
        self._failing: list[JudgedSubject] = []
        self._of_failing, self._of_open = 0, 0
        self._text: str | None = None

    def write(self, events: Sequence[Event]) -> int:
        """Read *events*; return the number of subjects that they finish."""
        ends = [event for event in events if event.type in ENDS]
        done = self._reader.take(events) + (self._reader.end() if ends else [])
        for subject in done:
            if subject.worst(self._reader.counted) is not None:
                self._of_failing += 1
                self._of_open += subject.is_open(self._reader.counted)
                if len(self._failing) < self._rows:
                    self._failing.append(subject)
        for event in ends:
            self._text = self._written(event.payload)
        return len(done)

    def close(self) -> int:
        """Write the file. A run without an end leaves no file. May be repeated after an error."""
        if self._text is not None:
            with self._file() as file:
                file.write(self._text.encode("utf-8", "backslashreplace"))
                file.commit()
            self._text = None
        return 0

    def _written(self, done: Mapping[str, Any]) -> str:
        counted = self._reader.counted
        of, of_open = self._of_failing, self._of_open
        return run_markdown(done, self._failing, of, of_open=of_open, counted=counted, content=self._content)
