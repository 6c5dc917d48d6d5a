"""Makers: facts that the judgments of many subjects share, as a line of the chain.

The line of a maker is ``[1, run_id, kind, [[type, sensitivity, pieces], …]]``, with the events of a subject in their order. Its name is the
beginning of the SHA-256 of the line. The line of a judged subject is ``[2, maker, subject_id, session_id, turn_id, id, time, …, value, …]``: the id
and the time of each event, then the values of the payloads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Any

import orjson

from dicast import Event

from ..._kernel.classes import define, field
from .redaction import plain
from .shapes import Build, Piece, Places, build_of, marked_judgment, marked_read, pattern_of, pieces_of

MAKER, JUDGED = 1, 2
"""The first value of a line."""

SUBJECT, FIRST_EVENT = 2, 5
"""The places of the subject's id, and of the id of the first event, in the line of a judged subject."""

_NAME_DIGITS = 32


@define
class Part:
    """An event of a maker: its type, its sensitivity, and the pieces of its payload."""

    type: str
    sensitivity: str
    pieces: Sequence[Piece]
    _build: Build | None = None

    def payload(self, line: Sequence[Any], content: Callable[[str], Any]) -> Any:
        """Return the payload of the event in *line*. *content* returns the content with a digest."""
        if self._build is None:
            self._build = build_of(self.pieces)
        return self._build(line, content)


@define(eq=False)
class Maker:
    """Facts that judged subjects share.

    *line* is the line of the chain, *content* the place of the digest of the subject's content, or None. *nested* are the places of values that may be lists
    or objects, for :meth:`judged`.
    """

    name: str
    line: bytes
    run_id: str
    kind: str
    parts: tuple[Part, ...]
    content: int | None = None
    nested: frozenset[int] = frozenset()
    length: int = field(init=False)
    """The number of values of a line."""
    types: tuple[str, ...] = field(init=False)
    """The types of the events."""
    _pattern: re.Pattern[bytes] | None = None

    @length.default
    def _default_length(self) -> int:
        places = [abs(piece) for part in self.parts for piece in part.pieces if isinstance(piece, int)]
        return max([FIRST_EVENT + 2 * len(self.parts) - 1, *places]) + 1

    @types.default
    def _default_types(self) -> tuple[str, ...]:
        return tuple(part.type for part in self.parts)

    @classmethod
    def of(cls, line: bytes) -> Maker:
        """Return the maker of a line.

        :raises ValueError: if the line is not the line of a maker.
        """
        kind_of_line, run_id, kind, parts = orjson.loads(line)
        if kind_of_line != MAKER:
            raise ValueError(f"the line of a maker begins with {MAKER}, not {kind_of_line!r}")
        made = tuple(Part(type_, sensitivity, pieces) for type_, sensitivity, pieces in parts)
        contents = [-piece for part in made for piece in part.pieces if isinstance(piece, int) and piece < 0]
        return cls(name_of(line), line, run_id, kind, made, contents[0] if contents else None)

    def judged(self, events: Sequence[Event], bodies: Sequence[bytes], digest: str | None) -> bytes | None:
        """Return the line of *events*, whose payloads are *bodies*; None if they do not have the pieces of this maker.

        *digest* is the SHA-256 of the subject's content, or None.
        """
        values = self.values_of(events[0].subject_id, bodies, digest)
        return None if values is None else _line(self.name, events, values)

    def values_of(self, subject_id: str | None, bodies: Sequence[bytes], digest: str | None) -> Sequence[bytes] | None:
        """Return the JSON texts of the values of a line after the ids and the times of its events, as :meth:`judged` does for their payloads *bodies*."""
        if (self.content is None) != (digest is None):
            return None
        pattern = self._pattern
        if pattern is None:
            before: list[Piece] = [SUBJECT] if self.content is None else [SUBJECT, ",", self.content]
            pattern = self._pattern = pattern_of([before, *(part.pieces for part in self.parts)], self.nested)
        ids = orjson.dumps(subject_id)
        if digest is not None:
            ids = b'%b,"%b"' % (ids, digest.encode())
        match = pattern.fullmatch(b"\n".join((ids, *bodies)))
        return None if match is None else match.groups()[1:]


def name_of(line: bytes) -> str:
    """Return the name of the maker with this line."""
    return sha256(line).hexdigest()[:_NAME_DIGITS]


def learned(events: Sequence[Event], digest: str | None) -> tuple[Maker, bytes]:
    """Return a maker for events like *events*, and the line of *events*. *digest* is the SHA-256 of the subject's content, or None.

    The line does not have the payloads of *events* if one of them has a text like a mark of :mod:`.shapes`.
    """
    places = Places(FIRST_EVENT + 2 * len(events), {"subject_id": (SUBJECT, events[0].subject_id)})
    marks = partial(places.mark, plain=plain)
    content = None if digest is None else places.place("digest", digest, plain)
    parts = []
    for event in events:
        marked: Mapping[str, Any] = event.payload
        if event.type == "subject.read":
            marked = marked_read(event.payload, marks, content)
        else:
            marked = marked_judgment(event.payload, marks)
        pieces = pieces_of(orjson.dumps(marked, plain))
        parts.append([event.type, event.sensitivity, pieces])
    first = events[0]
    maker = Maker.of(orjson.dumps([MAKER, first.run_id, first.subject_kind, parts]))
    values = places.values
    del values[SUBJECT]
    maker.nested = frozenset(place for place, value in values.items() if value[0] in b"[{")
    return maker, _line(maker.name, events, [values[place] for place in sorted(values)])


def _line(name: str, events: Sequence[Event], values: Sequence[bytes]) -> bytes:
    first = events[0]
    ends = [value for event in events for value in (event.id, event.time)]
    columns = orjson.dumps([JUDGED, name, first.subject_id, first.session_id, first.turn_id, *ends])
    return b"%b,%b]" % (columns[:-1], b",".join(values))
