"""Events of a block that match a query, and the check of a block's marks."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from dicast import Event, Query

from .chain import MARK_BYTES, chained, leaf_of
from .lines import EVENT, Content, event_of, events_of
from .makers import Maker
from .traced import SUBJECTS, count_of, traces_of

Line = Sequence[Any]


def refuse_changed(prev: bytes, marks: bytes, lines: Sequence[bytes]) -> None:
    """Check that *marks* follow from the lines of a block after the digest *prev*.

    :raises ValueError: for the first line that was changed.
    :raises TypeError: if *marks* are not bytes.
    """
    _, expected = chained(prev, map(leaf_of, lines))
    if not isinstance(marks, bytes):
        raise TypeError(f"its marks are {marks!r}")
    if marks != expected:
        places = range(len(lines))
        place = next((place for place in places if not marks.startswith(expected[: MARK_BYTES * (place + 1)])), 0)
        raise ValueError(f"line {place + 1} was changed")


def matches(
    first: int,
    lines: Iterable[Line],
    query: Query,
    makers: Mapping[str, Maker],
    content: Content,
    numbers: Collection[int] | None = None,
) -> Iterator[tuple[int, Event]]:
    """Yield the events of a block that match *query*, with their numbers; only the numbers *numbers*. Lines that cannot match are not decoded.

    :param first: the number of the first event of the block.
    :param lines: the lines as parsed JSON.
    :param content: a function that returns the JSON text of the content with a digest.
    :raises LookupError: if *makers* does not have a maker.
    """
    seq, types = first, frozenset(query.types)
    subject, session, kind, run_id = query.subject_id, query.session_id, query.subject_kind, query.run_id
    for line in lines:
        if line[0] == EVENT:
            if (
                (not types or line[2] in types)
                and subject in (None, line[8])
                and session in (None, line[5])
                and run_id in (None, line[4])
                and kind in (None, line[7])
                and (query.until is None or line[3] <= query.until)
                and seq > query.after
                and (numbers is None or seq in numbers)
            ):
                yield seq, event_of(line, content)
            seq += 1
        elif line[0] in SUBJECTS:
            maker = makers[line[1]]
            if session in (None, line[3]) and run_id in (None, maker.run_id):
                places = _places(line, maker, query, types, query.after - seq)
                if numbers is not None:
                    places = [place for place in places if seq + place in numbers]
                yield from ((seq + place, event) for place, event in events_of(line, makers, content, places))
            seq += count_of(line, makers)


def _places(line: Line, maker: Maker, query: Query, types: Collection[str], after: int) -> list[int]:
    """Return the places of the events of a judged subject that match. Trace events have no subject."""
    traces, until, (subject, kind) = traces_of(line), query.until, (query.subject_id, query.subject_kind)
    places = []
    if subject in (None, line[2]) and kind in (None, maker.kind):
        places = [
            place + len(traces) if place else 0
            for place, part in enumerate(maker.parts)
            if (not types or part.type in types) and (until is None or line[6 + 2 * place] <= until)
        ]
    if traces and subject is None and kind is None:
        places += [
            place
            for place, item in enumerate(traces, 1)
            if (not types or item[1] in types) and (until is None or item[2] <= until)
        ]
        places.sort()
    return [place for place in places if place > after]
