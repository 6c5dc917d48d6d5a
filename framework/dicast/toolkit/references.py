"""Missing references, and lists of references, for metrics that compare an output with a reference."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from .._kernel.classes import evolve, frozen
from .._kernel.values import Cost, Failure, Score, Subject, weakest
from .json_values import read_json

References = Literal["any", "all", "whole"]
"""How an output is compared with a list of references: the best score of any, the mean of all, or the list as one value."""

_EXCERPT = 60

Answer = Score | Failure


def is_missing(reference: object) -> bool:
    """Return True if *reference* is None, blank text or an empty list."""
    if isinstance(reference, str):
        return not reference.strip()
    return reference is None or (isinstance(reference, list | tuple) and not reference)


def missing_reference(subject: Subject, metric: str) -> Failure | None:
    """Return the failure of *metric* on a *subject* without a reference, None if it has one."""
    reference = subject.reference
    if not is_missing(reference):
        return None
    fault = (
        "has none" if reference is None else "has a blank one" if isinstance(reference, str) else "has an empty list"
    )
    return Failure("missing_input", f"{metric} compares with a reference, and {subject.id!r} {fault}")


@frozen
class ReferenceList:
    """The references that one output is compared with, one by one.

    *values* are the references that are not missing, *places* their places in the list, counted from 1; None is the place of the whole
    list. *count* is the length of the list.
    """

    values: tuple[object, ...]
    places: tuple[int | None, ...]
    count: int
    references: References

    @classmethod
    def of(cls, reference: object, output: object, references: References) -> ReferenceList | None:
        """Return the list of references, or None if *reference* is one value: if it is not a list, under ``whole``, or if *output* is a list too.

        Under ``any``, an output that is the JSON text of a list is also compared with the whole list.
        """
        if not isinstance(reference, list | tuple) or references == "whole" or isinstance(output, list | tuple):
            return None
        usable = [(place, value) for place, value in enumerate(reference, 1) if not is_missing(value)]
        places: list[int | None] = [place for place, _ in usable]
        values = [value for _, value in usable]
        if references == "any" and _is_list_text(output):
            values.append(reference)
            places.append(None)
        return cls(tuple(values), tuple(places), len(reference), references)

    def compare(self, compare: Callable[[object], Answer]) -> Answer:
        """Return the combined answer of *compare*, which is called with each reference."""
        answers = list[Answer]()
        for value in self.values:
            answers.append(compare(value))
            if self.is_enough(answers[-1]):
                break
        return self.combine(answers)

    def is_enough(self, answer: Answer) -> bool:
        """Return whether no further reference can make the result better."""
        return self.references == "any" and isinstance(answer, Score) and answer.value == 1

    def combine(self, answers: Sequence[Answer]) -> Answer:
        """Return the result of *answers*, the answers about the first references in their order; further references were not needed."""
        if not answers:
            return Failure("missing_input", f"all {self.count} references are null or blank")
        scores = [(number, answer) for number, answer in enumerate(answers) if isinstance(answer, Score)]
        failures = [answer for answer in answers if isinstance(answer, Failure)]
        cost = sum((answer.cost for answer in answers if not answer.cost.is_zero), Cost.zero())
        if failures and (self.references == "all" or not scores):
            return evolve(failures[0], cost=cost)
        score = self._mean([score for _, score in scores]) if self.references == "all" else self._best(scores, failures)
        return evolve(score, cost=cost)

    def _best(self, scores: Sequence[tuple[int, Score]], failures: Sequence[Failure]) -> Score:
        number, best = max(scores, key=lambda entry: _number(entry[1]))  # the first of equal scores
        place = self.places[number]
        if place is None:
            return evolve(best, signals={**best.signals, "references": self._counts(failures, best="whole")})
        where = f"reference {place} of {self.count}"
        details = f"{best.details} ({where})" if best.details else f"{where}: {_excerpt(self.values[number])}"
        feedback = f"{best.feedback} ({where.capitalize()}.)" if best.feedback else ""
        signals = {**best.signals, "references": self._counts(failures, best=place)}
        return evolve(best, details=details, feedback=feedback, signals=signals)

    def _mean(self, scores: Sequence[Score]) -> Score:
        values = [_number(score) for score in scores]
        bases = [score.basis for score in scores if score.basis is not None]
        lines = [
            f"Reference {place} of {self.count}: {score.feedback or score.details}"
            for place, score in zip(self.places, scores, strict=True)
            if _number(score) < 1 and (score.feedback or score.details)
        ]
        return Score(
            min(1.0, sum(values) / len(values)),
            min(score.confidence for score in scores),
            details=f"mean of {len(values)} references: {', '.join(f'{value:.4g}' for value in values)}",
            feedback="\n".join(lines),
            signals={"references": self._counts((), scores=values)},
            basis=weakest(bases) if bases else None,
        )

    def _counts(self, failures: Sequence[Failure], **extra: object) -> dict[str, object]:
        blank = self.count - sum(place is not None for place in self.places)
        unusable = len(failures)
        counts: dict[str, object] = {"mode": self.references, "count": self.count, **extra}
        return counts | ({"blank": blank} if blank else {}) | ({"unusable": unusable} if unusable else {})


def compare_references(
    reference: object, output: object, references: References, compare: Callable[[object], Answer]
) -> Answer:
    """Return the answer of *compare* about *reference*. If it is a list, *compare* is called with its items, and the answers are combined."""
    options = ReferenceList.of(reference, output, references)
    return compare(reference) if options is None else options.compare(compare)


def _number(score: Score) -> float:
    """Return the value of *score*, or the number on its own scale if it has no value."""
    number = score.raw if score.value is None else score.value
    assert number is not None  # a score has one of both
    return number


def _is_list_text(output: object) -> bool:
    if not isinstance(output, str) or not output.lstrip().startswith("["):
        return False
    try:
        return isinstance(read_json(output), list)
    except ValueError:
        return False


def _excerpt(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"
