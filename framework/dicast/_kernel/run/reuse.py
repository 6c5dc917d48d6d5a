"""Paid replies that later runs of the same process use again: ``dicast run --watch``."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from typing import Any

import orjson

from ..asking.earlier_units import EarlierUnits, ReplyKey
from ..asking.unpaid_tries import UnpaidTries
from ..contract.protocols import Ledger, Source
from ..events import RECORD_FAILED, SPEND_SETTLED, TASK_REPLIED
from ..plan.sections import METRICS, RECORD, Pipeline
from ..resume.resume import index_replies
from ..source.source import iterate
from ..values import Answered, Due, Failure, Query, Subject
from ..values.passes import SubjectKey


class ReusedReplies(EarlierUnits):
    """The paid replies of all runs of one process. A later run uses the replies that were bought in the same *setting*.

    The setting of a judge's reply is the content and the trace events of the subject, the outputs of the task, and the fingerprints of the
    component that paid, of the judges that judge its children and of the extractors. A task's reply needs no setting: the key has the digest of
    the request and of the model, and the task reads the reply again. So a changed template counts only for rows with another prompt. A setting
    that comes back finds the replies again, at no cost. If a task makes an output without a chat model,
    no reply about that subject is used again. An empty reply by which a task failed is not used again either.

    :param calls: the number of calls of models, also without a reply, and of judges with an own price, in the newest run.
    :param unpaid: the failed calls and the repeated tries of the newest run.
    :param scored_runs: the ids of the runs with a scored subject, oldest first.
    :param faults: the reasons why the newest of these runs is not comparable with the run before it.
    :param loses_replies: whether the ledger of the newest run keeps no texts, so that the replies of its task are lost.
    """

    def __init__(self) -> None:
        super().__init__()
        self._digests: dict[SubjectKey, bytes] = {}
        self._fingerprints: Mapping[str, str] = {}
        self._children: Mapping[str, str] = {}
        self._used: set[ReplyKey] = set()
        self._outputs: dict[SubjectKey, bytes] = {}
        self._made: set[SubjectKey] = set()
        self._has_task = False
        self.calls = 0
        self.unpaid = UnpaidTries()
        self.scored_runs: list[str] = []
        self.faults: list[str] = []
        self.loses_replies = False

    @property
    def used(self) -> int:
        """The number of replies that the current run used again."""
        return len(self._used)

    def begin(self, pipeline: Pipeline) -> None:
        """Look up and record replies in the setting of *pipeline* from now on."""
        self.calls, self.unpaid = 0, UnpaidTries()
        self._used, self._made, self._digests, self._outputs = set(), set(), {}, {}
        self._fingerprints = pipeline.fingerprints
        self._has_task = pipeline.task is not None
        children = ((slot.label, getattr(slot.component, "children", None)) for slot in pipeline.judges)
        self._children = {label: child for label, child in children if isinstance(child, str)}

    def noting(self, source: Source) -> Source:
        """Return *source*; each subject is noted when it is read."""
        return _NotedSource(source, self)

    def note_subject(self, subject: Subject) -> None:
        """Note the content and the trace of *subject*."""
        self._digests[subject.kind, subject.id] = _digest(subject)

    def note_outputs(self, subject: Subject, outputs: Sequence[Subject | Failure]) -> None:
        """Note the outputs of the task about *subject*, one for each rollout."""
        self._outputs[subject.kind, subject.id] = b"".join(map(_output_digest, outputs))

    def note_reply(self, key: ReplyKey, reply: bytes) -> None:
        """Record a paid reply under *key* in the current setting. A reply about an output that the task makes again is not recorded."""
        scoped = self._in_setting(key)
        if scoped is None or (self._has_task and key[2] != RECORD and key[:2] not in self._made):
            return
        self._note_made(key)
        super().note_reply(scoped, reply)

    def reply(self, key: ReplyKey) -> bytes | None:
        """Return the reply under *key* in the current setting, without its cost, which an earlier run has paid; None without one."""
        scoped = self._in_setting(key)
        stored = None if scoped is None else super().reply(scoped)
        if stored is None:
            return None
        self._used.add(key)
        self._note_made(key)
        data = orjson.loads(stored)
        reply = data[0] if isinstance(data, list) else data
        reply["cost"] = {**(reply.get("cost") or {}), "amount": "0"}
        return orjson.dumps([reply] if isinstance(data, list) else reply)

    def take(self, ledger: Ledger, run_id: str, *, is_scored: bool) -> None:
        """Add the replies that the run bought. *is_scored* is whether a subject was scored."""
        self.faults = []
        if is_scored:
            self.faults = _faults(ledger, self.scored_runs[-1], run_id) if self.scored_runs else []
            self.scored_runs.append(run_id)
        index_replies(ledger, run_id, self)
        settled: Iterator[Any] = (entry.event.payload for entry in ledger.read(Query(run_id, (SPEND_SETTLED,))))
        paid = sum(
            payload["calls"] or payload["reply"] is not None for payload in settled
        )  # or a judge with an own price
        self.calls = paid + self.unpaid.free
        for entry in ledger.read(Query(run_id, (RECORD_FAILED,))):
            self._forget_empty(str(entry.event.subject_kind), str(entry.event.subject_id))
        replied = Query(run_id, (TASK_REPLIED,), limit=1)
        self.loses_replies = not getattr(ledger, "keeps_content", True) and any(True for _ in ledger.read(replied))

    def _forget_empty(self, kind: str, subject_id: str) -> None:
        """Remove the empty replies of the task about a subject in the current setting: they are requested again."""
        scoped = self._in_setting((kind, subject_id, RECORD, "", 0))
        if scoped is not None:
            self.forget_empty(*scoped[:3])

    def _note_made(self, key: ReplyKey) -> None:
        """Note that a chat model of the task has replied about the subject of *key* in this run, if *key* is of a record."""
        if key[2] == RECORD:
            self._made.add(key[:2])

    def _in_setting(self, key: ReplyKey) -> ReplyKey | None:
        """Return *key* with the digest of the current setting in its label; None for a subject that was not read, or whose output is not made."""
        kind, id_, label, metric, rollout = key
        subject, outputs = self._digests.get((kind, id_)), self._outputs.get((kind, id_))
        if subject is None:
            return None
        if label == RECORD:
            return key
        if self._has_task and outputs is None:
            return None
        extractors = [name for name in self._fingerprints if name.startswith("extractors[")]
        setting = self._setting(subject + (outputs or b""), [*extractors, *self._payers(label, metric)])
        return kind, id_, f"{label} {setting}", metric, rollout

    def _setting(self, subject: bytes, names: Iterable[str]) -> str:
        """Return the digest of the digests of a *subject* and of the fingerprints with *names*."""
        setting = sha256(subject)
        for name in sorted(names):
            setting.update(f"\0{name}={self._fingerprints.get(name)}".encode())
        return setting.hexdigest()

    def _payers(self, label: str, metric: str) -> Iterator[str]:
        """Yield the names of the fingerprints of a judge and of the judges of its children, or of a metric."""
        if label == METRICS:
            names = [name for name in self._fingerprints if name.startswith("metrics[")]
            labels = {name: name.removeprefix("metrics[").removesuffix("]") for name in names}
            inside = [name for name in names if f"{metric}.".startswith(f"{labels[name]}.")]
            yield from inside or names
        seen = {METRICS}
        while label not in seen:
            seen.add(label)
            yield f"judges[{label}]"
            label = self._children.get(label, label)


def _faults(ledger: Ledger, before: str, newest: str) -> list[str]:
    """Return the reasons why ``dicast compare`` refuses the runs *before* and *newest*."""
    from ..records.comparable import find_faults  # only a second run of a watch needs them
    from ..records.reader import results

    if not any(ledger.read(Query(before, limit=1))):
        return ["the ledger"]
    runs = results(ledger, before), results(ledger, newest)
    return [*find_faults(*runs), *(["the weights of the subjects"] if any(run.weighted() for run in runs) else [])]


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


def _output_digest(output: Subject | Failure) -> bytes:
    """Return the digest of an *output* for a judge: the content and the texts of all responses, without their figures."""
    if isinstance(output, Failure):
        return sha256(f"{output.kind}\0{output.message}".encode()).digest()
    responses: Any = output.responses if isinstance(output, Answered) else {}
    texts = {name: {**response, "metrics": None, "retry": None} for name, response in responses.items()}
    return sha256(_digest(output) + orjson.dumps(texts, default=repr, option=orjson.OPT_SORT_KEYS)).digest()


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
