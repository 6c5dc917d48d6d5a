"""Scoring by proxy, then truth: the result of a set of metrics for one subject.

Every proxy runs. If all of them reach the threshold, the truth metrics run too. The score is then the weighted mean of
all metrics, or of the truth metrics alone under ``combine: truth``. Otherwise the score is the weighted mean of the proxies, and its tier is ``proxy``.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from ..classes import evolve, frozen
from ..plan.sections import Scoring, Slot
from ..timing.turns import together
from ..values import Basis, Cost, Failure, Score, Subject, basis_of, weakest
from ..values.aggregation import Aggregation, aggregate, entering, mean
from ..values.answer import ReadyAnswer, is_pending
from .audits import audited, with_audit
from .budget import NO_ESTIMATE

RUBRIC_ID = "proxy-then-truth"
RUBRIC_VERSION = "1.0.0"
_NOTHING = Cost.zero()
_FREE = {"amount": "0", "unit": "usd"}
_NO_RAWS: Mapping[str, float] = MappingProxyType({})


@frozen
class Skip(ReadyAnswer):
    """A metric that was not called, with the reason: the name of the cap that forbade it; *cost* is its estimate."""

    reason: str
    cost: Cost


Answer = Score | Failure | Skip
Ask = Callable[[Slot, Subject, int], Awaitable[Answer]]
"""Calls a metric about a subject in a rollout (from 0): a quick metric answers at once, others when they are awaited."""


class Combined(NamedTuple):  # made in a third of the time that a frozen attrs class takes
    """Result of a metric set. *metrics* has each metric's value, aggregated over *rollouts* as the score is.

    *tier* and *basis* are the weakest of the rollouts that entered the score. *audit* has the score and the metrics that :func:`~.audits.with_audit` adds, *group* is the audit group.
    *raws* are the values, by label, of metrics on a scale of their own. If one of these has a weight, *score* is None, *raw* is
    its value, and *is_raw* is True; *raw* is None if the proxies held the subject back.
    """

    score: float | None
    confidence: float
    tier: str
    truth_reason: str | None
    propensity: float | None
    scores: Sequence[Mapping[str, object]]
    skipped: Sequence[Mapping[str, object]]
    metrics: Mapping[str, float]
    rollouts: tuple[float | None, ...]
    basis: Basis
    audit: Mapping[str, object] | None = None
    group: str = ""
    raws: Mapping[str, float] = _NO_RAWS
    raw: float | None = None
    is_raw: bool = False


class MetricSet:
    """Metrics of a pipeline with their scoring. It judges one subject at a time and has no state."""

    def __init__(self, metrics: Sequence[Slot], scoring: Scoring, *, concurrent: bool = False) -> None:
        """Create the set. With *concurrent*, all rollouts, and all metrics of a tier, are called at the same time: for models that answer in batches."""
        self.scoring, self._is_concurrent = scoring, concurrent
        self._metrics = tuple(metrics)
        self.has_truths = any(slot.tier == "truth" for slot in metrics)
        self.keeps_texts = any(getattr(slot.component, "keeps_texts", False) for slot in metrics)
        self.raw_label = next((slot.label for slot in metrics if slot.is_raw and slot.weight), None)
        self._by_kind: dict[str, tuple[tuple[Slot, ...], tuple[Slot, ...]]] = {}

    def tiers(self, kind: str) -> tuple[tuple[Slot, ...], tuple[Slot, ...]]:
        """Return the proxies and the truth metrics that judge subjects of *kind*."""
        tiers = self._by_kind.get(kind)
        if tiers is None:
            accepted = [slot for slot in self._metrics if slot.accepts(kind)]
            proxies, truths = ([slot for slot in accepted if slot.tier == tier] for tier in ("proxy", "truth"))
            tiers = self._by_kind[kind] = tuple(proxies), tuple(truths)
        return tiers

    async def judge(self, outputs: Sequence[Subject | Failure], ask: Ask) -> Combined | Failure:
        """Judge a subject, calling each metric through *ask*.

        *outputs* has an output for each rollout, or a single output for all of them. A Failure in place of an output counts as 0.
        """
        rollouts = [_Rollout(number) for number in range(self.scoring.rollouts)]
        judgments = (self._judge_output(rollout, outputs, ask) for rollout in rollouts)
        if self._is_concurrent and len(rollouts) > 1:
            failures = await together([*judgments])
            if failed := [failure for failure in failures if failure is not None]:
                return failed[0]
        else:
            for roll in judgments:
                if (failure := await roll) is not None:
                    return failure
        combined = self._combine(rollouts)
        return with_audit(combined, rollouts, self.scoring) if self.scoring.audit is not None else combined

    async def _judge_output(self, rollout: _Rollout, outputs: Sequence[Subject | Failure], ask: Ask) -> Failure | None:
        output = outputs[rollout.number if len(outputs) > 1 else 0]
        return None if isinstance(output, Failure) else await self._judge_rollout(rollout, output, ask)

    async def _answers(self, pending: list[Awaitable[Answer]]) -> Sequence[Awaitable[Answer]]:
        """Return the *pending* answers; if several have to be awaited, they are awaited together."""
        waits = [at for at, answer in enumerate(pending) if is_pending(answer)] if self._is_concurrent else ()
        if len(waits) < 2:
            return pending
        answers = await together([answer for answer in pending if is_pending(answer)])
        results = dict(zip(waits, answers, strict=True))
        return [results.get(at, answer) for at, answer in enumerate(pending)]

    async def _judge_rollout(self, rollout: _Rollout, subject: Subject, ask: Ask) -> Failure | None:
        proxies, truths = self.tiers(subject.kind)
        failure = None
        # all are called before the first is awaited
        answers = await self._answers([ask(slot, subject, rollout.number) for slot in proxies])
        for slot, pending in zip(proxies, answers, strict=True):
            answer = pending if type(pending) is Score else await pending
            failure = rollout.take(slot, answer, gates_only=self.raw_label is not None) or failure
        if failure is not None:
            return failure
        passed = True
        if truths:
            passed = rollout.lowest() >= self.scoring.threshold
            truths = truths if passed or self._audits(rollout, subject) else ()
            answers = await self._answers([ask(slot, subject, rollout.number) for slot in truths])
            for slot, pending in zip(truths, answers, strict=True):
                answer = pending if type(pending) is Score else await pending
                if isinstance(answer, Failure) and answer.throttled_reason and self.scoring.on_budget == "skip_metric":
                    answer = Skip(answer.throttled_reason, answer.cost)  # a nested judge did not fit into the budget
                failure = rollout.take_truth(slot, answer, passed=passed) or failure
            if passed and self.scoring.combine == "truth" and self.raw_label is None:
                rollout.drop_proxies()
        if self.raw_label is not None and not passed:
            return failure
        return failure or rollout.empty_failure()

    def _audits(self, rollout: _Rollout, subject: Subject) -> bool:
        audit = self.scoring.audit
        rollout.group = "" if audit is None else audit.group(subject.context)
        return audit is not None and audited(subject.id, audit.share_of(rollout.group), audit.seed)

    def _combine(self, rollouts: list[_Rollout]) -> Combined:
        if any([rollout.raws for rollout in rollouts]) or self.raw_label is not None:  # noqa: C419  # for every subject
            return self._combine_raw(rollouts)
        return self._combine_scores(rollouts)

    def _combine_scores(self, rollouts: list[_Rollout]) -> Combined:
        method, first = self.scoring.aggregation, rollouts[0]
        if len(rollouts) == 1:
            score = first.score()
            return self._combined(first, rollouts, score, first.values, first.confidence(), (score,))
        totals = tuple(rollout.score() for rollout in rollouts)
        confidence = mean([rollout.confidence() for rollout in rollouts])
        low, high = entering(totals, method)
        entered = [rollout for rollout, total in zip(rollouts, totals, strict=True) if low <= total <= high]
        all_rollouts, score = _Rollout.of_all(rollouts), aggregate(totals, method)
        return self._combined(all_rollouts, entered, score, _values(rollouts, method), confidence, totals)

    def _combined(
        self,
        all_rollouts: _Rollout,
        entered: Sequence[_Rollout],
        score: float,
        values: Mapping[str, float],
        confidence: float,
        totals: tuple[float, ...],
    ) -> Combined:
        audit = self.scoring.audit if all_rollouts.audit and not all_rollouts.truth else None
        return Combined(
            score,
            confidence,
            "truth" if all([rollout.truth for rollout in entered]) else "proxy",  # noqa: C419  # for every subject
            "gate" if all_rollouts.truth else "audit" if audit else None,
            1.0 if all_rollouts.truth else audit.share_of(all_rollouts.group) if audit else None,
            all_rollouts.items,
            all_rollouts.skipped,
            values,
            totals,
            all_rollouts.basis() if all_rollouts is entered[0] else weakest([rollout.basis() for rollout in entered]),
            group=all_rollouts.group,
        )

    def _combine_raw(self, rollouts: list[_Rollout]) -> Combined:
        """Combine rollouts with values on scales of their own; without a weight these stay next to the score."""
        method, label = self.scoring.aggregation, self.raw_label
        raws = _aggregated([rollout.raws for rollout in rollouts], method)
        if label is None:
            return self._combine_scores(rollouts)._replace(raws=raws)
        totals = tuple(rollout.raws.get(label) for rollout in rollouts)
        all_rollouts = rollouts[0] if len(rollouts) == 1 else _Rollout.of_all(rollouts)
        values, confidence = _values(rollouts, method), mean([rollout.confidence() for rollout in rollouts])
        combined = self._combined(all_rollouts, rollouts, 0.0, values, confidence, ())
        return combined._replace(score=None, rollouts=totals, raws=raws, raw=raws.get(label), is_raw=True)


def _mean(values: list[float], weights: Sequence[float]) -> float:
    return values[0] if values.count(values[0]) == len(values) else mean(values, weights)  # most are equal


def _values(rollouts: list[_Rollout], method: Aggregation) -> dict[str, float]:
    return _aggregated([rollout.values for rollout in rollouts], method)


def _aggregated(rollouts: Sequence[Mapping[str, float]], method: Aggregation) -> dict[str, float]:
    """Return the value of each label, aggregated over the rollouts that have one."""
    labels = dict.fromkeys(label for rollout in rollouts for label in rollout)
    return {label: aggregate([values[label] for values in rollouts if label in values], method) for label in labels}


class _Rollout:
    """Answers of one rollout as they come in."""

    __slots__ = (
        *("audit", "bases", "audit_answers", "confidences", "group", "items"),
        *("number", "raw_weight", "raws", "skipped", "truth", "values", "weights"),
    )

    def __init__(self, number: int) -> None:
        self.number = number
        self.weights: list[float] = []
        self.confidences: list[float] = []
        self.bases: list[Basis] = []
        self.items: list[dict[str, Any]] = []
        self.skipped: list[dict[str, object]] = []
        self.values: dict[str, float] = {}
        self.raws: dict[str, float] = {}
        self.raw_weight = 0.0
        self.truth, self.audit, self.group = False, False, ""
        self.audit_answers: list[tuple[Slot, Answer]] = []

    @classmethod
    def of_all(cls, rollouts: Sequence[_Rollout]) -> _Rollout:
        """Return one rollout with the items of all *rollouts*, in their order; it has no values."""
        all_rollouts = cls(0)
        for rollout in rollouts:
            all_rollouts.items += rollout.items
            all_rollouts.skipped += rollout.skipped
            all_rollouts.truth = all_rollouts.truth or rollout.truth
            all_rollouts.audit, all_rollouts.group = (
                all_rollouts.audit or rollout.audit,
                all_rollouts.group or rollout.group,
            )
        return all_rollouts

    def take(self, slot: Slot, answer: Answer, *, gates_only: bool = False) -> Failure | None:
        """Add *answer* to the score, with weight 0 if it *gates_only*; return the failure unless the slot's ``on_failure`` excuses it."""
        if not isinstance(answer, Score):
            replaced = self._excuse(slot, answer)
            if not isinstance(replaced, Score):
                return replaced
            answer = replaced
        weight = 0.0 if gates_only else slot.weight
        if answer.value is None:
            self.raws[slot.label] = answer.raw or 0.0
            self.raw_weight += weight
        else:
            self.weights.append(weight)
            self.confidences.append(answer.confidence)
            self.values[slot.label] = answer.value
        self._add_item(slot, answer, weight)
        return None

    def take_truth(self, slot: Slot, answer: Answer, *, passed: bool) -> Failure | None:
        """Add a truth metric's *answer* to the score, or keep it apart from the score if the gate was not *passed*."""
        if passed:
            failure = self.take(slot, answer)
            if slot.label in self.values or slot.label in self.raws:
                self.truth = True
                if slot.weight:
                    self.bases.append(self.items[-1].get("basis", "truth"))
            return failure
        self.audit_answers.append((slot, answer))
        if isinstance(answer, Score):
            self.audit = True
            self._add_item(slot, answer, 0.0)
        else:
            self._skip(slot, answer)
        return None

    def empty_failure(self) -> Failure | None:
        """Return the failure of a rollout without a score with a weight; None otherwise."""
        if any(self.weights) or self.raw_weight:
            return None
        explanations = [f"{item['metric']}: {item['reason']}" for item in self.skipped]
        explanations += [f"{item['metric']}: weight 0" for item in self.items]
        reasons, counts = ", ".join(explanations) or "no metric judges it", " that counts" if self.items else ""
        skips = [str(item["reason"]) for item in self.skipped]
        throttled = bool(skips) and all(reason.endswith("_cap") or reason == NO_ESTIMATE for reason in skips)
        hint = ". Give a metric that costs money estimate(subject), the highest cost of one call" * (
            NO_ESTIMATE in skips
        )
        return Failure(
            "throttled_no_heuristic" if throttled else "missing_input",
            f"no metric gave a score{counts} ({reasons}){hint}",
        )

    def lowest(self) -> float:
        """Return the lowest value in the rollout, for the gate; 1 without values."""
        return min(self.values.values(), default=1.0)

    def score(self) -> float:
        """Return the weighted mean; 0 for a missing output."""
        return _mean([*self.values.values()], self.weights) if self.weights else 0.0

    def confidence(self) -> float:
        """Return the weighted mean of the confidences; 1 for a missing output, which counts as 0. A raw value has its own confidence."""
        if self.raw_weight:
            return float(next(item["confidence"] for item in self.items if item["weight"]))
        if not any(self.weights):  # proxies that only gate
            return _mean(self.confidences, [1.0] * len(self.confidences)) if self.confidences else 1.0
        return _mean(self.confidences, self.weights)

    def basis(self) -> Basis:
        """Return the weakest basis of the truth metrics with a weight; ``proxy`` without such metrics."""
        return weakest(self.bases) if self.bases else "proxy"

    def drop_proxies(self) -> None:
        """Remove the proxies from the score, because they only gate."""
        proxies = [item for item in self.items if item["tier"] == "proxy"]
        self.weights[: len(proxies)] = [0.0] * len(proxies)
        for item in proxies:
            item["weight"] = 0.0

    def _excuse(self, slot: Slot, answer: Failure | Skip) -> Score | Failure | None:
        if isinstance(answer, Failure) and slot.on_failure == "zero":
            basis = basis_of(getattr(slot.component, "judge_kind", "evaluator")) if slot.kind == "judge" else None
            signals = {"failure": answer.kind}
            return Score(0.0, details=answer.message, cost=answer.cost, signals=signals, basis=basis)
        if isinstance(answer, Failure) and slot.on_failure == "fail":
            return evolve(answer, message=f"{slot.label}: {answer.message}")
        self._skip(slot, answer)
        return None

    def _skip(self, slot: Slot, answer: Failure | Skip) -> None:
        reason = answer.reason if isinstance(answer, Skip) else answer.kind
        self.skipped.append({"metric": slot.label, "reason": reason})

    def _add_item(self, slot: Slot, score: Score, weight: float) -> None:
        item: dict[str, Any] = {
            "metric": slot.label,
            "value": score.value,
            "confidence": score.confidence,
            "tier": slot.tier,
            "weight": weight,
            "rollout": self.number,
            "details": score.details,
            "cost": _FREE if score.cost is _NOTHING else cost_json(score),
            "signals": score.signals,
        }
        if score.raw is not None:
            item["raw"] = score.raw
        if score.feedback:
            item["feedback"] = score.feedback
        if score.basis is not None and score.basis != slot.tier == "truth":
            item["basis"] = score.basis
        self.items.append(item)


def cost_json(score: Score) -> dict[str, object]:
    """Return a score's cost as JSON; an unknown amount is null."""
    cost = score.cost
    return {
        "amount": cost.decimal,
        "unit": cost.unit,
        "pricing_version": cost.pricing_version,
    }
