"""Newest verdict of a judge, and of each stage of a cascade, on every subject of a ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from hashlib import sha256
from typing import Any

import attrs

from dicast import ConfigError, Event, Ledger, Problem, Query, Slot, nearest
from dicast.signals import signal_numbers

from .outcomes import Outcome, failed_cap, stage_outcomes

CASCADE = "hybrid/cascade"
PAIRWISE = "pairwise"
"""Name, within its plugin, of a judge that compares two outputs."""


Subject = tuple[str, str]
"""A subject's kind and id."""

Skips = Callable[[str, str, str], bool]
"""Function that takes the id of a run, and the kind and id of a subject, and returns whether to skip the verdict."""


@attrs.define
class Stage:
    """Judge of a pipeline file, or stage of a cascade in it, with its outcomes in the ledger.

    *slot* is the judge in the current file. *outcomes* has the newest verdict on each subject, or the newest failure if the subject has no
    verdict. *identities* has one entry for each pair of fingerprint and model in the verdicts; its value is the id of the first run with the
    pair.
    """

    label: str
    slot: Slot
    outcomes: dict[Subject, Outcome] = attrs.field(factory=dict, repr=False)
    identities: dict[tuple[str, str | None], str] = attrs.field(factory=dict)

    @property
    def is_pairwise(self) -> bool:
        """Return whether the judge compares two outputs, so that its score names a winner."""
        return self.slot.name.rpartition("/")[2] == PAIRWISE

    @property
    def model(self) -> str | None:
        """Model that answered; None without a model, or with several."""
        models = {model for _, model in self.identities}
        return next(iter(models)) if len(models) == 1 else None

    @property
    def fingerprint(self) -> str:
        """Digest of the stage in the file and of the model that answered."""
        return fingerprint(self.slot.fingerprint, self.model)

    def add(self, config: str | None, outcome: Outcome) -> None:
        """Add an outcome of a run in which the stage had the fingerprint *config*."""
        subject = outcome.kind, outcome.id
        if outcome.failure is None:
            self.outcomes[subject] = outcome
            self.identities.setdefault((config or "", outcome.model), outcome.run_id)
        elif (previous := self.outcomes.get(subject)) is None or previous.failure is not None:
            self.outcomes[subject] = outcome


def fingerprint(config: str, model: str | None) -> str:
    """Return the digest of a stage: of its component with all its options, and of the *model* that answered."""
    return sha256("\n".join((config, *([model] if model else ()))).encode()).hexdigest()


def stages_of(judges: Sequence[Slot], labels: Sequence[str] = ()) -> tuple[Slot | None, list[Stage]]:
    """Return the cascade to calibrate and its stages; without a cascade, None and the judges themselves, from cheap to expensive.

    :param labels: the judges to calibrate; empty for the only cascade, or for all judges in the order of the file.
    :raises ConfigError: if a judge does not exist, or several cascades remain to choose from.
    """
    slots = {slot.label: slot for slot in judges}
    if not slots:
        raise ConfigError("the pipeline has no judges: add a judge, or a hybrid/cascade of several, under 'judges'")
    problems = [
        Problem(
            f"no judge {label!r} in the pipeline; its judges are {', '.join(slots)}",
            value=label,
            hint=nearest(label, slots),
        )
        for label in labels
        if label not in slots
    ]
    if problems:
        raise ConfigError(problems)
    selected = [slots[label] for label in labels] or list(judges)
    cascades = [slot for slot in selected if slot.name == CASCADE]
    if len(cascades) > 1 or (labels and cascades and len(selected) > 1):
        raise ConfigError(f"choose one cascade with --judge, from {', '.join(slot.label for slot in cascades)}")
    if not cascades:
        return None, [Stage(slot.label, slot) for slot in selected]
    cascade = cascades[0]
    places = (f".stages[{index}]" for index in range(len(cascade.component.stages)))
    return cascade, [Stage(cascade.inside[at].label, cascade.inside[at]) for at in places]


def read_stages(
    ledger: Ledger, stages: Sequence[Stage], cascade: Slot | None, runs: Sequence[str] = (), skips: Skips | None = None
) -> None:
    """Fill *stages* with their outcomes in *runs* of *ledger*; without *runs*, in all runs except previews, such as the runs of ``dicast doctor``.

    A verdict of the cascade holds the outcomes of its stages. A judge outside the cascade counts for the stage with the same fingerprint.

    :param skips: whether the verdicts of a run on a subject are left out, because they are about another output than its label.
    """
    started = dict(_started(ledger, runs))
    previews = {run_id for run_id, payload in started.items() if payload.get("preview") is True} - set(runs)
    configs = {run_id: _configs(payload) for run_id, payload in started.items()}
    costs = _costs(ledger, runs, cascade.label) if cascade is not None else {}
    by_config = {stage.slot.fingerprint: stage for stage in stages}
    by_label = {stage.label: stage for stage in stages}
    for event in _verdict_events(ledger, runs):
        if event.run_id in previews or (skips and skips(event.run_id, str(event.subject_kind), str(event.subject_id))):
            continue
        config, label = configs.get(event.run_id, {}), str(event.payload["judge"])
        if cascade is not None and label == cascade.label:
            for index, outcome in stage_outcomes(event, label, len(stages), costs):
                stages[index].add(config.get(stages[index].label), outcome)
            continue
        judge_config = config.get(label)
        stage = by_label.get(label) if cascade is None else by_config.get(judge_config or "")
        if stage is not None:
            stage.add(judge_config, plain_outcome(event))


def plain_outcome(event: Event) -> Outcome:
    """Return the outcome of a judge outside a cascade, from ``eval.completed`` or ``eval.failed``."""
    payload: Mapping[str, Any] = event.payload
    cost, score = payload.get("judge_cost_usd"), payload.get("score")
    return Outcome(
        str(payload["subject_kind"]),
        str(payload["subject_id"]),
        event.session_id,
        event.run_id,
        score,
        float(payload.get("confidence", 0.0)),
        payload.get("failure_mode"),
        payload.get("judge_model"),
        None if cost is None else Decimal(cost),
        {} if score is None else signal_numbers(score, payload.get("signals") or {}),
        failed_cap(payload),
    )


def check_identity(stage: Stage) -> None:
    """Check that all verdicts of *stage* are from one judge, and that it is the judge in the file.

    :raises ConfigError: with the fingerprints under which it has answered.
    """
    identities = list(stage.identities.items())
    if len(identities) > 1:
        names = "; ".join(f"{_short(config, model)} in run {run_id}" for (config, model), run_id in identities)
        raise ConfigError(
            f"{stage.label} has answered under {len(identities)} fingerprints ({names}): verdicts of different judges cannot be calibrated together; "
            "choose the runs of one fingerprint with --run ID"
        )
    if identities and identities[0][0][0] != stage.slot.fingerprint:
        (config, model), run_id = identities[0]
        raise ConfigError(
            f"the verdicts of {stage.label} (run {run_id}, {_short(config, model)}) are from another judge than the judge in the file "
            f"(fingerprint {stage.slot.fingerprint[:12]}): its component, options, prompt or rubric has changed; run the file first"
        )


def _short(config: str, model: str | None) -> str:
    return f"fingerprint {config[:12] or 'not recorded'}{f', model {model}' if model else ''}"


def _started(ledger: Ledger, runs: Sequence[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for run_id in runs or (None,):
        for entry in ledger.read(Query(run_id=run_id, types=("run.started",))):
            yield entry.event.run_id, entry.event.payload


def _configs(started: Mapping[str, Any]) -> dict[str, str]:
    """Return the fingerprint of each judge in a run, nested judges included, by label."""
    judges = {
        str(key)[7:-1]: value
        for key, value in started.get("fingerprints", {}).items()
        if str(key).startswith("judges[")
    }
    return {**judges, **started.get("inside", {})}


def _verdict_events(ledger: Ledger, runs: Sequence[str]) -> Iterator[Event]:
    for run_id in runs or (None,):
        for entry in ledger.read(Query(run_id=run_id, types=("eval.completed", "eval.failed"))):
            yield entry.event


def _costs(ledger: Ledger, runs: Sequence[str], label: str) -> dict[tuple[str, int], Decimal | None]:
    """Return the cost of each stage of the cascade *label*, by verdict and number of the stage; None if unknown."""
    costs: dict[tuple[str, int], Decimal | None] = {}
    begin = f"{label}.stages["
    for run_id in runs or (None,):
        for entry in ledger.read(Query(run_id=run_id, types=("spend.settled",))):
            payload: Mapping[str, Any] = entry.event.payload
            metric = str(payload.get("metric"))
            if payload.get("judge") != label or not metric.startswith(begin) or payload.get("unit") != "usd":
                continue
            key = str(payload["eval_id"]), int(metric[len(begin) :].partition("]")[0])
            amount, previous = payload.get("amount"), costs.get(key, Decimal(0))
            costs[key] = None if amount is None or previous is None else previous + Decimal(amount)
    return costs
