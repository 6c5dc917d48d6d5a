"""What a judge, and each stage of a cascade, has said of every subject: read from a ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from hashlib import sha256
from typing import Any

import attrs

from dicast import ConfigError, Event, Ledger, Problem, Query, Slot, nearest
from dicast.signals import signal_numbers

from .outcomes import Outcome, failed_cap, told

CASCADE = "hybrid/cascade"
PAIRWISE = "pairwise"
"""Name, within its plugin, of a judge that compares two outputs."""


Subject = tuple[str, str]
"""A subject's kind and id."""

Skips = Callable[[str, str, str], bool]
"""Takes a run, a kind and an id of a subject."""


@attrs.define
class Stage:
    """A judge of a pipeline file, or a stage of a cascade in it, with what the ledger has of it.

    *slot* is the judge as it stands in the file now; *outcomes* has the newest outcome on each subject, a failure only where there is no
    verdict; *identities* are the fingerprints under which it has answered, with a run of each.
    """

    label: str
    slot: Slot
    outcomes: dict[Subject, Outcome] = attrs.field(factory=dict, repr=False)
    identities: dict[tuple[str, str | None], str] = attrs.field(factory=dict)

    @property
    def is_pairwise(self) -> bool:
        """Whether the judge compares two outputs, so that its score names a winner."""
        return self.slot.name.rpartition("/")[2] == PAIRWISE

    @property
    def model(self) -> str | None:
        """The model that answered; None where it asks none, or several did."""
        models = {model for _, model in self.identities}
        return next(iter(models)) if len(models) == 1 else None

    @property
    def fingerprint(self) -> str:
        """The digest of the stage as it is in the file, and of the model that answered."""
        return fingerprint(self.slot.fingerprint, self.model)

    def add(self, config: str | None, outcome: Outcome) -> None:
        """Take an outcome of a run in which the stage had the fingerprint *config*."""
        subject = outcome.kind, outcome.id
        if outcome.failure is None:
            self.outcomes[subject] = outcome
            self.identities.setdefault((config or "", outcome.model), outcome.run_id)
        elif (before := self.outcomes.get(subject)) is None or before.failure is not None:
            self.outcomes[subject] = outcome


def fingerprint(config: str, model: str | None) -> str:
    """The digest of a stage: of its component with all its options, and of the *model* that answered."""
    return sha256("\n".join((config, *([model] if model else ()))).encode()).hexdigest()


def stages_of(judges: Sequence[Slot], labels: Sequence[str] = ()) -> tuple[Slot | None, list[Stage]]:
    """The cascade that is to be calibrated, and its stages; without a cascade None and the judges themselves, from cheap to dear.

    :param labels: the judges that are meant; without any, the only cascade, else all judges in the order of the file.
    :raises ConfigError: when there is no such judge, or several cascades to choose from.
    """
    known = {slot.label: slot for slot in judges}
    if not known:
        raise ConfigError(
            "the pipeline has no judges: what is calibrated is a judge, or a hybrid/cascade of several, under 'judges'"
        )
    wrong = [
        Problem(
            f"no judge {label!r} in the pipeline; there are {', '.join(known)}", value=label, hint=nearest(label, known)
        )
        for label in labels
        if label not in known
    ]
    if wrong:
        raise ConfigError(wrong)
    chosen = [known[label] for label in labels] or list(judges)
    cascades = [slot for slot in chosen if slot.name == CASCADE]
    if len(cascades) > 1 or (labels and cascades and len(chosen) > 1):
        raise ConfigError(f"choose one cascade with --judge, from {', '.join(slot.label for slot in cascades)}")
    if not cascades:
        return None, [Stage(slot.label, slot) for slot in chosen]
    cascade = cascades[0]
    places = (f".stages[{index}]" for index in range(len(cascade.component.stages)))
    return cascade, [Stage(cascade.inside[at].label, cascade.inside[at]) for at in places]


def read_stages(
    ledger: Ledger, stages: Sequence[Stage], cascade: Slot | None, runs: Sequence[str] = (), skips: Skips | None = None
) -> None:
    """Fill *stages* with what *ledger* has of them in *runs*; when there are none, in all that are no preview, such as those of ``dicast doctor``.

    A verdict of the cascade's tells what each of its stages said; a judge that stands alone counts for the stage with its fingerprint.

    :param skips: whether the verdicts of a run on a subject are left out, as they are about another output than its label.
    """
    started = dict(_started(ledger, runs))
    previews = {run_id for run_id, payload in started.items() if payload.get("preview") is True} - set(runs)
    configs = {run_id: _configs(payload) for run_id, payload in started.items()}
    costs = _costs(ledger, runs, cascade.label) if cascade is not None else {}
    by_config = {stage.slot.fingerprint: stage for stage in stages}
    by_label = {stage.label: stage for stage in stages}
    for event in _ended(ledger, runs):
        if event.run_id in previews or (skips and skips(event.run_id, str(event.subject_kind), str(event.subject_id))):
            continue
        config, label = configs.get(event.run_id, {}), str(event.payload["judge"])
        if cascade is not None and label == cascade.label:
            for index, outcome in told(event, label, len(stages), costs):
                stages[index].add(config.get(stages[index].label), outcome)
            continue
        own = config.get(label)
        stage = by_label.get(label) if cascade is None else by_config.get(own or "")
        if stage is not None:
            stage.add(own, alone(event))


def alone(event: Event) -> Outcome:
    """What a judge that stands alone has said: of ``eval.completed`` or ``eval.failed``."""
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
    """See that the verdicts of *stage* are all of one judge, and of the one that stands in the file.

    :raises ConfigError: saying under which fingerprints it has answered.
    """
    found = list(stage.identities.items())
    if len(found) > 1:
        said = "; ".join(f"{_short(config, model)} in run {run_id}" for (config, model), run_id in found)
        raise ConfigError(
            f"{stage.label} has answered under {len(found)} fingerprints ({said}): verdicts of different judges are not calibrated together; "
            "choose the runs of one with --run ID"
        )
    if found and found[0][0][0] != stage.slot.fingerprint:
        (config, model), run_id = found[0]
        raise ConfigError(
            f"the verdicts of {stage.label} (run {run_id}, {_short(config, model)}) are those of another judge than the file has now "
            f"(fingerprint {stage.slot.fingerprint[:12]}): its component, options, prompt or rubric was changed since; run the file first"
        )


def _short(config: str, model: str | None) -> str:
    return f"fingerprint {config[:12] or 'not recorded'}{f', model {model}' if model else ''}"


def _started(ledger: Ledger, runs: Sequence[str]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for run_id in runs or (None,):
        for entry in ledger.read(Query(run_id=run_id, types=("run.started",))):
            yield entry.event.run_id, entry.event.payload


def _configs(started: Mapping[str, Any]) -> dict[str, str]:
    """The fingerprint of each judge, and of each judge inside one, in a run, by label."""
    own = {
        str(key)[7:-1]: value
        for key, value in started.get("fingerprints", {}).items()
        if str(key).startswith("judges[")
    }
    return {**own, **started.get("inside", {})}


def _ended(ledger: Ledger, runs: Sequence[str]) -> Iterator[Event]:
    for run_id in runs or (None,):
        for entry in ledger.read(Query(run_id=run_id, types=("eval.completed", "eval.failed"))):
            yield entry.event


def _costs(ledger: Ledger, runs: Sequence[str], label: str) -> dict[tuple[str, int], Decimal | None]:
    """What each stage of the cascade *label* has cost, by verdict and number of the stage; None where that is not known."""
    found: dict[tuple[str, int], Decimal | None] = {}
    begin = f"{label}.stages["
    for run_id in runs or (None,):
        for entry in ledger.read(Query(run_id=run_id, types=("spend.settled",))):
            payload: Mapping[str, Any] = entry.event.payload
            metric = str(payload.get("metric"))
            if payload.get("judge") != label or not metric.startswith(begin) or payload.get("unit") != "usd":
                continue
            key = str(payload["eval_id"]), int(metric[len(begin) :].partition("]")[0])
            amount, before = payload.get("amount"), found.get(key, Decimal(0))
            found[key] = None if amount is None or before is None else before + Decimal(amount)
    return found
