"""The judge ``llm/jury``: several judges are asked, and their scores are combined."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from statistics import median
from typing import Literal

import attrs

from dicast import ConfigError, Cost, Failure, Judge, Judgment, Rubric, Subject, Verdict, maybe_await, weakest

from .together import gather

Combine = Literal["mean", "median", "majority", "weighted"]
Vote = tuple[Judgment, Fraction]
"""A juror's judgment and its weight."""

PASS = Fraction(1, 2)
"""The score from which on a juror's vote is for the subject, in a majority."""

_RUBRIC = Rubric("jury", "1.0.0")


@attrs.frozen
class Jury:
    """Ask several judges at once and combine their scores; the more they disagree, the lower the confidence.

    The verdict stands as long as more than half of the judges answered; it is made from those that did. Otherwise it is the
    failure that most of the others had. ``signals.votes`` lists, in their order, every judge's name (its place, if its class
    has none), score, confidence, kind and model, or its failure. ``signals.agreement`` is the factor by which the weighted
    mean of their confidences is lowered: 1 - 2 x the standard deviation of their scores, or for a majority the share of its
    votes. As scores in [0, 1] deviate by at most 0.5 (Popoviciu's inequality), it is 1 when all agree and 0 when they are
    split between 0 and 1. The verdict rests on what the weakest of those that voted rests on.

    :param judges: two or more; each is asked about every subject, and may be a judge of any kind.
    :param combine: ``mean`` or ``median`` of the scores; ``weighted``, their mean by *weights*; ``majority``, where a score
        of 0.5 or more is a vote for: 1.0 when most are, 0.0 when most are not, 0.5 on a tie.
    :param weights: for ``weighted``, one positive number a judge, in their order.
    """

    judge_kind = "jury"

    judges: tuple[Judge, ...]
    combine: Combine = "mean"
    weights: tuple[float, ...] | None = None

    def __attrs_post_init__(self) -> None:
        if len(self.judges) < 2:
            raise ConfigError(f"a jury has at least 2 judges, not {len(self.judges)}")
        _ = self.accepts  # refuses judges that have no kind in common
        if (self.weights is not None) != (self.combine == "weighted"):
            raise ConfigError("weights belong to combine: weighted, and it needs them")
        if self.weights is None:
            return
        if len(self.weights) != len(self.judges):
            raise ConfigError(f"{len(self.judges)} judges need as many weights, not {len(self.weights)}")
        if not all(0 < weight < math.inf for weight in self.weights):
            raise ConfigError(f"weights are positive, finite numbers: {list(self.weights)}")

    @property
    def accepts(self) -> tuple[str, ...]:
        """The subject kinds that every judge accepts; empty means any."""
        return _common([tuple(getattr(judge, "accepts", ())) for judge in self.judges])

    @property
    def needs_output(self) -> bool:
        """Whether no juror can judge without an output."""
        return all(getattr(judge, "needs_output", True) for judge in self.judges)

    async def judge(self, subject: Subject, children: Sequence[Verdict]) -> Judgment | Failure:
        """Ask every judge, and combine what they say."""
        answers = await gather(*(_ask(judge, subject, children) for judge in self.judges))
        weights = self.weights or (1.0,) * len(answers)
        pairs = zip(answers, weights, strict=True)
        votes = [(one, Fraction(weight)) for one, weight in pairs if isinstance(one, Judgment)]
        if 2 * len(votes) <= len(answers):
            return _hung(answers)
        score, agreement = _combined(self.combine, votes)
        confidence = float(_mean([(Fraction(one.confidence), weight) for one, weight in votes])) * agreement
        signals = {
            "votes": [_told(*vote) for vote in zip(range(len(answers)), self.judges, answers, strict=True)],
            "agreement": agreement,
        }
        basis = weakest(one.basis for one, _ in votes)
        return Judgment(float(score), confidence, "jury", None, _total(answers), signals, _RUBRIC, basis)


async def _ask(judge: Judge, subject: Subject, children: Sequence[Verdict]) -> Judgment | Failure:
    return await maybe_await(judge.judge(subject, children))


def _common(accepted: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    limits = [kinds for kinds in accepted if kinds]
    common = tuple(kind for kind in (limits or [()])[0] if all(kind in kinds for kinds in limits))
    if limits and not common:
        raise ConfigError(f"the judges have no subject kind in common: {' · '.join(', '.join(one) for one in limits)}")
    return common


def _combined(combine: Combine, votes: Sequence[Vote]) -> tuple[Fraction, float]:
    """The score, and how far the votes agree; in exact arithmetic, so that neither leaves [0, 1] nor hangs on the order."""
    scores = [(Fraction(one.score), weight) for one, weight in votes]
    mean = _mean(scores)
    if combine == "majority":
        passed = Fraction(sum(score >= PASS for score, _ in scores), len(scores))
        return Fraction((passed > PASS) + (passed >= PASS), 2), float(max(passed, 1 - passed))
    deviation = math.sqrt(_mean([((score - mean) ** 2, weight) for score, weight in scores]))
    return (median(score for score, _ in scores) if combine == "median" else mean), 1 - 2 * deviation


def _mean(weighted: Sequence[tuple[Fraction, Fraction]]) -> Fraction:
    return sum((value * weight for value, weight in weighted), Fraction()) / sum(weight for _, weight in weighted)


def _hung(answers: Sequence[Judgment | Failure]) -> Failure:
    """The first failure of the kind that most had, for all of them."""
    failures = [answer for answer in answers if isinstance(answer, Failure)]
    kinds = Counter(failure.kind for failure in failures)
    common = max(failures, key=lambda failure: kinds[failure.kind])  # the first of them, when several kinds are as many
    counts = ", ".join(f"{number} x {kind}" for kind, number in kinds.items())
    message = f"{len(failures)} of {len(answers)} judges failed ({counts}); the first {common.kind}: {common.message}"
    retryable = any(failure.retryable for failure in failures)
    return attrs.evolve(common, message=message, retryable=retryable, cost=_total(answers))


def _total(answers: Iterable[Judgment | Failure]) -> Cost:
    """What all answers cost, in the unit of the first that cost anything: two units are never added."""
    costs = [answer.cost for answer in answers if not answer.cost.is_zero]
    unit = costs[0].unit if costs else "usd"
    return sum((cost for cost in costs if cost.unit == unit), Cost.zero(unit))


def _told(place: int, judge: Judge, answer: Judgment | Failure) -> Mapping[str, object]:
    """A juror's vote, of its signals only what it was shown: no rationale gets into the verdict by this door."""
    name = getattr(judge, "name", None) or f"judges[{place}]"  # the place is how spend.* events call it, too
    if isinstance(answer, Failure):
        return {"judge": name, "failure": answer.kind}
    told = {field: getattr(answer, field) for field in ("score", "confidence", "judge_kind", "judge_model")}
    shown = {"evidence": answer.signals["evidence"]} if "evidence" in answer.signals else {}
    return {"judge": name, **told, **shown}
