"""The accuracy of each judge of a jury, estimated from their votes without known truths.

The model is that of A. P. Dawid and A. M. Skene, "Maximum likelihood estimation of observer error-rates using the EM algorithm"
(Applied Statistics 28(1), 1979, 20-28), for passes and failures. It takes votes to be independent given the truth: judges that err
together look better than they are.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction
from hashlib import sha256
from typing import Any

import attrs

from dicast import ConfigError, Entry, Query, Subject

from .settling import PASS

LEAST = 50
"""Least number of subjects with votes; with fewer the accuracy of a judge is too uncertain."""

FOLDS = 5
"""Number of parts of the sessions; the weights for one part are measured on the other parts."""

FLOOR = 0.01
"""The weight of a judge that is right no more often than by chance."""

_STEPS, _CLOSE = 200, 1e-9

Ballot = Mapping[int, bool]
"""Votes on a subject by the index of the judge: true for a pass. A judge that failed or was not asked has no vote."""

Read = Callable[[Query], Iterator[Entry]]


@attrs.frozen
class MeasuredWeights:
    """The weights of the judges, for each part of the sessions."""

    parts: tuple[tuple[Fraction, ...], ...]

    def for_subject(self, subject: Subject) -> Sequence[Fraction]:
        """Return the weights that are measured without votes on the session of *subject*."""
        return self.parts[_part(subject.session_id, subject.id)]

    @property
    def mean(self) -> list[Fraction]:
        """The mean weight of each judge."""
        return [sum(weights, Fraction()) / len(weights) for weights in zip(*self.parts, strict=True)]

    @property
    def digest(self) -> str:
        """A digest that distinguishes these weights from others."""
        weights_text = repr([[float(weight) for weight in part] for part in self.parts])
        return sha256(weights_text.encode()).hexdigest()[:12]


def measure(read: Read, names: Sequence[str]) -> MeasuredWeights:
    """Return the weights of the judges *names*, measured by a ledger's votes of juries of the same judges; *read* reads the ledger.

    :raises ConfigError: if the ledger has votes on too few subjects.
    """
    ballots = _ballots(read, names)
    parts = []
    for part in range(FOLDS):
        other_ballots = [ballot for place, ballot in ballots if place != part]
        if len(other_ballots) < LEAST:
            message = (
                f"weights: measured needs votes of these {len(names)} judges on {LEAST} subjects of other sessions, but the "
                f"ledger has {len(other_ballots)}: run the jury with combine: majority first, or set the weights as numbers"
            )
            raise ConfigError(message)
        parts.append(tuple(_weight(accuracy, len(other_ballots)) for accuracy in accuracies(other_ballots, len(names))))
    return MeasuredWeights(tuple(parts))


def _ballots(read: Read, names: Sequence[str]) -> list[tuple[int, Ballot]]:
    """Return the newest ballot on each subject, with the part of its session; only ballots of the models that answered last."""
    newest: dict[tuple[str, str], tuple[int, Ballot]] = {}
    models: dict[int, object] = {}
    for entry in read(Query(types=("eval.completed",), newest_first=True)):
        payload: Mapping[str, Any] = entry.event.payload
        votes = (payload.get("signals") or {}).get("votes") if payload.get("judge_kind") == "jury" else None
        if not isinstance(votes, Sequence) or [vote.get("judge") for vote in votes] != [*names]:
            continue
        scored = {place: vote for place, vote in enumerate(votes) if "score" in vote}
        if any(models.setdefault(place, vote["judge_model"]) != vote["judge_model"] for place, vote in scored.items()):
            continue
        subject = str(payload["subject_kind"]), str(payload["subject_id"])
        ballot = {place: bool(vote["score"] >= PASS) for place, vote in scored.items()}
        newest.setdefault(subject, (_part(entry.event.session_id, subject[1]), ballot))
    return [*newest.values()]


def _part(session: str | None, subject_id: str) -> int:
    return int.from_bytes(sha256((session or subject_id).encode()).digest()[:4]) % FOLDS


def _weight(accuracy: float, votes: int) -> Fraction:
    """Return the logarithm of the odds of being right, with half a right and half a wrong vote added; :data:`FLOOR` at least."""
    share = (accuracy * votes + 0.5) / (votes + 1)
    return Fraction(max(math.log(share / (1 - share)), FLOOR))


def accuracies(ballots: Sequence[Ballot], judges: int) -> list[float]:
    """Return the estimated accuracy of each of the *judges*, by the EM algorithm; its first guess of a truth is the share of passes."""
    counts = Counter(tuple(sorted(ballot.items())) for ballot in ballots if ballot)  # few ballots differ
    kinds = [(dict(votes), count) for votes, count in counts.items()]
    truths = [sum(ballot.values()) / len(ballot) for ballot, _ in kinds]
    rates, prior = list[tuple[float, float]](), 0.5
    for _ in range(_STEPS):
        prior = math.fsum(truth * count for truth, (_, count) in zip(truths, kinds, strict=True)) / counts.total()
        rates = [_rates(kinds, truths, judge) for judge in range(judges)]
        before, truths = truths, [_truth(ballot, prior, rates) for ballot, _ in kinds]
        if max(map(abs, map(float.__sub__, truths, before))) < _CLOSE:
            break
    return [prior * passes + (1 - prior) * (1 - fails) for passes, fails in rates]


def _rates(kinds: Sequence[tuple[Ballot, int]], truths: Sequence[float], judge: int) -> tuple[float, float]:
    """Return the rates at which the *judge* passes good and bad subjects; 0.5 without such subjects."""
    votes = [
        (ballot[judge], truth, count) for (ballot, count), truth in zip(kinds, truths, strict=True) if judge in ballot
    ]
    good = math.fsum(count * truth for _, truth, count in votes)
    bad = math.fsum(count * (1 - truth) for _, truth, count in votes)
    passed = [(count * truth, count * (1 - truth)) for vote, truth, count in votes if vote]
    return (
        math.fsum(share for share, _ in passed) / good if good else 0.5,
        math.fsum(share for _, share in passed) / bad if bad else 0.5,
    )


def _truth(ballot: Ballot, prior: float, rates: Sequence[tuple[float, float]]) -> float:
    """Return the probability that the subject is good."""
    good, bad = prior, 1 - prior
    for judge, passed in ballot.items():
        passes, fails = rates[judge]
        good *= passes if passed else 1 - passes
        bad *= fails if passed else 1 - fails
    return good / (good + bad) if good + bad else 0.5
