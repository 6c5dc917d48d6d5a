"""The source ``traces/messages``: conversations in the formats of model providers."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any, Literal

import attrs

from dicast import (
    ConfigError,
    DataError,
    Due,
    Failure,
    InputPath,
    Problem,
    ReadCounts,
    Subject,
    Within,
    identifier,
    nearest,
)
from dicast.toolkit.call_matching import CallId, NameCall
from dicast.toolkit.conversations import Rules
from dicast.toolkit.documents import Records, layout_of
from dicast.toolkit.encodings import UTF_8, check_encoding, known_encoding
from dicast.toolkit.expressions import compiled, pattern_fault
from dicast.toolkit.file_source import check_source, each_subject, open_source
from dicast.toolkit.input_file import MAX_LINE_BYTES, InputCheck, InputFile
from dicast.toolkit.json_values import MISSING, lookup
from dicast.toolkit.kept_sessions import KeptSessions
from dicast.toolkit.message_formats import FORMATS, Format
from dicast.toolkit.repeats import Repeats
from dicast.toolkit.scan import Scan
from dicast.toolkit.session_reading import NoSubjects
from dicast.toolkit.sessions import Kind, Session, chosen, subjects

from .reading import Reader, Totals

_PLACE = re.compile(r"\{\{\s*([^{}\s]+)\s*\}\}")


@attrs.frozen
class Layout:
    """How a record is read as a conversation: the options of :class:`Messages` with these names."""

    id: str | None = None
    tool_error: str | None = None
    trailing: str = "drop"
    format: Format = "auto"
    unknown: str = "error"

    def reader(self, name_call: NameCall) -> Reader:
        """Return a reader of conversations, whose tool calls *name_call* names."""
        error = None if self.tool_error is None else compiled(self.tool_error)
        rules = Rules(error, self.trailing == "keep", name_call)
        return Reader(rules, self.format, self.unknown == "mark")

    def session_id(self, line: int, record: Mapping[str, Any]) -> str:
        """Return the id of the conversation in *record*: by the template ``id``, else its number, *line*.

        :raises DataError: (without a place) when the record lacks something that the template names.
        """
        if self.id is None:
            return str(line)
        return _PLACE.sub(lambda place: _part(place[1], record), self.id)


@attrs.frozen
class Messages:
    """Conversations in the formats of model providers, judged turn by turn.

    A turn is a user message and all messages before the next user message; its id is ``{session}/{n}``. Its input is the user's text, its
    output the assistant's last text (empty if there is none). The record's other fields are its context.

    :param path: the file: a conversation a line, a JSON array of conversations, or one conversation. gzip is recognized; ``-`` is standard
        input. ``dicast watch`` follows a file of lines as it grows, and, with an ``id``, all ``*.jsonl`` files of a directory.
    :param id: the id of the session, a template over the record such as ``{{ task_id }}-{{ trial }}``; by default the number of the line, or of
        the item in an array.
    :param format: the format of the messages: ``openai`` (Chat), ``responses`` (OpenAI Responses), ``anthropic``, ``gemini``, ``sharegpt``
        or ``langchain``. ``auto`` detects it for each message; the run document has the detected formats.
    :param unknown: ``error`` refuses a file with a role, part or item that its format does not have, and reports each with its line.
        ``mark`` reads it as a marker such as ``[unknown part "video"]``, and counts it in ``read.marked``.
    :param tool_error: a regular expression; a result of a tool whose text has a match is a failure, in addition to results that the format marks
        as failures. None by default. It has the syntax of RE2, whose time grows with the text alone: Python's syntax without lookaround, backreferences and
        possessive repeats.
    :param trailing: ``keep`` makes a turn of a last user message without a reply, ``drop`` leaves it out.
    :param kinds: the kinds of subjects to judge (``subjects`` in a pipeline): ``turn``, ``tool_cycle``, ``session``. A tool cycle has the id of
        its call; if this id occurs again in the file, the turn's id comes before it.
    :param history: give each tool cycle all earlier calls of its session, as ``execution_history`` in its context, for
        ``proxy/was_repeated``. The recorded data then grow with the square of the calls in a session.
    :param max_line_bytes: the longest line or record that is read, in bytes; 64 MiB by default.
    :param encoding: the file's encoding, by a name that Python knows (``cp1252``, ``utf-16``); UTF-8 by default. ``dicast watch`` reads UTF-8.
    :param scan: secrets and personal data in the input: ``warn`` counts them, ``mask`` replaces them by markers such as ``[masked: aws-key]``
        before anything is stored or sent, ``off`` does not look for them.
    """

    path: InputPath
    id: str | None = None
    format: Format = attrs.field(default="auto", validator=attrs.validators.in_(FORMATS), metadata={"later": True})
    unknown: Literal["error", "mark"] = attrs.field(
        default="error", validator=attrs.validators.in_(("error", "mark")), metadata={"later": True}
    )
    tool_error: str | None = None
    trailing: Literal["drop", "keep"] = attrs.field(default="drop", validator=attrs.validators.in_(("drop", "keep")))
    kinds: tuple[Kind, ...] = attrs.field(default=("turn",), alias="subjects", converter=chosen)
    history: bool = False
    max_line_bytes: int = attrs.field(default=MAX_LINE_BYTES, validator=Within(1, inf, "1 or more"))
    encoding: str = attrs.field(default=UTF_8, validator=check_encoding, metadata={"later": True})
    scan: Scan = attrs.field(default="warn", metadata={"later": True})

    def __attrs_post_init__(self) -> None:
        problems = []
        if self.id is not None and (wrong := _template_fault(self.id)):
            problems.append(Problem(wrong, path="id", value=self.id))
        if self.tool_error is not None and (wrong := pattern_fault(self.tool_error)):
            problems.append(Problem(wrong, path="tool_error", value=self.tool_error))
        if problems:
            raise ConfigError(problems)

    @property
    def layout(self) -> Layout:
        """The options that decide how records are read."""
        return Layout(self.id, self.tool_error, self.trailing, self.format, self.unknown)

    open, check, subjects = open_source, check_source, each_subject

    @contextmanager
    def reading(self) -> Iterator[Conversations]:
        """Open the input and yield the live source."""
        with InputFile.opened(self.path, known_encoding(self.encoding)) as file, Repeats() as repeats:
            yield Conversations(file, self, repeats)


class Conversations:
    """An open file of conversations, whose absolute path is in *paths*. *repeats* holds the ids of tool calls that the file uses more than once."""

    def __init__(self, file: InputFile, options: Messages, repeats: Repeats) -> None:
        self.kinds = options.kinds
        self.total: int | None = None
        self.paths = frozenset({Path(options.path).resolve()})
        self._file, self._options, self._repeats = file, options, repeats
        self._layout = layout_of(file, options.max_line_bytes)
        self._totals = Totals()
        self._kept: KeptSessions | None = None  # of the check

    def check(self) -> str:
        """Read everything once and return the SHA-256 of the data.

        :raises DataError: naming the bad lines and unknown shapes, or that there is nothing to judge.
        """
        count = 0
        self._kept, kept = None, KeptSessions()
        with InputCheck(self._file, unit="line" if self._layout in ("lines", "lists") else "item") as check:
            reader = self._options.layout.reader(self._note_call)
            for number, id_, session, place in self._sessions(reader, check):
                check.add_id(id_, number, "session id")
                kept.add((id_, session, place), reader.totals)
                new_subjects = 1 if isinstance(session, Failure) else sum(1 for _ in subjects(session, self.kinds))
                if not new_subjects and isinstance(session, Session):
                    reader.totals.note_dropped(session)
                count += new_subjects
            self._repeats.finish()
            if not count and reader.totals.records and not check.total:
                self._totals = reader.totals
                raise NoSubjects(Problem(reader.totals.without_subjects(), self._file.label))
            self.total = count
            digest = check.finish(count)
            self._kept = kept if kept.is_usable else None
            return digest

    def subjects(self) -> Iterator[Subject | Due]:
        """Yield the subjects of one conversation after the other; a failed record is one subject of the coarsest kind.

        :raises DataError: at the first bad line.
        """
        for id_, session, place in self._again():
            if isinstance(session, Failure):
                yield self._failed(id_, session, place)
                continue
            subject = None
            for subject in subjects(session, self.kinds, history=self._options.history):
                yield subject
            if subject is None:
                self._totals.note_dropped(session)

    def _again(self) -> Iterator[tuple[str, Session | Failure, str]]:
        """Yield the sessions of the pass after the check, as the check kept them; else from the file."""
        if not self._repeats.is_complete:
            self.check()
        if self._kept is not None:
            for item, totals in self._kept.items(self._name_call):
                self._totals = totals
                yield item
            return
        reader = self._options.layout.reader(self._name_call)
        self._totals = reader.totals
        for _, id_, session, place in self._sessions(reader, None):
            yield id_, session, place

    def read_counts(self) -> ReadCounts:
        """Return the counts of the newest pass over the subjects, so far."""
        return self._totals.read_counts()

    def _failed(self, session_id: str, failure: Failure, place: str) -> Due:
        kind = self.kinds[-1]
        id_ = session_id if kind == "session" else f"{session_id}/1"
        return Due(Subject(kind, id_, session_id=session_id, place=place), failure=failure)

    def _sessions(self, reader: Reader, check: InputCheck | None) -> Iterator[tuple[int, str, Session | Failure, str]]:
        """Yield for each record its number, the id of the session, the session or its failure, and the place of the record."""
        layout, most = self._options.layout, self._options.max_line_bytes
        records = Records(self._file, self._layout, most, check)
        for number, line, record in records:
            why = records.failures.pop(line, None)
            try:
                id_ = layout.session_id(number, record)
                session = reader.session(id_, record) if why is None else reader.failed(why)
            except DataError as error:
                self._file.fault(error, line, check)
            else:
                place = f"{self._file.label}:{line}"
                yield (
                    number,
                    id_,
                    attrs.evolve(session, place=place) if isinstance(session, Session) else session,
                    place,
                )

    def _note_call(self, turn_id: str, call_id: str) -> str:
        self._repeats.note(call_id)
        return CallId.of(call_id, turn_id, call_id)

    def _name_call(self, turn_id: str, call_id: str) -> str:
        return f"{turn_id}/{call_id}" if call_id in self._repeats else call_id


def _part(path: str, record: Mapping[str, Any]) -> str:
    value = lookup(record, path)
    if value is MISSING:
        names = ", ".join(record)
        raise DataError(Problem(f"the record has no {path!r}; it has {names}", path="id", hint=nearest(path, record)))
    return identifier(value, path)


def _template_fault(template: str) -> str | None:
    rest = _PLACE.sub("", template)
    if "{" in rest or "}" in rest or rest == template:
        return f"{template!r} is not a template for an id; write paths into the record, as in {{{{ task_id }}}}-{{{{ trial }}}}"
    return None
