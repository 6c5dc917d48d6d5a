"""The sink that writes a run to the summary of a GitHub Actions job."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

from dicast import AtomicFile, Event, RunContext, output_path
from dicast.reporting import JudgedSubject, Outcome, OutcomeReader, code, run_answer, run_markdown

from .annotations import MOST, Place, of_run

ENDS = ("run.completed", "run.stopped")
"""The events that carry the run's document."""

LIMIT = 1024 * 1024
"""How many bytes the summary of a step may have; GitHub shows nothing of a larger one."""


@attrs.frozen
class Summary:
    """The run in the summary of its job, and annotations for what did not pass.

    The summary is Markdown as of ``report/markdown``, added to what the step has written so far, 1 MiB in all. Text of others stands in
    code, so that nothing in it is markup, a link or a mention. Annotations are printed where GitHub Actions runs the step: one for a
    gate that did not pass, and one for each of the first subjects that did not, 10 of a level, which is what GitHub shows of a step.
    They stand at the section ``gate``, ``metrics`` or ``judges`` of the pipeline file.

    :param path: the file to add to; the one that ``GITHUB_STEP_SUMMARY`` names by default. Without either, as outside GitHub Actions,
        no summary is written.
    :param annotations: print annotations where ``GITHUB_ACTIONS`` is ``true``.
    :param annotations_path: add them to this file instead of printing them, wherever the run is.
    :param rows: how many subjects that did not pass are shown.
    :param content: show what was judged of these subjects. Who may see the job may see it.
    """

    name = "summary"
    wants = (*OutcomeReader.wants, *ENDS)
    rewrites = True

    path: Path | None = attrs.field(default=None, converter=attrs.converters.optional(Path))
    annotations: bool = True
    annotations_path: Path | None = attrs.field(default=None, converter=attrs.converters.optional(Path))
    rows: int = attrs.field(default=20, validator=attrs.validators.ge(0))
    content: bool = False

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[SummaryFile]:
        """Find the file to add to; a relative *path* is relative to the pipeline's folder.

        :raises ConfigError: when a file cannot be written.
        """
        named = os.environ.get("GITHUB_STEP_SUMMARY")
        given = self.path or (Path(named) if named else None)
        path, beside = (one and output_path(run.base, one, None) for one in (given, self.annotations_path))
        for one in (path, beside):
            if one is not None:
                AtomicFile(one, run=run.run_id).discard()
        yield SummaryFile(self, path, beside)


class SummaryFile:
    """The subjects that did not pass so far, and what is going to be said."""

    def __init__(self, options: Summary, path: Path | None, beside: Path | None) -> None:
        self._options, self._path, self._beside = options, path, beside
        self._reader = OutcomeReader()
        self._failing: list[tuple[JudgedSubject, Outcome]] = []
        self._of_failing, self._of_open = 0, 0
        self._done: Mapping[str, Any] | None = None

    def write(self, events: Sequence[Event]) -> int:
        """Take *events*; return how many subjects are finished with them."""
        ended = [event.payload for event in events if event.type in ENDS]
        finished = self._reader.take(events) + (self._reader.end() if ended else [])
        for subject in finished:
            if (worst := subject.worst(self._reader.counted)) is not None:
                self._of_failing += 1
                self._of_open += subject.is_open(self._reader.counted)
                if len(self._failing) < max(self._options.rows, MOST):
                    self._failing.append((subject, worst))
        if ended:
            self._done = ended[-1]
        return len(finished)

    def close(self) -> int:
        """Add to the summary, and tell the annotations. May be repeated after an error."""
        if self._done is None:
            return 0
        if self._path is not None:
            add(self._path, lambda room: self._summary(room, self._done or {}))
            self._path = None
        self._annotate(self._done)
        self._done = None
        return 0

    def _summary(self, room: int, done: Mapping[str, Any]) -> str:
        """The run as Markdown, in *room* bytes: without its subjects where they do not fit, or in a line."""
        shown = [subject for subject, _ in self._failing[: self._options.rows]]
        counted, content = self._reader.counted, self._options.content
        brief = f"## {code(done['name'])}: {run_answer(done)}\n\nThe summary of this step is full.\n"
        of, of_open = self._of_failing, self._of_open
        whole = run_markdown(done, shown, of, of_open=of_open, counted=counted, content=content)
        texts = (whole, run_markdown(done), brief)
        return next((text for text in texts if len(text.encode(errors="backslashreplace")) <= room), "")

    def _annotate(self, done: Mapping[str, Any]) -> None:
        printed = self._options.annotations and os.environ.get("GITHUB_ACTIONS") == "true"
        if self._beside is None and not printed:
            return
        file = str((self._reader.started or {}).get("file", "")).partition("#")[0]
        workspace = os.environ.get("GITHUB_WORKSPACE")
        place = Place.of_file(Path(file), Path(workspace) if workspace else None)
        lines = [one.command() for one in of_run(done, self._failing, self._of_failing, place)]
        if self._beside is not None:
            add(self._beside, lambda _: "".join(f"{line}\n" for line in lines))
        else:
            import click  # as the command line prints, in whose run this is

            click.echo("\n".join(lines), nl=bool(lines))


def add(path: Path, make: Any) -> None:
    """Add to the file at *path* what *make* gives for the bytes of room that are left in it.

    :raises OSError: when it cannot be read or written; it is as it was then.
    """
    old = path.read_bytes() if path.exists() else b""
    if old and not old.endswith(b"\n"):
        old += b"\n"
    text = make(LIMIT - len(old) - 1)
    if not text:
        return
    with AtomicFile(path) as file:
        file.write(old + (b"\n" if old and text.startswith("#") else b"") + text.encode("utf-8", "backslashreplace"))
        file.commit()
