"""The end of a run, compared with the earlier runs of its pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, cast

import attrs

from dicast import DicastError, Entry, Event, Ledger, Query, RunContext, run_kind, started_runs
from dicast.reading import reader
from dicast.reporting import current_document, run_answer

_MAY_DIFFER = ("source", "task", "data")
"""Sections of a pipeline that may differ between two runs that are compared."""


@attrs.frozen
class Earlier:
    """An earlier completed run of the same pipeline, with its document."""

    run_id: str
    document: Mapping[str, Any]

    @property
    def answer(self) -> str:
        """The answer of its gate."""
        return run_answer(self.document)


@attrs.frozen
class Standing:
    """The end of a run.

    :param document: the document of the run.
    :param kind: the kind of the run.
    :param previous: the newest earlier run that can be compared; None without one.
    :param worse: the findings that the run is worse than before, one sentence each.
    :param not_compared: the reason why a label is not compared with the run *previous*.
    """

    document: Mapping[str, Any]
    kind: str
    previous: Earlier | None
    worse: tuple[str, ...]
    not_compared: str | None = None

    @property
    def answer(self) -> str:
        """The answer of the gate: ``passed``, ``failed``, ``undecided``, or a text with ``no gate``."""
        return run_answer(self.document)


def standing_of(end: Event, started: Event | None, run: RunContext) -> Standing:
    """Return the standing of the run of the event *end*."""
    done = current_document({key: value for key, value in end.payload.items() if key != "reason"})
    kind = "pipeline" if started is None else run_kind(started.payload)
    findings = [*_regressions(done)]
    if started is None or started.payload.get("preview") or end.type == "run.stopped":
        return Standing(done, kind, None, tuple(findings))
    decided, comparable = _earlier(run, started)
    if run_answer(done) == "failed" and decided is not None and decided.answer == "passed":
        findings.append(f"the gate failed; it passed in run {decided.run_id}")
    if comparable is None:
        return Standing(done, kind, None, tuple(findings))
    worse, reason = _compare(run, end, comparable)
    return Standing(done, kind, comparable, (*findings, *worse), reason)


def _regressions(done: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each failed clause of the gate that compares the run with a baseline."""
    for clause in (done["gate"] or {}).get("clauses", ()):
        if clause["rule"] == "max_drop" and clause["passed"] is False:
            value = clause["value"]
            difference = f"{value:+.4f}" if isinstance(value, float) else value
            yield f"{clause['on']}: the difference from the baseline is {difference}, and max_drop is {clause['line']}"


def _earlier(run: RunContext, started: Event) -> tuple[Earlier | None, Earlier | None]:
    """Return the newest earlier run whose gate has decided, and the newest earlier run with equal judges, metrics and scoring."""
    decided: Earlier | None = None
    comparable: Earlier | None = None
    for start in _starts_before(run, started):
        query = Query(start.run_id, ("run.completed",), newest_first=True, limit=1)
        end = next((entry.event for entry in run.read(query)), None)
        if end is None:
            continue
        item = Earlier(start.run_id, current_document(end.payload))
        if decided is None and item.answer in ("passed", "failed"):
            decided = item
        if comparable is None and _judging(start.payload) == _judging(started.payload):
            comparable = item
        if comparable is not None and (decided is not None or item.document["gate"] is None):
            break
    return decided, comparable


def _starts_before(run: RunContext, started: Event) -> Iterator[Event]:
    """Yield the ``run.started`` of the earlier runs of the same pipeline, the newest first; tries on a few rows do not count."""
    is_before = False
    for entry in started_runs(run.read):
        event, payload = entry.event, entry.event.payload
        is_same = all(payload.get(key) == started.payload.get(key) for key in ("name", "file", "limit", "filter"))
        if is_before and is_same and not payload.get("preview"):
            yield event
        is_before = is_before or event.run_id == run.run_id


def _judging(started: Mapping[str, Any]) -> Mapping[str, str]:
    """Return the fingerprints of everything that judges."""
    fingerprints: Mapping[str, str] = started.get("fingerprints", {})
    return {key: digest for key, digest in fingerprints.items() if key.partition(".")[0] not in _MAY_DIFFER}


@attrs.frozen
class _EndedRun:
    """The ledger of the *run* with its *end*, which sinks receive before the ledger does."""

    run: RunContext
    end: Event

    def read(self, query: Query) -> Iterator[Entry]:
        """Yield the rows of the *query*, and the end of the run before older ends."""
        if query.run_id == self.end.run_id and query.types == (self.end.type,):
            yield Entry(0, self.end, "", "")
            if query.limit == 1:
                return
        yield from self.run.read(query)


def _compare(run: RunContext, end: Event, earlier: Earlier) -> tuple[list[str], str | None]:
    """Return a sentence for each label that is worse than in the *earlier* run, and the reason if a label is not compared.

    The answers are those of ``dicast compare``, under the conditions of a gate with a baseline. Labels on a raw scale are left out.
    """
    place = f"run {earlier.run_id}"
    try:
        ledger = cast("Ledger", _EndedRun(run, end))  # the reader only reads
        document = reader("compare")(ledger, a=earlier.run_id, b=run.run_id, compare=("stats/paired",))
    except DicastError as error:
        return [], f"not compared with {place}: {error}"
    answers: Mapping[str, Any] = document["answers"]
    faults = dict.fromkeys(fault for answer in answers.values() for fault in answer.get("faults", ()))
    worse = [
        f"{label}: worse than in {place}: {_change(answer)}"
        for label, answer in answers.items()
        if answer["answer"] == "worse" and "faults" not in answer and answer.get("scale") != "raw"
    ]
    return worse, f"not compared with {place} (the baseline): {'; '.join(faults)}" if faults else None


def _change(answer: Mapping[str, Any]) -> str:
    """Return the mean difference, or its ends if the proxies held subjects back, with its interval and the number of pairs."""
    low, high, n = answer["ci_low"], answer["ci_high"], answer["n"]
    interval = "" if low is None or high is None else f" (95 % interval {low:+.4f} to {high:+.4f})"
    mean = answer["mean_difference"]
    ends = [answer[name] for name in ("mean_difference_low", "mean_difference_high")] if mean is None else [mean]
    return f"{' to '.join(f'{end:+.4f}' for end in ends)}{interval} over {n:,} pair{'s' * (n != 1)}"
