"""Proxy, then truth: what a set of metrics makes of one subject.

Every proxy runs; when all of them reach the threshold the truth metrics run too, and the score is the weighted mean of
all that ran. Otherwise it is the weighted mean of the proxies, and it is never called truth.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import blake2b

import attrs

from .aggregation import Aggregation, aggregate, mean
from .model import Failure, Score, Subject
from .sections import Scoring, Slot

RUBRIC_ID = "proxy-then-truth"
RUBRIC_VERSION = "1.0.0"
_FREE = {"amount": "0", "unit": "usd"}


@attrs.frozen
class Skip:
    """A metric that was not asked, and why: the name of the cap that left no room."""

    reason: str


Answer = Score | Failure | Skip
Ask = Callable[[Slot, Subject, int], Awaitable[Answer]]
"""Asks one metric about one subject in one rollout (from 0)."""


@attrs.frozen
class Combined:
    """What a metric set found. *metrics* holds each metric's value, aggregated over *rollouts* like the score is."""

    score: float
    confidence: float
    tier: str
    truth_reason: str | None
    propensity: float | None
    scores: tuple[Mapping[str, object], ...]
    skipped: tuple[Mapping[str, object], ...]
    metrics: Mapping[str, float]
    rollouts: tuple[float, ...]


def audited(subject_id: str, rate: float, seed: int) -> bool:
    """Whether a gated-out subject is looked at all the same: a keyed hash of its id falls below *rate*."""
    digest = blake2b(subject_id.encode(errors="surrogatepass"), digest_size=8, key=str(seed).encode()).digest()
    return int.from_bytes(digest) < rate * 2.0**64


class MetricSet:
    """The metrics of a pipeline with their scoring; it judges one subject at a time and keeps nothing."""

    def __init__(self, metrics: Sequence[Slot], scoring: Scoring) -> None:
        self.scoring = scoring
        self._metrics = tuple(metrics)
        self._by_kind: dict[str, tuple[tuple[Slot, ...], tuple[Slot, ...]]] = {}

    def tiers(self, kind: str) -> tuple[tuple[Slot, ...], tuple[Slot, ...]]:
        """The proxies and the truth metrics that judge subjects of *kind*."""
        found = self._by_kind.get(kind)
        if found is None:
            mine = [slot for slot in self._metrics if slot.accepts(kind)]
            proxies, truths = ([slot for slot in mine if slot.tier == tier] for tier in ("proxy", "truth"))
            found = self._by_kind[kind] = tuple(proxies), tuple(truths)
        return found

    async def judge(self, subject: Subject, ask: Ask) -> Combined | Failure:
        """Judge *subject*, asking each metric through *ask*."""
        rollouts: list[_Rollout] = []
        for number in range(self.scoring.rollouts):
            rollout = _Rollout(number)
            failure = await self._roll(rollout, subject, ask)
            if failure is not None:
                return failure
            rollouts.append(rollout)
        return self._combine(rollouts)

    async def _roll(self, rollout: _Rollout, subject: Subject, ask: Ask) -> Failure | None:
        proxies, truths = self.tiers(subject.kind)
        failure = None
        for slot in proxies:
            answer = await ask(slot, subject, rollout.number)
            failure = rollout.take(slot, answer) or failure
        if failure is not None:
            return failure
        if truths:
            passed = rollout.passes(self.scoring.threshold)
            if passed or self._audits(subject):
                for slot in truths:
                    answer = await ask(slot, subject, rollout.number)
                    failure = rollout.take_truth(slot, answer, passed=passed) or failure
        return failure or rollout.empty_failure()

    def _audits(self, subject: Subject) -> bool:
        audit = self.scoring.audit
        return audit is not None and audited(subject.id, audit.rate, audit.seed)

    def _combine(self, rollouts: list[_Rollout]) -> Combined:
        method = self.scoring.aggregation
        totals = tuple(rollout.score() for rollout in rollouts)
        truth = any(rollout.truth for rollout in rollouts)
        audit = not truth and any(rollout.audit for rollout in rollouts)
        return Combined(
            score=aggregate(totals, method),
            confidence=mean([rollout.confidence() for rollout in rollouts]),
            tier="truth" if truth else "proxy",
            truth_reason="gate" if truth else "audit" if audit else None,
            propensity=1.0 if truth else self.scoring.audit.rate if audit and self.scoring.audit else None,
            scores=tuple(item for rollout in rollouts for item in rollout.items),
            skipped=tuple(item for rollout in rollouts for item in rollout.skipped),
            metrics=_metric_values(rollouts, method),
            rollouts=totals,
        )


def _metric_values(rollouts: list[_Rollout], method: Aggregation) -> dict[str, float]:
    if len(rollouts) == 1:
        return rollouts[0].values
    labels = dict.fromkeys(label for rollout in rollouts for label in rollout.values)
    return {label: aggregate([r.values[label] for r in rollouts if label in r.values], method) for label in labels}


class _Rollout:
    """The answers of one rollout as they come in."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.items: list[dict[str, object]] = []
        self.skipped: list[dict[str, object]] = []
        self.values: dict[str, float] = {}
        self.truth = self.audit = False
        self._entered: list[tuple[float, Score]] = []

    def take(self, slot: Slot, answer: Answer) -> Failure | None:
        """Let *answer* enter the score; a failure that the slot does not excuse is returned."""
        if type(answer) is not Score:
            replaced = self._excuse(slot, answer)
            if not isinstance(replaced, Score):
                return replaced
            answer = replaced
        self._entered.append((slot.weight, answer))
        self.values[slot.label] = answer.value
        self._list(slot, answer, slot.weight)
        return None

    def take_truth(self, slot: Slot, answer: Answer, *, passed: bool) -> Failure | None:
        """Let a truth metric's *answer* enter, or keep it beside the score when the gate was not *passed*."""
        if passed:
            failure = self.take(slot, answer)
            self.truth = self.truth or slot.label in self.values
            return failure
        if isinstance(answer, Score):
            self.audit = True
            self._list(slot, answer, 0.0)
        else:
            self._skip(slot, answer)
        return None

    def passes(self, threshold: float) -> bool:
        """The gate: every proxy that scored reaches *threshold*."""
        return all(score.value >= threshold for _, score in self._entered)

    def empty_failure(self) -> Failure | None:
        """The failure of a rollout that nothing scored; nothing is made up for it."""
        if self._entered:
            return None
        reasons = ", ".join(f"{item['metric']}: {item['reason']}" for item in self.skipped) or "no metric judges it"
        throttled = bool(self.skipped) and all(str(item["reason"]).endswith("_cap") for item in self.skipped)
        return Failure("throttled_no_heuristic" if throttled else "missing_input", f"no metric gave a score ({reasons})")

    def score(self) -> float:
        """The weighted mean; 0 when all that entered has weight 0."""
        total = sum(weight for weight, _ in self._entered)
        return min(1.0, sum(weight * score.value for weight, score in self._entered) / total) if total else 0.0

    def confidence(self) -> float:
        """The weighted mean of the confidences that entered."""
        total = sum(weight for weight, _ in self._entered)
        if not total:
            return mean([score.confidence for _, score in self._entered])
        return min(1.0, sum(weight * score.confidence for weight, score in self._entered) / total)

    def _excuse(self, slot: Slot, answer: Failure | Skip) -> Score | Failure | None:
        if isinstance(answer, Failure) and slot.on_failure == "zero":
            return Score(0.0, details=answer.message, cost=answer.cost, signals={"failure": answer.kind})
        if isinstance(answer, Failure) and slot.on_failure == "fail":
            return attrs.evolve(answer, message=f"{slot.label}: {answer.message}")
        self._skip(slot, answer)
        return None

    def _skip(self, slot: Slot, answer: Failure | Skip) -> None:
        reason = answer.reason if isinstance(answer, Skip) else answer.kind
        self.skipped.append({"metric": slot.label, "reason": reason})

    def _list(self, slot: Slot, score: Score, weight: float) -> None:
        cost = score.cost
        self.items.append(
            {
                "metric": slot.label,
                "value": score.value,
                "confidence": score.confidence,
                "tier": slot.tier,
                "weight": weight,
                "rollout": self.number,
                "details": score.details,
                "cost": _FREE if cost.is_zero else cost_json(score),
                "signals": score.signals,
            }
        )


def cost_json(score: Score) -> dict[str, object]:
    """A score's cost as JSON; an unknown amount is null."""
    cost = score.cost
    return {
        "amount": None if cost.amount is None else format(cost.amount, "f"),
        "unit": cost.unit,
        "pricing_version": cost.pricing_version,
    }
