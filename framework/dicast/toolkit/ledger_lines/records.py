"""Records of judged subjects from their lines: the way back of :mod:`.judged`.

A ledger that reads lines without making events passes them on with a small part of the time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from operator import itemgetter
from typing import Any

import attrs
import orjson

from dicast import Event, JudgedMaker, JudgedRow, Query, Score, Subject

from .judged import Place
from .lines import Content, events_in
from .makers import FIRST_EVENT, JUDGED, SUBJECT, Maker
from .redaction import plain
from .selection import matches

_TYPES = ("subject.read", "eval.started", "eval.completed")
_SENSITIVE = "user_controlled"
_SESSION, _TURN = SUBJECT + 1, SUBJECT + 2
_FIRST, _BEGAN, _SECOND, _STARTED, _THIRD, _ENDED = range(FIRST_EVENT, FIRST_EVENT + 6)
_OF_STARTED = ("eval_id", "subject_kind", "subject_id")
_BARE = Score(0.0)
"""The answer of a metric without a text and signals; its value is in the verdict."""

_MOST = 1_000
"""Most verdicts, and most answers of a verdict, that are remembered."""


KnownVerdict = tuple[Mapping[str, Any], Sequence[dict[str, Score]]]
"""Payload of a verdict that lines with equal values share, and the answers of its metrics so far, by their texts."""


class RowForm:
    """Form of the lines of *maker*.

    :raises LookupError: if its lines cannot be records.
    :raises TypeError: as above, if a value is missing or constant.
    """

    def __init__(self, maker: Maker) -> None:
        if maker.types != _TYPES or maker.content is None:
            raise LookupError("its lines are no rows with a content")
        self._maker, self._content = maker, maker.content
        self._read, started, self._completed = (part.payload for part in maker.parts)
        places = [Place(number) for number in range(maker.length)]
        completed, about = self._completed(places, _no_content), started(places, _no_content)
        if not (isinstance(completed["signals"]["metrics"], dict) and isinstance(completed["skipped"], list)):
            raise TypeError("its verdicts have another form")
        self._eval_id, self._latency = _number(completed["eval_id"]), _number(completed["judge_latency_ms"])
        self._notes = [(_number(score["details"]), _number(score["signals"])) for score in completed["scores"]]
        self._blank = {SUBJECT: "", self._eval_id: "", self._latency: 0}
        for details, signals in self._notes:
            self._blank |= {details: "", signals: {}}
        pieces = {piece for part in maker.parts[1:] for piece in part.pieces if isinstance(piece, int)}
        self._get = itemgetter(0, *sorted(pieces - self._blank.keys()))  # 0: a tuple without values, too
        self._facts = JudgedMaker(
            *(maker.run_id, maker.kind, about["judge"]),
            {key: value for key, value in about.items() if key not in _OF_STARTED},
            tuple(score["metric"] for score in completed["scores"]),
            maker.parts[-1].sensitivity == _SENSITIVE,
        )
        self._verdicts: dict[bytes, KnownVerdict] = {}
        self._is_exact: bool | None = None

    def record(self, line: Sequence[Any], content: Content) -> JudgedRow | None:
        """Return the record of *line*; None if it must be read as events."""
        if self._is_exact is False or line[_TURN] is not None or line[_STARTED] != line[_BEGAN]:
            return None
        if (text := content(line[self._content])) is None:
            return None
        key = orjson.dumps(self._get(line))
        known = self._verdicts.get(key)
        if known is None:
            known = self._new_verdict(key, line)
        judged: dict[str, Any] = orjson.loads(text)
        read = self._read(line, lambda _: judged)
        answers, has_notes = self._answers(line, known[1])
        ids, times = (line[_FIRST], line[_SECOND], line[_THIRD]), (line[_BEGAN], line[_ENDED])
        shown = text if read.get("digest") == line[self._content] else None
        subject = Subject.of_fields(self._facts.kind, line[SUBJECT], None, None, None, {}, (), line[_SESSION])
        row = JudgedRow(
            *(self._facts, subject, read, known[0], answers, line[self._eval_id], ids, times),
            *(line[self._latency], has_notes, shown),
        )
        if self._is_exact is None:  # the other lines of the maker differ in their values alone
            self._is_exact = self._has_events(attrs.evolve(row), line)
        return row if self._is_exact else None

    def _answers(self, line: Sequence[Any], known: Sequence[dict[str, Score]]) -> tuple[list[Score], bool]:
        """Return the answers of the metrics, and whether one has a text or signals."""
        answers, has_notes = list[Score](), False
        for (details, signals), scores in zip(self._notes, known, strict=True):
            note, evidence = line[details], line[signals]
            if evidence:
                answers.append(Score(0.0, details=note, signals=evidence))
            else:
                answers.append(scores[note] if note in scores else _remember(scores, note))
            has_notes = has_notes or bool(note or evidence)
        return answers, has_notes

    def _new_verdict(self, key: bytes, line: Sequence[Any]) -> KnownVerdict:
        blank = [*line]
        for place, value in self._blank.items():
            blank[place] = value
        if len(self._verdicts) >= _MOST:
            self._verdicts.clear()
        verdict = self._verdicts[key] = self._completed(blank, _no_content), [{} for _ in self._notes]
        return verdict

    def _has_events(self, row: JudgedRow, line: Sequence[Any]) -> bool:
        """Return True if the events of *row* are those of its line, byte by byte."""
        dumps = partial(orjson.dumps, default=plain)
        judged = row.read["content"]
        return all(
            dumps(event.payload) == dumps(part.payload(line, lambda _: judged))
            and event.sensitivity == part.sensitivity
            for event, part in zip(row.events(), self._maker.parts, strict=True)
        )


class RowReader:
    """Reader of the records of a ledger."""

    def __init__(self) -> None:
        self._forms: dict[str, RowForm | None] = {}

    def of(self, line: Sequence[Any], maker: Maker, content: Content) -> JudgedRow | None:
        """Return the record of the *line* of a judged subject; None if it must be read as events."""
        try:
            form = self._forms[maker.name]
        except KeyError:
            form = self._forms[maker.name] = _form_of(maker)
        return None if form is None else form.record(line, content)


def records_in(
    first: int,
    lines: Iterable[Sequence[Any]],
    query: Query,
    makers: Mapping[str, Maker],
    content: Content,
    rows: RowReader,
) -> Iterator[tuple[int, Event | JudgedRow]]:
    """Yield the records of one run in the parsed *lines* of a block, after the event ``query.after``, with their numbers: a judged subject with the number of its first event.

    :param first: the number of the first event of the block.
    :raises ValueError, LookupError, TypeError: if a line does not have the form of its kind.
    """
    seq = first
    for line in lines:
        maker = makers[line[1]] if line[0] == JUDGED else None
        record = None
        if maker is not None and maker.run_id == query.run_id and seq > query.after:
            record = rows.of(line, maker, content)
        if record is None:
            yield from matches(seq, (line,), query, makers, content)
        else:
            yield seq, record
        seq += events_in(line, makers)


def _form_of(maker: Maker) -> RowForm | None:
    try:
        return RowForm(maker)
    except (LookupError, TypeError, ValueError):  # members of another form
        return None


def _no_content(digest: str) -> None:
    return None


def _number(value: object) -> int:
    """Return the number of a place.

    :raises TypeError: if *value* is none.
    """
    if not isinstance(value, Place):
        raise TypeError("the value is not a place")
    return value.number


def _remember(known: dict[str, Score], details: str) -> Score:
    if len(known) >= _MOST:
        known.clear()
    answer = known[details] = Score(0.0, details=details) if details else _BARE
    return answer
