"""One file of recorded sessions while a format reads it, and the counts of an input."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import attrs
import orjson

from dicast import DataError, Due, Failure, Problem, ReadCounts, RecordedScore, Subject

from .._kernel.values.names import json_type
from .conversations import Conversation, Counts, Rules
from .databases import database_files, open_database
from .documents import Layout, Placed, Records, layout_of
from .files import open_file
from .input_file import InputCheck, InputFile, Numbered
from .json_values import has_constants, inexact, marked_numbers, too_deep
from .message_formats import Shapes
from .parts import UnknownPart
from .recorded_scores import ScoreScales, with_unique_names
from .repeats import UniqueNames
from .session_notes import abandoned_note, dropped_reasons, left_out_note, marked_notes
from .sessions import Kind, Session
from .surrogates import escaped, with_lone_surrogates

MOST_KINDS = 100
"""The most kinds of marked content that are counted separately."""


class NoSubjects(DataError):
    """An input in the format, whose sessions have no subject to judge."""


@attrs.frozen
class Failed:
    """A record that failed where it was recorded: its *id*, the *reason*, its *recorded* scores, if any, and its *place*: the file, maybe with a line."""

    id: str
    reason: str
    recorded: tuple[RecordedScore, ...] = ()
    place: str | None = None

    def subject(self, kind: Kind) -> Due:
        """Return the record as a failed subject of *kind*."""
        id_ = self.id if kind == "session" else f"{self.id}/1"
        failure = Failure("source_error", self.reason)
        return Due(Subject(kind, id_, session_id=self.id, place=self.place), failure=failure, recorded=self.recorded)


@attrs.define
class Totals:
    """Counts of an input. *records* counts its sessions and failed records.

    *recorded* counts the scores of other tools by name. *kinds* counts the lines or parts of records by kind, including kinds without a
    message. *unknown* counts undocumented shapes by kind; *marked* counts them together with other marked content; *first_places* has the
    first place of each kind. *left_out* counts parts of the input that belong to no session, by their name in the plural. *abandoned* counts
    the turns that the user took back, and their messages, calls and results.
    """

    records: int = 0
    failed: int = 0
    turns: int = 0
    dropped: Counter[str] = attrs.field(factory=Counter)
    contents: Counts = attrs.field(factory=Counts)
    models: Counter[str] = attrs.field(factory=Counter)
    kinds: Counter[str] = attrs.field(factory=Counter)
    recorded: Counter[str] = attrs.field(factory=Counter)
    marked: Counter[str] = attrs.field(factory=Counter)
    unknown: Counter[str] = attrs.field(factory=Counter)
    first_places: dict[str, str] = attrs.field(factory=dict)
    left_out: Counter[str] = attrs.field(factory=Counter)
    abandoned: Counter[str] = attrs.field(factory=Counter)
    has_trailing: bool = False

    def read_counts(self, notes: Sequence[str] = ()) -> ReadCounts:
        """Return the counts as a run's document has them, with further *notes*."""
        contents = self.contents.contents()
        sessions = {"sessions": self.records - self.failed, "turns": self.turns}
        details = {"contents": sessions | contents, "models": self.models, "kinds": self.kinds, "unknown": self.unknown}
        others = {"recorded_scores": self.recorded, "abandoned": self.abandoned}
        details |= {name: counts for name, counts in others.items() if counts}
        return ReadCounts(self.records, self.marked, self.dropped, self.failed, details, (*notes, *self._notes()))

    def note_dropped(self, session: Session) -> None:
        """Count the newest record, *session*, as a record without a subject, by its reason."""
        reason = "no_tool_cycle" if session.turns else "trailing" if self.has_trailing else "no_turn"
        self.dropped[reason] += 1

    def note_marked(self, kinds: Mapping[str, int], place: str, *, is_unknown: bool) -> None:
        """Count the *kinds* of content that were marked at *place*; after :data:`MOST_KINDS` kinds, further kinds are counted together."""
        for name, count in kinds.items():
            kind = name if name in self.marked or len(self.marked) < MOST_KINDS else "other shapes"
            self.marked[kind] += count
            self.first_places.setdefault(kind, place)
            if is_unknown:
                self.unknown[kind] += count

    def without_subjects(self) -> str:
        """Return the message for records without any subject."""
        reasons = "; ".join(filter(None, (dropped_reasons(self.dropped), left_out_note(self.left_out))))
        if not reasons and self.kinds:
            kinds = ", ".join(f"{count:,} {kind}" for kind, count in sorted(self.kinds.items()))
            return f"there are no subjects: the input has no messages, only {kinds}"
        sessions = f"{self.records:,} session{'s' * (self.records != 1)}"
        return f"there are no subjects in {sessions}: {reasons or 'no records'}"

    def _notes(self) -> Iterator[str]:
        yield from marked_notes(self.marked, self.first_places)
        yield from filter(None, (left_out_note(self.left_out), abandoned_note(self.abandoned)))
        if count := self.contents.unmatched_results:
            yield f"{count:,} tool result{'s' * (count != 1)} without a call"
        if count := self.contents.dropped:
            yield f"{count:,} last user message{'s' * (count != 1)} without a reply left out (trailing: drop)"


@attrs.define
class SessionReading:
    """One pass over one *file*, whose relative *name* is empty unless it is in a folder.

    Iterate over :meth:`objects`, :meth:`records` or :meth:`lines`; make a :meth:`conversation` for each session, and :meth:`end` it. Report undocumented
    shapes with :meth:`unknown`; pass *shapes* to the functions of :mod:`dicast.toolkit.message_formats` that read messages. Without *check* the
    first fault is raised. *line* is the line of the newest record, *record_line* that of the record that is being read, if any. With *keeps_abandoned*, turns stay that the user took back.
    """

    file: InputFile
    name: str
    rules: Rules
    is_marked: bool
    max_bytes: int
    check: InputCheck | None
    totals: Totals
    names: UniqueNames
    scales: ScoreScales = attrs.field(factory=ScoreScales)
    keeps_abandoned: bool = False
    shapes: Shapes = attrs.field(
        default=attrs.Factory(lambda self: Shapes(self.is_marked), takes_self=True), init=False
    )
    line: int = attrs.field(default=1, init=False)
    record_line: int | None = attrs.field(default=None, init=False)
    _unique: dict[str, str] = attrs.field(factory=dict, init=False)
    _marks: Counter[str] = attrs.field(factory=Counter, init=False)
    _places: dict[str, str] = attrs.field(factory=dict, init=False)

    @property
    def place(self) -> str:
        """The file, with the line of the record that is being read if the file may have several."""
        is_alone = self.record_line is None or (self.record_line == 1 and self.layout != "lines")
        return self.file.label if is_alone else f"{self.file.label}:{self.record_line}"

    @cached_property
    def layout(self) -> Layout:
        """The layout of the file's records."""
        return layout_of(self.file, self.max_bytes)

    def lines(self) -> Numbered[str]:
        """Yield ``(line, text)`` for each line that is not blank, without its end: for a format whose lines are not JSON.

        A last line without an end is yielded and counted as marked, because it may have been cut while it was written. With ``unknown: error``
        it is reported. A line that is not UTF-8 is reported.
        """
        for number, line in self.file.lines(self.max_bytes, self.check):
            self.line = self.record_line = number
            text = self._text(line, number)
            if text is not None and text.strip():
                if not line.endswith(b"\n"):
                    self._note_cut(number, "reads it")
                yield number, text.rstrip("\r\n")
            self.settle(number)
        self.record_line = None

    def objects(self) -> Numbered[dict[str, Any]]:
        """Yield ``(line, object)`` for the JSON object of each line that is not blank; for an array or longer documents, with the first line of each.

        A last line without an end, cut while it was written, is marked. So are NaN, infinity, numbers that need more than 64 bits, and lone
        surrogates.
        """
        if self.layout in ("array", "documents"):
            yield from ((line, record) for _, line, record in self.records(joins_messages=False))
            return
        for number, line in self.file.lines(self.max_bytes, self.check):
            self.line = self.record_line = number
            try:
                value = orjson.loads(line)
                if inexact(line) is not None:
                    value = marked_numbers(line, self._mark_number)
            except orjson.JSONDecodeError as error:
                value = self._repaired(line, error, number)
                if value is None:
                    self.settle(number)
                    continue
            if type(value) is not dict:
                self.unknown("line", json_type(value), "")
            elif self.check is not None and too_deep(line, value):
                self.refuse("the line is nested too deeply to be recorded", number)
            else:
                yield number, value
            self.settle(number)
        self.record_line = None

    def records(self, *, joins_messages: bool = True) -> Placed:
        """Yield ``(number, first line, object)`` for each JSON object of the file. The file has an object on each line, an array, or whole documents.

        An array of messages is one record with *joins_messages*, else each of its items is a record.
        """
        if self.layout == "lines":
            yield from ((line, line, record) for line, record in self.objects())
            return
        records = Records(self.file, self.layout, self.max_bytes, self.check, joins_messages=joins_messages)
        for number, line, record in records:
            self.line = self.record_line = line
            if records.failures.pop(line, None) is not None:
                self.mark("lone surrogate")
            yield number, line, record
            self.settle(line)
        self.record_line = None

    def value(self, data: bytes, line: int = 1) -> Any:
        """Return the value of the JSON text *data*, which starts on *line*; None after a fault, which is reported.

        NaN, infinity, numbers that need more than 64 bits and lone surrogates become texts, and are counted as marked.
        """
        try:
            value = orjson.loads(data)
            if inexact(data) is not None:
                value = marked_numbers(data, self._mark_number)
        except orjson.JSONDecodeError as error:
            try:
                value = marked_numbers(data, self._mark_number, self._mark_constant)
            except (ValueError, RecursionError):
                self.refuse(f"it is not JSON: {error.msg}", line + error.lineno - 1)
                return None
            if (repaired := escaped(value)) is not None:
                self.mark("lone surrogate")
                value = repaired.value
        if too_deep(data, value):
            self.refuse("it is nested too deeply to be recorded", line)
            return None
        return value

    def conversation(self, id: str, parent_id: str | None = None, parent_call: str | None = None) -> Conversation:
        """Return a new conversation with the unique form of *id*; *parent_id* is the id of the session that started it, *parent_call* of the tool call."""
        unique = self._unique[id] = self.names.take(id)
        self._places[unique] = self.place
        parent = None if parent_id is None else self._unique.get(parent_id, parent_id)
        return Conversation(unique, self.rules, parent_id=parent, parent_call=parent_call)

    def abandon(self, conversation: Conversation) -> None:
        """Count a *conversation* that the user took back, and that is in no session."""
        turns, counts = conversation.turns, conversation.counts
        conversation.session({})  # counts the failed results
        contents = {name: getattr(counts, name) for name in ("messages", "calls", "results", "failed_results")}
        self.totals.abandoned.update(turns=turns, **contents)

    def end(
        self,
        conversation: Conversation,
        context: Mapping[str, object] | None = None,
        disposition: str = "completed",
        time: str | None = None,
        *,
        reference: object = None,
        scores: Iterable[RecordedScore | None] = (),
    ) -> Session:
        """Count a conversation and return its session.

        :param context: the other fields of its record.
        :param reference: its expected result.
        :param scores: the scores that another tool gave to it, from *scales*; None is no score.
        """
        session = conversation.session({} if context is None else context, disposition, time)
        self.settle(self.line)
        place = self._places.pop(conversation.id, self.file.label)
        session = attrs.evolve(session, reference=reference, recorded=self._recorded(scores), place=place)
        totals = self.totals
        totals.records += 1
        totals.turns += len(session.turns)
        totals.contents.add(conversation.counts)
        totals.models.update(conversation.models)
        totals.has_trailing = conversation.counts.dropped > 0
        return session

    def failed(self, id: str, reason: str, scores: Iterable[RecordedScore | None] = ()) -> Failed:
        """Count a record that failed where it was recorded, and return it; *scores* are its scores, if it has any."""
        self.totals.records += 1
        self.totals.failed += 1
        return Failed(self.names.take(id), reason, self._recorded(scores), self.place)

    def _recorded(self, scores: Iterable[RecordedScore | None]) -> tuple[RecordedScore, ...]:
        """Return *scores* with unique names, and count them."""
        recorded = tuple(with_unique_names(scores))
        self.totals.recorded.update(score.name for score in recorded)
        return recorded

    def unknown(self, kind: str, name: object, path: str, names: tuple[str, ...] = ()) -> UnknownPart:
        """Return the marker of an undocumented *kind* of value at *path*, or report it; *names* are the documented names of that kind."""
        return self.shapes.unknown(kind, name, path, names)

    def malformed(self, error: DataError, kind: str) -> UnknownPart:
        """Return the marker of a *kind* of record that lacks a documented field, or report its *error*."""
        if self.is_marked:
            self.mark(f"malformed {kind}")
        else:
            self.shapes.problems += error.problems
        return UnknownPart(f"shape of {kind}", str(error.problems[0].path or ""))

    @property
    def stem(self) -> str:
        """The name of the file without its suffix, for a session without an id."""
        return Path(self.name or self.file.label).name.partition(".")[0] or "session"

    @property
    def folder(self) -> str | None:
        """The name of the folder of the file below the folder that is read, None at its top."""
        return Path(self.name).parent.name or None

    @contextmanager
    def database(self) -> Iterator[sqlite3.Connection]:
        """Open the file as a SQLite database for reading.

        :raises sqlite3.Error: if it is no database.
        """
        if (check := self.check) is not None:
            for path in database_files(self.file.path):
                with open_file(path) as data:
                    while piece := data.read(2**20):
                        check.digest.update(piece)
        with open_database(self.file.path) as connection:
            yield connection

    def mark(self, kind: str) -> None:
        """Count one item of *kind* that a marker or its text replaced."""
        self._marks[kind] += 1

    def refuse(self, problem: str | Problem, line: int) -> None:
        """Report the *problem* of *line*, which is not in the format."""
        self.file.fault(problem, line, self.check)

    def _mark_number(self, digits: str) -> str:
        self.mark("number of more than 64 bits")
        return digits

    def _mark_constant(self, name: str) -> str:
        self.mark("number that is not finite")
        return name

    def settle(self, line: int) -> None:
        """Count the marks since the last call for the record on *line*, and report its unknown shapes.

        :meth:`objects`, :meth:`records` and :meth:`lines` call it after each record. A format that reads messages later must call it.
        """
        if self.shapes.problems:
            problems, self.shapes.problems = self.shapes.problems, []
            self.file.fault(DataError(problems), line, self.check)
        for counted, is_unknown in ((self.shapes.marked, True), (self._marks, False)):
            if counted:
                self.totals.note_marked(counted, f"{self.file.label}:{line}", is_unknown=is_unknown)
                counted.clear()

    def _repaired(self, line: bytes, error: orjson.JSONDecodeError, number: int) -> object:
        """Return the value of a *line* that orjson does not read. For a blank, cut or wrong line, report the fault, if any, and return None."""
        if not line.strip():
            return None
        if with_lone_surrogates(line) is not None and (repaired := escaped(marked_numbers(line, self._mark_number))):
            self.mark("lone surrogate")
            return repaired.value
        if has_constants(line):
            return self.value(line, number)
        if (text := self._text(line, number)) is None:
            return None
        if line.endswith(b"\n") or not line.lstrip().startswith(b"{") or error.pos < len(text.rstrip()):
            self.refuse(Problem(f"the line is not JSON: {error.msg}", column=error.pos + 1), number)
        else:
            self._note_cut(number, "leaves it out")
        return None

    def _text(self, line: bytes, number: int) -> str | None:
        """Return the text of *line*, without a character that was cut at its end; None if it is not UTF-8, which is reported."""
        try:
            return line.decode()
        except UnicodeDecodeError as wrong:
            if not line.endswith(b"\n") and wrong.end == len(line):
                return line[: wrong.start].decode()
            problem = Problem(f"byte 0x{line[wrong.start]:02x} is not UTF-8; save the file as UTF-8")
        self.file.undecodable(problem, number, self.check)
        return None

    def _note_cut(self, number: int, effect: str) -> None:
        """Count the last line as cut, or report it; *effect* is what the option ``unknown: mark`` does with it."""
        if self.is_marked:
            self.mark("cut line")
        else:
            self.refuse(f"the last line was cut while it was written (unknown: mark {effect})", number)
