"""Subjects that did not pass in an earlier run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..contract.protocols import Ledger
from ..plan.sections import Pipeline
from ..resume.named_runs import LAST
from ..source.filters import Condition, Failing, Filter, resolved
from ..values import Entry
from ..values.errors import ConfigError
from ..values.passes import SubjectKey
from .baseline import find_results


def resolve_filters(
    filters: Sequence[Condition | Failing], ledger: Ledger, pipeline: Pipeline, run_id: str, earlier: Entry | None
) -> tuple[Filter, ...]:
    """Return *filters* with the subjects of each ``failing``: of a resumed run the subjects that it recorded, as the other run may have changed since.

    :param run_id: the id of the run that starts, or is resumed.
    :param earlier: the ``run.started`` entry of a resumed run.
    :raises ConfigError: as :func:`failing_subjects`.
    """
    before = None if earlier is None else earlier.seq
    started: Mapping[str, Any] = {} if earlier is None else earlier.event.payload
    recorded = started.get("selected", {})  # older runs have none
    return resolved(filters, lambda name: failing_subjects(ledger, pipeline, name, run_id, before=before), recorded)


def failing_subjects(
    ledger: Ledger, pipeline: Pipeline, run: str | None, exclude: str, before: int | None = None
) -> frozenset[SubjectKey]:
    """Return the subjects that did not pass, or have no verdict, in the run *run*, by default the newest run of *pipeline*.

    A subject counts if any label of the run's gate, or the label of its score, is not passed or has no verdict; without such labels, any label of
    the file.

    :param exclude: the id of the run that starts, or is resumed.
    :param before: the number of the ``run.started`` entry of a resumed run: runs that ended later do not count.
    :raises ConfigError: if there is no such run, if it states no rule of passing, or if all of its subjects passed.
    """
    name = pipeline.name if run is None else None
    results = find_results(ledger, run or LAST, pipeline.base, pipeline_name=name, exclude=exclude, before=before)
    if results is None:
        raise ConfigError(
            f"--filter failing: the ledger has no completed run of {pipeline.name}; run it without the filter first"
        )
    if results.passes is None or results.rule is None:
        raise ConfigError(
            f"--filter failing: {run} does not state which of its subjects pass; name a run of this ledger"
        )
    passes = results.passes(None)
    deciding = [] if results.rule.label is None else [results.rule.label]
    labels = tuple(dict.fromkeys([*deciding, *results.gated])) or results.rule.labels
    failing = {
        subject for label in labels for subject in passes.subjects(label) if passes.get(subject, label) is not True
    }
    if not failing:
        raise ConfigError(f"--filter failing: every subject of run {results.run_id} passed")
    return frozenset(failing)
