"""Contents of subjects in runs with a task. The judged output is the task's and not part of the read content."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import attrs

from dicast import Ledger, Query
from dicast.reading import ActivityColumns, JudgedContents


def with_made_outputs(ledger: Ledger, reads: Sequence[ActivityColumns]) -> Sequence[ActivityColumns]:
    """Return *reads* with the hashes of the judged contents where a task produced the outputs."""
    tasks = {
        entry.event.run_id
        for entry in ledger.read(Query(types=("run.started",)))
        if entry.event.payload.get("task") is not None
    }
    runs = {origin.run_id for rows in reads for origin in rows.origins} & tasks
    if not runs:
        return reads
    contents = {run_id: JudgedContents(ledger, run_id) for run_id in sorted(runs)}
    return [_marked(rows, contents) for rows in reads]


def _marked(rows: ActivityColumns, contents: dict[str, JudgedContents]) -> ActivityColumns:
    marks = array("q", rows.content_hashes)
    for row, (code, id) in enumerate(zip(rows.codes, rows.ids, strict=True)):
        origin = rows.origins[code]
        if (
            origin.run_id in contents
            and (mark := contents[origin.run_id].content_hash(origin.kind_or_model, str(id))) is not None
        ):
            marks[row] = mark
    return attrs.evolve(rows, content_hashes=marks)
