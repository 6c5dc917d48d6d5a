"""One subject: the output that a run judged, the conversation around it, and every verdict on it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

import attrs

from dicast import Entry, Event, Ledger, PluginError, Query, run_kind
from dicast.reading import JudgedOutputs, read_digest, reader, retracted_labels, verdict_of
from dicast.reporting import output_ending

from .runs import Document, NotFound, Values, full_run_id

TYPES = ("subject.read", "eval.completed", "eval.failed")


def subject(ledger: Ledger, values: Values, *, chained: bool = True) -> Document:
    """Return a subject as one run judged it, with every verdict on it, the oldest first.

    ``content`` and ``conversation`` are from the run ``run_id``: the requested run, else the last run that judged the subject and is not a tool's,
    such as a label. If a task produced the output, ``content.output`` is the task's and ``made`` is true. Each verdict has the ``output_digest``
    of its output, and is ``retracted`` if a person took it back. ``place`` is the file, with the line if it is known, that the subject was read from. ``parent_session_id`` is the session that started the subject's session, a sub-agent. ``runs`` are the runs with the subject, the newest first. ``finish_reason`` is the word for the end of the shown output, such as ``length``. Without *chained* the digests of its rows are null.
    """
    id, kind = values["id"], values["subject_kind"]
    entries = [entry for entry in ledger.read(Query(types=TYPES, subject_id=id)) if entry.event.subject_kind == kind]
    if not entries:
        raise NotFound(f"the ledger has no {kind} {id!r:.100}")
    requested_run = None if values["run"] is None else full_run_id(ledger, values["run"])
    run_id = shown_run(ledger, entries, requested_run)
    outputs = JudgedOutputs(ledger, {id})
    retracted = retracted_labels(ledger)

    def digest(run: str) -> str | None:
        output = outputs.of(run, kind, id)
        return None if output is None else output.digest

    session_id = entries[0].event.session_id
    read = next((entry.event for entry in reversed(entries) if _is_reading(entry.event, run_id)), None)
    conversation = {} if session_id is None else _conversation(ledger, session_id, read)
    return {
        "data": {
            f"{kind}_id" if kind == "turn" else "subject_id": id,
            "subject_kind": kind,
            "session_id": session_id,
            "run_id": run_id,
            "runs": _runs(ledger, entries, digest),
            "place": None if read is None else read.payload.get("place"),
            **judged_content(read, outputs, kind, id),
            "output_digest": digest(run_id),
            "finish_reason": _finish_reason(ledger, read),
            "conversation": conversation.get("turns"),
            "parent_session_id": conversation.get("parent_id"),
            "evaluations": [
                {
                    **attrs.asdict(verdict_of(entry.event), recurse=False),
                    "retracted": (entry.event.run_id, kind, id) in retracted,
                    "output_digest": digest(entry.event.run_id),
                    "chain": _place(ledger, entry, chained=chained),
                }
                for entry in entries
                if entry.event.type == "eval.completed"
            ],
            "failures": [
                {
                    "run_id": entry.event.run_id,
                    **entry.event.payload,
                    "output_digest": digest(entry.event.run_id),
                    "chain": _place(ledger, entry, chained=chained),
                }
                for entry in entries
                if entry.event.type == "eval.failed"
            ],
        }
    }


def shown_run(ledger: Ledger, entries: Sequence[Entry], requested_run: str | None) -> str:
    """Return the run whose reading of a subject is shown: *requested_run*, else the last run that judged it and is not a tool's.

    :raises NotFound: if *requested_run* has not read the subject.
    """
    runs = list(dict.fromkeys(entry.event.run_id for entry in reversed(entries)))
    if requested_run is not None:
        if requested_run not in runs:
            raise NotFound(f"run {requested_run} has not read the subject; these have: {', '.join(runs[:3])}")
        return requested_run
    tools = {entry.event.run_id for entry in _starts(ledger, runs) if run_kind(entry.event.payload) == "tool"}
    judged = {entry.event.run_id for entry in entries if entry.event.type != "subject.read"}
    return min(runs, key=lambda run: (run in tools, run not in judged))  # the first of equal runs is the newest


def judged_content(read: Event | None, outputs: JudgedOutputs, kind: str, id: str) -> Document:
    """Return the content that a run read, with the output that its task made."""
    content: Any = None if read is None else read.payload.get("content")
    output = None if read is None else outputs.of(read.run_id, kind, id)
    if output is None or not output.is_made:
        return {"content": content, "made": False}
    return {"content": {**(content if isinstance(content, Mapping) else {}), "output": output.value}, "made": True}


def _runs(ledger: Ledger, entries: Sequence[Entry], digest: Callable[[str], str | None]) -> list[Document]:
    """Return the runs of *entries*, each with the digest of its output, the newest first."""
    run_ids = {entry.event.run_id for entry in entries}
    starts = [entry.event for entry in sorted(_starts(ledger, run_ids), key=lambda entry: -entry.seq)]
    return [
        {
            "run_id": start.run_id,
            "name": start.payload["name"],
            "kind": run_kind(start.payload),
            "started_at": start.time,
            "output_digest": digest(start.run_id),
        }
        for start in starts
    ]


def _starts(ledger: Ledger, run_ids: Collection[str]) -> Iterator[Entry]:
    """Yield the entries ``run.started`` of runs, without a reading of the others."""
    return (entry for run_id in run_ids for entry in ledger.read(Query(run_id, ("run.started",))))


def _finish_reason(ledger: Ledger, read: Event | None) -> str | None:
    """Return the word for the end of the output that a run read or that its task made; None if it is unknown."""
    if read is None:
        return None
    query = Query(read.run_id, ("record.completed",), subject_id=read.subject_id, newest_first=True)
    records = (entry.event for entry in ledger.read(query))
    record = next((event for event in records if event.subject_kind == read.subject_kind), None)
    return output_ending({} if record is None else record.payload, read.payload)


def _is_reading(event: Event, run_id: str) -> bool:
    return event.type == "subject.read" and event.run_id == run_id


def _conversation(ledger: Ledger, session_id: str, read: Event | None) -> Mapping[str, Any]:
    """Return the conversation of the session; empty if the plugin that draws it is not installed."""
    run_id = None if read is None else str(read.payload.get("from_run") or read.run_id)
    try:
        return reader("conversation")(ledger, session_id=session_id, run_id=run_id)
    except PluginError:
        return {}


def with_digests(ledger: Ledger, rows: Sequence[Document]) -> list[Document]:
    """Return verdicts or failures with the digests of their rows."""
    return [{**row, "chain": {**row["chain"], "digest": read_digest(ledger, row["chain"]["seq"])}} for row in rows]


def _place(ledger: Ledger, entry: Entry, *, chained: bool) -> Document:
    return {"seq": entry.seq, "prev": entry.prev or None, "digest": read_digest(ledger, entry.seq) if chained else None}
