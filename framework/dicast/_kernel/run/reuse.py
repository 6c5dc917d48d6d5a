"""Paid replies that later runs of the same process use again: ``dicast run --watch``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from hashlib import sha256
from typing import Any

import orjson

from ..asking.earlier_units import EarlierUnits, ReplyKey
from ..contract.protocols import Ledger, Source
from ..events import RECORD_COMPLETED
from ..plan.sections import METRICS, RECORD, Pipeline
from ..resume.resume import index_replies
from ..source.source import iterate
from ..values import Due, Query, Subject
from ..values.passes import SubjectKey
from .end import ledger_json


class ReusedReplies(EarlierUnits):
    """The paid replies of the *runs* of one process, for subjects, judges and metrics that have not changed since.

    A reply is used again if the subject has the same content and trace events, and the component that paid for it has the same
    fingerprint. It costs nothing then. A task that makes an output without a chat model may make another output, so no reply
    about that subject is used again.
    """

    def __init__(self) -> None:
        super().__init__()
        self._digests: dict[SubjectKey, bytes] = {}
        self._fingerprints: Mapping[str, str] = {}
        self._used: set[ReplyKey] = set()
        self._has_task = False
        self.runs: list[str] = []
        self.ledger_path: str | None = None

    @property
    def used(self) -> int:
        """The number of replies that the current run used again."""
        return len(self._used)

    def begin(self, pipeline: Pipeline) -> None:
        """Forget the replies that no longer hold for *pipeline*."""
        self._used = set()
        before, now = self._fingerprints, pipeline.fingerprints
        changed = {key for key in {*before, *now} if before.get(key) != now.get(key)} if before else set()
        self._fingerprints = now
        self._has_task = pipeline.task is not None
        if any(key == "task" or key.startswith("extractors[") for key in changed):
            self.forget_all()
            return
        labels = {key.partition("[")[2].removesuffix("]") for key in changed if key.startswith("judges[")}
        while (
            more := {slot.label for slot in pipeline.judges if getattr(slot.component, "children", None) in labels}
            - labels
        ):
            labels |= more
        for label in labels:
            self.forget_replies(label)
        for key in changed:
            if key.startswith("metrics["):
                self.forget_replies(METRICS, key.partition("[")[2].removesuffix("]"))

    def noting(self, source: Source) -> Source:
        """Return *source*; a subject that has changed since the previous run loses its replies when it is read."""
        return _NotedSource(source, self)

    def note_subject(self, subject: Subject) -> None:
        """Forget the replies of *subject* if its content or its trace has changed."""
        key, digest = (subject.kind, subject.id), _digest(subject)
        if self._digests.get(key) != digest:
            self.forget(*key)
            self._digests[key] = digest

    def reply(self, key: ReplyKey) -> bytes | None:
        """Return the reply under *key* without its cost, which an earlier run has paid; None without one."""
        stored = super().reply(key)
        if stored is None:
            return None
        self._used.add(key)
        data = orjson.loads(stored)
        reply = data[0] if isinstance(data, list) else data
        reply["cost"] = {**(reply.get("cost") or {}), "amount": "0"}
        return orjson.dumps([reply] if isinstance(data, list) else reply)

    def take(self, ledger: Ledger, run_id: str) -> None:
        """Add the replies that the run bought, without the replies about outputs that a task makes anew in the next run."""
        self.runs.append(run_id)
        path = ledger_json(ledger)["path"]
        self.ledger_path = None if path is None else str(path)
        index_replies(ledger, run_id, self)
        for entry in ledger.read(Query(run_id, (RECORD_COMPLETED,))) if self._has_task else ():
            kind, subject_id = str(entry.event.subject_kind), str(entry.event.subject_id)
            if not self.has_reply(kind, subject_id, RECORD):
                self.forget(kind, subject_id)


def _digest(subject: Subject) -> bytes:
    events = [(event.type, event.turn_id, event.payload) for event in subject.events]
    content = (
        subject.input,
        subject.output,
        subject.reference,
        subject.context,
        subject.columns,
        subject.session_id,
        events,
    )
    return sha256(orjson.dumps(content, default=repr, option=orjson.OPT_SORT_KEYS)).digest()


class _NotedSource:
    """The subjects of *source*, noted by *replies* before they are judged. Attributes that this class lacks are read from *source*."""

    def __init__(self, source: Source, replies: ReusedReplies) -> None:
        self._source, self._replies = source, replies

    def __getattr__(self, name: str) -> Any:
        return getattr(self._source, name)

    async def subjects(self) -> AsyncIterator[Subject | Due]:
        """Yield the subjects in the order of the source."""
        async for item in iterate(self._source):
            subject = item.subject if isinstance(item, Due) else item
            if isinstance(subject, Subject):
                self._replies.note_subject(subject)
            yield item
