"""What was judged: the texts of the rows in a page, and the conversations that they stand in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from dicast import Query

from .conversation import Turn, conversations
from .media import Item, without_media
from .texts import shown
from .told import Key, Read

_OF_SESSIONS = ("turn", "tool_cycle", "session")


@attrs.define
class Contents:
    """The ``subject.read`` payloads of some subjects, by key, and the turns of their sessions."""

    read: dict[Key, Mapping[str, Any]] = attrs.field(factory=dict)
    turns: dict[str, list[Turn]] = attrs.field(factory=dict)

    def of(self, key: Key) -> Mapping[str, Any]:
        """What was judged of a subject; empty where that is not known."""
        content = self.read.get(key, {}).get("content")
        return content if isinstance(content, Mapping) else {}

    @property
    def there(self) -> bool:
        """Whether the ledger stores what was judged."""
        return not self.read or any(isinstance(payload.get("content"), Mapping) for payload in self.read.values())


def contents(read: Read, run_id: str, wanted: Iterable[Key]) -> Contents:
    """Look up the subjects *wanted* in the run, and the sessions of those that a trace tells of."""
    keys, found = set(wanted), Contents()
    sessions: dict[str, set[str]] = {}
    for entry in read(Query(run_id, ("subject.read",))):
        event, payload = entry.event, entry.event.payload
        key = str(event.subject_kind), str(event.subject_id)
        if key in keys:
            found.read[key] = payload
            if (
                event.session_id is not None
                and event.subject_kind in _OF_SESSIONS
                and payload.keys() & {"events", "trail"}
            ):
                sessions.setdefault(str(payload.get("from_run") or run_id), set()).add(event.session_id)
    for run, those in sessions.items():
        found.turns |= conversations(read, run, those)
    return found


def texts(content: Mapping[str, Any], record: Mapping[str, Any] | None) -> tuple[tuple[str | None, ...], list[Item]]:
    """Return input, output, reference and context of a row as texts, and the media in them; the output is that of a task, if it made one.

    Each of the media has under ``where`` the place of its text: 0 to 3.
    """
    row = (record or {}).get("row")
    given, output = content.get("input"), content.get("output")
    if record is not None:
        given = _alone(row) if given is None else given
        response = record.get("response") or next(iter((record.get("responses") or {}).values()), None)
        output = response.get("content") if isinstance(response, Mapping) else output
    values = given, output, content.get("reference"), content.get("context") or None
    media: list[Item] = []
    found: list[str | None] = []
    for where, value in enumerate(values):
        items: list[Item] = []
        found.append(shown(value if isinstance(value, str) else without_media(value, items)))
        media += ({**item, "where": where} for item in items)
    return tuple(found), media


def _alone(row: object) -> object:
    """A row without its id; of a single column that is left, what stands in it."""
    if not isinstance(row, Mapping):
        return row
    rest = {name: value for name, value in row.items() if name != "id"}
    return next(iter(rest.values())) if len(rest) == 1 else rest
