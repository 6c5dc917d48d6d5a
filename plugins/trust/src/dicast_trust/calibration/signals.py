"""The signal ``model``: how probable it is that a verdict agrees with people, learnt from labels by a logistic regression."""

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
"""So many labels a model needs."""

QUANTILES = tuple(0.95 * step / 39 for step in range(40))
"""Forty steps from 0 to .95: the rungs of the ladder, of the model's scores of all subjects."""

PENALTY = 1.0
_STEPS = 100
_CLOSE = 1e-10


def fold(seed: int, group: str) -> int:
    """Which of the five parts a session, or a subject without one, belongs to: a keyed hash, so that it never changes."""
    return int.from_bytes(sha256(f"{seed}\n{group}".encode()).digest()[:8], "big") % FOLDS


def fit(values: Numbers, agrees: Numbers, features: Sequence[str]) -> TrustModel:
    """The ridge logistic regression of *agrees* (1 or 0) on *values*, a row a verdict.

    It minimises the sum of the logistic losses and half the squared weights of the standardised features (penalty 1); the intercept is free. Newton's
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
    """The *model*'s probability for each row of *values*."""
    import numpy as np

    return np.array([model.probability(row) for row in values.tolist()])


def cross_fitted(values: Numbers, agrees: Numbers, folds: Numbers, features: Sequence[str]) -> Numbers | None:
    """The score of each label by a model that was fitted without its fold; None where a part to fit has one class only."""
    import numpy as np

    found = np.empty(len(agrees))
    for part in np.unique(folds):
        own = folds == part
        rest = agrees[~own]
        if len(rest) == 0 or rest.min() == rest.max():
            return None
        found[own] = scores(fit(values[~own], rest, features), values[own])
    return found


@attrs.frozen
class Features:
    """The features of a stage's verdicts: their *names*, and the *values* of every subject that has them all."""

    names: tuple[str, ...]
    values: Mapping[tuple[str, str], Sequence[float]]


def features_of(
    outcomes: Mapping[tuple[str, str], Outcome], lengths: Mapping[tuple[str, str], TextLengths], further: Sequence[str]
) -> Features:
    """The features that all verdicts in *outcomes* have, and the signals *further* by name.

    :raises ValueError: naming a signal of *further* that is no number in some verdict.
    """
    good = {key: one for key, one in outcomes.items() if one.score is not None}
    known = {
        key: known_features(one.score or 0.0, one.confidence, one.signals, lengths.get(key))
        for key, one in good.items()
    }
    names = tuple(name for name in FEATURES if known and all(name in values for values in known.values()))
    for name in further:
        if lacking := sum(name not in values for values in known.values()):
            there = sorted({signal for one in good.values() for signal in one.signals})
            raise ValueError(
                f"--features {name}: in {lacking:,} of {len(good):,} verdicts the signals have no number {name!r}; there are "
                f"{', '.join(there) or 'none'}"
            )
    names = (*names, *(name for name in further if name not in names))
    return Features(names, {key: [values[name] for name in names] for key, values in known.items()})


def read_lengths(ledger: Ledger, runs: Sequence[str]) -> dict[tuple[str, str], TextLengths]:
    """How long the texts of every subject are that *ledger* has read, by kind and id; of one read often, as it was read last."""
    found: dict[tuple[str, str], TextLengths] = {}
    known: dict[str, TextLengths] = {}
    for entry in ledger.read(Query(types=("subject.read",))):
        event, digest = entry.event, str(entry.event.payload["digest"])
        content = event.payload.get("content")
        if isinstance(content, Mapping):
            known[digest] = TextLengths.of(content)
        if digest in known and (not runs or event.run_id in runs):
            found[str(event.subject_kind), str(event.subject_id)] = known[digest]
    return found
