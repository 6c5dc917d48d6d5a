"""A person's verdict on a subject, recorded as a run of its own."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import attrs

import dicast
from dicast import (
    ConfigError,
    Entry,
    Judgment,
    Ledger,
    LedgerError,
    Problem,
    Query,
    Rubric,
    RunContext,
    Subject,
    TraceEvent,
    Verdict,
)
from dicast.reading import JudgedOutputs, decides, verdict_of
from dicast.reading.gold import RANDOMLY

from .documents import without_rationale
from .judge_kinds import JudgeKinds
from .label_bodies import Label
from .label_case import labels_of
from .label_queue import check_person
from .reading import ServedLedger
from .run_labels import GivenLabel
from .runs import NotFound, full_run_id
from .subjects import TYPES, judged_content, shown_run

NAME = "labels"
"""Name of the runs that record labels and retractions."""

DECISION = "adjudication"
"""Name of the judge of decisions between different labels; the event ``label.given`` names the person."""


@attrs.frozen
class Person:
    """Judge that returns a person's verdict. It has no options, so that every label of a person has the same judge config."""

    _labels: list[Label] = attrs.field(init=False, factory=list, eq=False, repr=False)

    judge_kind = "human"
    needs_output = False

    @classmethod
    def with_label(cls, label: Label) -> Person:
        """Return the judge whose verdict is *label*."""
        person = cls()
        person._labels.append(label)
        return person

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[LivePerson]:
        """Yield the live judge, which also records the label."""
        yield LivePerson(self._labels[0], run)


@attrs.frozen
class LivePerson:
    """Live object of :class:`Person`: returns its verdict and records the event ``label.given``, which ``dicast labels`` and ``calibrate`` read.

    The labeller is the name under which the person judges.
    """

    label: Label
    run: RunContext

    accepts = ()
    judge_kind = "human"
    needs_output = False

    def judge(self, subject: Subject, children: Sequence[Verdict] = ()) -> Judgment:
        """Record the label and return the verdict."""
        label = self.label
        score = float(label.score)
        payload = {"subject": subject.id, "subject_kind": subject.kind, "score": score, "labeller": label.judge}
        facts = {"output_digest": label.output_digest, "drawn": label.drawn, "blind": label.blind}
        payload |= {name: value for name, value in facts.items() if value is not None}
        if label.adjudicated:
            payload["adjudicated"] = True
        self.run.record([TraceEvent("label.given", payload, session_id=subject.session_id)])
        signals = {"reason": label.reason} if label.reason else {}
        if label.adjudicated:
            signals["labeller"] = label.judge
        rubric = Rubric("human", "1")
        return Judgment(score, float(label.confidence), "human", signals=signals, rubric=rubric)


@attrs.frozen
class _Labeled:
    """The labeled subject, the digest of its output (None if the ledger stores digests), and the person's labels of it so far."""

    subject: Subject
    digest: str | None
    labels: Sequence[GivenLabel]
    drawn: str | None
    """How the labels of people were drawn, between which a decision decides; at random if one of them was."""


def record(ledger: ServedLedger, label: Label) -> dict[str, Any]:
    """Record *label* in *ledger*, and return the verdict with its run.

    A label that ``expected`` does not allow, but that equals the person's newest label, is not recorded again: the newest label is returned.

    :raises NotFound: when no run has read a subject with this id.
    :raises ConfigError: when a judge that is not a person has judged under the label's name, or the person has another label than ``expected``.
    """
    labeled = ledger.read(lambda live: _labeled(live, label, ledger.judges))
    newest = labeled.labels[-1] if labeled.labels else None
    run_id = "" if newest is None else newest[0].run_id
    if label.expected not in (None, run_id):
        if newest is None or newest[1].score != label.score:
            raise _other_label(label, newest)
        return ledger.read(lambda live: _recorded(live, label, run_id))
    judge, drawn = (DECISION, labeled.drawn) if label.adjudicated else (label.judge, label.drawn)
    pipeline = {
        "name": NAME,
        "judges": [{"person": {"as": judge}}],
        "define": {"person": Person.with_label(attrs.evolve(label, output_digest=labeled.digest, drawn=drawn))},
        "ledger": ledger_section(ledger),
    }
    done = dicast.run(pipeline, subjects=[labeled.subject], kind="tool")
    if not done.verdicts:
        raise LedgerError(f"the verdict on {label.subject_id!r:.100} was not recorded: {done.failures}")
    (verdict,) = done.verdicts
    return {"run_id": done.run_id, "verdict": without_rationale(attrs.asdict(verdict, recurse=False))}


def ledger_section(ledger: ServedLedger) -> Mapping[str, Any]:
    """Return the ledger as a section of a pipeline."""
    return {"ledger/sqlite": {"path": str(Path(ledger.place).absolute())}}


def _other_label(label: Label, newest: GivenLabel | None) -> ConfigError:
    """Return the error about a label that changed since the person saw it, such as in another tab."""
    if newest is None:
        message = f"{label.judge} has retracted the label of {label.subject_id!r:.100}; give the label without expected"
        return ConfigError(Problem(message, path="expected", value=""))
    event, newest_label = newest
    message = f"{label.judge} has labeled {label.subject_id!r:.100} {newest_label.score:g} elsewhere; keep that label, or replace it with expected: {event.run_id}"
    return ConfigError(Problem(message, path="expected", value=event.run_id))


def _recorded(ledger: Ledger, label: Label, run_id: str) -> dict[str, Any]:
    """Return the answer about a label that the run *run_id* recorded."""
    query = Query(run_id, ("eval.completed",), subject_id=label.subject_id)
    verdict = next((verdict_of(entry.event) for entry in ledger.read(query)), None)
    return {"run_id": run_id, "verdict": verdict and without_rationale(attrs.asdict(verdict, recurse=False))}


def _labeled(ledger: Ledger, label: Label, judges: JudgeKinds) -> _Labeled:
    """Return the labeled subject."""
    check_person(ledger, DECISION if label.adjudicated else label.judge, judges)
    entries = _entries(ledger, label, label.run_id) or _entries(ledger, label, None)
    if not entries:
        raise NotFound(f"the ledger has no {label.subject_kind} {label.subject_id!r:.100}")
    run_id = label.run_id or ""
    if entries[0].event.run_id != run_id:
        run_id = shown_run(ledger, entries, None if label.run_id is None else full_run_id(ledger, label.run_id))
    events = [entry.event for entry in reversed(entries)]
    read = next(
        (event for event in events if event.type == "subject.read" and event.run_id == run_id),
        entries[-1].event,
    )
    outputs = JudgedOutputs(ledger, {label.subject_id}, run_id)
    content: Any = judged_content(read, outputs, label.subject_kind, label.subject_id)["content"] or {}
    parts = {
        name: content[name] for name in ("input", "output", "reference", "context") if content.get(name) is not None
    }
    subject = Subject(label.subject_kind, label.subject_id, session_id=read.session_id, **parts)
    output = outputs.of(run_id, label.subject_kind, label.subject_id)
    digest = None if output is None else output.digest
    people = labels_of(ledger, label.subject_kind, label.subject_id, digest)
    own_labels = [item for item in people if item[1].labeller == label.judge and decides(item[1]) == label.adjudicated]
    draws: list[Any] = [event.payload.get("drawn") for event, item in people if not decides(item)]
    drawn = next((draw for draw in draws if draw in RANDOMLY), draws[0] if draws else None)
    return _Labeled(subject, digest, own_labels, drawn)


def _entries(ledger: Ledger, label: Label, run_id: str | None) -> list[Entry]:
    """Return the entries about the labeled subject, in the run *run_id* or in all runs."""
    found = ledger.read(Query(run_id, TYPES, subject_id=label.subject_id))
    return [entry for entry in found if entry.event.subject_kind == label.subject_kind]
