"""One run of a pipeline file for all items that ask what came of it, in one process or in several."""

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
_TEXT = 600
"""How many characters of an input or output are shown."""
_AGAIN = "\n  | "
"""How a further line of a text begins, so that none in a log of GitHub begins as a command does."""


@attrs.frozen
class Told:
    """What a run came to, as JSON data: *subjects* by ``kind id``, and why the *gate* did not pass.

    *is_part* says that some of the file's subjects were judged alone; *is_refused* that the run ended before all were judged.
    """

    run_id: str | None
    gate: str | None
    stopped: str | None
    subjects: Mapping[str, Mapping[str, Any]]
    is_part: bool = False
    is_disabled: bool = False
    is_refused: bool = False

    def of(self, kind: str, id_: str) -> Mapping[str, Any] | None:
        """What became of a subject."""
        return self.subjects.get(f"{kind} {id_}")


def told_of(path: Path, chosen: Sequence[Subject]) -> Told:
    """Run the pipeline at *path*: the subjects *chosen*, and where these are all it has, or none, the file as it is.

    Of some alone there is no whole to write to a sink or to compare, so that run has neither, and a name of its own.

    :raises RequestError: when the request is wrong.
    """
    every = [] if not chosen else dicast.subjects(path, dues=True)
    is_part = bool(chosen) and len(chosen) < len(every)
    if is_part:
        named: dict[str, object] = {"name": f"{path.stem}: some subjects", "sinks": [], "baseline": None}
        run = dicast.run(path, overrides=named, subjects=_with_parts(chosen, every))
    else:
        run = dicast.run(path)
    return _told(run, is_part=is_part)


def _with_parts(chosen: Sequence[Subject], every: Sequence[Due]) -> list[Due]:
    """Return *chosen* and the parts of each, and theirs, by whose verdicts it is judged, in the order of *every*."""
    wanted = {(subject.kind, subject.id) for subject in chosen}
    before = -1
    while before < len(wanted):
        before, ids = len(wanted), {id_ for _, id_ in wanted}
        wanted |= {(due.subject.kind, due.subject.id) for due in every if due.subject.parent_id in ids}
    return [due for due in every if (due.subject.kind, due.subject.id) in wanted]


def shared(folder: Path, path: Path, chosen: Sequence[Subject]) -> Told:
    """The same, made by the first of the processes that ask for it; the others wait for it, and nobody pays twice.

    :raises RequestError: when the request is wrong.
    """
    from filelock import FileLock  # only with workers of xdist

    kept = folder / f"{sha256(str(path).encode()).hexdigest()[:16]}.json"
    with FileLock(f"{kept}.lock"):
        if kept.is_file():
            found = json.loads(kept.read_text(encoding="utf-8"))
        else:
            found = _run_once(path, chosen)
            kept.write_text(json.dumps(found), encoding="utf-8")
    if "error" in found:
        raise dicast.ConfigError(found["error"])
    return Told(**found)


def _run_once(path: Path, chosen: Sequence[Subject]) -> dict[str, Any]:
    try:
        return attrs.asdict(told_of(path, chosen))
    except RequestError as error:  # the others are told, instead of trying it again
        return {"error": "\n".join(str(problem) for problem in error.problems)}


def _told(run: Run, *, is_part: bool) -> Told:
    if run.disabled:
        return Told(None, None, "disabled", {}, is_disabled=True)
    reader = OutcomeReader()

    def read(events: Iterator[Event]) -> dict[str, Mapping[str, Any]]:
        found: dict[str, Mapping[str, Any]] = {}
        while batch := list(islice(events, _BATCH)):
            found |= {f"{one.kind} {one.id}": _subject(one, reader.counted) for one in reader.take(batch)}
        return found | {f"{one.kind} {one.id}": _subject(one, reader.counted) for one in reader.end()}

    reason = None if run.stopped is None else str(run.stopped["reason"])
    refused = reason not in (None, "early_stop")
    stopped = f"the run stopped: {reason}" if reason else None
    return Told(run.run_id, _gate(run), stopped, run.read(OutcomeReader.wants, read), is_part, is_refused=refused)


def _gate(run: Run) -> str | None:
    """Why ``dicast run`` would not end with 0; None where it would."""
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


def _subject(one: JudgedSubject, counted: Sequence[str]) -> dict[str, Any]:
    """What became of *one*: *why* it did not pass or why it was *skipped*, else neither."""
    scores = {label: outcome.score for label, outcome in one.outcomes.items() if outcome.score is not None}
    worst = one.worst(counted)
    if worst is None or worst.skipped is not None:
        return {"scores": scores, "why": None, "skipped": None if worst is None else worst.skipped}
    if worst.failure is not None:
        said = f"{worst.label}: {worst.failure}: {worst.reason or 'no reason was given'}"
    else:
        said = f"{worst.label}: {worst.shortfall}"
        said += f": {worst.reason}" if worst.reason else ""
    lines = (part.replace("\n", _AGAIN) for part in (said, *_content(one)))
    return {"scores": scores, "why": "\n".join(lines), "skipped": None}


def _content(one: JudgedSubject) -> Iterator[str]:
    for name in ("input", "output", "reference"):
        value = (one.content or {}).get(name)
        if value is not None:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
            yield f"  {name}: {text if len(text) <= _TEXT else f'{text[:_TEXT]}… ({len(text):,} characters)'}"
