"""Lines of the chain: events as lines, and lines as events.

A line is a JSON list in UTF-8 without a newline. The first value is its kind:

- ``[0, id, type, time, run_id, session_id, turn_id, subject_kind, subject_id, sensitivity, payload]`` is an event. An event with a content has
  two more values: the SHA-256 of the content, and the number of characters of the payload before it. The payload has ``null`` in its place. An event with
  texts of users has the SHA-256 of the texts and their places; see :mod:`.separation`.
- ``[1, …]`` is a maker and ``[2, …]`` a judged subject, which is several events; see :mod:`.makers`. ``[4, …]`` is a judged subject with trace events;
  see :mod:`.traced`.
- ``[3, seq, digest]`` is the first line of a converted ledger: the last row of the older ledger. It has no event.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import takewhile
from typing import Any

import orjson

from dicast import Event, LedgerError

from ..._kernel.classes import define, field
from .judged import RECORD, Judged, Templates
from .makers import FIRST_EVENT, MAKER, Maker, Part, learned
from .redaction import failure_without_text, plain, without_texts
from .separation import Separated, restored, separate
from .shapes import fill
from .traced import SUBJECTS, TRACED, count_of, end_of_traces, trace_event, traced, traces_of

EVENT, CONVERTED = 0, 3
"""The first values of the line of an event, and of the line of a conversion."""

_RUN, CONTENT = 4, 11
"""The places of the run, and of the digest of the content or of the texts, in the line of an event."""

EVENT_SIZES = frozenset((CONTENT, CONTENT + 2))
"""The numbers of values of the line of an event, without and with a content or texts."""

_READ, _STARTED, _COMPLETED = _OF_SUBJECT = ("subject.read", "eval.started", "eval.completed")
_RATIONALE = b'"rationale_redacted":"'
_FEW_TEMPLATES = 20
_MOST_MAKERS = 32
"""Most makers of a kind and a run that one encoder learns. Later subjects with other shapes are lines of events."""

Line = tuple[bytes, int, Sequence[Any]]
"""A line, its number of events, and the events or the judged subject."""

Content = Callable[[str], bytes | None]
"""Function that returns the JSON text of the content with this digest, or None if the ledger does not have it."""


@define
class Encoded:
    """Lines in their order, the contents of their subjects by digest, and the makers that are among them.

    *values* are the values of lines that were made from values, by the place of the line; other lines must be parsed.
    """

    lines: list[Line] = field(factory=list)
    contents: dict[str, bytes] = field(factory=dict)
    makers: list[Maker] = field(factory=list)
    values: dict[int, Sequence[Any]] = field(factory=dict)


class Encoder:
    """Encoder of events. It remembers the makers that it has written: call :meth:`forget` after a failed transaction.

    :param store_content: whether the texts of subjects are kept.
    """

    def __init__(self, *, store_content: bool) -> None:
        self._store_content = store_content
        self._makers: dict[tuple[object, ...], list[Maker]] = {}
        self._is_written: set[str] = set()
        self.makers: dict[str, Maker] = {}
        """The makers of all lines."""
        self._templates = Templates()
        self.preface: bytes | None = None
        """A line without events, which is the first line of the next append."""

    def forget(self) -> None:
        """Write all makers again before their next use."""
        self._is_written.clear()

    def encode(self, records: Sequence[Any]) -> Encoded:
        """Return the lines of *records*: events, and judged subjects in place of their three events.

        :raises LedgerError: if a payload cannot be written as JSON.
        """
        encoded = Encoded([] if self.preface is None else [(self.preface, 0, ())])
        at, count = 0, len(records)
        while at < count:
            record = records[at]
            if record.type == RECORD:
                self._record(record, encoded)
                at += 1
            elif record.type == _READ and (end := _end_of_subject(records, at)):
                self._judged(records[at:end], encoded)
                at = end
            else:
                self._event(record, encoded)
                at += 1
        return encoded

    def _record(self, record: Judged, encoded: Encoded) -> None:
        """Add the line of a judged subject without its events, if a template has its form."""
        template = self._templates.of(record, self._line_of) if self._store_content else None
        try:
            values = None if template is None else template.values_of(record, encoded.contents)
            # a copy of the right size: orjson leaves its buffer in place
            line = None if values is None else b"%b" % orjson.dumps(values, plain)
        except TypeError:  # reported with the name of the event
            values = line = None
        if template is None or line is None or values is None:
            self._judged(record.events(), encoded)
        else:
            encoded.values[self._add(template.maker, line, (record,), encoded)] = values

    def _line_of(self, events: Sequence[Event]) -> tuple[Maker, bytes] | None:
        """Return the line of *events* and its maker, or None. The first lines do without the pattern of their maker, which takes 4 ms to compile."""
        digest, bodies = self._bodies(events, Encoded())
        if self._templates.count < _FEW_TEMPLATES:
            learned_maker, line = learned(events, digest)
            maker = self.makers.get(learned_maker.name)
            if maker is not None and _is_exact(line, maker, bodies):
                return maker, line
        return self._line(events, digest, bodies)

    def _judged(self, events: Sequence[Event], encoded: Encoded) -> None:
        """Add the line of a judged subject, or the lines of its events if no maker has their shapes. Trace events follow the first event."""
        subject, traces = (events[0], *events[-2:]), events[1:-2]
        digest, bodies = self._bodies(subject, encoded)
        has_rationale = _RATIONALE in bodies[-1]  # its text must not be in the line
        made = None if has_rationale else self._line(subject, digest, bodies)
        if made is not None and traces:
            maker, judged = made
            line = self._traced(judged, traces, subject[0].turn_id, encoded)
            made = None if line is None else (maker, line)
        if made is not None:
            self._add(*made, events, encoded)
            return
        encoded.lines.append((_event_line(subject[0], bodies[0], digest), 1, subject[:1]))
        for event in traces:
            self._event(event, encoded)
        for event in subject[1:]:
            self._event(event, encoded)

    def _traced(self, judged: bytes, traces: Sequence[Event], turn: str | None, encoded: Encoded) -> bytes | None:
        """Return the line of a judged subject with its trace events, or None."""
        try:
            return traced(judged, traces, [self._separated(event, encoded) for event in traces], turn)
        except TypeError:  # reported with the name of the event
            return None

    def _separated(self, event: Event, encoded: Encoded) -> tuple[Separated, str | None]:
        """Return the payload of an event without the texts of users, and the digest of the texts, which are a content.

        :raises TypeError: if the payload cannot be written as JSON.
        """
        if not self._store_content:
            return Separated(orjson.dumps(without_texts(event), plain)), None
        payload = separate(event)
        if not payload.places:
            return payload, None
        digest = sha256(payload.content).hexdigest()
        encoded.contents[digest] = payload.content
        return payload, digest

    def _line(self, events: Sequence[Event], digest: str | None, bodies: Sequence[bytes]) -> tuple[Maker, bytes] | None:
        """Return the line of *events* and its maker, or None."""
        read, started, _ = events
        key = read.run_id, read.subject_kind, started.payload.get("judge"), *(event.sensitivity for event in events)
        makers = self._makers.setdefault(key, [])
        for maker in makers:
            if (line := maker.judged(events, bodies, digest)) is not None:
                break
        else:
            if len(makers) >= _MOST_MAKERS:
                return None
            maker, line = learned(events, digest)
            if not _is_exact(line, maker, bodies):
                return None
        if makers[:1] != [maker]:  # the next subject probably has the same shapes
            makers[:] = [maker, *(other for other in makers if other is not maker)]
        return maker, line

    def _add(self, maker: Maker, line: bytes, records: Sequence[Any], encoded: Encoded) -> int:
        """Add the line of a judged subject, after the line of its maker if it is new. Return the place of the line."""
        if maker.name not in self._is_written:
            self._is_written.add(maker.name)
            self.makers[maker.name] = maker
            encoded.makers.append(maker)
            encoded.lines.append((maker.line, 0, ()))
        count = len(records) if len(records) > 1 else len(maker.parts)
        encoded.lines.append((line, count, records))
        return len(encoded.lines) - 1

    def _event(self, event: Event, encoded: Encoded) -> None:
        if event.type == _READ and not (self._store_content and "failure" in event.payload):
            digest, (body,) = self._bodies((event,), encoded)
            line = _event_line(event, body, digest)
        else:
            try:
                payload, digest = self._separated(event, encoded)
            except TypeError as error:
                raise _not_json(event, error) from error
            line = _event_line(event, payload.body, digest, payload.places)
        encoded.lines.append((line, 1, (event,)))

    def _bodies(self, events: Sequence[Event], encoded: Encoded) -> tuple[str | None, list[bytes]]:
        """Return the digest of the content of the first event, a ``subject.read``, and the payloads, with ``null`` as the content."""
        read, *others = events
        digest, payload = None, read.payload
        try:
            content = payload.get("content")
            if content is not None:
                text = orjson.dumps(content, plain)
                digest = sha256(text).hexdigest()
                if self._store_content:
                    encoded.contents[digest] = text
                payload = {**payload, "content": None}
            if not self._store_content and "failure" in payload:
                payload = {**payload, **failure_without_text(payload)}
            body = orjson.dumps(payload, plain)
        except TypeError as error:
            raise _not_json(read, error) from error
        return digest, [body, *map(self._body, others)]

    def _body(self, event: Event) -> bytes:
        """Return the payload of an event without a content."""
        try:
            return orjson.dumps(event.payload if self._store_content else without_texts(event), plain)
        except TypeError as error:
            raise _not_json(event, error) from error


def _end_of_subject(events: Sequence[Any], at: int) -> int:
    """Return the place after the verdict if the events from *at* on are a reading, trace events, a start and a verdict of one subject; else 0."""
    start = end_of_traces(events, at)
    if start + 1 >= len(events):
        return 0
    read, started, completed = events[at], events[start], events[start + 1]
    is_judged = (
        started.type == _STARTED
        and completed.type == _COMPLETED
        and read.subject_id == started.subject_id == completed.subject_id
        and read.subject_kind == started.subject_kind == completed.subject_kind
        and read.session_id == started.session_id == completed.session_id
        and read.turn_id == started.turn_id == completed.turn_id
        and read.run_id == started.run_id == completed.run_id
    )
    return start + 2 if is_judged else 0


def _is_exact(line: bytes, maker: Maker, bodies: Sequence[bytes]) -> bool:
    """Return True if the payloads of *line* are *bodies*, which have ``null`` as the content."""
    try:
        return [*bodies_of(orjson.loads(line), maker, lambda _: None)] == [*bodies]
    except LookupError:
        return False


def _event_line(event: Event, body: bytes, digest: str | None, places: Sequence[int] = ()) -> bytes:
    """Return the line of an event. *digest* is the SHA-256 of its content, or of its texts, which have *places*."""
    try:
        columns = orjson.dumps(
            [
                *(EVENT, event.id, event.type, event.time, event.run_id, event.session_id, event.turn_id),
                *(event.subject_kind, event.subject_id, event.sensitivity),
            ]
        )
    except TypeError as error:
        raise _not_json(event, error) from error
    if digest is None:
        return b"%b,%b]" % (columns[:-1], body)
    place = orjson.dumps(places) if places else b"%d" % _before_content(event.payload)
    return b'%b,%b,"%b",%b]' % (columns[:-1], body, digest.encode(), place)


def _not_json(event: Event, error: TypeError) -> LedgerError:
    return LedgerError(f"event {event.id} ({event.type}) cannot be written as JSON: {error}")


def _before_content(payload: Mapping[str, object]) -> int:
    """Return the number of characters of the payload before its content."""
    before = {key: payload[key] for key in takewhile(lambda key: key != "content", payload)}
    start = orjson.dumps(before, plain).decode()
    return len(start) - 1 + (1 if before else 0) + len('"content":')


def bodies_of(line: Sequence[Any], maker: Maker, content: Content) -> Iterator[bytes]:
    """Yield the payloads of the line of a judged subject."""
    return (body_of(line, part, content) for part in maker.parts)


def body_of(line: Sequence[Any], part: Part, content: Content) -> bytes:
    """Return the payload of an event of a judged subject."""

    def value(place: int) -> bytes:
        return orjson.dumps(line[place]) if place > 0 else content(line[-place]) or b"null"

    return fill(part.pieces, value)


def events_of(
    line: Sequence[Any], makers: Mapping[str, Maker], content: Content, parts: Collection[int] | None = None
) -> Iterator[tuple[int, Event]]:
    """Yield the events of a line with their places in it. The line of a maker has no events.

    *parts* are the places to yield of a judged subject; all of them without *parts*.

    :raises LookupError: if the line does not have the values of its kind.
    """
    kind = line[0]
    if kind == EVENT:
        yield 0, event_of(line, content)
    elif kind in SUBJECTS:
        yield from _events_of_subject(line, makers[line[1]], content, parts)
    elif kind not in (MAKER, CONVERTED):
        raise LookupError(f"a line begins with a number from {EVENT} to {TRACED}, not {kind!r}")


def _events_of_subject(
    line: Sequence[Any], maker: Maker, content: Content, places: Collection[int] | None
) -> Iterator[tuple[int, Event]]:
    subject, session, turn = line[2:FIRST_EVENT]
    traces = traces_of(line)
    count = len(traces)

    def parsed(digest: str) -> Any:
        text = content(digest)
        return None if text is None else orjson.loads(text)

    for place in range(count + len(maker.parts)) if places is None else places:
        if 0 < place <= count:
            yield place, trace_event(line, traces[place - 1], maker.run_id, content)
            continue
        number = place - count if place else 0
        part, at = maker.parts[number], FIRST_EVENT + 2 * number
        payload = part.payload(line, parsed)
        values = line[at], part.type, line[at + 1], maker.run_id, payload, session, turn, maker.kind, subject
        yield place, Event.of(*values, part.sensitivity)


def event_of(line: Sequence[Any], content: Content) -> Event:
    """Return the event of its line. Its payload has the keys in the order in which it was appended.

    :raises TypeError: if the payload is not an object.
    """
    _, id_, type_, time, run_id, session, turn, kind, subject, sensitivity, payload, *of_content = line
    if not isinstance(payload, dict):
        raise TypeError(f"the payload of event {id_!r} is not an object")
    if of_content:
        digest, place = of_content
        text = content(digest)
        if isinstance(place, list):
            payload = restored(type_, payload, digest, place, text)
        elif text is not None:
            payload["content"] = orjson.loads(text)
    return Event.of(id_, type_, time, run_id, payload, session, turn, kind, subject, sensitivity)


def events_in(line: Sequence[Any], makers: Mapping[str, Maker]) -> int:
    """Return the number of events of a line.

    :raises LookupError: if *makers* does not have its maker.
    """
    return count_of(line, makers) if line[0] in SUBJECTS else int(line[0] == EVENT)


def run_of(line: Sequence[Any], makers: Mapping[str, Maker]) -> str | None:
    """Return the run of the events of a line; None for a line without events.

    :raises LookupError: if *makers* does not have its maker.
    """
    if line[0] in SUBJECTS:
        return makers[line[1]].run_id
    return line[_RUN] if line[0] == EVENT else None
