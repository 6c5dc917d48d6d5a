"""Judged contents: the texts of the rows in a page, and their conversations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import attrs

from dicast import Query

from .conversation import Turn, conversations, sub_agents
from .media import Item, without_media
from .subjects import Key, Read
from .texts import MOST, as_text

_OF_SESSIONS = ("turn", "tool_cycle", "session")


@attrs.define
class Contents:
    """Payloads of ``subject.read`` by key, and turns by session. *parents* maps a session to the session that started it, or to its workload."""

    read: dict[Key, Mapping[str, Any]] = attrs.field(factory=dict)
    turns: dict[str, list[Turn]] = attrs.field(factory=dict)
    parents: dict[str, str] = attrs.field(factory=dict)

    def of(self, key: Key) -> Mapping[str, Any]:
        """Return the judged content of a subject; empty if it is unknown."""
        content = self.read.get(key, {}).get("content")
        return content if isinstance(content, Mapping) else {}

    @property
    def has_content(self) -> bool:
        """True if the ledger stores judged contents."""
        return not self.read or any(isinstance(payload.get("content"), Mapping) for payload in self.read.values())


def contents(read: Read, run_id: str, subjects: Iterable[Key]) -> Contents:
    """Return the contents of the subjects *subjects* in the run, and the conversations of subjects from a trace."""
    keys, result = set(subjects), Contents()
    sessions: dict[str, set[str]] = {}
    for entry in read(Query(run_id, ("subject.read",))):
        event, payload = entry.event, entry.event.payload
        key = str(event.subject_kind), str(event.subject_id)
        if "parent_id" in payload:
            result.parents[str(event.session_id)] = str(payload["parent_id"])
        if key in keys:
            result.read[key] = payload
            if event.session_id is not None and event.subject_kind in _OF_SESSIONS:  # a watch has no places of events
                sessions.setdefault(str(payload.get("from_run") or run_id), set()).add(event.session_id)
    for run, session_ids in sessions.items():
        agents = sub_agents(read, run)
        result.turns |= conversations(read, run, session_ids, agents)
        result.parents |= {session: agents.parents[session] for session in session_ids & agents.parents.keys()}
    return result


def texts(
    content: Mapping[str, Any], record: Mapping[str, Any] | None, most: int = MOST
) -> tuple[tuple[str | None, ...], list[Item]]:
    """Return input, output, reference and context of a row as texts, and the media in them. The output is a task's, if the task produced one.

    A longer text than *most* characters is cut, with a note. Each of the media has the place of its text under ``where``: 0 to 3.
    """
    row = (record or {}).get("row")
    input, output = content.get("input"), content.get("output")
    if record is not None:
        input = _without_id(row) if input is None else input
        response = record.get("response") or next(iter((record.get("responses") or {}).values()), None)
        output = response.get("content") if isinstance(response, Mapping) else output
    values = input, output, content.get("reference"), content.get("context") or None
    media: list[Item] = []
    shown_texts: list[str | None] = []
    for where, value in enumerate(values):
        items: list[Item] = []
        shown_texts.append(as_text(value if isinstance(value, str) else without_media(value, items), most))
        media += ({**item, "where": where} for item in items)
    return tuple(shown_texts), media


def _without_id(row: object) -> object:
    """Return a row without its id; a row with a single other column becomes that column's value."""
    if not isinstance(row, Mapping):
        return row
    rest = {name: value for name, value in row.items() if name != "id"}
    return next(iter(rest.values())) if len(rest) == 1 else rest
