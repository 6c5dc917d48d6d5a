"""One subject as a run judged it, with its trace events and the conversation before it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from dicast import DataError, Entry, Ledger, Query

from .choice import Choice
from .recorded import Recorded, Recording


def read_subject(ledger: Ledger, *, run_id: str, subject_kind: str, subject_id: str, session_id: str) -> dict[str, Any]:
    """Return the subject that *run_id* judged, with its events and its trail; ``subject`` is null where the ledger has no events of it."""
    query = Query(
        run_id, ("subject.read",), subject_kind=subject_kind, subject_id=subject_id, newest_first=True, limit=1
    )
    read = next((entry.event for entry in ledger.read(query)), None)
    if read is None:
        return {"subject": None}
    recorded_by = str(read.payload.get("from_run") or run_id)

    def of_run(query: Query) -> Iterator[Entry]:
        return ledger.read(attrs.evolve(query, run_id=recorded_by))

    with Choice() as choice:
        source = Recording(of_run, Recorded(subject_kind, session=session_id), choice)
        try:
            subject = next((due.subject for due in source.subjects() if due.subject.id == subject_id), None)
        except DataError:  # the ledger has digests only, or lacks events
            return {"subject": None}
    return {"subject": subject}
