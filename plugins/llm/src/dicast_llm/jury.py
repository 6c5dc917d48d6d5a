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
    maybe_await,
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

    The verdict stands as long as more than half of the judges answered; it is made from those that did. Otherwise it is the
    failure that most of the others had. ``signals.votes`` lists, in their order, every judge's name (its place, if its class
    has none), score, confidence, kind and model, or its failure. ``signals.agreement`` is the factor by which the weighted
    mean of their confidences is lowered: 1 - 2 x the standard deviation of their scores, or for a majority the share of its
    votes. As scores in [0, 1] deviate by at most 0.5 (Popoviciu's inequality), it is 1 when all agree and 0 when they are
    split between 0 and 1. The verdict rests on what the weakest of those that voted rests on.

    All are asked at once; with ``until: settled`` one after the other, the one that may cost least first, and no further one once
    those that are left cannot change the outcome. Score, confidence and ``signals.agreement`` are then those of the judges that were asked;
    of the others ``signals.votes`` says ``asked: false``, and ``signals.settled`` how many of how many were ``asked``.

    :param judges: two or more; each may be a judge of any kind.
    :param combine: ``mean`` or ``median`` of the scores; ``weighted``, their mean by *weights*; ``majority``, where a score
        of 0.5 or more is a vote for: 1.0 when most are, 0.0 when most are not, 0.5 on a tie.
    :param weights: for ``weighted``, one positive number a judge, in their order; or ``measured``: by how often each was right, as far as their
        earlier votes in the ledger tell (A. P. Dawid and A. M. Skene, Applied Statistics 28(1), 1979, 20-28), which is the logarithm of the odds of
        being right, and 0.01 for a judge that is right no more often than by chance. The votes on a session's subjects are not among those that its weights are measured by. It takes the votes of a
        jury of the same judges on 50 subjects, in an earlier run of this label.
    :param until: ``all`` judges have been asked, or the outcome is ``settled``.
    :param line: what is settled where *combine* is not ``majority``: on which side of it the score lies, from 0 to 1. Set it to the jury's ``pass_at``.
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
            raise ConfigError("weights belong to combine: weighted, and it needs them")
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
        """Whether no juror can judge without an output."""
        return all(getattr(judge, "needs_output", True) for judge in self.judges)

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Jury]:
        """Measure the weights by the votes that the ledger has; with given ones there is nothing to open.

        :raises ConfigError: when it has too few of them.
        """
        if self.weights != "measured":
            yield self
            return
        live = attrs.evolve(self)
        object.__setattr__(live, "_measured", measure(run.read, [_name(*one) for one in enumerate(self.judges)]))
        yield live

    async def judge(self, subject: Subject, children: Sequence[Verdict]) -> Judgment | Failure:
        """Ask the judges, and combine what they say."""
        weights = self._weights(subject)
        if self.until == "all":
            answers: dict[int, Judgment | Failure] = dict(
                enumerate(await gather(*(_ask(judge, subject, children) for judge in self.judges)))
            )
        else:
            answers = await self._ask_until_settled(subject, children, weights)
        votes = _votes(answers, weights)
        if 2 * len(votes) <= len(self.judges):
            return _hung([*answers.values()], len(self.judges))
        return self._judgment(answers, votes)

    def _weights(self, subject: Subject) -> Sequence[Fraction]:
        if self._measured is not None:
            return self._measured.for_subject(subject)
        given = (1.0,) * len(self.judges) if self.weights is None or isinstance(self.weights, str) else self.weights
        return [Fraction(weight) for weight in given]

    async def _ask_until_settled(
        self, subject: Subject, children: Sequence[Verdict], weights: Sequence[Fraction]
    ) -> dict[int, Judgment | Failure]:
        """The answers of those that were asked, by their places, the cheap ones first."""
        waiting = sorted(range(len(self.judges)), key=lambda place: _dear(self.judges[place], subject))
        answers: dict[int, Judgment | Failure] = {}
        line = Fraction(self.line)
        while waiting:
            votes = _votes(answers, weights)
            scored = [(Fraction(one.score), weight) for one, weight in votes]
            left = [weights[place] for place in waiting]
            if settled(self.combine, scored, left, len(answers) - len(votes), line):
                break
            place = waiting.pop(0)
            answers[place] = await _ask(self.judges[place], subject, children)
        return answers

    def _judgment(self, answers: Mapping[int, Judgment | Failure], votes: Sequence[Vote]) -> Judgment:
        score, agreement = _combined(self.combine, votes)
        confidence = float(mean([(Fraction(one.confidence), weight) for one, weight in votes])) * agreement
        signals: dict[str, object] = {
            "votes": [_told(place, judge, answers.get(place)) for place, judge in enumerate(self.judges)],
            "agreement": agreement,
        }
        if self.until == "settled":
            signals["settled"] = {"asked": len(answers), "of": len(self.judges)}
        rubric = _RUBRIC
        if self._measured is not None:
            signals["weights"] = [float(weight) for weight in self._measured.mean]
            rubric = attrs.evolve(_RUBRIC, version=f"{_RUBRIC.version}+{self._measured.digest}")
        basis, cost = weakest(one.basis for one, _ in votes), _total(answers.values())
        return Judgment(float(score), confidence, "jury", None, cost, signals, rubric, basis, includes_replies=True)


async def _ask(judge: Judge, subject: Subject, children: Sequence[Verdict]) -> Judgment | Failure:
    return await maybe_await(judge.judge(subject, children))


def _common(accepted: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    limits = [kinds for kinds in accepted if kinds]
    common = tuple(kind for kind in (limits or [()])[0] if all(kind in kinds for kinds in limits))
    if limits and not common:
        raise ConfigError(f"the judges have no subject kind in common: {' · '.join(', '.join(one) for one in limits)}")
    return common


def _votes(answers: Mapping[int, Judgment | Failure], weights: Sequence[Fraction]) -> list[Vote]:
    """The judgments among *answers* with their weights, in the order of the judges."""
    return [(one, weights[place]) for place, one in sorted(answers.items()) if isinstance(one, Judgment)]


def _dear(judge: Judge, subject: Subject) -> tuple[bool, Fraction]:
    """What *judge* may cost, to be compared with others; what is not known comes last."""
    cost = estimate(judge, subject)
    return (True, Fraction()) if cost.amount is None else (False, Fraction(cost.amount))


def _combined(combine: Combine, votes: Sequence[Vote]) -> tuple[Fraction, float]:
    """The score, and how far the votes agree; in exact arithmetic, so that neither leaves [0, 1] nor hangs on the order."""
    scores = [(Fraction(one.score), weight) for one, weight in votes]
    score = combined(combine, scores)
    if combine == "majority":
        passed = Fraction(sum(score >= PASS for score, _ in scores), len(scores))
        return score, float(max(passed, 1 - passed))
    middle = mean(scores)
    deviation = math.sqrt(mean([((score - middle) ** 2, weight) for score, weight in scores]))
    return score, 1 - 2 * deviation


def _hung(answers: Sequence[Judgment | Failure], judges: int) -> Failure:
    """The first failure of the kind that most had, for all of them."""
    failures = [answer for answer in answers if isinstance(answer, Failure)]
    kinds = Counter(failure.kind for failure in failures)
    common = max(failures, key=lambda failure: kinds[failure.kind])  # the first of them, when several kinds are as many
    counts = ", ".join(f"{number} x {kind}" for kind, number in kinds.items())
    message = f"{len(failures)} of {judges} judges failed ({counts}); the first {common.kind}: {common.message}"
    retryable = any(failure.retryable for failure in failures)
    return attrs.evolve(common, message=message, retryable=retryable, cost=_total(answers))


def _total(answers: Iterable[Judgment | Failure]) -> Cost:
    """What all answers cost, in the unit of the first that cost anything: two units are never added."""
    costs = [answer.cost for answer in answers if not answer.cost.is_zero]
    unit = costs[0].unit if costs else "usd"
    return sum((cost for cost in costs if cost.unit == unit), Cost.zero(unit))


def _name(place: int, judge: Judge) -> str:
    return getattr(judge, "name", None) or f"judges[{place}]"  # the place is how spend.* events call it, too


def _told(place: int, judge: Judge, answer: Judgment | Failure | None) -> Mapping[str, object]:
    """A juror's vote, of its signals only what it was shown: no rationale gets into the verdict by this door."""
    name = _name(place, judge)
    if answer is None:
        return {"judge": name, "asked": False}
    if isinstance(answer, Failure):
        return {"judge": name, "failure": answer.kind}
    told = {field: getattr(answer, field) for field in ("score", "confidence", "judge_kind", "judge_model")}
    shown = {"evidence": answer.signals["evidence"]} if "evidence" in answer.signals else {}
    return {"judge": name, **told, **shown}
