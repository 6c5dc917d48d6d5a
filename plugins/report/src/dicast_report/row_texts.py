"""Texts of the rows of a run: of the rows that a viewer shows, and of all rows for a search."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, takewhile
from sys import maxsize
from typing import Any

import attrs

from dicast import ConfigError, Entry, Ledger, Query
from dicast.reading import READ

from .contents import texts
from .conversation import Turn, conversations, sub_agents
from .marking import Marking
from .row_columns import RowColumns
from .subjects import ENDS, STARTED, Key, Read, SubjectResults, event_of, read_subjects

WHOLE = maxsize
"""Longest text in characters: none is cut."""

Place = tuple[int, int, int]
"""Place of a subject in the ledger: the event with its content, or 0; the first event with a result, and the number of such events, or 0 if they are apart."""

Subject = tuple[SubjectResults, Mapping[str, Any]]


def read_rows(
    ledger: Ledger,
    *,
    run_id: str,
    subjects: Sequence[tuple[str, str, Place | None]],
    most: int | None = None,
    label: str | None = None,
) -> dict[str, Any]:
    """Return the texts of *subjects*, each a kind, an id and a place from :func:`~dicast_report.table.read_table`, in a run.

    Each of ``data`` has ``input``, ``output``, ``reference`` and ``reason``; a text that the ledger does not have is null. With *most*, each text has its first characters only.
    With *label*, ``reason`` is the reason of the result of this label.
    """
    writer = _writer(ledger.read, run_id)
    results = [read_subject(ledger.read, run_id, (kind, id), place) for kind, id, place in subjects]
    turns = _turns(ledger.read, run_id, [result for result in results if not _has_texts(result)])
    data = []
    for (kind, id, _), (subject, payload) in zip(subjects, results, strict=True):
        row_texts, _media = texts(_content(payload), subject.record, WHOLE)
        row = dict(zip(("input", "output", "reference"), row_texts, strict=False))
        messages = list(_messages(turns.get(str(subject.session_id), []))) if row_texts[:2] == (None, None) else []
        row["input"] = row["input"] or next(_said(messages, "user"), None)
        row["output"] = row["output"] or next(_said(reversed(messages), "assistant"), None)
        cut = {name: None if text is None else text[:most] for name, text in row.items()}
        data.append({"subject_kind": kind, "subject_id": id, **cut, "reason": writer.reason(subject, label)})
    return {"data": data}


def read_texts(ledger: Ledger, *, run_id: str, after: int = 0, upto: int = maxsize) -> dict[str, Any]:
    """Return ``texts``: an iterator over the kind, the id and a text of each subject of a run, for a search.

    A subject may come several times, with different texts. A session has the texts of its conversation. Only the ledger's rows after *after* and up to *upto*
    are read.
    """

    def read(query: Query) -> Iterator[Entry]:
        return takewhile(lambda entry: entry.seq <= upto, ledger.read(attrs.evolve(query, after=after)))

    return {"texts": _texts(read, ledger.read, run_id)}


def read_subject(read: Read, run_id: str, key: Key, place: Place | None = None) -> Subject:
    """Return the results of a subject in a run, and the payload of the event with its content. Both are empty if the run does not have the subject.

    A *place* makes the reading fast.
    """
    kind, id = key
    subject = SubjectResults(kind, id, None, 0)
    payload: Mapping[str, Any] = {}
    for entry in _entries(read, run_id, id, place):
        event = entry.event
        if event.subject_kind == kind and event.subject_id == id:
            subject.session_id = subject.session_id or event.session_id
            if event.type == READ:
                payload = event.payload
            else:
                subject.take(event)
    return subject, payload


def _content(payload: Mapping[str, Any]) -> Mapping[str, Any]:
    content = payload.get("content")
    return content if isinstance(content, Mapping) else {}


def _entries(read: Read, run_id: str, id: str, place: Place | None) -> Iterator[Entry]:
    at, first, count = place or (0, 0, 0)
    if not count:
        yield from read(Query(run_id, (READ, *ENDS), subject_id=id))
        return
    if at:
        yield from read(Query(run_id, (READ,), after=at - 1, limit=1))
    yield from read(Query(run_id, ENDS, after=first - 1, limit=count))


def _writer(read: Read, run_id: str) -> RowColumns:
    started = event_of(read, run_id, STARTED)
    if started is None:
        raise ConfigError(f"the ledger has no run {run_id}")
    return RowColumns(Marking.of(started.payload), None, content=True)


def _has_texts(result: Subject) -> bool:
    """Return whether a subject has an input or an output of its own; a session may have none."""
    subject, payload = result
    content = _content(payload)
    return subject.record is not None or content.get("input") is not None or content.get("output") is not None


def _turns(read: Read, run_id: str, subjects: Iterable[Subject]) -> dict[str, list[Turn]]:
    """Return the turns of the sessions of *subjects*, from the run that recorded them."""
    sessions: dict[str, set[str]] = {}
    for subject, payload in subjects:
        if subject.session_id is not None:
            sessions.setdefault(str(payload.get("from_run") or run_id), set()).add(subject.session_id)
    turns: dict[str, list[Turn]] = {}
    for run, ids in sessions.items():
        turns |= conversations(read, run, ids, sub_agents(read, run))
    return turns


def _said(messages: Iterable[Mapping[str, Any]], role: str) -> Iterator[str]:
    """Yield the texts of a role."""
    return (message["text"] for message in messages if message.get("role") == role and message.get("text"))


def _texts(read: Read, read_all: Read, run_id: str) -> Iterator[tuple[str, str, str]]:
    writer = _writer(read_all, run_id)
    sessions: dict[tuple[str, str], str] = {}
    for entry in read(Query(run_id, (READ,))):
        event = entry.event
        kind, id = str(event.subject_kind), str(event.subject_id)
        if kind == "session" and event.session_id is not None:
            sessions[str(event.payload.get("from_run") or run_id), event.session_id] = id
        row_texts, _ = texts(_content(event.payload), None, WHOLE)
        yield kind, id, "\n".join(filter(None, (id, *row_texts[:3], str(event.payload.get("place") or ""))))
    for subject in read_subjects(read, run_id):
        record_texts = texts({}, subject.record, WHOLE)[0][:2] if subject.record else ()
        yield (
            subject.kind,
            subject.id,
            "\n".join(
                dict.fromkeys(
                    filter(None, (subject.id, *record_texts, writer.reason(subject), *writer.reasons(subject)))
                )
            ),
        )
    agents = {run: sub_agents(read_all, run) for run, _ in sessions}
    for (run, session_id), id in sessions.items():
        turns = conversations(read_all, run, {session_id}, agents[run]).get(session_id, [])
        yield "session", id, "\n".join(chain.from_iterable(map(_message_texts, _messages(turns))))


def _messages(turns: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    return (message for turn in turns for message in turn["messages"])


def _message_texts(message: Mapping[str, Any]) -> list[str]:
    return [message[name] for name in ("text", "name", "arguments", "result") if message.get(name)]
