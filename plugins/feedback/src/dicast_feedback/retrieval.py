"""The comparison of retrieved ids with the right ids, by their numbers and ranks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import fsum, inf, log2
from typing import Literal, get_args

import attrs

from dicast import ConfigError, Failure, Problem, Score, Subject, nearest
from dicast.toolkit.json_values import check_field
from dicast.toolkit.references import is_missing

from .inputs import judged, listed, parsed, reference, shorten, text

Measure = Literal["f1", "precision", "recall", "mrr", "ndcg"]
MEASURES: tuple[str, ...] = get_args(Measure)


@attrs.frozen
class Retrieval:
    """Precision, recall and rank of retrieved ids.

    The output is a list of ids, the best first; the reference is a list of the right ids, or an object of ids and their grades
    (numbers from 0 on; ids with more than 0 are right). Text that is a JSON list or object is read as such, any other single
    value is one id. Ids are compared as text, so 7 and "7" are one. With n ids in the output, r in the reference and c in both,
    each counted once, and the place p of the first right id:

    - ``precision`` is c/n, where n counts repeated ids each time; 0 if nothing was retrieved.
    - ``recall`` is c/r; 1 if nothing is right.
    - ``f1`` is their harmonic mean (C. J. van Rijsbergen, Information Retrieval, 2nd ed., 1979, ch. 7).
    - ``mrr`` is 1/p, 0 without a right id: its mean over subjects is the mean reciprocal rank (E. Voorhees, TREC-8, 1999).
    - ``ndcg`` is the sum of grade/log2(place + 1) over the same sum of the best possible list; a list's grades are 1, a repeated
      id has none; 0 if nothing is right (K. Järvelin, J. Kekäläinen, ACM TOIS 20(4), 2002, with the usual logarithm).

    ``signals`` has all five, with ``correct``, ``missed`` and ``wrong``, which count ids.

    :param measure: the figure that is the value: ``f1``, ``precision``, ``recall``, ``mrr`` or ``ndcg``.
    :param k: use only the first ``k`` ids of the output; ``ndcg`` compares with the best list of that length.
    :param field: use this place in the output, a dotted path (``steps.0.ids``) or a JSON pointer (``/steps/0/ids``); text
        is read as JSON to get there. A missing field scores 0.
    """

    name = "retrieval"
    tier = "proxy"
    needs_output = "always"

    measure: Measure = "f1"
    k: int | None = None
    field: str | None = attrs.field(default=None, validator=check_field)

    def __attrs_post_init__(self) -> None:
        if self.measure not in MEASURES:
            message = f"unknown measure {self.measure!r}: it is {', '.join(MEASURES)}"
            raise ConfigError(Problem(message, value=self.measure, hint=nearest(str(self.measure), MEASURES)))
        if self.k is not None and self.k < 1:
            raise ConfigError(f"k is {self.k}; it is the number of ids to use, from 1")

    def score(self, subject: Subject) -> Score | Failure:
        """Compare the ids in the output of *subject* with its reference; without one a Failure ``missing_input``."""
        right = reference(subject, "feedback/retrieval")
        grades = right if isinstance(right, Failure) else _grades(parsed(right), subject.id)
        if isinstance(grades, Failure):
            return grades
        output = judged(subject, self.field)
        if isinstance(output, Score | Failure):
            return output
        ids = parsed(output)
        if isinstance(ids, Mapping):
            advice = "the output is an object, not a list of ids"
            return Score(0.0, details=advice, feedback="Give a list of ids.", signals={"found": False})
        return self._compare([text(id_) for id_ in _items(ids)][: self.k], grades)

    def _compare(self, ids: Sequence[str], grades: Mapping[str, float]) -> Score:
        right = [id_ for id_, grade in grades.items() if grade]
        first: dict[str, int] = {}
        for place, id_ in enumerate(ids, 1):
            first.setdefault(id_, place)
        correct, missed = [id_ for id_ in right if id_ in first], [id_ for id_ in right if id_ not in first]
        wrong = [id_ for id_ in first if not grades.get(id_)]
        place = min((first[id_] for id_ in correct), default=0)
        measures = {
            "f1": 2 * len(correct) / max(1, len(ids) + len(right)),
            "precision": len(correct) / len(ids) if ids else 0.0,
            "recall": len(correct) / len(right) if right else 1.0,
            "mrr": 1 / place if place else 0.0,
            "ndcg": self._ndcg(first, grades),
        }
        counts = {"correct": len(correct), "missed": len(missed), "wrong": len(wrong)}
        return Score(
            measures[self.measure],
            details=", ".join(f"{name} {measures[name]:.3g}" for name in MEASURES),
            feedback=_advice(len(right), missed, wrong, place),
            signals={**measures, **counts},
        )

    def _ndcg(self, first: Mapping[str, int], grades: Mapping[str, float]) -> float:
        best = sorted(grades.values(), reverse=True)[: self.k]
        if not best or not best[0]:
            return 0.0
        gain = _dcg(((place, grades.get(id_, 0.0)) for id_, place in first.items()), best[0])
        # What is the same sum in exact arithmetic may be more by a rounding error.
        return min(1.0, gain / _dcg(enumerate(best, 1), best[0]))


def _dcg(gains: Iterable[tuple[int, float]], unit: float) -> float:
    """Return the discounted cumulated gain of places and grades, in units that keep the sum finite."""
    return fsum(grade / unit / log2(place + 1) for place, grade in gains)


def _advice(right: int, missed: Sequence[str], wrong: Sequence[str], place: int) -> str:
    says = f"Retrieved {right - len(missed):,} of {right:,} right ids."
    if missed:
        says += f" Missed: {listed(missed)}."
    if wrong:
        says += f" Wrong: {listed(wrong)}."
    if place > 1:
        says += f" The first right one stands in place {place:,}."
    return says


def _items(value: object) -> Sequence[object]:
    if isinstance(value, list | tuple):
        return value
    return [] if isinstance(value, str) and not value.strip() else [value]


def _grades(value: object, id: str) -> Mapping[str, float] | Failure:
    """Id to grade, in the order of the reference."""
    if is_missing(value):
        return Failure("missing_input", f"the reference of {id!r} is an empty list of ids")
    if not isinstance(value, Mapping):
        return dict.fromkeys(map(text, _items(value)), 1.0)
    for id_, grade in value.items():
        if type(grade) not in (int, float) or not 0 <= grade < inf:
            message = (
                f"the reference of {id!r} grades {shorten(id_)} with {shorten(grade)}; a grade is a number from 0 on"
            )
            return Failure("missing_input", message)
    return {str(id_): float(grade) for id_, grade in value.items()}
