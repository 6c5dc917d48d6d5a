"""The signal ``model``: the probability that a verdict agrees with people, learned from labels by a logistic regression."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import attrs

from dicast import Ledger, Query
from dicast.signals import FEATURES, TextLengths, TrustModel, known_features

from ..verdicts.outcomes import Outcome

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Numbers = NDArray[Any]

FOLDS = 5
LEAST = 150
"""Least number of labels for a model."""

QUANTILES = tuple(0.95 * step / 39 for step in range(40))
"""Quantiles of the model's scores of all subjects that are the rungs: forty steps from 0 to .95."""

PENALTY = 1.0
_STEPS = 100
_CLOSE = 1e-10


def fold(seed: int, group: str) -> int:
    """Return the number of the fold, of five, of a session or of a subject without one: a keyed hash, so it never changes."""
    return int.from_bytes(sha256(f"{seed}\n{group}".encode()).digest()[:8], "big") % FOLDS


def fit(values: Numbers, agrees: Numbers, features: Sequence[str]) -> TrustModel:
    """Return the ridge logistic regression of *agrees* (1 or 0) on *values*, one row a verdict.

    It minimizes the sum of the logistic losses and half the squared weights of the standardized features (penalty 1); the intercept is free. Newton's
    method; *agrees* needs both a 1 and a 0.
    """
    import numpy as np
    from scipy.special import expit  # type: ignore[import-untyped]  # no types

    means, scales = values.mean(0), values.std(0)
    scales = np.where(scales > 0, scales, 1.0)
    x = np.column_stack([np.ones(len(values)), (values - means) / scales])
    penalty = np.diag([0.0, *[PENALTY] * values.shape[1]])
    share = agrees.mean()
    w = np.zeros(x.shape[1])
    w[0] = np.log(share / (1 - share))
    for _ in range(_STEPS):
        p = expit(x @ w)
        gradient = x.T @ (p - agrees) + penalty @ w
        hessian = (x * (p * (1 - p))[:, None]).T @ x + penalty
        step = np.linalg.solve(hessian, gradient)
        while _loss(x, agrees, w - step) > _loss(x, agrees, w) + _CLOSE:
            step = step / 2  # Newton's step went too far
        w = w - step
        if np.abs(step).max() < _CLOSE:
            break
    return TrustModel(
        tuple(features), tuple(means.tolist()), tuple(scales.tolist()), tuple(w[1:].tolist()), float(w[0])
    )


def _loss(x: Numbers, agrees: Numbers, w: Numbers) -> float:
    import numpy as np

    z = x @ w
    return float(np.logaddexp(0, z).sum() - agrees @ z + PENALTY / 2 * (w[1:] @ w[1:]))


def scores(model: TrustModel, values: Numbers) -> Numbers:
    """Return the *model*'s probability for each row of *values*."""
    import numpy as np

    return np.array([model.probability(row) for row in values.tolist()])


def cross_fitted(values: Numbers, agrees: Numbers, folds: Numbers, features: Sequence[str]) -> Numbers | None:
    """Return the score of each label by a model fitted without its fold; None if the labels outside a fold have one class only."""
    import numpy as np

    result = np.empty(len(agrees))
    for part in np.unique(folds):
        in_part = folds == part
        rest = agrees[~in_part]
        if len(rest) == 0 or rest.min() == rest.max():
            return None
        result[in_part] = scores(fit(values[~in_part], rest, features), values[in_part])
    return result


@attrs.frozen
class Features:
    """Features of a stage's verdicts: their *names*, and the *values* of every subject that has all of them."""

    names: tuple[str, ...]
    values: Mapping[tuple[str, str], Sequence[float]]


def features_of(
    outcomes: Mapping[tuple[str, str], Outcome], lengths: Mapping[tuple[str, str], TextLengths], extra: Sequence[str]
) -> Features:
    """Return the features that all verdicts in *outcomes* have, and the signals *extra* by name.

    :raises ValueError: for a signal of *extra* that is not a number in some verdict.
    """
    good = {key: outcome for key, outcome in outcomes.items() if outcome.score is not None}
    by_subject = {
        key: known_features(outcome.score or 0.0, outcome.confidence, outcome.signals, lengths.get(key))
        for key, outcome in good.items()
    }
    names = tuple(name for name in FEATURES if by_subject and all(name in values for values in by_subject.values()))
    for name in extra:
        if lacking := sum(name not in values for values in by_subject.values()):
            present = sorted({signal for outcome in good.values() for signal in outcome.signals})
            raise ValueError(
                f"--features {name}: in {lacking:,} of {len(good):,} verdicts the signals have no number {name!r}; the numbers are "
                f"{', '.join(present) or 'none'}"
            )
    names = (*names, *(name for name in extra if name not in names))
    return Features(names, {key: [values[name] for name in names] for key, values in by_subject.items()})


def read_lengths(ledger: Ledger, runs: Sequence[str]) -> dict[tuple[str, str], TextLengths]:
    """Return the text lengths of every subject that *ledger* has read, by kind and id; for a subject read several times, the last lengths."""
    lengths: dict[tuple[str, str], TextLengths] = {}
    by_digest: dict[str, TextLengths] = {}
    for entry in ledger.read(Query(types=("subject.read",))):
        event, digest = entry.event, str(entry.event.payload["digest"])
        content = event.payload.get("content")
        if isinstance(content, Mapping):
            by_digest[digest] = TextLengths.of(content)
        if digest in by_digest and (not runs or event.run_id in runs):
            lengths[str(event.subject_kind), str(event.subject_id)] = by_digest[digest]
    return lengths
