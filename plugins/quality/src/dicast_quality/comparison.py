"""What a comparison of raters comes to, as a document."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import compress
from math import isnan
from types import ModuleType
from typing import Any

import attrs

from dicast.reading import view

from .arrays import Array
from .many_ratings import ManyRatings, Table
from .ratings import Between, Maker, Ratings, Subject, Unit
from .reliability import CUT, NOISE, Pair, Rater, Tally, states


@attrs.frozen
class Disagreement:
    """A subject with its scores by rater, and how far these lie apart."""

    subject: Subject
    spread: float
    scores: Mapping[str, float]


class Comparison:
    """Takes subjects with their scores, keeps the *worst* disagreements, and says how far the raters agree.

    *raters* are numbers by name, *gold* is the name of the one that is a file of labels: then labelled subjects alone are
    compared, and each rater with the labels too. *makers* are who made the verdicts, by their numbers. *matched* counts the
    subjects that were judged and have a label, *example* is the id of one that was judged and has none.
    """

    def __init__(
        self, between: Between, raters: Mapping[str, int], window: float, worst: int, gold: str | None
    ) -> None:
        self._between, self._window, self._keep = between, window, worst
        self._names = {number: name for name, number in raters.items()}
        self._label, self._gold = gold, None if gold is None else raters[gold]
        self._tally = Tally(window)
        several = gold is not None and len(raters) > 2
        self._against = {number: Tally(window) for number in raters.values() if several and number != self._gold}
        self._worst: list[tuple[float, int, Disagreement]] = []
        self._least = 0.0
        self._made: Counter[int] = Counter()
        self._apart, self._apart_first, self._several = 0, list[Subject](), 0
        self.makers: Sequence[Maker] = ()
        self._maker: Callable[[int], int] = int
        self.matched = 0
        self.example: str | None = None

    def read(self, ratings: Ratings) -> None:
        """Add every subject that was judged, in the order of ids."""
        self.makers, self._maker = ratings.makers, ratings.maker
        if self._gold is not None:
            self._read_labelled(ratings)
        elif isinstance(ratings, ManyRatings) and (table := ratings.table) is not None:
            self._read_table(ratings, table)
        elif len(ratings.newest) == 2 and not ratings.contents.several:
            self._read_pairs(ratings)
        else:
            for place in ratings.places():
                self.add(ratings.unit(place))

    def _read_labelled(self, ratings: Ratings) -> None:
        """Subjects with a label one by one; of the others it only counts that raters were asked."""
        places = set().union(*ratings.newest.values())
        labelled = {place for place in places if ratings.label(place) is not None}
        for place in sorted(labelled):
            self.add(ratings.unit(place))
        self.example = min(places - labelled, default=(None, ""))[0]
        for rater, newest in ratings.newest.items():
            self._tally.ask(rater, (ratings.score(row) for place, row in newest.items() if place not in labelled))

    def _read_table(self, ratings: ManyRatings, table: Table) -> None:
        """Any raters, no labels, as :meth:`add` does, a column at a time."""
        np = ratings.np
        for unit in table.apart:
            self._ask(unit.apart)
        self._apart, self._apart_first = len(table.apart), [unit.subject for unit in table.apart[: self._keep]]
        self._several = ratings.several(table.places)
        self._tally.add_table(np, table.patterns, table.scores, table.spreads)
        codes = view(np, ratings.judged.codes)[table.rows[table.rows >= 0]]
        for code, count in enumerate(np.bincount(codes).tolist()):
            if count:
                self._made[ratings.maker_of(code)] += count
        for place in self._worst_places(np, table.spreads) if self._keep else ():
            said = zip(table.raters, table.scores[:, place].tolist(), strict=True)
            id, kind = ratings.subject(int(table.places[place]))
            self._rank(
                (kind, id),
                float(table.spreads[place]),
                {one: score for one, score in said if not isnan(score)},
                place + 1,
            )

    def _worst_places(self, np: ModuleType, spreads: Array) -> list[int]:
        """The places of the greatest of *spreads*, of equal ones the first, so many as are kept."""
        apart = np.flatnonzero(spreads > NOISE)
        ranks = np.round(spreads[apart], 9)
        if len(ranks) > self._keep:
            chosen = ranks >= np.partition(ranks, -self._keep)[-self._keep]
            apart, ranks = apart[chosen], ranks[chosen]
        found: list[int] = apart[np.argsort(-ranks, kind="stable")[: self._keep]].tolist()
        return found

    def _read_pairs(self, ratings: Ratings) -> None:
        """Two raters, no labels, and one content a subject: as :meth:`add` does, a column at a time."""
        (one, first), (two, second) = sorted(ratings.newest.items())
        places = sorted(first.keys() | second.keys())
        rows = [[*map(newest.get, places)] for newest in (first, second)]
        score = ratings.score
        ones, twos = ([None if row is None else score(row) for row in column] for column in rows)
        shared = [a is not None and b is not None for a, b in zip(ones, twos, strict=True)]
        pairs = zip(states(one, ones), states(two, twos), *rows, strict=True)
        patterns = ((a, b) if not (r is None or s is None) else (b,) if r is None else (a,) for a, b, r, s in pairs)
        scored = tuple([value for value in compress(column, shared) if value is not None] for column in (ones, twos))
        spreads = self._tally.add_pairs(patterns, *scored)
        for column in rows:
            self._made.update(self._maker(row) for row in compress(column, shared) if row is not None)
        for number, (place, spread) in enumerate(zip(compress(places, shared), spreads, strict=True), 1):
            if spread > NOISE and spread >= self._least and self._keep:
                scores = {one: scored[0][number - 1], two: scored[1][number - 1]}
                self._rank((place[1], place[0]), spread, scores, number)

    def add(self, unit: Unit) -> None:
        """Add a subject."""
        scores = unit.scores
        if self._gold is not None:
            if not scores and not unit.apart:
                return
            if unit.label is None:
                self.example = self.example or unit.subject[1]
                self._ask({**scores, **unit.apart})
                return
            self.matched += 1
            for rater, score in (*scores.items(), *unit.apart.items()) if self._against else ():
                self._against[rater].add({rater: score, self._gold: unit.label})
            scores = {**scores, self._gold: unit.label}
        if unit.apart:
            self._ask(unit.apart)
            self._apart += 1
            if len(self._apart_first) < self._keep:
                self._apart_first.append(unit.subject)
        self._compare(unit, scores)

    def _ask(self, ratings: Mapping[int, float | None]) -> None:
        """Count that raters were asked, and have failed, without comparing them."""
        for rater, score in ratings.items():
            self._tally.add({rater: score})

    def _compare(self, unit: Unit, scores: Mapping[int, float | None]) -> None:
        spread = self._tally.add(scores)
        if spread is None:
            return
        self._several += unit.contents > 1
        for rater in unit.scores:
            self._made[self._maker(unit.rows[rater])] += 1
        if spread > NOISE and spread >= self._least and self._keep:
            self._rank(unit.subject, spread, scores, self._tally.n)

    def _rank(self, subject: Subject, spread: float, scores: Mapping[int, float | None], number: int) -> None:
        rank = round(spread, 9), -number  # of equal ones the first, which are those of the lesser id
        if len(self._worst) < self._keep or rank > self._worst[0][:2]:
            named = {self._names[rater]: score for rater, score in scores.items() if score is not None}
            put = heapq.heappush if len(self._worst) < self._keep else heapq.heapreplace
            put(self._worst, (*rank, Disagreement(subject, rank[0], named)))
        if len(self._worst) == self._keep:
            self._least = self._worst[0][0] - NOISE

    def document(self) -> dict[str, Any]:
        """The JSON document. What is not defined is null, and *reasons* says why."""
        tally, pairs = self._tally, self._tally.pairs
        raters = {self._names[number]: rater for number, rater in sorted(tally.raters.items())}
        found, method = _figures(tally)
        return {
            **found,
            "failures": {name: _failures(rater) for name, rater in raters.items() if name != self._label},
            "worst": [_worst(one) for one in self.worst],
            "reasons": _reasons(found),
            "different_content": self._apart,
            "different_content_subjects": [{"subject_kind": kind, "subject_id": id} for kind, id in self._apart_first],
            "several_contents": self._several,
            "fingerprints": self._fingerprints(),
            "between": self._between,
            "window": self._window,
            "alpha_ci_method": method,
            "kappa_method": _kappa_method(pairs),
            "kappa_pairs": [self._pair(pair) for pair in pairs],
            "raters": {
                name: {"n": rater.compared, "base_rate": _share(rater.passes, rater.compared)}
                for name, rater in raters.items()
            },
            **({"against_gold": [self._with_gold(*item) for item in self._against.items()]} if self._against else {}),
        }

    def _with_gold(self, rater: int, tally: Tally) -> dict[str, Any]:
        """The figures of one rater and the labels."""
        found, method = _figures(tally)
        name = {self._between.removesuffix("s"): self._names[rater]}
        return {**name, **found, "reasons": _reasons(found), "alpha_ci_method": method}

    @property
    def worst(self) -> list[Disagreement]:
        """The worst disagreements, the worst first."""
        return [one for _, _, one in sorted(self._worst, key=lambda item: item[:2], reverse=True)]

    def _fingerprints(self) -> dict[str, list[dict[str, Any]]]:
        """By label how many of the compared verdicts have which fingerprint, and which runs made these."""
        found: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        for number, count in sorted(self._made.items()):
            judge, run_id, fingerprint = self.makers[number]
            if fingerprint is not None:
                found[judge][fingerprint][run_id] += count
        return {
            judge: [{"fingerprint": one, "n": runs.total(), "runs": list(runs)} for one, runs in by.items()]
            for judge, by in found.items()
        }

    def _pair(self, pair: Pair) -> dict[str, Any]:
        return {"raters": [self._names[rater] for rater in pair.raters], "n": pair.n, "kappa": pair.kappa}


def _figures(tally: Tally) -> tuple[dict[str, Any], str | None]:
    """The figures of a tally, and how the interval was made."""
    interval, raters = tally.interval(), tally.raters.values()
    figures = {
        "n": tally.n,
        "within": tally.within,
        "kappa": _light(tally.pairs),
        "alpha": tally.alpha,
        "alpha_ci": None if interval is None else [interval.low, interval.high],
        "base_rate": _share(sum(one.passes for one in raters), sum(one.compared for one in raters)),
    }
    return figures, None if interval is None else interval.method


def _light(pairs: list[Pair]) -> float | None:
    """Kappa of two raters; of more the mean over pairs (Light, 1971), those left out that have none."""
    known = [pair.kappa for pair in pairs if pair.kappa is not None]
    return sum(known) / len(known) if known else None


def _kappa_method(pairs: list[Pair]) -> str:
    return "Cohen's kappa" if len(pairs) < 2 else "Light's kappa, the mean of Cohen's over pairs"


def _share(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _failures(rater: Rater) -> dict[str, Any]:
    """*n* is how many subjects were asked about; a subject that was judged by another try counts as judged."""
    return {"n": rater.asked, "failed": rater.failed, "rate": rater.failed / rater.asked}


def _worst(one: Disagreement) -> dict[str, Any]:
    kind, id = one.subject
    return {"subject_kind": kind, "subject_id": id, "difference": one.spread, "scores": one.scores}


def _reasons(found: Mapping[str, Any]) -> dict[str, str]:
    """Why figures of *found* are null."""
    return {name: _reason(name, found) for name, value in found.items() if value is None}


def _reason(name: str, found: Mapping[str, Any]) -> str:
    if not found["n"]:
        return "no subject has two scores on the same content"
    if name == "kappa":
        return f"every rater has all scores on one side of {CUT:g}: chance alone would agree as well"
    if found["alpha"] is None:
        return "all scores are equal: chance alone would agree as well"
    if found["n"] == 1:
        return "one subject alone does not tell how far another one may differ"
    return "too few scores differ: many resamples hold equal ones alone, which have no alpha"
