"""Note on a cap of the day in a CI job whose ledger is new."""

from __future__ import annotations

from ..classes import evolve
from ..contract.protocols import Ledger
from ..plan.sections import Budget, Pipeline
from ..values import Query

_NOTE = (
    "budget.day caps this job alone, because its ledger was empty at the start; "
    'see "An empty ledger in each job" in dicast\'s page "In CI"'
)


def with_day_note(pipeline: Pipeline, ledger: Ledger) -> Pipeline:
    """Return *pipeline* with a note if it has another ``budget.day`` than the default, and the file of *ledger* has no events; else *pipeline* itself."""
    if pipeline.budget.day in ((), Budget().day) or getattr(ledger, "path", None) is None:
        return pipeline
    is_empty = next(iter(ledger.read(Query(limit=1))), None) is None
    return evolve(pipeline, notes=(*pipeline.notes, ("day_cap_of_job", _NOTE))) if is_empty else pipeline
