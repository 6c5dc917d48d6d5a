"""The sink that collects the documents of runs for ``dicast ci``."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import attrs
import orjson

from dicast import Cost, Event, RunContext
from dicast.reporting import JudgedSubject, OutcomeReader, code, money, not_started
from dicast.toolkit.atomic_file import AtomicFile, output_path
from dicast.toolkit.files import MAX_DATA_BYTES, read_bytes

from .baselines import refuse_unknown_run
from .comment import write_progress
from .reasons import COMMAND, ledger_place, next_command
from .rows import MAX_NAMED
from .summary import ENDS

_VERDICTS = ("eval.completed", "eval.failed")
_SETTLED = "spend.settled"
_STARTED = "run.started"

SECONDS = 2.0
"""Seconds between two states of a run in its comment."""


class Misses:
    """The first rows of each label that did not pass."""

    def __init__(self) -> None:
        self._reader = OutcomeReader()
        self._rows: dict[str, list[Mapping[str, str]]] = {}

    def read(self, events: Sequence[Event]) -> None:
        """Add the rows that *events* complete."""
        self._add(self._reader.take(events))

    def rows(self) -> Mapping[str, Sequence[Mapping[str, str]]]:
        """Return the kind and the id of the first rows by label, at most :data:`MAX_NAMED` of each."""
        self._add(self._reader.end())
        return self._rows

    def _add(self, subjects: Sequence[JudgedSubject]) -> None:
        for subject in subjects:
            for outcome in subject.outcomes.values():
                rows = self._rows.setdefault(outcome.label, [])
                if outcome.passed is False and len(rows) < MAX_NAMED:
                    rows.append({"subject_kind": subject.kind, "subject_id": subject.id})


class Progress:
    """State of a *run* in the comment at *path*: the judged subjects and the cost. *name* is the pipeline file, *flags* are options of the next command."""

    def __init__(self, path: Path, name: str, run: RunContext, flags: Sequence[str] = ()) -> None:
        self._path, self._name, self._run, self._flags = path, name, run, flags
        self._started: Mapping[str, Any] = {}
        self._subjects, self._last_key, self._last_time, self._is_current = 0, ("", ""), 0.0, False
        self._cost = {"usd": Cost("0"), "msat": Cost("0", "msat")}

    def read(self, events: Sequence[Event]) -> None:
        """Count the subjects and the cost in *events*, and write the comment if it is older than :data:`SECONDS`."""
        self._is_current = False
        for event in events:
            key = str(event.subject_kind), str(event.subject_id)
            if event.type == _STARTED:
                self._started = event.payload
            elif event.type == _SETTLED:
                payload: Mapping[str, Any] = event.payload
                self._cost[payload["unit"]] += Cost(payload["amount"], payload["unit"])
            elif event.type in _VERDICTS and key != self._last_key:  # the verdicts of a subject follow each other
                self._subjects, self._last_key = self._subjects + 1, key
        if time.monotonic() - self._last_time >= SECONDS:
            self.write()

    def write(self) -> None:
        """Write the comment."""
        run, cost = self._run, money({unit: amount.decimal for unit, amount in self._cost.items()})
        command = next_command(self._started, self._name, self._flags).resuming(run.run_id)
        state = f"judged before the end: at least {self._subjects:,} subjects, spent {cost}; run {code(run.run_id)}"
        place = "" if run.ledger_path is None else ledger_place(run.ledger_path)
        write_progress(self._path, self._name, [state, f"next: {code(command)}{place}"])
        self._last_time, self._is_current = time.monotonic(), True

    async def follow(self) -> None:
        """Write the comment every :data:`SECONDS` if it is not current: the last events may be followed by none for a long time."""
        while True:
            await asyncio.sleep(SECONDS)
            if not self._is_current:
                self.write()


@attrs.frozen
class Documents:
    """The document of each run as a line of JSON, appended to a file.

    :param documents_path: the file to append to; a relative path starts at the pipeline's folder. All experiments of a suite append to it.
    :param comment_path: the comment of ``dicast ci``, which has the number of judged subjects and the cost so far, for a process that is killed.
    :param pipeline: the pipeline file, which names the comment.
    :param flags: options of the next command in the comment that the run does not record, such as ``--junit``.
    :param against: the run or file that the comment compares with, which must exist before the run starts.
    """

    name = "documents"
    wants = tuple(dict.fromkeys((*OutcomeReader.wants, *ENDS, *_VERDICTS, _SETTLED)))
    rewrites = True

    documents_path: Path = attrs.field(converter=Path)
    comment_path: Path | None = attrs.field(default=None, converter=attrs.converters.optional(Path))
    pipeline: str = ""
    against: str | None = None
    flags: tuple[str, ...] = attrs.field(default=(), converter=tuple)

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[DocumentsFile]:
        """Open the file to append to.

        :raises ConfigError: if the file cannot be written, or there is no run *against*.
        """
        if self.against is not None:
            refuse_unknown_run(self.against, run)
        path = output_path(run.base, self.documents_path, None)
        AtomicFile(path, run=run.run_id).discard()
        progress = None
        if self.comment_path is not None:
            progress = Progress(output_path(run.base, self.comment_path, None), self.pipeline, run, self.flags)
            progress.write()
        ledger = None if run.ledger_path is None else str(run.ledger_path)
        async with _following(progress):
            yield DocumentsFile(path, ledger, str(run.base), progress, self.flags)


@asynccontextmanager
async def _following(progress: Progress | None) -> AsyncIterator[None]:
    """Keep the comment of *progress* current during the block."""
    task = None if progress is None else asyncio.ensure_future(progress.follow())
    try:
        yield
    finally:
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


class DocumentsFile:
    """The open file, with the document of the run if it has ended.

    *ledger* is the path of the ledger, *base* the folder of the pipeline, and *flags* are options of the next command.
    """

    def __init__(
        self, path: Path, ledger: str | None, base: str, progress: Progress | None, flags: Sequence[str] = ()
    ) -> None:
        self._flags = flags
        self._path, self._ledger, self._base, self._progress = path, ledger, base, progress
        self._started: Mapping[str, Any] = {}
        self._done: Mapping[str, Any] | None = None
        self._misses = Misses()

    def write(self, events: Sequence[Event]) -> int:
        """Keep the document of the last event, the rows that did not pass, and the progress; return the number of subjects, 0."""
        self._misses.read(events)
        for event in events:
            if event.type == _STARTED:
                self._started = event.payload
            elif event.type in ENDS:
                self._done = event.payload
        if self._progress is not None:
            self._progress.read(events)
        return 0

    def close(self) -> int:
        """Append the document. The call may be repeated after an error."""
        if self._done is None:
            return 0
        old = read_bytes(self._path, MAX_DATA_BYTES) if self._path.exists() else b""
        document = {
            **self._done,
            "ledger": {"path": self._ledger, "head": None},
            "base": self._base,
            "not_passed": self._misses.rows(),
            "not_started": [*not_started(self._started, self._done)],
            "started": {name: self._started[name] for name in COMMAND if name in self._started},
            "flags": self._flags,
        }
        with AtomicFile(self._path) as file:
            file.write(old + orjson.dumps(document) + b"\n")
            file.commit()
        self._done = None
        return 0
