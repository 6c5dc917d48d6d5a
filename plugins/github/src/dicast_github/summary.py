"""The sink that writes a run to the summary of a GitHub Actions job."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

from dicast import Event, RunContext
from dicast.reporting import JudgedSubject, Outcome, OutcomeReader, code, run_answer, run_markdown
from dicast.toolkit.atomic_file import AtomicFile, output_path
from dicast.toolkit.files import read_bytes

from .annotations import MOST, Place, of_run

ENDS = ("run.completed", "run.stopped")
"""The events that carry the run's document."""

LIMIT = 1024 * 1024
"""Maximum size of a step's summary in bytes; GitHub does not show larger summaries."""


@attrs.frozen
class Summary:
    """The run in the summary of its job, and annotations for the gate and the subjects that did not pass.

    The summary is the Markdown of ``report/markdown``, appended to the step's summary, at most 1 MiB in all. Judged text is shown as
    code, so it cannot be markup, a link or a mention. Under GitHub Actions the sink prints an annotation for a gate that did not pass,
    or passed with a clause that was not decided, and for each of the first subjects that did not pass, at most 10 of a level, because GitHub shows no more for a step. Annotations
    are placed at the section ``gate``, ``metrics`` or ``judges`` of the pipeline file, or of the included file that has it.

    :param path: the file to append to; the value of ``GITHUB_STEP_SUMMARY`` by default. Without both, as outside GitHub Actions,
        no summary is written.
    :param annotations: print annotations if ``GITHUB_ACTIONS`` is ``true``.
    :param annotations_path: append annotations to this file instead of printing them, also outside GitHub Actions.
    :param rows: the number of subjects that did not pass in the summary.
    :param content: show the judged content of these subjects. Everyone who may see the job may see it.
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
        """Open the files to append to; a relative *path* starts at the pipeline's folder.

        :raises ConfigError: if a file cannot be written.
        """
        step_summary = os.environ.get("GITHUB_STEP_SUMMARY")
        summary = self.path or (Path(step_summary) if step_summary else None)
        path, annotations = (file and output_path(run.base, file, None) for file in (summary, self.annotations_path))
        for file in (path, annotations):
            if file is not None:
                AtomicFile(file, run=run.run_id).discard()
        yield SummaryFile(self, path, annotations)


class SummaryFile:
    """The open files, with the subjects that did not pass so far."""

    def __init__(self, options: Summary, path: Path | None, annotations: Path | None) -> None:
        self._options, self._path, self._annotations = options, path, annotations
        self._reader = OutcomeReader()
        self._failing: list[tuple[JudgedSubject, Outcome]] = []
        self._of_failing, self._of_open = 0, 0
        self._done: Mapping[str, Any] | None = None

    def write(self, events: Sequence[Event]) -> int:
        """Read *events*; return the number of subjects that they complete."""
        payloads = [event.payload for event in events if event.type in ENDS]
        finished = self._reader.take(events) + (self._reader.end() if payloads else [])
        for subject in finished:
            if (worst := subject.worst(self._reader.counted)) is not None:
                self._of_failing += 1
                self._of_open += subject.is_open(self._reader.counted)
                if len(self._failing) < max(self._options.rows, MOST):
                    self._failing.append((subject, worst))
        if payloads:
            self._done = payloads[-1]
        return len(finished)

    def close(self) -> int:
        """Write the summary and the annotations. The call may be repeated after an error."""
        if self._done is None:
            return 0
        if self._path is not None:
            append(self._path, lambda size: self._summary(size, self._done or {}))
            self._path = None
        self._annotate(self._done)
        self._done = None
        return 0

    def _summary(self, size: int, done: Mapping[str, Any]) -> str:
        """Return the run as Markdown of at most *size* bytes: with its subjects, without them, or in a single line."""
        subjects = [subject for subject, _ in self._failing[: self._options.rows]]
        counted, content = self._reader.counted, self._options.content
        brief = f"## {code(done['name'])}: {run_answer(done)}\n\nThe summary of this step is full.\n"
        of, of_open = self._of_failing, self._of_open
        full = run_markdown(done, subjects, of, of_open=of_open, counted=counted, content=content)
        texts = (full, run_markdown(done), brief)
        return next((text for text in texts if len(text.encode(errors="backslashreplace")) <= size), "")

    def _annotate(self, done: Mapping[str, Any]) -> None:
        is_printed = self._options.annotations and os.environ.get("GITHUB_ACTIONS") == "true"
        if self._annotations is None and not is_printed:
            return
        file = str((self._reader.started or {}).get("file", "")).partition("#")[0]
        workspace = os.environ.get("GITHUB_WORKSPACE")
        place = Place.of_file(Path(file), Path(workspace) if workspace else None)
        lines = [annotation.command() for annotation in of_run(done, self._failing, self._of_failing, place)]
        if self._annotations is not None:
            append(self._annotations, lambda _: "".join(f"{line}\n" for line in lines))
        else:
            import click  # only a run under GitHub Actions prints here

            click.echo("\n".join(lines), nl=bool(lines))


def append(path: Path, make: Callable[[int], str]) -> None:
    """Append a text to the file at *path*. *make* returns the text for the number of bytes that are left.

    :raises OSError: if the file cannot be read or written; it is unchanged then.
    """
    old = read_bytes(path) if path.exists() else b""
    if old and not old.endswith(b"\n"):
        old += b"\n"
    text = make(LIMIT - len(old) - 1)
    if not text:
        return
    with AtomicFile(path) as file:
        file.write(old + (b"\n" if old and text.startswith("#") else b"") + text.encode("utf-8", "backslashreplace"))
        file.commit()
