"""What a run is compared with, subject by subject."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import attrs

from dicast import Query

from .marking import Marking, Outcome
from .told import Key, Read, Told, told_subjects

Flip = Literal["gained", "lost", ""]


@attrs.define
class Baseline:
    """The scores and outcomes of the run *run_id*, by subject, and how many *known* subjects changed to or from passing."""

    run_id: str
    name: str
    before: Mapping[Key, tuple[float | None, Outcome]]
    known: int = 0
    gained: int = 0
    lost: int = 0

    def count(self, told: Told, outcome: Outcome) -> None:
        """Count a subject of the run that is compared."""
        was = self.before.get(told.key)
        if was is not None and {was[1], outcome} <= {"pass", "fail"}:
            self.known += 1
            flip = self.flip(told, outcome)
            self.gained += flip == "gained"
            self.lost += flip == "lost"

    def flip(self, told: Told, outcome: Outcome) -> Flip:
        """Whether the subject passes now and did not, or the other way round; a subject without a score does neither."""
        was = self.before.get(told.key, (None, "open"))[1]
        if {was, outcome} != {"pass", "fail"}:
            return ""
        return "gained" if outcome == "pass" else "lost"

    def score(self, told: Told) -> float | None:
        """What the subject scored before."""
        return self.before.get(told.key, (None, None))[0]

    def json(self) -> dict[str, Any]:
        """The counts, for the page."""
        names = ("run_id", "name", "known", "gained", "lost")
        return {name: getattr(self, name) for name in names}


def baseline(read: Read, run_id: str | None) -> Baseline | None:
    """The run *run_id* as a baseline; None where the ledger has no such run."""
    started = None if run_id is None else next(read(Query(run_id, ("run.started",), limit=1)), None)
    if run_id is None or started is None:
        return None
    marking = Marking.of(started.event.payload)
    before = {told.key: (marking.score(told), marking.outcome(told)) for told in told_subjects(read, run_id)}
    return Baseline(run_id, str(started.event.payload.get("name")), before)
