"""The judge ``llm/jury``: several judges are asked, and their scores are combined."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from fractions import Fraction
from typing import Literal

import attrs

from dicast import (
    ConfigError,
    Cost,
    Failure,
    Judge,
    Judgment,
    Rubric,
    RunContext,
    Subject,
    Verdict,
    Within,
    estimate,
    weakest,
)

from .measured import MeasuredWeights, measure
from .settling import PASS, Combine, combined, mean, settled
from .together import gather

Vote = tuple[Judgment, Fraction]
"""A juror's judgment and its weight."""

_RUBRIC = Rubric("jury", "1.0.0")


@attrs.frozen
class Jury:
    """Ask several judges and combine their scores; the more they disagree, the lower the confidence.

    The jury has a verdict if more than half of the judges answered; the verdict combines their answers. Otherwise it is the most common
    failure. ``signals.votes`` lists, in their order, every judge's name (its place, if its class
    has none), score, confidence, kind and model, or its failure. ``signals.agreement`` is the factor that lowers the weighted
    mean of their confidences: 1 - 2 x the standard deviation of their scores, or for a majority the share of its
    votes. As scores in [0, 1] deviate by at most 0.5 (Popoviciu's inequality), it is 1 if all agree and 0 if they are
    split between 0 and 1. The basis of the verdict is the weakest basis among the votes.

    All judges are asked at once. With ``until: settled`` they are asked one after another, the cheapest first, and no further judge is asked once
    the remaining judges cannot change the outcome. Score, confidence and ``signals.agreement`` then come from the judges that were asked.
    ``signals.votes`` has ``asked: false`` for the others, and ``signals.settled`` has the number of ``asked`` judges and of all judges.

    :param judges: two or more; each may be a judge of any kind.
    :param combine: ``mean`` or ``median`` of the scores; ``weighted``, their mean by *weights*; ``majority``, in which a score
        of 0.5 or more is a vote for: 1.0 if most votes are for, 0.0 if most are against, 0.5 on a tie.
    :param weights: for ``weighted``, one positive number a judge, in their order; or ``measured``: by the rate at which each judge was right,
        estimated from earlier votes in the ledger (A. P. Dawid and A. M. Skene, Applied Statistics 28(1), 1979, 20-28). The weight is the logarithm of the odds of
        being right, and 0.01 for a judge that is right no more often than by chance. The weights for a subject are not measured by votes on its session. Measured weights need the votes of a
        jury of the same judges on 50 subjects, in an earlier run of this label.
    :param until: ``all`` asks all judges; ``settled`` stops when the outcome is settled.
    :param line: the score that settles an outcome if *combine* is not ``majority``, from 0 to 1: the outcome is the side of it. Set it to the jury's ``pass_at``.
    """

    judge_kind = "jury"

    judges: tuple[Judge, ...]
    combine: Combine = "mean"
    weights: tuple[float, ...] | Literal["measured"] | None = None
    until: Literal["all", "settled"] = "all"
    line: float = attrs.field(default=0.5, validator=Within(0, 1, "a number from 0 to 1"))
    _measured: MeasuredWeights | None = attrs.field(init=False, default=None, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if len(self.judges) < 2:
            raise ConfigError(f"a jury has at least 2 judges, not {len(self.judges)}")
        _ = self.accepts  # refuses judges that have no kind in common
        if (self.weights is not None) != (self.combine == "weighted"):
            raise ConfigError(
                "combine: weighted needs weights: add weights"
                if self.combine == "weighted"
                else f"weights are for combine: weighted, and combine is {self.combine}: remove weights, or set combine: weighted"
            )
        if self.weights is None or isinstance(self.weights, str):
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
        """True if no juror can judge without an output."""
        return all(getattr(judge, "needs_output", True) for judge in self.judges)

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Jury]:
        """Yield the live jury. With ``weights: measured`` it has weights that are measured from votes in the ledger.

        :raises ConfigError: if the ledger has too few votes.
        """
        if self.weights != "measured":
            yield self
            return
        live = attrs.evolve(self)
        object.__setattr__(
            live, "_measured", measure(run.read, [_name(*numbered) for numbered in enumerate(self.judges)])
        )
        yield live

    async def judge(self, subject: Subject, children: Sequence[Verdict] = ()) -> Judgment | Failure:
        """Ask the judges, and combine their answers."""
        weights = self._weights(subject)
        if self.until == "all":
            answers: dict[int, Judgment | Failure] = dict(
                enumerate(await gather(*(_ask(judge, subject, children) for judge in self.judges)))
            )
        else:
            answers = await self._ask_until_settled(subject, children, weights)
        votes = _votes(answers, weights)
        if 2 * len(votes) <= len(self.judges):
            return _without_majority([*answers.values()], len(self.judges))
        return self._judgment(answers, votes)

    def _weights(self, subject: Subject) -> Sequence[Fraction]:
        if self._measured is not None:
            return self._measured.for_subject(subject)
        weights = (1.0,) * len(self.judges) if self.weights is None or isinstance(self.weights, str) else self.weights
        return [Fraction(weight) for weight in weights]

    async def _ask_until_settled(
        self, subject: Subject, children: Sequence[Verdict], weights: Sequence[Fraction]
    ) -> dict[int, Judgment | Failure]:
        """Ask the judges one after another, the cheapest first, and return the answers by the places of the judges."""
        waiting = sorted(range(len(self.judges)), key=lambda place: _cost_order(self.judges[place], subject))
        answers: dict[int, Judgment | Failure] = {}
        line = Fraction(self.line)
        while waiting:
            votes = _votes(answers, weights)
            scored = [(Fraction(judgment.score), weight) for judgment, weight in votes]
            left = [weights[place] for place in waiting]
            if settled(self.combine, scored, left, len(answers) - len(votes), line):
                break
            place = waiting.pop(0)
            answers[place] = await _ask(self.judges[place], subject, children)
        return answers

    def _judgment(self, answers: Mapping[int, Judgment | Failure], votes: Sequence[Vote]) -> Judgment:
        score, agreement = _combined(self.combine, votes)
        confidence = float(mean([(Fraction(judgment.confidence), weight) for judgment, weight in votes])) * agreement
        signals: dict[str, object] = {
            "votes": [_vote_record(place, judge, answers.get(place)) for place, judge in enumerate(self.judges)],
            "agreement": agreement,
        }
        if self.until == "settled":
            signals["settled"] = {"asked": len(answers), "of": len(self.judges)}
        rubric = _RUBRIC
        if self._measured is not None:
            signals["weights"] = [float(weight) for weight in self._measured.mean]
            rubric = attrs.evolve(_RUBRIC, version=f"{_RUBRIC.version}+{self._measured.digest}")
        basis, cost = weakest(judgment.basis for judgment, _ in votes), _total(answers.values())
        return Judgment(float(score), confidence, "jury", None, cost, signals, rubric, basis, includes_replies=True)


async def _ask(judge: Judge, subject: Subject, children: Sequence[Verdict]) -> Judgment | Failure:
    return await judge.judge(subject, children)


def _common(accepted: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    limits = [kinds for kinds in accepted if kinds]
    common = tuple(kind for kind in (limits or [()])[0] if all(kind in kinds for kinds in limits))
    if limits and not common:
        raise ConfigError(
            f"the judges have no subject kind in common: {' · '.join(', '.join(kinds) for kinds in limits)}"
        )
    return common


def _votes(answers: Mapping[int, Judgment | Failure], weights: Sequence[Fraction]) -> list[Vote]:
    """Return the judgments among *answers* with their weights, in the order of the judges."""
    return [(answer, weights[place]) for place, answer in sorted(answers.items()) if isinstance(answer, Judgment)]


def _cost_order(judge: Judge, subject: Subject) -> tuple[bool, Fraction]:
    """Return the largest cost of *judge* as a sort key; an unknown cost comes last."""
    cost = estimate(judge, subject)
    return (True, Fraction()) if cost.amount is None else (False, Fraction(cost.amount))


def _combined(combine: Combine, votes: Sequence[Vote]) -> tuple[Fraction, float]:
    """Return the score and the agreement of the votes. Exact arithmetic keeps both within [0, 1] and independent of the order."""
    scores = [(Fraction(judgment.score), weight) for judgment, weight in votes]
    score = combined(combine, scores)
    if combine == "majority":
        passed = Fraction(sum(score >= PASS for score, _ in scores), len(scores))
        return score, float(max(passed, 1 - passed))
    middle = mean(scores)
    deviation = math.sqrt(mean([((score - middle) ** 2, weight) for score, weight in scores]))
    return score, 1 - 2 * deviation


def _without_majority(answers: Sequence[Judgment | Failure], judges: int) -> Failure:
    """Return the failure of the jury: the first failure of the most common kind, with the counts of all kinds in its message."""
    failures = [answer for answer in answers if isinstance(answer, Failure)]
    kinds = Counter(failure.kind for failure in failures)
    common = max(failures, key=lambda failure: kinds[failure.kind])  # on a tie, the earliest
    counts = ", ".join(f"{number} x {kind}" for kind, number in kinds.items())
    message = f"{len(failures)} of {judges} judges failed ({counts}); the first {common.kind}: {common.message}"
    retryable = any(failure.retryable for failure in failures)
    return attrs.evolve(common, message=message, retryable=retryable, cost=_total(answers))


def _total(answers: Iterable[Judgment | Failure]) -> Cost:
    """Return the cost of all answers, in the unit of the first answer with a cost: two units are never added."""
    costs = [answer.cost for answer in answers if not answer.cost.is_zero]
    unit = costs[0].unit if costs else "usd"
    return sum((cost for cost in costs if cost.unit == unit), Cost.zero(unit))


def _name(place: int, judge: Judge) -> str:
    return getattr(judge, "name", None) or f"judges[{place}]"  # spend.* events use this name too


def _vote_record(place: int, judge: Judge, answer: Judgment | Failure | None) -> Mapping[str, object]:
    """Return a juror's vote, with its evidence as its only signal. So no rationale becomes part of the verdict."""
    name = _name(place, judge)
    if answer is None:
        return {"judge": name, "asked": False}
    if isinstance(answer, Failure):
        return {"judge": name, "failure": answer.kind}
    fields = {field: getattr(answer, field) for field in ("score", "confidence", "judge_kind", "judge_model")}
    evidence = {"evidence": answer.signals["evidence"]} if "evidence" in answer.signals else {}
    return {"judge": name, **fields, **evidence}
