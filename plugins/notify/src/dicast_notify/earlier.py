"""The end of a run, compared with the earlier runs of its pipeline."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import erfc, sqrt
from typing import Any

import attrs

from dicast import Event, Query, RunContext, run_kind, started_runs
from dicast.reporting import current_document, figure, run_answer
from dicast.toolkit.intervals import Z_95

_MAY_DIFFER = ("source", "task", "data")
"""Sections of a pipeline that may differ between two runs that are compared."""

LEVEL = 0.025
"""Probability that any label of an unchanged pipeline is found to be lower than in the previous run."""


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
    """

    document: Mapping[str, Any]
    kind: str
    previous: Earlier | None
    worse: tuple[str, ...]

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
    findings += [] if comparable is None else lower_labels(done, comparable)
    return Standing(done, kind, comparable, tuple(findings))


def _regressions(done: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each failed clause of the gate that compares the run with a baseline."""
    for clause in (done["gate"] or {}).get("clauses", ()):
        if clause["rule"] == "max_drop" and clause["passed"] is False:
            value = clause["value"]
            difference = figure(value) if isinstance(value, float) else value
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


def lower_labels(done: Mapping[str, Any], earlier: Earlier) -> list[str]:
    """Return a sentence for each label whose mean is lower than in the *earlier* run.

    A mean is lower if the one-sided test of the difference of two independent means rejects at 0.025, over all labels by Holm's method. The
    standard errors are those of the documents' intervals. Runs over the same subjects differ less by chance than the test assumes.
    """
    tests = sorted(_tests(done["labels"], earlier.document["labels"]))
    findings = []
    for number, (p, label, now, before) in enumerate(tests):
        if p > LEVEL / (len(tests) - number):
            break
        findings.append(f"{label}: the mean is {figure(now)}; in run {earlier.run_id} it was {figure(before)}")
    return findings


def _tests(now: Mapping[str, Any], before: Mapping[str, Any]) -> Iterator[tuple[float, str, float, float]]:
    """Yield the probability of so low a mean without a change, the label and both means, for each label that both runs have."""
    for label in now.keys() & before.keys():
        a, b = now[label], before[label]
        errors = [_error(figures) for figures in (a, b)]
        if None in errors or "raw" in (a.get("scale"), b.get("scale")):
            continue
        difference, error = a["mean"] - b["mean"], sqrt(sum(value * value for value in errors if value is not None))
        if difference < 0:
            yield (erfc(-difference / error / sqrt(2)) / 2 if error else 0.0), label, a["mean"], b["mean"]


def _error(figures: Mapping[str, Any]) -> float | None:
    """Return the standard error of a mean from its interval, which may be cut at one end; None without an interval."""
    mean, low, high = (figures.get(name) for name in ("mean", "ci_low", "ci_high"))
    if mean is None or low is None or high is None:
        return None
    return float(max(mean - low, high - mean)) / Z_95
