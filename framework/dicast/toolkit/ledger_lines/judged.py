"""Lines of judged subjects that the kernel appends as one value each, without an event."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Protocol

import orjson

from dicast import Event

from ..._kernel.classes import frozen
from .makers import FIRST_EVENT, SUBJECT, Maker
from .redaction import plain

RECORD = "judged"
"""The type of a record that stands for the three events of a judged subject."""

_LAST_TIME = FIRST_EVENT + 5
"""The place of the time of the third event."""

_RATIONALE = "rationale_redacted"
"""Signal with which a verdict becomes sensitive."""


class Judged(Protocol):
    """A judged subject. *verdict* is the payload of its verdict, one object for all subjects with equal values."""

    maker: Any
    subject: Any
    read: Mapping[str, Any]
    verdict: Mapping[str, Any]
    answers: Sequence[Any]
    eval_id: str
    ids: Sequence[str]
    times: tuple[str, str]
    latency_ms: int
    has_notes: bool
    text: bytes | None

    def events(self) -> Sequence[Event]:
        """Return the three events."""
        ...


@frozen
class Place:
    """The place of a value in a line, in a payload that is made of places."""

    number: int


@frozen(eq=False)
class Template:
    """Line of the subjects of one maker with one verdict.

    *values* are the values of the line of a subject without texts and signals of scores. The other fields are the places in it: of the members of ``subject.read``, of the digest of the
    content, of the id and the latency of the verdict, and of the text and the signals of each score. *owner* and *verdict* are the objects that
    the records share.
    """

    maker: Maker
    owner: Any
    verdict: Mapping[str, Any]
    values: Sequence[Any]
    read: Sequence[tuple[int, str]]
    content: int | None
    eval_id: int
    latency: int
    notes: Sequence[tuple[int, int]]
    is_shared: bool
    """True if the digest of the content is also the member ``digest`` of ``subject.read``."""

    @classmethod
    def of(cls, record: Judged, maker: Maker, line: bytes) -> Template | None:
        """Return the template of records like *record*, which *maker* writes as *line*; None if its line has another form."""
        places = [Place(number) for number in range(maker.length)]
        read = maker.parts[0].payload(places, lambda _: None)
        completed = maker.parts[-1].payload(places, lambda _: None)
        members = [(value.number, key) for key, value in read.items() if isinstance(value, Place)]
        notes = [(score.get("details"), score.get("signals")) for score in completed.get("scores", ())]
        ids = completed.get("eval_id"), completed.get("judge_latency_ms")
        needed = [*ids, *(part for note in notes for part in note)]
        if not all(isinstance(place, Place) and place.number > _LAST_TIME for place in needed):
            return None
        note_places = [(details.number, signals.number) for details, signals in notes]
        line_values = orjson.loads(line)
        for details, signals in note_places:
            line_values[details], line_values[signals] = "", {}
        shared = maker, record.maker, record.verdict, line_values, members, maker.content
        template = cls(*shared, needed[0].number, needed[1].number, note_places, (maker.content, "digest") in members)
        values = template.values_of(record, {})
        return None if values is None or orjson.dumps(values, plain) != line else template

    def values_of(self, record: Judged, contents: dict[str, bytes]) -> list[Any] | None:
        """Return the values of the line of *record*, and add its content to *contents*; None if it must be written as events.

        :raises TypeError: if a value is not JSON.
        """
        values, subject, read = list(self.values), record.subject, record.read
        values[SUBJECT], values[SUBJECT + 1] = subject.id, subject.session_id
        (began, ended), (first, second, third) = record.times, record.ids
        values[FIRST_EVENT : _LAST_TIME + 1] = first, began, second, began, third, ended
        for place, key in self.read:
            values[place] = read[key]
        values[self.eval_id], values[self.latency] = record.eval_id, record.latency_ms
        if record.has_notes:
            for (details, signals), answer in zip(self.notes, record.answers, strict=True):
                if answer.signals:
                    if _RATIONALE in answer.signals:
                        return None
                    values[signals] = answer.signals
                if answer.details:
                    values[details] = answer.details
        if self.content is not None:
            text = record.text if self.is_shared else None
            if text is not None:
                digest = read["digest"]
            else:
                text = orjson.dumps(read["content"], plain)
                digest = sha256(text).hexdigest()
                if self.is_shared and read["digest"] != digest:
                    return None
            values[self.content] = digest
            contents[digest] = text
        return values


MakeLine = Callable[[Sequence[Event]], tuple[Maker, bytes] | None]


class Templates:
    """Templates of records by their maker and their verdict."""

    most = 1_000

    def __init__(self) -> None:
        self._templates: dict[tuple[object, ...], Template | None] = {}

    @property
    def count(self) -> int:
        """The number of templates."""
        return len(self._templates)

    def of(self, record: Judged, make_line: MakeLine) -> Template | None:
        """Return the template of *record*, or None. *make_line* makes the line of events, for a new template."""
        has_content = record.read.get("content") is not None
        key = id(record.maker), id(record.verdict), has_content, *record.read
        template = self._templates.get(key)
        if template is not None and template.owner is record.maker and template.verdict is record.verdict:
            return template
        made = make_line(record.events())
        template = None if made is None else Template.of(record, *made)
        if len(self._templates) >= self.most:
            self._templates.clear()
        if template is not None:
            self._templates[key] = template
        return template
