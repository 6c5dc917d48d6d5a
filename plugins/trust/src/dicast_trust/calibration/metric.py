"""``dicast calibrate FILE --metric LABEL``: find the score above which a metric's pass agrees with people.

The labels test the same ladder as for a judge. The signal is the metric's score, and a kept subject is an error if its label fails.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

import attrs

from dicast import ALL_METRICS, ConfigError, Event, Ledger, PipelineJudges, Problem, Query, Slot, nearest

from ..labels.gold import Gold, LabeledOutputs
from ..labels.matching import matched
from ..verdicts.outcomes import Outcome
from ..verdicts.rules import Rules
from ..verdicts.stages import Skips, Stage, check_identity
from .document import Calibration, digest

_PASS = 1.0


def metric_slot(judges: PipelineJudges, label: str) -> Slot:
    """Return the metric with *label*.

    :raises ConfigError: if the file has no such metric, or the metric has its own scale.
    """
    metrics = {slot.label: slot for slot in judges.metrics}
    if label not in metrics:
        names = ", ".join(metrics) or "none"
        message = f"no metric {label!r} in {judges.file}; its metrics are {names}"
        raise ConfigError(Problem(message, path="--metric", value=label, hint=nearest(label, metrics)))
    slot = metrics[label]
    if slot.is_raw:
        message = f"the values of {label} have their own scale: give it a range, as in range: [0, 100]"
        raise ConfigError(Problem(message, path="--metric", value=label))
    return slot


def calibrate_metric(
    ledger: Ledger, gold: Gold, slot: Slot, rules: Rules, runs: Sequence[str] = (), *, any_output: bool = False
) -> dict[str, Any]:
    """Return the document of the threshold of a metric, from its scores in *ledger*.

    :param any_output: compare labels without an output with scores of every output, also of outputs of a task.
    :raises DataError: if the labels are about other subjects or outputs.
    :raises ConfigError: if the scores are of another metric than the file has now.
    """
    outputs = LabeledOutputs.of(ledger, gold, any_output=any_output)
    stage = _read(ledger, slot, runs, outputs.excludes)
    outputs.check()
    labels = matched(outputs, [stage])
    check_identity(stage)
    rules = attrs.evolve(rules, agree="pass", signals="confidence")
    document = Calibration.of_labels(labels, [stage], rules, gold).document()
    (record,) = document["stages"]
    document |= {"metric": slot.label, "stages": [record | {"signal": "score"}]}
    return document | {"digest": digest(document)}


def _read(ledger: Ledger, slot: Slot, runs: Sequence[str], excludes: Skips) -> Stage:
    """Return the metric's scores in *runs*, or in all runs except previews; a score is the confidence that the subject passes."""
    stage = Stage(slot.label, slot)
    fingerprints: dict[str, str] = {}
    for run_id in runs or (None,):
        for entry in ledger.read(Query(run_id=run_id, types=("run.started",))):
            payload: Mapping[str, Any] = entry.event.payload
            fingerprint = payload.get("fingerprints", {}).get(f"metrics[{slot.label}]")
            if fingerprint is not None and (runs or payload.get("preview") is not True):
                fingerprints[entry.event.run_id] = fingerprint
    for run_id in runs or (None,):
        for entry in ledger.read(Query(run_id=run_id, types=("eval.completed", "eval.failed"))):
            event = entry.event
            subject = str(event.subject_kind), str(event.subject_id)
            is_metrics = event.payload["judge"] == ALL_METRICS and event.run_id in fingerprints
            if is_metrics and not excludes(event.run_id, *subject):
                stage.add(fingerprints[event.run_id], _outcome(event, slot.label))
    return stage


def _outcome(event: Event, label: str) -> Outcome:
    """Return the outcome of the metric *label* on a subject: the mean score of its rollouts, or its failure."""
    payload: Mapping[str, Any] = event.payload
    values = [float(item["value"]) for item in payload.get("scores", ()) if item["metric"] == label]
    subject = str(event.subject_kind), str(event.subject_id), event.session_id, event.run_id
    if not values:
        failure = str(payload.get("failure_mode", "no_score"))
        return Outcome(*subject, None, 0.0, failure, None, Decimal(0), {})
    return Outcome(*subject, _PASS, sum(values) / len(values), None, None, Decimal(0), {})
