"""Which run a run is compared with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import attrs

from ...toolkit.input_file import InputFile
from ..contract.protocols import Ledger
from ..events import RUN_COMPLETED, RUN_STARTED
from ..plan.sections import Pipeline
from ..resume.named_runs import LAST, TOOL, by_part, find_run, run_kind, started_runs
from ..values import Event, Query, Record, Results
from ..values.errors import ConfigError, DataError, Problem
from ..values.names import nearest
from .portable import read_portable
from .reader import results
from .saved import saved_baselines


def find_baseline(ledger: Ledger, pipeline: Pipeline, but: str | None = None) -> Results | None:
    """What the run *but* of *pipeline* is compared with; None where that is nothing.

    :raises RequestError: when the baseline that the pipeline names is not there.
    """
    if pipeline.baseline is None:
        return None
    try:
        return find_results(ledger, pipeline.baseline.run, pipeline.base, of=pipeline.name, but=but)
    except ConfigError as error:
        raise ConfigError(
            attrs.evolve(problem, file=pipeline.file, path="baseline.run") for problem in error.problems
        ) from error


def find_results(
    ledger: Ledger, wanted: str, base: Path, *, of: str | None = None, but: str | None = None
) -> Results | None:
    """The results that *wanted* names: a saved baseline, a run's id, a pipeline's name (its newest finished run), or a file below *base*.

    An id may be given by its first or last characters. ``last`` is the newest finished run, of the pipeline named *of* where that is given; None when there is none. The run *but* is
    never meant, and one that was limited to some subjects, or could score none, only by its id.

    :raises ConfigError: when there is no such run or file, or the run has not ended in order.
    :raises DataError: when the file is not one of records.
    """
    finished = [event for event in _finished(ledger) if event.run_id != but]
    if wanted == LAST:
        meant = (event for event in finished if of in (None, event.payload["name"]))
        newest = next((event for event in meant if _is_whole(ledger, event)), None)
        return None if newest is None else results(ledger, newest.run_id)
    if (kept := saved_baselines(ledger).get(wanted)) is not None and kept.run_id != but:
        return results(ledger, kept.run_id)
    meant = (event for event in finished if wanted in (event.run_id, event.payload["name"]))
    named = next((event for event in meant if event.run_id == wanted or _is_whole(ledger, event)), None)
    if named is not None:
        return results(ledger, named.run_id)
    if (base / wanted).is_file():
        return of_file(base / wanted)
    if (part := by_part(wanted, (event.run_id for event in finished))) is not None:
        return results(ledger, part)
    raise ConfigError(_missing(ledger, wanted, finished))


def _finished(ledger: Ledger) -> Iterator[Event]:
    """Yield the newest end of each run, in the order of :func:`started_runs`."""
    for begun in started_runs(ledger.read, tools=True):
        ended = Query(begun.event.run_id, (RUN_COMPLETED,), newest_first=True, limit=1)
        yield from (entry.event for entry in ledger.read(ended))


def _is_whole(ledger: Ledger, finished: Event) -> bool:
    """Return whether a run can be named by its pipeline or ``last``: no tool's run, not limited, and with a score of any label."""
    started = next(ledger.read(Query(run_id=finished.run_id, types=(RUN_STARTED,), limit=1))).event.payload
    return started.get("limit") is None and run_kind(started) != TOOL and _has_scores(finished.payload)


def _has_scores(document: Mapping[str, Any]) -> bool:
    labels = document.get("labels") or {}  # missing in runs of older versions
    return bool(document["scored"]) or any(label["scored"] for label in labels.values())


def _missing(ledger: Ledger, wanted: str, finished: list[Event]) -> str:
    if find_run(ledger, wanted):
        return f"run {wanted} has not ended in order; dicast run FILE --resume {wanted} takes it up"
    if partial := next((event.run_id for event in finished if event.payload["name"] == wanted), None):
        why = "each scored nothing, was limited to some rows, or is a tool's"
        return f"no run of {wanted!r} can be compared by its name: {why}; name one by its id, such as {partial}"
    names = (name for event in finished for name in (event.run_id, event.payload["name"]))
    near = nearest(wanted, {*names, *saved_baselines(ledger)})
    none = f"there is no finished run or baseline {wanted!r} in this ledger, and no file of that name"
    return f"{none}, did you mean {near!r}?" if near else none


def of_file(path: Path) -> Results:
    """The records that ``jsonl/rows``, or ``dicast baseline save``, wrote to *path*; its first reading finds what is wrong with it.

    :raises DataError: when it is no such file, or a baseline that was changed.
    """
    if (saved := read_portable(path)) is not None:
        return saved

    def records() -> Iterator[tuple[str, Record]]:
        with InputFile.opened(path) as file:
            for line, record in file.objects():
                if "failure" in record:
                    continue
                if not isinstance(record.get("subject_id"), str) or not isinstance(record.get("metrics"), dict):
                    file.fault("the line is no record: it has no text subject_id, or no mapping metrics", line, None)
                yield record["subject_id"], {"subject_kind": "row", **record}

    if not sum(1 for _ in records()):  # all of it is read
        raise DataError(Problem("it has no record to compare with; jsonl/rows writes such files", file=str(path)))
    return Results(str(path), path.stem, records)
