"""Rows: the lines of events of the ledger's format 4 as columns.

Each event is a line of its own, ``[0, id, type, time, run_id, session_id, turn_id, subject_kind, subject_id, sensitivity, payload]``, and two more values for an
event with a content or with texts: their SHA-256, and their places in the payload.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import orjson

from dicast import Event
from dicast.toolkit.ledger_lines import Encoder
from dicast.toolkit.ledger_lines.lines import EVENT, event_of

_READ = "subject.read"


@attrs.define
class Row:
    """An event as the values of its line.

    *columns* are the values before the payload. *content_digest* and *content_at*, as JSON text, are None for an event without a content. *content*, the JSON text of the
    content or the texts, is None too if it was erased or not stored.
    """

    columns: Sequence[Any]
    payload: str
    content_digest: str | None = None
    content_at: str | None = None
    content: str | None = None
    _line: bytes | None = None

    @classmethod
    def of(cls, event: Event, encoder: Encoder) -> Row:
        """Return the row of an event.

        :raises LedgerError: if a value is not JSON.
        """
        encoded = encoder.encode([event])
        ((line, _, _),) = encoded.lines
        if not encoded.contents and event.type == _READ:
            return cls.read(line, None)
        columns = (
            *(event.id, event.type, event.time, event.run_id, event.session_id, event.turn_id),
            *(event.subject_kind, event.subject_id, event.sensitivity),
        )
        start, end, row = len(orjson.dumps([EVENT, *columns])), len(line) - 1, cls(columns, "", line=line)
        for digest, content in encoded.contents.items():
            last = b',"%b",' % digest.encode()
            end = line.rindex(last)
            row.content_digest, row.content = digest, content.decode()
            row.content_at = line[end + len(last) : -1].decode()
        row.payload = line[start:end].decode()
        return row

    @classmethod
    def read(cls, line: bytes, content: str | None) -> Row:
        """Return the row of a *line*. *content* is its content, if the ledger has it.

        :raises ValueError: if it is no line of an event.
        """
        values = orjson.loads(line)
        if not isinstance(values, list) or len(values) not in (11, 13) or values[0] != EVENT:
            raise ValueError("it is not the line of an event")
        row = cls(tuple(values[1:10]), "")
        if len(values) > 11:
            row.content_digest, row.content_at, row.content = values[11], orjson.dumps(values[12]).decode(), content
        before, after = row._around()
        if not (line.startswith(before) and line.endswith(after)):
            raise ValueError("it is not written as dicast writes lines")
        row.payload, row._line = line[len(before) : -len(after)].decode(), line
        return row

    def line(self) -> bytes:
        """Return the line of the row.

        :raises TypeError: if a column is not JSON.
        """
        if self._line is None:
            before, after = self._around()
            return b"%b%b%b" % (before, self.payload.encode(), after)
        return self._line

    def event(self) -> Event:
        """Return the event. Its payload has the keys in the order in which it was appended.

        :raises TypeError: if the payload is not an object.
        :raises ValueError: if the content does not fit the payload.
        """
        payload = orjson.loads(self.payload)
        if self.content_at is None and isinstance(payload, dict):  # most events
            return Event.of(*self.columns[:4], payload, *self.columns[4:])
        values = [EVENT, *self.columns, payload]
        if self.content_at is not None:
            values += self.content_digest, orjson.loads(self.content_at)
        content = None if self.content is None else self.content.encode()
        return event_of(values, lambda _: content)

    def _around(self) -> tuple[bytes, bytes]:
        """Return the line before and after the payload."""
        before = b"%b," % orjson.dumps([EVENT, *self.columns])[:-1]
        if self.content_digest is None or self.content_at is None:
            return before, b"]"
        return before, b',"%b",%b]' % (self.content_digest.encode(), self.content_at.encode())
