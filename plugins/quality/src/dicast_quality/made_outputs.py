"""Contents of subjects in runs with a task: the judged output is the task's, and not in what was read."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import attrs

from dicast import Ledger, Query
from dicast.reading import ActivityColumns, JudgedContents


def with_made_outputs(ledger: Ledger, reads: Sequence[ActivityColumns]) -> Sequence[ActivityColumns]:
    """Return *reads* with the marks of the contents that were judged, where a task made the outputs."""
    tasks = {
        entry.event.run_id
        for entry in ledger.read(Query(types=("run.started",)))
        if entry.event.payload.get("task") is not None
    }
    runs = {origin.run_id for found in reads for origin in found.origins} & tasks
    if not runs:
        return reads
    contents = {run_id: JudgedContents(ledger, run_id) for run_id in sorted(runs)}
    return [_marked(found, contents) for found in reads]


def _marked(found: ActivityColumns, contents: dict[str, JudgedContents]) -> ActivityColumns:
    marks = array("q", found.content_hashes)
    for row, (code, id) in enumerate(zip(found.codes, found.ids, strict=True)):
        origin = found.origins[code]
        if (
            origin.run_id in contents
            and (mark := contents[origin.run_id].content_hash(origin.kind_or_model, str(id))) is not None
        ):
            marks[row] = mark
    return attrs.evolve(found, content_hashes=marks)
