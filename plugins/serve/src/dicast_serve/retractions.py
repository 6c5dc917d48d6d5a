"""Retraction of a person's label: an event in a run of its own. The label stays in the ledger, and counts no more."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import attrs

import dicast
from dicast import ConfigError, Due, Entry, Judgment, Ledger, Problem, Query, RunContext, Subject, TraceEvent, Verdict
from dicast.reading import LABEL_RETRACTED

from .label_bodies import Retraction
from .labels import NAME, ledger_section
from .reading import ServedLedger
from .runs import NotFound


@attrs.frozen
class Retracting:
    """Source without subjects that records a retraction."""

    _retractions: list[Retraction] = attrs.field(init=False, factory=list, eq=False, repr=False)

    live = True

    @classmethod
    def of(cls, retraction: Retraction) -> Retracting:
        """Return the source that records *retraction*."""
        source = cls()
        source._retractions.append(retraction)
        return source

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[LiveRetracting]:
        """Yield the live source."""
        yield LiveRetracting(self._retractions[0], run)


@attrs.frozen
class LiveRetracting:
    """Live object of :class:`Retracting`."""

    retraction: Retraction
    run: RunContext

    live = True

    def subjects(self) -> Iterator[Due]:
        """Record the retraction; there are no subjects."""
        retraction = self.retraction
        payload = {
            "subject": retraction.subject_id,
            "subject_kind": retraction.subject_kind,
            "label_run": retraction.run_id,
            "labeller": retraction.judge,
        }
        self.run.record([TraceEvent(LABEL_RETRACTED, payload)])
        yield from ()


@attrs.frozen
class NoJudge:
    """Judge that is never asked: a pipeline needs one."""

    judge_kind = "human"
    needs_output = False
    accepts = ()

    def judge(self, subject: Subject, children: Sequence[Verdict] = ()) -> Judgment:
        """Raise an error: a retraction has no subjects."""
        raise AssertionError(f"a retraction has no subjects, not {subject.id!r:.100}")


def retract(ledger: ServedLedger, retraction: Retraction) -> dict[str, Any]:
    """Record *retraction* in *ledger*, and return its run. A label that is already retracted is not retracted again.

    :raises NotFound: if the run has not recorded a label of the subject.
    :raises ConfigError: if the label is another person's.
    """
    recorded = ledger.read(lambda live: _earlier(live, retraction))
    if recorded is not None:
        return {"run_id": recorded}
    pipeline = {
        "name": NAME,
        "source": {"retraction": {}},
        "judges": [{"person": {"as": retraction.judge}}],
        "define": {"retraction": Retracting.of(retraction), "person": NoJudge()},
        "ledger": ledger_section(ledger),
    }
    return {"run_id": dicast.run(pipeline, kind="tool").run_id}


def _earlier(ledger: Ledger, retraction: Retraction) -> str | None:
    """Check that the label is the person's; return the run that has retracted it, None if none has."""
    entry = next(
        (entry for entry in ledger.read(Query(retraction.run_id, ("label.given",))) if _is_of(entry, retraction)), None
    )
    if entry is None:
        message = f"run {retraction.run_id!r:.100} has not recorded a label of {retraction.subject_kind} {retraction.subject_id!r:.100}"
        raise NotFound(message)
    labeller = entry.event.payload.get("labeller")
    if labeller != retraction.judge:
        message = f"the label is {labeller}'s, and {retraction.judge} cannot retract it; {labeller} can, or decide between the labels"
        raise ConfigError(Problem(message, path="judge", value=retraction.judge))
    earlier = (entry for entry in ledger.read(Query(types=(LABEL_RETRACTED,))) if _is_of(entry, retraction))
    return next(
        (entry.event.run_id for entry in earlier if entry.event.payload["label_run"] == retraction.run_id), None
    )


def _is_of(entry: Entry, retraction: Retraction) -> bool:
    payload = entry.event.payload
    subject = str(payload.get("subject_kind") or retraction.subject_kind), str(payload["subject"])
    return subject == (retraction.subject_kind, retraction.subject_id)
