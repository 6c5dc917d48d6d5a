"""Baseline of a run: the search for the run that it is compared with."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterator, Mapping
from itertools import islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import attrs

from ...toolkit.input_file import InputFile
from ..contract.protocols import Ledger
from ..events import RUN_COMPLETED, RUN_STARTED
from ..pipeline.ledger_path import ledger_option
from ..plan.sections import Pipeline
from ..resume.named_runs import LAST, TOOL, by_part, find_run, limits_text, run_kind, started_runs, suite_text
from ..resume.open_runs import resume_command
from ..resume.saved import saved_baselines
from ..values import Event, Query, Record, Results
from ..values.errors import ConfigError, DataError, Problem
from ..values.names import nearest, path_from_here
from .portable import read_portable
from .reader import results

NONE: Mapping[str, str | None] = MappingProxyType({})


def find_baseline(
    ledger: Ledger, pipeline: Pipeline, exclude: str | None = None, experiments: Collection[str] = ()
) -> Results | None:
    """Return the results that a run of *pipeline* is compared with; None without a baseline.

    :param exclude: the id of that run, which is never its own baseline.
    :param experiments: the names of a suite's experiments, for messages.
    :raises RequestError: when the baseline that the pipeline names does not exist.
    """
    if pipeline.baseline is None:
        return None
    wanted, name = pipeline.baseline.run, pipeline.name
    file, line, column = pipeline.place(("baseline", "run"))
    try:
        return find_results(ledger, wanted, pipeline.base, pipeline_name=name, exclude=exclude, experiments=experiments)
    except ConfigError as error:
        raise ConfigError(
            attrs.evolve(problem, file=file, line=line, column=column, path="baseline.run")
            for problem in error.problems
        ) from error


def find_gate_runs(
    ledger: Ledger, pipeline: Pipeline, exclude: str | None = None, experiments: Mapping[str, str | None] = NONE
) -> dict[str, Results | None]:
    """Return the results of the baselines in the gate of *pipeline*, by name; None for ``last`` without an older run.

    :param exclude: the id of the run itself, which is never its own baseline.
    :param experiments: the ids of the runs of a suite's experiments, by name: an experiment is looked for before other names. An experiment
        without a run, and the pipeline's own experiment, are left out.
    :raises RequestError: with every baseline that does not exist.
    """
    baselines: dict[str, Results | None] = {}
    problems: list[Problem] = []
    names = {name: index for index, name in reversed([*pipeline.gate.baselines()])}  # a name is looked up once
    for name, index in reversed(names.items()):
        run = experiments.get(name, name)
        if run is None or name == pipeline.experiment:
            continue
        try:
            baselines[name] = find_results(
                ledger,
                run,
                pipeline.base,
                pipeline_name=pipeline.name,
                exclude=exclude,
                experiments=experiments,
            )
        except ConfigError as error:
            place = "gate" if len(pipeline.gate.clauses) == 1 else f"gate[{index}]"
            problems += [
                attrs.evolve(problem, file=pipeline.file, path=f"{place}.baseline") for problem in error.problems
            ]
        except DataError as error:
            problems += error.problems
    if problems:
        raise ConfigError(problems)
    return baselines


def find_results(
    ledger: Ledger,
    name: str,
    base: Path,
    *,
    pipeline_name: str | None = None,
    exclude: str | None = None,
    experiments: Collection[str] = (),
    before: int | None = None,
) -> Results | None:
    """Return the results that *name* names: a saved baseline, a run's id, a pipeline's name (its newest finished run), or a file below *base*.

    An id may be given by its first or last characters. ``last`` is the newest finished run, of the pipeline *pipeline_name* if given; the result
    is None if there is none. The run *exclude* is never returned. A run that was limited to some subjects, or scored none, is found only
    by its id. A message may name one of *experiments* in place of a wrong name.

    :param before: the number of a ledger entry: ``last`` and a pipeline's name find the run that they found when the entry was written.
    :raises ConfigError: when there is no such run or file, or the run is not completed.
    :raises DataError: when the file does not contain records.
    """
    if name == LAST:
        finished = _finished(ledger, exclude, before)
        candidates = (event for event in finished if pipeline_name in (None, event.payload["name"]))
        newest = next((event for event in candidates if _is_whole(ledger, event)), None)
        return None if newest is None else results(ledger, newest.run_id)
    if (saved := saved_baselines(ledger).get(name)) is not None and saved.run_id != exclude:
        return results(ledger, saved.run_id)
    finished = _finished(ledger, exclude, before)
    candidates = (event for event in finished if name in (event.run_id, event.payload["name"]))
    match = next((event for event in candidates if event.run_id == name or _is_whole(ledger, event)), None)
    if match is not None:
        return results(ledger, match.run_id)
    if (base / name).is_file():
        return of_file(base / name)
    all_finished = [*_finished(ledger, exclude)]
    if (part := by_part(name, (event.run_id for event in all_finished))) is not None:
        return results(ledger, part)
    raise ConfigError(Problem(_missing_message(ledger, name, all_finished, base, experiments), value=name))


def _finished(ledger: Ledger, exclude: str | None, before: int | None = None) -> Iterator[Event]:
    """Yield the newest end of each run but *exclude*, in the order of :func:`started_runs`; only ends written before the entry *before*."""
    for start in started_runs(ledger.read, tools=True):
        if start.event.run_id == exclude or (before is not None and start.seq > before):
            continue
        limit = 1 if before is None else None
        ends = ledger.read(Query(start.event.run_id, (RUN_COMPLETED,), newest_first=True, limit=limit))
        yield from islice((entry.event for entry in ends if before is None or entry.seq < before), 1)


def _is_whole(ledger: Ledger, finished: Event) -> bool:
    """Return True if a pipeline's name or ``last`` may select the run: no tool started it, it was not limited and is no shard, and some label has a score."""
    started = next(ledger.read(Query(run_id=finished.run_id, types=(RUN_STARTED,), limit=1))).event.payload
    return not limits_text(started) and run_kind(started) != TOOL and _has_scores(finished.payload)


def _has_scores(document: Mapping[str, Any]) -> bool:
    labels = document.get("labels") or {}  # missing in runs of older versions
    return bool(document["scored"]) or any(label["scored"] for label in labels.values())


def _missing_message(
    ledger: Ledger, wanted_name: str, finished: list[Event], base: Path, experiments: Collection[str]
) -> str:
    if find_run(ledger, wanted_name):
        query = Query(run_id=wanted_name, types=(RUN_STARTED,), limit=1)
        start = next((entry.event.payload for entry in ledger.read(query)), None)
        command = None if start is None else resume_command(start, wanted_name, ledger)
        return f"run {wanted_name} is not completed; next: {command or 'run its pipeline again'}"
    if partial := next((event.run_id for event in finished if event.payload["name"] == wanted_name), None):
        reasons = "each run scored nothing, was limited to some rows, or is a tool's run"
        return (
            f"no run of {wanted_name!r} can be compared by its name: {reasons}; name a run by its id, such as {partial}"
        )
    names = {name for event in finished for name in (event.run_id, event.payload["name"])}
    if (text := suite_text(ledger, wanted_name)) is not None:
        return text
    if suffix := Path(wanted_name).suffix:
        names |= {path.name for path in base.glob("*") if path.suffix == suffix}
    near = nearest(wanted_name, sorted({*map(str, names), *saved_baselines(ledger), *experiments}))
    file = path_from_here(base / wanted_name)
    message = f"this ledger has no finished run or baseline {wanted_name!r}, and there is no file {file}"
    option = ledger_option({"path": getattr(ledger, "path", None)})
    fix = f"dicast runs{option} lists the runs, and dicast baseline save NAME RUN{option} saves a run as a baseline"
    if is_file_name(wanted_name):
        fix = f"dicast baseline save NAME RUN --file {shlex.quote(file)}{option} writes it on the main branch, where RUN is a run or a pipeline's name"
    return f"{message}, did you mean {near!r}?" if near else f"{message}; {fix}"


def is_file_name(name: str) -> bool:
    """Return True if the *name* of a baseline is written as a file's: it has a suffix or a folder."""
    return bool(Path(name).suffix) or Path(name).name != name


def of_file(path: Path) -> Results:
    """Return the records that ``jsonl/rows`` or ``dicast baseline save`` wrote to *path*. The first reading finds invalid records.

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
                    file.fault("the line is no record: it needs a text subject_id and a mapping metrics", line, None)
                yield record["subject_id"], {"subject_kind": "row", **record}

    if not sum(1 for _ in records()):  # reads the whole file
        fix = "dicast baseline save NAME --file PATH writes a baseline, and the sink jsonl/rows writes records"
        raise DataError(Problem(f"the file has no record to compare with; {fix}", file=str(path)))
    return Results(str(path), path.stem, records, weighted=lambda: any("weight" in record for _, record in records()))
