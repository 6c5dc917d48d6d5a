"""Baseline run that a page compares its run with, subject by subject."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

from dicast import Query
from dicast.reporting import PairedPasses, pair_runs

from .marking import Marking
from .subjects import Key, Read, SubjectResults, read_subjects

Flip = Literal["gained", "lost", ""]


@attrs.frozen
class Baseline:
    """The run *run_id* as a baseline: its scores by subject, and *pairs*, the passes of both runs.

    The rows of a page show changes under *label*, the gate's, else the first label of both runs, until a reader chooses another label.
    """

    run_id: str
    name: str
    scores: Mapping[Key, float | None]
    pairs: PairedPasses
    prompts: Mapping[str, Any] | None = None

    @property
    def label(self) -> str | None:
        """The label whose changes the rows show first; None if the runs have no label in common."""
        return self.pairs.label or next(iter(self.pairs.labels), None)

    def flip(self, key: Key, label: str) -> Flip:
        """Return "gained" for a subject that now passes *label* and did not, "lost" for the reverse. It is "" without answers in both runs."""
        change = self.pairs.change(key, label)
        return "" if change is None else "gained" if change.b else "lost"

    def score(self, subject: SubjectResults) -> float | None:
        """Return the score of the subject in the baseline."""
        return self.scores.get(subject.key)

    def json(self) -> dict[str, Any]:
        """Return the counts for the page, by label."""
        passes = {label: counts.json() for label, counts in self.pairs.counted().items()}
        return {"run_id": self.run_id, "name": self.name, "label": self.label, "passes": passes}


def baseline(read: Read, run_id: str | None, compared: str) -> Baseline | None:
    """Return the run *run_id* as the baseline of the run *compared*; None if the ledger has no such run."""
    started = None if run_id is None else next(read(Query(run_id, ("run.started",), limit=1)), None)
    if run_id is None or started is None or (pairs := pair_runs(read, run_id, compared)) is None:
        return None
    marking = Marking.of(started.event.payload)
    scores = {subject.key: marking.score(subject) for subject in read_subjects(read, run_id)}
    payload: Mapping[str, Any] = started.event.payload
    return Baseline(run_id, str(payload.get("name")), scores, pairs, payload.get("prompts"))
