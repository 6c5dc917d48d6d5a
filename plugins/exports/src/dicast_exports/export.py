"""Base of the sources of results: rows of another tool, from a file or from all files of a folder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256
from math import inf
from pathlib import Path
from typing import Any, ClassVar, Literal

import attrs

from dicast import DataError, Due, Failure, Problem, ReadCounts, RecordedScore, Subject, Within
from dicast.toolkit.beginning import Beginning, read_beginning
from dicast.toolkit.conversations import Rules
from dicast.toolkit.detection import Detection
from dicast.toolkit.encodings import UTF_8
from dicast.toolkit.file_source import check_source, each_subject, open_source
from dicast.toolkit.input_file import MAX_LINE_BYTES, InputCheck, InputFile
from dicast.toolkit.input_files import InputFiles, find_files, refuse_missing
from dicast.toolkit.recorded_scores import with_unique_names
from dicast.toolkit.repeats import Repeats, UniqueNames
from dicast.toolkit.scan import Scan
from dicast.toolkit.session_reading import SessionReading
from dicast.toolkit.session_source import RecordedSessions

_NAMED = 3
"""The most repeated ids that a note names."""


@attrs.frozen
class Row:
    """A result as a row. *failure* is the reason of a failure in the other tool; *models* are the models that made the output."""

    id: str
    input: object = None
    output: object = None
    reference: object = None
    context: Mapping[str, object] = attrs.field(factory=dict)
    scores: Iterable[RecordedScore | None] = ()
    session_id: str | None = None
    finish_reason: str | None = None
    failure: str | None = None
    models: tuple[str, ...] = ()


@attrs.frozen
class ExportSource:
    """Results that another tool recorded.

    :param path: a file, a folder whose files of the format are read, or ``-`` for standard input. gzip is recognized. Files of another format
        in the folder are left out, and named in the summary.
    :param unknown: ``mark`` reads a value that the format does not document as a marker, and counts it in ``read.marked``. ``error`` refuses
        the file and reports each with its line.
    :param kind: the subject kind of the rows.
    :param max_line_bytes: the longest line or record that is read, in bytes; 64 MiB by default.
    :param scan: secrets and personal data in the input: ``warn`` counts them, ``mask`` replaces them by markers such as ``[masked: aws-key]``
        before anything is stored or sent, ``off`` does not look for them.
    """

    title: ClassVar[str] = "results of another tool"

    path: Path
    unknown: Literal["mark", "error"] = attrs.field(default="mark", validator=attrs.validators.in_(("mark", "error")))
    kind: str = "row"
    max_line_bytes: int = attrs.field(default=MAX_LINE_BYTES, validator=Within(1, inf, "1 or more"))
    scan: Scan = attrs.field(default="warn", metadata={"later": True})

    open, check, subjects = open_source, check_source, each_subject

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of all subjects."""
        return (self.kind,)

    @classmethod
    def detect(cls, beginning: Beginning) -> Detection | None:
        """Return the detection of the format in a file with this *beginning*, None for another format."""
        raise NotImplementedError

    def companions(self, files: InputFiles) -> Any:
        """Return the contents of other files that belong to the rows of *files*, with a ``digest``; None for a format without such files.

        They may have ``start()``, called before each pass, and ``read_counts()``, which returns further counts by name, and notes.
        """
        return None

    def rows(self, reading: SessionReading, companions: Any) -> Iterator[Row]:
        """Yield the rows of one file, which *reading* reads; *companions* are the contents of other files."""
        raise NotImplementedError

    @contextmanager
    def reading(self) -> Iterator[RecordedRows]:
        """Open the input and yield the live source.

        :raises DataError: if the path does not exist, or has another format.
        """
        refuse_missing(self.path)
        with InputFile.opened(self.path) as file, Repeats() as repeats, UniqueNames() as names:
            if not self.path.is_dir():
                self._refuse_other(read_beginning(file.path, UTF_8), file)
            files = attrs.evolve(find_files(file.path, self.detect, self.title), label=file.label)
            yield RecordedRows(self, files, repeats, names)

    def _refuse_other(self, beginning: Beginning, file: InputFile) -> None:
        if self.detect(beginning) is None:
            is_empty = not beginning.start.strip()
            message = "the file is empty; name a file of results" if is_empty else (
                f"this does not look like {self.title}; dicast import finds the source for a file"
            )  # fmt: skip
            raise DataError(Problem(message, file.label))


class RecordedRows(RecordedSessions):
    """The open input of an :class:`ExportSource`: one file is open, and one of its rows is in memory."""

    def __init__(self, source: ExportSource, files: InputFiles, repeats: Repeats, names: UniqueNames) -> None:
        super().__init__(source, files, repeats, names)  # type: ignore[arg-type]  # its options of sessions are not used
        self._export = source
        self._companions = source.companions(files)
        self._repeated: list[str] = []

    def check(self) -> str:
        """Read everything once and return the SHA-256 of the data.

        :raises DataError: with the bad lines and unknown values; also if there are no rows.
        """
        digest = super().check()
        other = getattr(self._companions, "digest", "")
        return sha256(f"{digest}\n{other}".encode()).hexdigest() if other else digest

    def subjects(self) -> Iterator[Subject | Due]:
        """Yield the rows in the order of the files.

        :raises DataError: at the first bad line.
        """
        yield from self._again()

    def read_counts(self) -> ReadCounts:
        """Return the counts of the newest pass, so far."""
        totals, notes = self._totals, [*self._files.notes(self._export.title)]
        if repeated := self._names.repeated:
            ids = f"{', '.join(self._repeated)}{', …' * (repeated > len(self._repeated))}"
            notes.append(f"{repeated:,} repeated id{'s' * (repeated != 1)} ({ids}): the second record is ID#2")
        details: Mapping[str, Mapping[str, int]] = {}
        if hasattr(self._companions, "read_counts"):
            details, further = self._companions.read_counts()
            notes += further
        counts = totals.read_counts(notes)
        names = ("models", "unknown", "recorded_scores")
        present = {name: counts.details[name] for name in names if name in counts.details}
        return attrs.evolve(counts, details={**present, **details})

    def _start(self) -> tuple[str, ...]:
        """Start a pass over the files; return their names."""
        self._repeated = []
        if hasattr(self._companions, "start"):
            self._companions.start()
        return super()._start()

    def _sessions(self, file: InputFile, name: str, check: InputCheck | None, name_call: Any) -> Iterator[Any]:
        """Yield the rows of one file as subjects."""
        source = self._export
        is_marked, most = source.unknown == "mark", source.max_line_bytes
        reading = SessionReading(file, name, Rules(), is_marked, most, check, self._totals, self._names, self._scales)
        try:
            for row in source.rows(reading, self._companions):
                yield self._due(row, reading.place)
        except DataError as problem:
            if check is None:
                raise
            file.fault(problem, problem.problems[0].line or 1, check)

    def _count(self, session: Any) -> int:
        return 1

    def _due(self, row: Row, place: str) -> Due:
        """Count *row* and return its subject from *place*."""
        recorded = tuple(with_unique_names(row.scores))
        totals = self._totals
        totals.records += 1
        totals.failed += row.failure is not None
        totals.models.update(row.models)
        totals.recorded.update(score.name for score in recorded)
        context = {key: value for key, value in row.context.items() if value is not None}
        id_ = self._names.take(row.id)
        if id_ != row.id and len(self._repeated) < _NAMED:
            self._repeated.append(row.id)
        parts = self._export.kind, id_, row.input, row.output, row.reference, context
        subject = Subject(*parts, session_id=row.session_id, place=place)
        failure = None if row.failure is None else Failure("source_error", row.failure)
        return Due(subject, failure=failure, finish_reason=row.finish_reason, recorded=recorded)
