"""Calibration of a cascade, and its document: thresholds of the stages, their evidence, and their guarantee."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from hashlib import sha256
from typing import Any

import attrs
import orjson

from dicast import ConfigError, Ledger, Slot
from dicast.signals import TextLengths, feature_values
from dicast.toolkit.gold import GoldLabel
from dicast.toolkit.money import plain_text

from ..labels.gold import Gold, LabeledOutputs
from ..labels.matching import check_count, check_judged, check_kinds, matched
from ..statistics.binomial import share_interval
from ..verdicts.outcomes import Outcome
from ..verdicts.rules import Rules
from ..verdicts.stages import Stage, Subject, check_identity, read_stages
from .ladder import Rung
from .signals import read_lengths
from .steps import Step, StepInput, next_risk, take

VERSION = 1
GUARANTEE = "holds for subjects drawn as these labels were"

_PLACES = 9


@attrs.frozen
class Calibration:
    """Calibrated steps of a cascade; *stages* are all its stages, and the last stage has no step."""

    rules: Rules
    gold: Gold | None = attrs.field(repr=False)  # the repr of ten thousand labels takes a second
    cascade: Slot | None = attrs.field(repr=False)
    stages: tuple[Stage, ...] = attrs.field(repr=False)
    steps: tuple[Step, ...] = attrs.field(repr=False)
    labels: Mapping[Subject, GoldLabel] = attrs.field(repr=False)
    lengths: Mapping[Subject, TextLengths] = attrs.field(repr=False)

    @classmethod
    def of_labels(
        cls,
        labels: Mapping[Subject, GoldLabel],
        stages: Sequence[Stage],
        rules: Rules,
        gold: Gold | None = None,
        cascade: Slot | None = None,
        lengths: Mapping[Subject, TextLengths] | None = None,
    ) -> Calibration:
        """Calibrate the steps one after the other, each at its share of alpha, by the labels that earlier steps do not keep.

        :raises DataError: if a stage was not asked about a labeled subject that reaches it.
        :raises ConfigError: if a named feature does not exist.
        """
        calibrated = stages[:-1] if len(stages) > 1 else stages
        calibration = cls(rules, gold, cascade, tuple(stages), (), labels, lengths or {})
        is_one_class = len({rules.label_class(label.score) for label in labels.values()}) == 1
        for index, stage in enumerate(calibrated):
            step_input = StepInput(
                stage, calibration.remaining(), calibration.reaches, calibration.lengths, index > 0, is_one_class
            )
            check_judged(step_input.labels, stage)
            try:
                step = take(step_input, rules, rules.alpha / len(calibrated))
            except ValueError as error:
                raise ConfigError(str(error)) from error
            calibration = attrs.evolve(calibration, steps=(*calibration.steps, step))
        return calibration

    def remaining(self) -> dict[Subject, GoldLabel]:
        """Return the labels that no step so far keeps."""
        kept_subjects = {key for step in self.steps for key in step.kept_subjects}
        return {key: label for key, label in self.labels.items() if key not in kept_subjects}

    def reaches(self, key: Subject) -> bool:
        """Return whether no step so far keeps a subject."""
        outcomes = ((step, step.stage.outcomes.get(key)) for step in self.steps)
        return not any(outcome is not None and self.keeps(step, key, outcome) for step, outcome in outcomes)

    def document(self) -> dict[str, Any]:
        """Return the document, with the digest of its other fields."""
        share, stages = 1.0, []
        for index, step in enumerate(self.steps):
            later = self.stages[index + 1] if index + 1 < len(self.stages) else None
            risk = next_risk(step, later, self.rules)
            stages.append(_stage(step, share * step.share, risk))
            share *= 1 - step.share
        rules = self.rules
        document = {
            "version": VERSION,
            "target": rules.target,
            "alpha": rules.alpha,
            "agree": rules.agree,
            "window": rules.window if rules.agree == "within" else None,
            "pass_at": rules.pass_at if rules.agree == "pass" else None,
            "assume_random": rules.assume_random,
            "gold": {
                "n": len(self.labels),
                "digest": None if self.gold is None else self.gold.digest,
                **self._source(),
            },
            "population": {"runs": list(_runs(self.stages)), "n": len(self.stages[0].outcomes)},
            "stages": stages,
            "cascade": self._cascade() if len(self.stages) > 1 else None,
            "guarantee": GUARANTEE,
        }
        return document | {"digest": digest(document)}

    def keeps(self, step: Step, key: Subject, outcome: Outcome) -> bool:
        """Return whether *step* keeps its stage's outcome on a subject."""
        at = step.climb.threshold
        if at is None or outcome.score is None:
            return False
        if step.model is None:
            return outcome.confidence >= at
        values = feature_values(
            step.model.features, outcome.score, outcome.confidence, outcome.signals, self.lengths.get(key)
        )
        return values is not None and step.model.probability(values) >= at

    def _source(self) -> dict[str, str]:
        """Return the label of another tool's scores as ``source`` if they are the labels; empty for labels of people."""
        is_recorded = self.gold is not None and self.gold.source.startswith("recorded/")
        return {"source": self.gold.source} if self.gold is not None and is_recorded else {}

    def _cascade(self) -> dict[str, Any]:
        """Return the figures of the cascade as a whole, next to its last stage alone."""
        reasons: list[str] = []
        first = self.steps[0]
        return {
            "escalation_rate": 1 - first.share if first.reached else None,
            "asked": self._shares(),
            "cost": self._cost(),
            "agreement": _interval(self._right(reasons, alone=False)),
            "last_stage": _interval(self._right(reasons, alone=True)),
            "reasons": list(dict.fromkeys(reasons)),
        }

    def _right(self, reasons: list[str], *, alone: bool) -> list[bool] | None:
        """Return for each label whether the cascade, or its last stage *alone*, agrees; None if some subject was not judged."""
        is_right, missing = [], 0
        for key, label in self.labels.items():
            decided, is_complete = self._decided(key, alone=alone)
            missing += not is_complete
            if decided is not None and decided.score is not None:
                is_right.append(not self.rules.is_wrong(decided.score, label.score))
        if missing:
            figure = "last_stage" if alone else "agreement"
            message = f"{self.stages[-1].label} has not judged {missing} of {len(self.labels)} labeled subjects"
            reasons.append(f"{figure}: {message}; add --judge-missing to ask it")
            return None
        return is_right

    def _decided(self, key: Subject, *, alone: bool) -> tuple[Outcome | None, bool]:
        """Return the deciding outcome on a labeled subject, and whether all stages that the subject reaches were asked."""
        last = self.stages[-1].outcomes.get(key)
        if alone:
            return last, last is not None
        good: Outcome | None = None
        for step in self.steps:
            outcome = step.stage.outcomes.get(key)
            if outcome is None:
                return None, False
            good = outcome if outcome.score is not None else good
            if key in step.kept_subjects:
                return outcome, True
        if last is None:
            return None, False
        return (last if last.score is not None else good), True

    def _shares(self) -> dict[str, float]:
        """Return the share of all subjects that each stage is asked about."""
        shares, reach = {}, 1.0
        for index, stage in enumerate(self.stages):
            shares[stage.label] = reach
            reach *= 1 - self.steps[index].share if index < len(self.steps) else 1
        return shares

    def _cost(self) -> dict[str, str | None]:
        """Return the cost of judging all subjects of the ledger by the cascade, and by its last stage alone, in usd."""
        n, total = Decimal(len(self.stages[0].outcomes)), Decimal(0)
        means = [_mean_cost(stage) for stage in self.stages]
        for mean, share in zip(means, self._shares().values(), strict=True):
            if share and mean is None:
                return {"cascade": None, "last_stage_alone": _money(means[-1], n)}
            total += Decimal(str(share)) * (mean or Decimal(0))
        return {"cascade": _money(total, n), "last_stage_alone": _money(means[-1], n)}


def digest(document: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a calibration without its ``digest``, as canonical JSON (sorted keys, no blanks)."""
    return sha256(
        orjson.dumps({key: value for key, value in document.items() if key != "digest"}, option=orjson.OPT_SORT_KEYS)
    ).hexdigest()


def calibrate(
    ledger: Ledger,
    gold: Gold,
    cascade: Slot | None,
    stages: Sequence[Stage],
    rules: Rules,
    runs: Sequence[str] = (),
    *,
    any_output: bool = False,
) -> Calibration:
    """Calibrate the steps of a cascade from the outcomes in *ledger*.

    :param any_output: compare labels without an output with verdicts on every output, also on outputs of a task.
    :raises DataError: if the labels are about other subjects or outputs, or are too few.
    :raises ConfigError: if a stage has answered under several fingerprints, or under another fingerprint than the file's.
    """
    check_count(gold, rules)
    outputs = LabeledOutputs.of(ledger, gold, any_output=any_output)
    read_stages(ledger, stages, cascade, runs, outputs.excludes)
    outputs.check()
    check_kinds(gold, stages)
    labels = matched(outputs, stages)
    for stage in stages:
        check_identity(stage)
    lengths = read_lengths(ledger, runs) if rules.signals != "confidence" else {}
    return Calibration.of_labels(labels, stages, rules, gold, cascade, lengths)


def _runs(stages: Sequence[Stage]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(outcome.run_id for stage in stages for outcome in stage.outcomes.values()))


def _stage(step: Step, share: float, risk: float | None) -> dict[str, Any]:
    chosen, stage = step.climb.chosen, step.stage
    needed = step.needed
    return {
        "label": stage.label,
        "fingerprint": stage.fingerprint,
        "of": {
            "component": stage.slot.name,
            "version": stage.slot.version,
            "options": stage.slot.options,
            "fingerprint": stage.slot.fingerprint,
            "model": stage.model,
        },
        "signal": step.signal,
        "model": None if step.model is None else attrs.asdict(step.model),
        "threshold": step.climb.threshold,
        "n": step.n,
        "failures": step.failures,
        "kept": {"labels": step.kept_labels, "share": share},
        "errors": None if chosen is None else chosen.errors,
        "agreement": None if chosen is None else 1 - chosen.errors / chosen.n,
        "upper": None if chosen is None else chosen.upper,
        "method": step.method,
        "sessions": step.sessions,
        "labels_against_ledger": None if step.difference is None else step.difference.document(),
        "ladder": [_rung(rung) for rung in step.climb.rungs],
        "needed": None
        if needed is None
        else {
            "low": needed.low,
            "mid": needed.mid,
            "high": needed.high,
            "words": needed.words(step.n, sessions=step.sessions is not None),
        },
        "audit_risk": risk,
        "reasons": list(step.reasons),
    }


def _rung(rung: Rung) -> dict[str, Any]:
    return attrs.asdict(rung)


def _interval(is_right: Sequence[bool] | None) -> dict[str, float | None]:
    """Return the share of true values in *is_right*, with its 95 % interval by Wilson."""
    interval = None if not is_right else share_interval(sum(is_right), len(is_right))
    if is_right is None or interval is None:
        return {"value": None, "low": None, "high": None}
    return {"value": sum(is_right) / len(is_right), "low": interval[0], "high": interval[1]}


def _mean_cost(stage: Stage) -> Decimal | None:
    """Return the mean cost of asking the stage. A failure at no cost was most likely not asked about, for lack of budget, and is left out."""
    costs = [outcome.cost for outcome in stage.outcomes.values() if outcome.score is not None or outcome.cost != 0]
    amounts = [cost for cost in costs if cost is not None]
    return sum(amounts, Decimal(0)) / len(amounts) if amounts and len(amounts) == len(costs) else None


def _money(mean: Decimal | None, n: Decimal) -> str | None:
    if mean is None:
        return None
    return plain_text(mean * n, _PLACES)
