"""Base of sources that read sessions recorded by another tool, from a file or from all files of a folder.

A format is a subclass with a title, ``detect`` and ``sessions``::

    @attrs.frozen
    class Diary(SessionSource):
        title = "a diary"

        @classmethod
        def detect(cls, beginning: Beginning) -> Detection | None:
            return Detection(cls.title) if any("diary" in record for record in beginning.objects) else None

        def sessions(self, reading: SessionReading) -> Iterator[Session | Failed]:
            for line, record in reading.objects():
                conversation = reading.conversation(record["diary"])
                ...
                yield reading.end(conversation, line)

The base has the options, two passes, unique ids, counts, failed records and unknown shapes. The first pass keeps the sessions in a temporary
file for the second.
"""

from __future__ import annotations

import gc
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import attrs

from dicast import ConfigError, DataError, Due, Problem, ReadCounts, Subject, Within

from .beginning import Beginning, read_beginning
from .call_matching import CallId, NameCall
from .conversations import Rules
from .detection import Detection
from .encodings import UTF_8
from .expressions import compiled, pattern_fault
from .file_source import check_source, each_subject, open_source
from .input_file import MAX_LINE_BYTES, MAX_LISTED, InputCheck, InputFile
from .input_files import InputFiles, find_files, refuse_missing
from .kept_sessions import KeptSessions
from .recorded_scores import ScoreScales
from .repeats import Repeats, UniqueNames
from .scan import Scan
from .session_folders import SessionFolder
from .session_reading import Failed, NoSubjects, SessionReading, Totals
from .sessions import Kind, Session, chosen, scored_subjects, subjects

_Item = TypeVar("_Item")

_COLLECTED = 16
"""The sessions of a check after which new objects that refer to each other are freed. The collector is off meanwhile."""


@attrs.frozen
class SessionSource:
    """Sessions that another tool recorded.

    :param path: a file, a folder whose files of the format are read, or ``-`` for standard input. gzip is recognized. Files of another format
        in the folder are left out, and named in the summary.
    :param unknown: ``mark`` reads a role, part or record type that the format does not document as a marker such as
        ``[unknown part "video"]``, and counts it in ``read.marked``. ``error`` refuses the file and reports each with its line.
    :param kinds: the kinds of subjects to judge (``subjects`` in a pipeline): ``turn``, ``tool_cycle``, ``session``.
    :param tool_error: a regular expression in the syntax of RE2; a tool's result whose text it matches is a failure, in addition to results that
        the format marks as failures. None by default.
    :param trailing: ``keep`` makes a turn of a last user message without a reply, ``drop`` leaves it out.
    :param history: give each tool cycle all earlier calls of its session, as ``execution_history`` in its context.
    :param max_line_bytes: the longest line or record that is read, in bytes; 64 MiB by default.
    :param scan: secrets and personal data in the input: ``warn`` counts them, ``mask`` replaces them by markers such as ``[masked: aws-key]``
        before anything is stored or sent, ``off`` does not look for them.
    """

    title: ClassVar[str] = "a recorded session"

    path: Path
    unknown: Literal["mark", "error"] = attrs.field(default="mark", validator=attrs.validators.in_(("mark", "error")))
    kinds: tuple[Kind, ...] = attrs.field(default=("turn",), alias="subjects", converter=chosen)
    tool_error: str | None = None
    trailing: Literal["drop", "keep"] = attrs.field(default="drop", validator=attrs.validators.in_(("drop", "keep")))
    history: bool = False
    max_line_bytes: int = attrs.field(default=MAX_LINE_BYTES, validator=Within(1, inf, "1 or more"))
    scan: Scan = attrs.field(default="warn", metadata={"later": True})

    def __attrs_post_init__(self) -> None:
        if self.tool_error is not None and (wrong := pattern_fault(self.tool_error)):
            raise ConfigError(Problem(wrong, path="tool_error", value=self.tool_error))

    open, check, subjects = open_source, check_source, each_subject

    @classmethod
    def detect(cls, beginning: Beginning) -> Detection | None:
        """Return the detection of the format in a file with this *beginning*, None for another format."""
        raise NotImplementedError

    @classmethod
    def session_folders(cls, root: Path, names: Sequence[str]) -> Sequence[SessionFolder]:  # noqa: ARG003  # a hook
        """Return the folders whose files are one session, from the *names* of all files below *root*; none by default."""
        return ()

    def sessions(self, reading: SessionReading) -> Iterator[Session | Failed]:
        """Yield the sessions and the failed records of one file, which *reading* reads."""
        raise NotImplementedError

    @contextmanager
    def reading(self) -> Iterator[RecordedSessions]:
        """Open the input and yield the live source.

        :raises DataError: if the path does not exist, or has another format.
        """
        refuse_missing(self.path)
        with InputFile.opened(self.path) as file, Repeats() as repeats, UniqueNames() as names:
            if not self.path.is_dir():
                self._refuse_other(read_beginning(file.path, UTF_8), file)
            input_files = find_files(file.path, self.detect, self.title, self.session_folders)
            files = attrs.evolve(input_files, label=file.label)
            yield RecordedSessions(self, files, repeats, names)

    def _refuse_other(self, beginning: Beginning, file: InputFile) -> None:
        if self.detect(beginning) is None:
            if not beginning.start.strip():
                raise DataError(Problem("the file is empty; name the file of a session", file.label))
            message = f"this does not look like {self.title}; dicast import finds the source for a file"
            raise DataError(Problem(message, file.label))


class RecordedSessions:
    """The open input of a :class:`SessionSource`: one file is open, and its sessions are in memory one at a time."""

    def __init__(self, source: SessionSource, files: InputFiles, repeats: Repeats, names: UniqueNames) -> None:
        self.kinds = source.kinds
        self.total: int | None = None
        self._source, self._files, self._repeats, self._names = source, files, repeats, names
        self._totals, self._scales = Totals(), ScoreScales()
        self._kept: KeptSessions | None = None  # of the check, unless scores differ in the next pass

    def check(self) -> str:
        """Read everything once and return the SHA-256 of the data.

        :raises DataError: with the bad lines and unknown shapes; also if there are no subjects.
        """
        digest, problems = hashlib.sha256(), list[Problem]()
        self._totals, count, faults = Totals(), 0, 0
        self._kept, kept = None, KeptSessions()
        for name in self._start():
            with self._files.opened(name) as file, InputCheck(file) as check, _collector_off():
                for number, session in enumerate(self._sessions(file, name, check, self._note_call), 1):
                    if not number % _COLLECTED:
                        gc.collect(0)
                    kept.add(session, self._totals)
                    count += 1 if isinstance(session, Failed) else self._count(session)
                try:
                    digest.update(f"{name}\0{check.finish(1)}\n".encode(errors="surrogateescape"))
                except DataError as error:
                    faults += check.total
                    problems += error.problems[: MAX_LISTED - len(problems)]
            kept.add(None, self._totals)
        self._repeats.finish()
        if problems:
            listed = sum(problem.line is not None for problem in problems)
            rest = [Problem(f"… and {faults - listed:,} more", self._files.label)] if faults > listed else []
            raise DataError([problem for problem in problems if problem.line is not None] + rest)
        if not count:
            raise NoSubjects(Problem(self._totals.without_subjects(), self._files.label))
        self.total = count
        if kept.is_usable and not self._scales.has_changed:
            self._kept = kept
        return digest.hexdigest()

    def subjects(self) -> Iterator[Subject | Due]:
        """Yield the subjects of one session after the other; a failed record is one subject of the coarsest kind.

        :raises DataError: at the first bad line.
        """
        for session in self._again():
            if isinstance(session, Failed):
                yield session.subject(self.kinds[-1])
                continue
            subject = None
            for subject in scored_subjects(session, self.kinds, history=self._source.history):
                yield subject
            if subject is None:
                self._totals.note_dropped(session)

    def _again(self) -> Iterator[Any]:
        """Yield the sessions and failed records of the pass after the check, as the check kept them; else from the files."""
        if not self._repeats.is_complete:
            self.check()
        if self._kept is not None:
            for item, totals in _without_collector(self._kept.items(self._name_call)):
                self._totals = totals
                if item is not None:  # which ends a file
                    yield item
            return
        self._totals = Totals()
        for name in self._start():
            with self._files.opened(name) as file:
                yield from self._sessions(file, name, None, self._name_call)

    @property
    def paths(self) -> frozenset[Path]:
        """The absolute paths of the files that the source reads."""
        return self._files.paths

    @property
    def left_out(self) -> frozenset[Path]:
        """The absolute paths of the files of the folder that the source does not read."""
        return self._files.left_out

    @property
    def first_places(self) -> Mapping[str, str]:
        """The place of the first content of each kind that was marked in the newest pass."""
        return self._totals.first_places

    def note_read_elsewhere(self, paths: frozenset[Path]) -> None:
        """Note that other parts of the run read or report the files *paths*: the summary does not list them as left out."""
        self._files = attrs.evolve(self._files, read_elsewhere=paths)

    def read_counts(self) -> ReadCounts:
        """Return the counts of the newest pass, so far."""
        notes = [*self._files.notes(self._source.title)]
        if repeated := self._names.repeated:
            notes.append(f"{repeated:,} repeated session id{'s' * (repeated != 1)}: the second session is ID#2")
        return self._totals.read_counts(notes)

    def _start(self) -> tuple[str, ...]:
        """Start a pass over the files; return their names."""
        self._names.restart()
        return self._files.names

    def _sessions(
        self, file: InputFile, name: str, check: InputCheck | None, name_call: NameCall
    ) -> Iterator[Session | Failed]:
        source = self._source
        error = None if source.tool_error is None else compiled(source.tool_error)
        rules = Rules(error, source.trailing == "keep", name_call)
        is_marked = source.unknown == "mark"
        reading = SessionReading(
            file, name, rules, is_marked, source.max_line_bytes, check, self._totals, self._names, self._scales
        )
        try:
            yield from _without_collector(source.sessions(reading))
        except DataError as problem:
            if check is None:
                raise
            file.fault(problem, problem.problems[0].line or 1, check)

    def _count(self, session: Session) -> int:
        """Return the number of subjects of *session*; a session without any is counted as dropped."""
        count = sum(1 for _ in subjects(session, self.kinds))
        if not count:
            self._totals.note_dropped(session)
        return count

    def _note_call(self, turn_id: str, call_id: str) -> str:
        self._repeats.note(call_id)
        return CallId.of(call_id, turn_id, call_id)

    def _name_call(self, turn_id: str, call_id: str) -> str:
        return f"{turn_id}/{call_id}" if call_id in self._repeats else call_id


def _without_collector(sessions: Iterator[_Item]) -> Iterator[_Item]:
    """Yield *sessions* with the garbage collector off while each is read."""
    while True:
        with _collector_off():
            session = next(sessions, None)
        if session is None:
            return
        yield session


@contextmanager
def _collector_off() -> Iterator[None]:
    """Turn the garbage collector off. It would traverse the records of a session many times, which takes a third of the time, and records have
    no cycles.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
