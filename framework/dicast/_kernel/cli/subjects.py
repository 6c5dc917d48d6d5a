"""A subject with its verdicts, in the runs that judged it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

from ...toolkit.printable import one_line, short_name
from ..classes import evolve, frozen
from ..contract.protocols import Ledger
from ..events import EVAL_COMPLETED, EVAL_FAILED, RECORD_FAILED, SUBJECT_READ
from ..records.passes import ledger_passes, recorded_rule
from ..resume.named_runs import LEAST, TOOL, run_kind, started_runs, suite_text
from ..resume.queries import Selection, failure, subject, verdict
from ..resume.retractions import retracted_among, verdict_documents
from ..values import Entry, Event, Query, Verdict
from ..values.errors import ConfigError
from ..values.names import nearest
from ..values.passes import SubjectPasses
from .prompts import Prompts, prompts_about
from .steps import Trace, trace

_MOST_EXAMPLES = 3
"""Largest number of runs that an error message lists."""

_NEWEST = 10_000
"""The number of the newest subjects among which the first characters of an id are looked up."""


@frozen
class SubjectInRun:
    """A subject in one run: the run's ``run.started`` event, the subject as it was read, its verdicts, its failures, and its trace.

    *passes* are the labels under which it and its turns pass. *turns* are, for a session, the newest ``eval.completed`` or
    ``eval.failed`` payload of each label by turn. *prompts* are the prompts of the task about the subject, if the run recorded them.
    *retracted* are the ids of the verdicts whose labels a person took back.
    """

    start: Event
    subject: Mapping[str, Any]
    verdicts: Sequence[Verdict]
    failures: Sequence[Mapping[str, Any]]
    trace: Trace
    passes: SubjectPasses
    turns: Mapping[str, Mapping[str, Mapping[str, Any]]]
    prompts: Prompts | None
    retracted: frozenset[str] = frozenset()

    @classmethod
    def of(cls, ledger: Ledger, subject_id: str, start: Event) -> SubjectInRun:
        """Return the subject in the run of the event *start*."""
        selection = Selection(start.run_id, subject_id)
        verdicts = [verdict(event) for event in selection.events(ledger, EVAL_COMPLETED)]
        failures = [failure(event) for event in selection.events(ledger, EVAL_FAILED, RECORD_FAILED)]
        steps = trace(ledger, subject_id, start.run_id)
        content = subject(ledger, subject_id, start.run_id) or {}
        turns = _turn_results(ledger, start.run_id, subject_id) if content.get("kind") == "session" else {}
        passes = subject_passes(ledger, start, (subject_id, *turns))
        prompts = prompts_about(ledger, start, subject_id, content)
        retracted = retracted_among(ledger, verdicts)
        return cls(start, content, verdicts, failures, steps, passes, turns, prompts, retracted)

    def json(self) -> dict[str, Any]:
        """Return the document for one run."""
        prompts = {} if self.prompts is None else {"prompts": self.prompts.json()}
        verdicts = verdict_documents(self.verdicts, self.retracted)
        return {"subject": self.subject, "verdicts": verdicts, "failures": self.failures, **prompts}


def subject_passes(ledger: Ledger, start: Event, only: Sequence[str] = ()) -> SubjectPasses:
    """Return whether the subjects of the run of the event *start* pass; with *only* the subjects of these ids."""

    def read(query: Query) -> Iterator[Entry]:
        return chain.from_iterable(ledger.read(evolve(query, subject_id=subject_id)) for subject_id in only or (None,))

    return ledger_passes(read, start.run_id, recorded_rule(start.payload), None)


def _turn_results(ledger: Ledger, run_id: str, session_id: str) -> dict[str, dict[str, Mapping[str, Any]]]:
    results: dict[str, dict[str, Mapping[str, Any]]] = {}
    for entry in ledger.read(Query(run_id, (EVAL_COMPLETED, EVAL_FAILED), "turn", session_id=session_id)):
        payload = entry.event.payload
        results.setdefault(str(entry.event.subject_id), {})[str(payload["judge"])] = payload
    return results


@frozen
class SubjectHistory:
    """Result of ``dicast show SUBJECT``: the subject in the shown *runs*, and the number of *other_runs* that judged it."""

    runs: Sequence[SubjectInRun]
    other_runs: int
    every: bool

    def json(self) -> dict[str, Any]:
        """Return the document; with *every*, the verdicts of all runs, oldest first, followed by the document of each run under ``runs``."""
        if not self.every:
            return self.runs[0].json()
        return {
            "subject": self.runs[0].subject,
            "verdicts": [
                item for run in reversed(self.runs) for item in verdict_documents(run.verdicts, run.retracted)
            ],
            "failures": [item for run in reversed(self.runs) for item in run.failures],
            "runs": [{"run_id": run.start.run_id, **run.json()} for run in self.runs],
        }


def subject_history(
    ledger: Ledger, subject_id: str, starts: Sequence[Event], only: str | None, *, every: bool
) -> SubjectHistory:
    """Return the subject in the newest of the runs *starts* that judged it, or in the run *only*, or in *every* run.

    :raises ConfigError: when none of these runs judged it.
    """
    if not starts:
        raise ConfigError(_unknown(ledger, subject_id))
    by_kind = sorted(starts, key=lambda event: run_kind(event.payload) == TOOL)  # stable: the newest of each kind first
    selected = starts if every else [event for event in by_kind if only in (None, event.run_id)][:1]
    if not selected:
        examples = _examples([event.run_id for event in starts])
        raise ConfigError(f"run {only} has not judged {subject_id!r}; these runs have: {examples}")
    runs = [SubjectInRun.of(ledger, subject_id, event) for event in selected]
    return SubjectHistory(runs, len(starts) - len(selected), every)


def whole_id(ledger: Ledger, part: str) -> str | None:
    """Return the only session or subject whose id begins with *part*, among the newest subjects; None if there is none.

    :raises ConfigError: if there are several.
    """
    if len(part) < LEAST:
        return None
    reads = ledger.read(Query(types=(SUBJECT_READ,), newest_first=True, limit=_NEWEST))
    ids = dict.fromkeys((entry.event.session_id, entry.event.subject_id) for entry in reads)
    for kind, number in (("sessions", 0), ("subjects", 1)):
        names = dict.fromkeys(name for id_ in ids if (name := id_[number]) is not None and name.startswith(part))
        if len(names) > 1:
            raise ConfigError(f"{len(names):,} {kind} begin with {part!r}: {_examples([*names])}; name more of the id")
        if names:
            return next(iter(names))
    return None


def _examples(names: Sequence[str]) -> str:
    return ", ".join(names[:_MOST_EXAMPLES]) + " …" * (len(names) > _MOST_EXAMPLES)


def _unknown(ledger: Ledger, name: str) -> str:
    """Return the message about a name that is no subject and no run: the subjects of the session of that name, if there is one."""
    reads = ledger.read(Query(types=(SUBJECT_READ,), session_id=name, newest_first=True))
    parts = dict.fromkeys(str(entry.event.subject_id) for entry in islice(reads, _MOST_EXAMPLES + 1))
    if parts:
        return f"the session {name!r} was not judged as a whole; dicast show shows its parts: {_examples([*parts])}"
    if (text := suite_text(ledger, name)) is not None:
        return text
    newest = ledger.read(Query(types=(SUBJECT_READ,), newest_first=True, limit=_NEWEST))
    names = [str(entry.event.payload["name"]) for entry in started_runs(ledger.read, tools=True)]
    near = nearest(name, dict.fromkeys([*names, *(str(entry.event.subject_id) for entry in newest)]))
    message = f"the ledger has neither a run nor a subject {name!r}"
    if near is not None:
        return f"{message}, did you mean {near!r}?"
    return f"{message}; dicast runs lists its runs, dicast verdicts its subjects"


def _value(verdict: Verdict) -> str:
    if verdict.score is not None:
        return f"{verdict.score:.4f}"
    return "no value (the gate on proxy metrics failed)" if verdict.raw is None else f"{verdict.raw:g} raw"


def verdict_line(verdict: Verdict, retracted: frozenset[str] = frozenset()) -> str:
    """Return a verdict in one line; *retracted* are the ids of verdicts whose labels a person took back."""
    subject = f"{verdict.subject_kind} {short_name(verdict.subject_id)}"
    rubric = f"{verdict.rubric_id}@{verdict.rubric_version}"
    return one_line(
        f"{verdict.created_at}  {subject}  {verdict.judge}: {_value(verdict)}, confidence {verdict.confidence:.2f} "
        f"({verdict.basis}, {rubric}){', taken back' * (verdict.eval_id in retracted)}"
    )
