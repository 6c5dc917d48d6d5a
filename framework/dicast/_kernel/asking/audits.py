"""Which subjects that the proxies rejected are audited, and what the audit says that they would have scored."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from ..plan.sections import Scoring
from ..values import Failure, Score
from ..values.aggregation import aggregate, mean


def audited(subject_id: str, rate: float, seed: int) -> bool:
    """Whether a gated-out subject is looked at all the same: a keyed hash of its id falls below *rate*."""
    digest = blake2b(subject_id.encode(errors="surrogatepass"), digest_size=8, key=str(seed).encode()).digest()
    return int.from_bytes(digest) < rate * 2.0**64


def with_audit(found: Any, rollouts: Sequence[Any], scoring: Scoring) -> Any:
    """*found* with what an audited subject would have, had it passed the gate in each of its *rollouts*: ``score`` and ``metrics``.

    Where a truth metric gave no answer that is not known, and nothing is added.
    """
    passed = [_as_passed(rollout, scoring) for rollout in rollouts]
    if not any(rollout.audit for rollout in rollouts) or None in passed:
        return found
    scores, values = zip(*(each for each in passed if each is not None), strict=True)
    labels = dict.fromkeys(label for each in values for label in each)
    method = scoring.aggregation
    metrics = {label: aggregate([each[label] for each in values if label in each], method) for label in labels}
    return found._replace(audit={"score": aggregate(scores, method), "metrics": metrics})


def _as_passed(rollout: Any, scoring: Scoring) -> tuple[float, dict[str, float]] | None:
    """The score and the values of a rollout with what an audit found beside it as a part of it; None where that is not known."""
    values, weights = dict(rollout.values), list(rollout.weights)
    if rollout.beside and scoring.combine == "truth":
        weights = [0.0] * len(weights)
    for slot, answer in rollout.beside:
        if isinstance(answer, Failure) and slot.on_failure == "exclude":
            continue
        is_zero = isinstance(answer, Failure) and slot.on_failure == "zero"
        if not is_zero and not isinstance(answer, Score):
            return None
        values[slot.label] = 0.0 if is_zero else answer.value
        weights.append(slot.weight)
    return (mean([*values.values()], weights), values) if any(weights) else None
