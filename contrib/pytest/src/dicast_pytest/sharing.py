"""One run of a pipeline file for all its items, which may be in several processes."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

import attrs

import dicast
from dicast import Due, Event, RequestError, Run, Subject
from dicast.reporting import JudgedSubject, OutcomeReader, gate_answer

_BATCH = 1_000
_MAX_TEXT = 600
"""Most characters shown of an input or output."""
_LINE_START = "\n  | "
"""Start of each further line of a text, so that no line in a log of GitHub Actions looks like a command."""


@attrs.frozen
class RunResult:
    """The result of a run, which can be written as JSON. *subjects* has results by ``kind id``; *gate* is why the gate did not pass.

    *is_part* is true if only some of the file's subjects were selected, *is_refused* if the run ended before all were judged.
    """

    run_id: str | None
    gate: str | None
    stopped: str | None
    subjects: Mapping[str, Mapping[str, Any]]
    is_part: bool = False
    is_disabled: bool = False
    is_refused: bool = False

    def of(self, kind: str, id_: str) -> Mapping[str, Any] | None:
        """Return the result of a subject."""
        return self.subjects.get(f"{kind} {id_}")


def run_pipeline(path: Path, chosen: Sequence[Subject]) -> RunResult:
    """Run the pipeline at *path* on the subjects *chosen*; if these are all of its subjects, or none, run it unchanged.

    A run of some subjects has its own name, and no sinks and no baseline, which need all subjects.

    :raises RequestError: when the request is wrong.
    """
    every = [] if not chosen else dicast.subjects(path, dues=True)
    is_part = bool(chosen) and len(chosen) < len(every)
    if is_part:
        named: dict[str, object] = {"name": f"{path.stem}: some subjects", "sinks": [], "baseline": None}
        run = dicast.run(path, overrides=named, subjects=_with_parts(chosen, every))
    else:
        run = dicast.run(path)
    return _run_result(run, is_part=is_part)


def _with_parts(chosen: Sequence[Subject], every: Sequence[Due]) -> list[Due]:
    """Return *chosen* and all their parts, whose verdicts they need, in the order of *every*."""
    keys = {(subject.kind, subject.id) for subject in chosen}
    before = -1
    while before < len(keys):
        before, ids = len(keys), {id_ for _, id_ in keys}
        keys |= {(due.subject.kind, due.subject.id) for due in every if due.subject.parent_id in ids}
    return [due for due in every if (due.subject.kind, due.subject.id) in keys]


def shared(folder: Path, path: Path, chosen: Sequence[Subject]) -> RunResult:
    """Return the result of :func:`run_pipeline`. The first process that calls this runs the pipeline; others wait for the result.

    :raises RequestError: if the request is wrong.
    """
    from filelock import FileLock  # needed only with workers of xdist

    cache_file = folder / f"{sha256(str(path).encode()).hexdigest()[:16]}.json"
    with FileLock(f"{cache_file}.lock"):
        if cache_file.is_file():
            document = json.loads(cache_file.read_text(encoding="utf-8"))
        else:
            document = _run_once(path, chosen)
            cache_file.write_text(json.dumps(document), encoding="utf-8")
    if "error" in document:
        raise dicast.ConfigError(document["error"])
    return RunResult(**document)


def _run_once(path: Path, chosen: Sequence[Subject]) -> dict[str, Any]:
    try:
        return attrs.asdict(run_pipeline(path, chosen))
    except RequestError as error:  # other processes will read the error instead of running again
        return {"error": "\n".join(str(problem) for problem in error.problems)}


def _run_result(run: Run, *, is_part: bool) -> RunResult:
    if run.disabled:
        return RunResult(None, None, "disabled", {}, is_disabled=True)
    reader = OutcomeReader()

    def read(events: Iterator[Event]) -> dict[str, Mapping[str, Any]]:
        results: dict[str, Mapping[str, Any]] = {}
        while batch := list(islice(events, _BATCH)):
            results |= {
                f"{subject.kind} {subject.id}": _subject(subject, reader.counted) for subject in reader.take(batch)
            }
        return results | {f"{subject.kind} {subject.id}": _subject(subject, reader.counted) for subject in reader.end()}

    reason = None if run.stopped is None else str(run.stopped["reason"])
    refused = reason not in (None, "early_stop")
    stopped = f"the run stopped: {reason}" if reason else None
    return RunResult(run.run_id, _gate(run), stopped, run.read(OutcomeReader.wants, read), is_part, is_refused=refused)


def _gate(run: Run) -> str | None:
    """Return why ``dicast run`` would not exit with 0, or None if it would."""
    if run.exit_code == 0:
        return None
    reasons = [*(run.undecided if run.gate is None else run.gate["reasons"])]
    reasons += [
        f"sink {label} lost {sink['lost']:,} events: {sink.get('error')}"
        for label, sink in run.sinks.items()
        if sink["lost"]
    ]
    return "\n  ".join([f"{_answer(run)} (exit code {run.exit_code})", *map(str, reasons)])


def _answer(run: Run) -> str:
    return "undecided" if run.gate is None else f"gate {gate_answer(run.gate)}"


def _subject(judged: JudgedSubject, counted: Sequence[str]) -> dict[str, Any]:
    """Return the result of *judged*, with the key *why* if it did not pass, or *skipped* with the reason."""
    scores = {label: outcome.score for label, outcome in judged.outcomes.items() if outcome.score is not None}
    worst = judged.worst(counted)
    if worst is None or worst.skipped is not None:
        return {"scores": scores, "why": None, "skipped": None if worst is None else worst.skipped}
    if worst.failure is not None:
        reason = f"{worst.label}: {worst.failure}: {worst.reason or 'no reason was given'}"
    else:
        reason = f"{worst.label}: {worst.shortfall}"
        reason += f": {worst.reason}" if worst.reason else ""
    lines = (part.replace("\n", _LINE_START) for part in (reason, *_content(judged)))
    return {"scores": scores, "why": "\n".join(lines), "skipped": None}


def _content(judged: JudgedSubject) -> Iterator[str]:
    for name in ("input", "output", "reference"):
        value = (judged.content or {}).get(name)
        if value is not None:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
            yield f"  {name}: {text if len(text) <= _MAX_TEXT else f'{text[:_MAX_TEXT]}… ({len(text):,} characters)'}"
