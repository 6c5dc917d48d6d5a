"""Contents of subjects in runs with a task: the judged output is the task's, and not in what was read."""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import attrs

from dicast import Ledger, Query
from dicast.reading import JudgedContents, Told


def with_made_outputs(ledger: Ledger, reads: Sequence[Told]) -> Sequence[Told]:
    """Return *reads* with the marks of the contents that were judged, where a task made the outputs."""
    tasks = {
        entry.event.run_id
        for entry in ledger.read(Query(types=("run.started",)))
        if entry.event.payload.get("task") is not None
    }
    runs = {teller.run_id for found in reads for teller in found.tellers} & tasks
    if not runs:
        return reads
    contents = {run_id: JudgedContents(ledger, run_id) for run_id in sorted(runs)}
    return [_marked(found, contents) for found in reads]


def _marked(found: Told, contents: dict[str, JudgedContents]) -> Told:
    marks = array("q", found.marks)
    for row, (code, id) in enumerate(zip(found.codes, found.ids, strict=True)):
        teller = found.tellers[code]
        if teller.run_id in contents and (mark := contents[teller.run_id].mark(teller.what, str(id))) is not None:
            marks[row] = mark
    return attrs.evolve(found, marks=marks)
