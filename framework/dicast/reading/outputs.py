"""Judged outputs: the output of a subject that each run judged, and its digest."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from .._kernel.classes import frozen
from .._kernel.contract.protocols import Ledger
from .._kernel.events import RECORD_COMPLETED, RUN_STARTED, SUBJECT_READ
from .._kernel.values import Query
from .._kernel.values.output import output_digest

__all__ = ["JudgedContents", "JudgedOutput", "JudgedOutputs", "output_digest"]

Place = tuple[str, str, str]
"""A run, and the kind and id of a subject."""

_FEW = 200
"""The most subjects, and the most runs, that are queried one by one; for more the whole ledger is read."""


@frozen
class JudgedOutput:
    """The output of one subject as one run judged it.

    *is_made* is True if a task made it. *value* and *digest* are None if the ledger keeps digests in place of contents.
    """

    value: object = None
    digest: str | None = None
    is_made: bool = False


class JudgedOutputs:
    """The outputs of subjects, by run.

    The ledger is read once, when the object is made.

    :param subjects: the ids to read; None for all.
    :param run_id: the run to read; None for all runs.
    """

    def __init__(self, ledger: Ledger, subjects: Collection[str] | None = None, run_id: str | None = None) -> None:
        self._outputs: dict[Place, JudgedOutput] = {}
        self._contents: dict[str, Mapping[str, Any]] = {}
        types = (SUBJECT_READ, RECORD_COMPLETED)
        starts, queries = [Query(run_id=run_id, types=(RUN_STARTED,))], [Query(run_id=run_id, types=types)]
        is_of_few = subjects is not None and len(subjects) <= _FEW
        if is_of_few:
            queries = [Query(run_id=run_id, types=types, subject_id=id) for id in sorted(subjects or ())]
        events: Iterable[Any] = (
            entry.event
            for query in queries
            for entry in ledger.read(query)
            if subjects is None or entry.event.subject_id in subjects
        )
        if is_of_few:
            events = list(events)
            if len(runs := {event.run_id for event in events}) <= _FEW:
                starts = [Query(run_id=run, types=(RUN_STARTED,)) for run in sorted(runs)]
        self._tasks = {
            entry.event.run_id
            for query in starts
            for entry in ledger.read(query)
            if entry.event.payload.get("task") is not None
        }
        for event in events:
            self._add(event)

    def of(self, run_id: str, kind: str, id: str) -> JudgedOutput | None:
        """Return the output of a subject in a run, None if the run did not read the subject."""
        return self._outputs.get((run_id, kind, id))

    def runs(self, kind: str, id: str) -> list[str]:
        """Return the runs that read a subject, the oldest first."""
        return [run for run, *subject in self._outputs if subject == [kind, id]]

    def _add(self, event: Any) -> None:
        place = event.run_id, str(event.subject_kind), str(event.subject_id)
        payload: Mapping[str, Any] = event.payload
        if event.type == SUBJECT_READ:
            digest, content = str(payload["digest"]), payload.get("content")
            if isinstance(content, Mapping):
                self._contents[digest] = content
            content_read = self._contents.get(digest)
            value = None if content_read is None else content_read.get("output")
            is_known = content_read is not None
            self._outputs.pop(place, None)  # a live source may read a subject again
            self._outputs[place] = JudgedOutput(
                value, output_digest(value) if is_known else None, event.run_id in self._tasks
            )
        elif event.run_id in self._tasks:
            output = _task_output(payload)
            self._outputs[place] = JudgedOutput(output, None if output is None else output_digest(output), is_made=True)


def _task_output(record: Mapping[str, Any]) -> object:
    """Return the content of a record's response, with several criteria of the first response; None if the ledger keeps digests only."""
    if "digest" in record:
        return None
    response = record.get("response")
    return response.get("content") if isinstance(response, Mapping) else None


class JudgedContents:
    """The contents that a run with a task judged: the record that it read, with the output of the task.

    :param run_id: the run to read.
    """

    def __init__(self, ledger: Ledger, run_id: str) -> None:
        self._hashes: dict[tuple[str, str], int] = {}
        contents: dict[str, Mapping[str, Any]] = {}
        read: dict[tuple[str, str], Mapping[str, Any]] = {}
        for entry in ledger.read(Query(run_id=run_id, types=(SUBJECT_READ, RECORD_COMPLETED))):
            event, payload = entry.event, entry.event.payload
            subject = str(event.subject_kind), str(event.subject_id)
            if event.type == SUBJECT_READ:
                if isinstance(content := payload.get("content"), Mapping):
                    contents[str(payload["digest"])] = content
                read[subject] = contents.get(str(payload["digest"]), {})
            elif (output := _task_output(payload)) is not None and subject in read:
                self._hashes[subject] = int(output_digest({**read[subject], "output": output})[:16], 16) - 2**63

    def content_hash(self, kind: str, id: str) -> int | None:
        """Return 8 bytes of the digest of a content as an integer; None if the run made no output, or the ledger does not keep it."""
        return self._hashes.get((kind, id))
