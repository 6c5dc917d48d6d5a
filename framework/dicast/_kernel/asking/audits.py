"""Selection of rejected subjects for an audit, and the score that an audited subject would have had."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

from ..plan.sections import Scoring
from ..values import Failure, Score
from ..values.aggregation import aggregate, mean


def audited(subject_id: str, rate: float, seed: int) -> bool:
    """Return whether a subject that the gate rejected is audited: a keyed hash of its id is below *rate*."""
    digest = blake2b(subject_id.encode(errors="surrogatepass"), digest_size=8, key=str(seed).encode()).digest()
    return int.from_bytes(digest) < rate * 2.0**64


def with_audit(combined: Any, rollouts: Sequence[Any], scoring: Scoring) -> Any:
    """Return *combined* with the ``score`` and the ``metrics`` that an audited subject would have had if it had passed in each of its *rollouts*.

    If a truth metric gave no answer, the score is unknown, and nothing is added.
    """
    passed = [_as_passed(rollout, scoring) for rollout in rollouts]
    if not any(rollout.audit for rollout in rollouts) or None in passed:
        return combined
    scores, values = zip(
        *(values_of_rollout for values_of_rollout in passed if values_of_rollout is not None), strict=True
    )
    labels = dict.fromkeys(label for values_of_rollout in values for label in values_of_rollout)
    method = scoring.aggregation
    metrics = {
        label: aggregate(
            [values_of_rollout[label] for values_of_rollout in values if label in values_of_rollout], method
        )
        for label in labels
    }
    return combined._replace(audit={"score": aggregate(scores, method), "metrics": metrics})


def _as_passed(rollout: Any, scoring: Scoring) -> tuple[float, dict[str, float]] | None:
    """Return the score and the values of a rollout, the answers of its audit included; None if they are unknown."""
    values, weights = dict(rollout.values), list(rollout.weights)
    if rollout.audit_answers and scoring.combine == "truth":
        weights = [0.0] * len(weights)
    for slot, answer in rollout.audit_answers:
        if isinstance(answer, Failure) and slot.on_failure == "exclude":
            continue
        is_zero = isinstance(answer, Failure) and slot.on_failure == "zero"
        if not is_zero and not isinstance(answer, Score):
            return None
        values[slot.label] = 0.0 if is_zero else answer.value
        weights.append(slot.weight)
    return (mean([*values.values()], weights), values) if any(weights) else None
