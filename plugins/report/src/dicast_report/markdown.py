"""The sink that writes a run as Markdown."""

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
"""The events that carry the run's document."""


@attrs.frozen
class Markdown:
    """The run as Markdown: gate, score with its interval and what it rests on, each label, comparisons, and the subjects that did not pass.

    Shown numbers are rounded as in the summary on a terminal. Text of others (ids, reasons, what was judged) stands in code, so that no
    markup, link, mention or HTML in it does anything. The file appears under its name when the run ends, also when it is interrupted.

    :param path: the file to write; folders above it are made.
    :param rows: how many subjects that did not pass are shown, in the order in which they were read; the rest is counted.
    :param content: show what was judged of these subjects; by default where the ledger stores it.
    :param base_path: a folder that *path* must lie in, links resolved; any by default.
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
        """Make the file's folder for *run*; paths are relative to the pipeline's folder.

        :raises ConfigError: when the file cannot be written, or lies outside *base_path*.
        """
        file = partial(AtomicFile, output_path(run.base, self.path, self.base_path), run=run.run_id)
        file().discard()
        content = run.keeps_content if self.content is None else self.content
        yield MarkdownFile(file, self.rows, content=content)


class MarkdownFile:
    """The subjects that did not pass so far, and the file to be."""

    def __init__(self, file: Callable[[], AtomicFile], rows: int, *, content: bool) -> None:
        self._file, self._rows, self._content = file, rows, content
        self._reader = OutcomeReader()
        self._failing: list[JudgedSubject] = []
        self._of_failing, self._of_open = 0, 0
        self._text: str | None = None

    def write(self, events: Sequence[Event]) -> int:
        """Take *events*; return how many subjects are finished with them."""
        ended = [event for event in events if event.type in ENDS]
        done = self._reader.take(events) + (self._reader.end() if ended else [])
        for subject in done:
            if subject.worst(self._reader.counted) is not None:
                self._of_failing += 1
                self._of_open += subject.is_open(self._reader.counted)
                if len(self._failing) < self._rows:
                    self._failing.append(subject)
        for event in ended:
            self._text = self._written(event.payload)
        return len(done)

    def close(self) -> int:
        """Write the file. A run that never ended leaves none; may be repeated after an error."""
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
