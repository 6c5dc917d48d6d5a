"""Several objectives at once."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from inspect import isawaitable, iscoroutinefunction
from math import frexp, isfinite, ldexp
from typing import Any

import attrs

from dicast import (
    ConfigError,
    Cost,
    Failure,
    InvalidScore,
    Judgment,
    Metric,
    Problem,
    RawScore,
    Score,
    Subject,
    estimate,
    mean,
    nearest,
    weakest,
)
from dicast.toolkit.json_values import check_field

from .inputs import cut, judged, parsed, shorten

_LISTED = 10
_MAX_FEEDBACK = 500
"""The number of characters of an objective's feedback that are repeated."""


def _check_weights(owner: MultiObjective, attribute: attrs.Attribute[Any], weights: Mapping[str, float]) -> None:
    names = tuple(owner.objectives)
    problems = [
        Problem(f"weight of no objective {name!r}; there are {', '.join(names)}", value=name, hint=nearest(name, names))
        for name in weights
        if names and name not in names
    ]
    wrong = [name for name, weight in weights.items() if not (isfinite(weight) and weight >= 0)]
    problems += [Problem(f"the weight of {name!r} is {weights[name]}; it is a number from 0 on") for name in wrong]
    if names and not wrong and not any(weights.get(name, 1.0) for name in names):
        problems.append(Problem("every objective has weight 0: nothing is left to score"))
    if problems:
        raise ConfigError(problems)


@attrs.frozen
class MultiObjective:
    """The weighted mean of several objectives, with the feedback of each.

    An objective is another metric, or a judge, that is asked about the same subject; if one fails, this metric fails with it.
    Without ``objectives`` the output has their scores itself, for example from an evaluator with several: an object of names and
    numbers from 0 to 1, or of names and ``{score, feedback}``; other outputs are a Failure. The value is the sum of weight
    times score over the sum of weights, and the confidence is the mean of the confidences with the same weights. ``signals``
    has ``scores`` and ``weights`` by name; the feedback has a line for each objective, in the order of names.

    :param objectives: metrics by the names of their objectives; none by default. This metric is a proxy with any objectives,
        so put it under ``truth`` if they cost money: ``metrics: {truth: [feedback/multi_objective: {...}]}``.
    :param weights: by name, numbers from 0 on; 1 by default. Without ``objectives`` each name must be in the output.
    :param field: the place of its scores in the output, a dotted path (``judge.scores``) or a JSON pointer (``/judge/scores``);
        text is read as JSON to get there. A missing field scores 0. The ``objectives`` have fields of their own.
    """

    name = "multi_objective"
    tier = "proxy"
    needs_output = "always"

    objectives: Mapping[str, Metric] = attrs.field(factory=dict)
    weights: Mapping[str, float] = attrs.field(factory=dict, validator=_check_weights)
    field: str | None = attrs.field(default=None, validator=check_field)

    def __attrs_post_init__(self) -> None:
        if self.objectives and self.field is not None:
            raise ConfigError(
                "field says where the output has its own scores; objectives have fields of their own: remove one"
            )

    def estimate(self, subject: Subject) -> Cost:
        """Return the largest cost of the objectives that are metrics; the kernel estimates judges itself."""
        metrics = [metric for metric in self.objectives.values() if not _is_judge(metric)]
        return sum((estimate(metric, subject) for metric in metrics), start=Cost.zero())

    def score(self, subject: Subject) -> Score | Failure | Awaitable[Score | Failure]:
        """Ask every objective about *subject*, or read the scores in its output."""
        if not self.objectives:
            return self._read(subject)
        # Asked here, a ``def`` is under the kernel's timer; what waits is asked in its turn.
        answers = {
            name: _ask(objective, subject) for name, objective in self.objectives.items() if not _waits(objective)
        }
        if len(answers) < len(self.objectives) or not all(map(_is_answer, answers.values())):
            return self._wait(subject, answers)
        return self._combine({name: answers[name] for name in sorted(answers)})

    async def _wait(self, subject: Subject, pending: Mapping[str, object]) -> Score | Failure:
        answers: dict[str, object] = {}
        for name, objective in sorted(self.objectives.items()):
            answer = pending[name] if name in pending else _ask(objective, subject)
            answers[name] = await answer if isawaitable(answer) else answer
            if not isinstance(answers[name], Score | Judgment):  # expensive objectives need not be asked any more
                break
        return self._combine(answers)

    def _read(self, subject: Subject) -> Score | Failure:
        output = judged(subject, self.field)
        if isinstance(output, Score | Failure):
            return output
        scores = parsed(output)
        place = f"the output of {subject.id!r}" + ("" if self.field is None else f" at {self.field!r}")
        if not isinstance(scores, Mapping) or not scores:
            return Failure("missing_input", f"{place} is no object of objectives and scores: {shorten(scores)}")
        absent = [name for name in self.weights if name not in scores]
        if absent:
            problem = Problem(f"{place} has no objective {absent[0]!r}", hint=nearest(absent[0], scores))
            return Failure("missing_input", str(problem))
        return self._combine({str(name): _stated(scores[name], f"{name!r} in {place}") for name in sorted(scores)})

    def _combine(self, answers: Mapping[str, object]) -> Score | Failure:
        """Return the combined answer of all *answers*, in the order of names; or the first answer that is no score."""
        scored = {name: answer for name, answer in answers.items() if isinstance(answer, Score | Judgment)}
        cost = sum((answer.cost for answer in scored.values()), start=Cost.zero())
        for name, answer in answers.items():
            if isinstance(answer, Failure):
                return attrs.evolve(answer, message=f"objective {name!r}: {answer.message}", cost=cost + answer.cost)
            if name not in scored:
                return Failure("invalid_score", f"objective {name!r} returned {answer!r:.100}, not a Score", cost=cost)
        weights = {name: self.weights.get(name, 1.0) for name in scored}
        if not any(weights.values()):
            return Failure(
                "missing_input", f"every objective has weight 0: {', '.join(map(shorten, weights))}", cost=cost
            )
        values = {name: _value(answer) for name, answer in scored.items()}
        mean = _mean(values, weights)
        bases = [answer.basis for answer in scored.values() if answer.basis is not None]
        lines = [f"[{cut(name)}] {values[name]:.3f}{_says(answer)}" for name, answer in scored.items()]
        return Score(
            mean,
            _mean({name: answer.confidence for name, answer in scored.items()}, weights),
            details=", ".join(f"{cut(name)} {value:.3g}" for name, value in list(values.items())[:_LISTED]),
            feedback="\n".join([*lines, f"Overall: {mean:.3f}, the weighted mean."]),
            cost=cost,
            signals={"scores": _named(values), "weights": _named(weights)},
            basis=weakest(bases) if bases else None,
        )


def _is_judge(objective: object) -> bool:
    """Return True if it is a judge in the place of a metric. A metric may have an option named ``judge``, as ``diff/match`` has."""
    return callable(getattr(objective, "judge", None))


def _is_answer(value: object) -> bool:
    return isinstance(value, Score | RawScore | Judgment | Failure) or not isawaitable(value)


def _waits(objective: Metric) -> bool:
    return _is_judge(objective) or iscoroutinefunction(objective.score)


def _ask(objective: Any, subject: Subject) -> object:
    """Return its answer, perhaps to be awaited: a judge may replace a metric."""
    return objective.judge(subject, ()) if _is_judge(objective) else objective.score(subject)


def _stated(value: object, place: str) -> Score | Failure:
    """Return the score that the output states for an objective."""
    score, says = (value.get("score"), value.get("feedback")) if isinstance(value, Mapping) else (value, "")
    if type(score) not in (int, float) or not 0 <= score <= 1:  # type: ignore[operator]  # a number, if it comes to that
        return Failure("invalid_score", f"{place} is {shorten(score)}, not a number from 0 to 1")
    return Score(score, feedback=says if isinstance(says, str) else "")  # type: ignore[arg-type]  # as above


def _mean(numbers: Mapping[str, float], weights: Mapping[str, float]) -> float:
    """Return the weighted mean. Weights are scaled to keep the sums finite."""
    _, exponent = frexp(max(weights.values()))
    return mean([*numbers.values()], [ldexp(weights[name], -exponent) for name in numbers])


def _value(answer: Score | Judgment) -> float:
    """Return the score in [0, 1].

    :raises InvalidScore: for a raw value, which no weighted mean has a place for.
    """
    value = answer.value if isinstance(answer, Score) else answer.score
    if value is None:
        raise InvalidScore("an objective answers with a raw number, and objectives are scores in [0, 1]")
    return value


def _says(answer: Score | Judgment) -> str:
    text = (answer.feedback or answer.details) if isinstance(answer, Score) else ""
    return f": {cut(text, _MAX_FEEDBACK)}" if text else ""


def _named(numbers: Mapping[str, float]) -> dict[str, float]:
    return {cut(name): number for name, number in numbers.items()}
