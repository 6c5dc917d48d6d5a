"""Digests of the content that a run judged, for the question whether another run judged the same content."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from hashlib import sha256
from typing import Any

import orjson

from ..classes import evolve
from ..events import RECORD_COMPLETED, SUBJECT_READ
from ..values import ContentDigests, Entry, Query
from ..values.passes import SubjectKey

Read = Callable[[Query], Iterator[Entry]]

_HEX = 32
"""Number of hexadecimal digits of a digest: 128 bits."""


def ledger_contents(read: Read, run_id: str, started: Mapping[str, Any]) -> Iterator[tuple[SubjectKey, ContentDigests]]:
    """Yield each subject of the run with the digests of its content; the newest content of a subject counts.

    The outputs of a task with several rollouts are not known: the ledger has the record of the first.

    :param read: the ledger's ``read``.
    :param started: the payload of ``run.started``.
    """
    contents: dict[SubjectKey, ContentDigests] = {}
    has_task = started.get("task") is not None
    types = (SUBJECT_READ, RECORD_COMPLETED) if has_task and started.get("rollouts", 1) == 1 else (SUBJECT_READ,)
    for entry in read(Query(run_id=run_id, types=types)):
        event = entry.event
        subject = str(event.subject_kind), str(event.subject_id)
        if event.type == SUBJECT_READ:
            contents[subject] = _read_contents(event.payload, has_task=has_task)
        elif subject in contents:
            contents[subject] = evolve(contents[subject], **_response_digests(event.payload))
    yield from contents.items()


def _read_contents(payload: Mapping[str, Any], *, has_task: bool) -> ContentDigests:
    """Return the digests of the content in the payload of ``subject.read``."""
    content: Any = payload.get("content")
    has_events = "events" in payload or "trail" in payload  # the content has no text of the events
    question = None if content is None else _digest([content.get("input"), content.get("reference")])
    digest = None if has_events else str(payload["digest"])[:_HEX]
    if has_task or has_events or content is None:
        return ContentDigests(question, None if has_task else digest, digest)
    return ContentDigests(question, None if content.get("output") is None else _digest(content["output"]), digest)


def _response_digests(record: Mapping[str, Any]) -> dict[str, str]:
    """Return the digests of the responses in *record*; empty if the ledger does not keep their texts."""
    if "digest" in record:
        return {}
    responses: Mapping[str, Any] = record.get("responses") or {"": record.get("response") or {}}
    outputs = {
        name: {key: value for key, value in response.items() if key not in ("metrics", "retry")}
        for name, response in responses.items()
    }
    figures = {name: response.get("metrics") for name, response in responses.items()}
    return {"output": _digest(outputs), "figures": _digest(figures)}


def _digest(value: object) -> str:
    return sha256(orjson.dumps(value, option=orjson.OPT_SORT_KEYS)).hexdigest()[:_HEX]
