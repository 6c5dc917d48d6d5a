"""Judged subjects as one value in place of their three rows: the texts of the payloads are matched, not parsed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import orjson

from dicast import Event, JudgedRow
from dicast.toolkit.ledger_lines.lines import bodies_of
from dicast.toolkit.ledger_lines.makers import JUDGED, Maker, learned
from dicast.toolkit.ledger_lines.records import RowReader

from .lines import Row
from .reading import event_at

_READ, _STARTED, _COMPLETED = "subject.read", "eval.started", "eval.completed"
_ID, _TYPE, _TIME, _PLACE, _SENSITIVITY = 0, 1, 2, slice(3, 8), 8
"""Places among the columns of a row: its id, its type, its time, its run and its subject, and its sensitivity."""

_MOST_MAKERS = 32
"""Most makers that are learned from subjects of one kind. Later subjects with other shapes are events."""


def records_of(rows: Iterable[tuple[int, Row]]) -> Iterator[tuple[int, Event | JudgedRow]]:
    """Yield the events of *rows* with their numbers; a free subject that was judged at once is one value, with the number of its first event.

    :raises LedgerError: if a row was changed.
    """
    subjects, waiting = Subjects(), list[tuple[int, Row]]()
    for seq, row in rows:
        if waiting and not _follows(waiting, seq, row):
            yield from _events(waiting)
            waiting = []
        if not waiting and row.columns[_TYPE] != _READ:
            yield seq, event_at(seq, row)
            continue
        waiting.append((seq, row))
        if len(waiting) == len((_READ, _STARTED, _COMPLETED)):
            record = subjects.record([row for _, row in waiting])
            if record is None:
                yield from _events(waiting)
            else:
                yield waiting[0][0], record
            waiting = []
    yield from _events(waiting)


def _follows(waiting: Sequence[tuple[int, Row]], seq: int, row: Row) -> bool:
    """Return True if *row* is the next event of the subject whose first events are *waiting*."""
    first, read = waiting[0]
    type_ = _STARTED if len(waiting) == 1 else _COMPLETED
    is_next = seq == first + len(waiting) and row.columns[_TYPE] == type_
    return is_next and row.columns[_PLACE] == read.columns[_PLACE]


def _events(rows: Iterable[tuple[int, Row]]) -> Iterator[tuple[int, Event]]:
    return ((seq, event_at(seq, row)) for seq, row in rows)


class Subjects:
    """Reader of judged subjects. It learns the shapes of their payloads from the first subjects."""

    def __init__(self) -> None:
        self._makers: dict[tuple[str, ...], list[Maker]] = {}
        self._reader = RowReader()

    def record(self, rows: Sequence[Row]) -> JudgedRow | None:
        """Return the judged subject of *rows*: its reading, its start and its verdict. None if they must be read as events."""
        read, digest = rows[0], rows[0].content_digest
        if digest is None or any(row.content is None and row.content_digest is not None for row in rows):
            return None
        bodies = [read.payload.encode(), *map(_body, rows[1:])]
        maker_and_line = self._line(rows, bodies, digest)
        if maker_and_line is None:
            return None
        maker, line = maker_and_line
        content = b"" if read.content is None else read.content.encode()
        return self._reader.of(line, maker, lambda _: content)

    def _line(self, rows: Sequence[Row], bodies: Sequence[bytes], digest: str) -> tuple[Maker, Sequence[Any]] | None:
        """Return the maker of a judged subject with the payloads *bodies*, and its line as parsed JSON. None without a maker."""
        _, _, _, run_id, session, turn, kind, subject, _ = rows[0].columns
        key = run_id, kind, *(row.columns[_SENSITIVITY] for row in rows)
        makers, line = self._makers.setdefault(key, []), None
        for maker in makers:
            if (values := maker.values_of(subject, bodies, digest)) is not None:
                ends = [value for row in rows for value in (row.columns[_ID], row.columns[_TIME])]
                line = [JUDGED, maker.name, subject, session, turn, *ends, *orjson.loads(b"[%b]" % b",".join(values))]
                break
        else:
            if len(makers) >= _MOST_MAKERS:
                return None
            maker, text = learned([row.event() for row in rows], digest)
            line = orjson.loads(text)
            if [*bodies_of(line, maker, lambda _: None)] != [*bodies]:
                return None
        if makers[:1] != [maker]:  # the next subject probably has the same shapes
            makers[:] = [maker, *(other for other in makers if other is not maker)]
        return maker, line


def _body(row: Row) -> bytes:
    """Return the payload of *row* with its texts."""
    return row.payload.encode() if row.content_digest is None else orjson.dumps(row.event().payload)
