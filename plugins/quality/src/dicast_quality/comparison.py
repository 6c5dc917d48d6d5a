"""Comparison of raters, as a document."""

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
    """A subject with its scores by rater, and the spread of the scores."""

    subject: Subject
    spread: float
    scores: Mapping[str, float]


class Comparison:
    """Accumulator of subjects with their scores that keeps the *worst* disagreements and reports how far the raters agree.

    *raters* are numbers by name. *gold* is the name of the rater that is a file of labels. With it, only labeled subjects are compared, and each
    rater is also compared with the labels. *makers* are the makers of verdicts by number. *matched* counts the judged subjects with a label;
    *example* is the id of a judged subject without one.
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
        self._verdict_counts: Counter[int] = Counter()
        self._excluded, self._first_excluded, self._several = 0, list[Subject](), 0
        self._ratings: Ratings | None = None
        self.makers: Sequence[Maker] = ()
        self._maker: Callable[[int], int] = int
        self.matched = 0
        self.example: str | None = None

    def read(self, ratings: Ratings) -> None:
        """Add every judged subject, in the order of ids."""
        self.makers, self._maker = ratings.makers, ratings.maker
        self._ratings = ratings
        if self._gold is not None:
            self._read_labeled(ratings)
        elif isinstance(ratings, ManyRatings) and (table := ratings.table) is not None:
            self._read_table(ratings, table)
        elif len(ratings.newest) == 2 and not ratings.contents.several:
            self._read_pairs(ratings)
        else:
            for place in ratings.places():
                self.add(ratings.unit(place))

    def _read_labeled(self, ratings: Ratings) -> None:
        """Add labeled subjects one by one. For other subjects, only count that raters were asked."""
        places = set().union(*ratings.newest.values())
        labeled = {place for place in places if ratings.label(place) is not None}
        for place in sorted(labeled):
            self.add(ratings.unit(place))
        self.example = min(places - labeled, default=(None, ""))[0]
        for rater, newest in ratings.newest.items():
            self._tally.ask(rater, (ratings.score(row) for place, row in newest.items() if place not in labeled))

    def _read_table(self, ratings: ManyRatings, table: Table) -> None:
        """Add subjects by column like :meth:`add`, for any raters without labels."""
        np = ratings.np
        for unit in table.excluded:
            self._ask(unit.other_scores)
        self._excluded, self._first_excluded = (
            len(table.excluded),
            [unit.subject for unit in table.excluded[: self._keep]],
        )
        self._several = ratings.several(table.places)
        self._tally.add_table(np, table.patterns, table.scores, table.spreads)
        codes = view(np, ratings.judged.codes)[table.rows[table.rows >= 0]]
        for code, count in enumerate(np.bincount(codes).tolist()):
            if count:
                self._verdict_counts[ratings.maker_of(code)] += count
        for place in self._worst_places(np, table.spreads) if self._keep else ():
            rater_scores = zip(table.raters, table.scores[:, place].tolist(), strict=True)
            id, kind = ratings.subject(int(table.places[place]))
            self._rank(
                (kind, id),
                float(table.spreads[place]),
                {rater: score for rater, score in rater_scores if not isnan(score)},
                place + 1,
            )

    def _worst_places(self, np: ModuleType, spreads: Array) -> list[int]:
        """Return the places of the greatest *spreads*, at most as many as are kept; the first of equal ones."""
        candidates = np.flatnonzero(spreads > NOISE)
        ranks = np.round(spreads[candidates], 9)
        if len(ranks) > self._keep:
            chosen = ranks >= np.partition(ranks, -self._keep)[-self._keep]
            candidates, ranks = candidates[chosen], ranks[chosen]
        worst_places: list[int] = candidates[np.argsort(-ranks, kind="stable")[: self._keep]].tolist()
        return worst_places

    def _read_pairs(self, ratings: Ratings) -> None:
        """Add subjects by column like :meth:`add`, for two raters without labels and one content per subject."""
        (first_rater, first), (second_rater, second) = sorted(ratings.newest.items())
        places = sorted(first.keys() | second.keys())
        rows = [[*map(newest.get, places)] for newest in (first, second)]
        score = ratings.score
        first_scores, second_scores = ([None if row is None else score(row) for row in column] for column in rows)
        shared = [a is not None and b is not None for a, b in zip(first_scores, second_scores, strict=True)]
        pairs = zip(states(first_rater, first_scores), states(second_rater, second_scores), *rows, strict=True)
        patterns = ((a, b) if not (r is None or s is None) else (b,) if r is None else (a,) for a, b, r, s in pairs)
        scored = tuple(
            [value for value in compress(column, shared) if value is not None]
            for column in (first_scores, second_scores)
        )
        spreads = self._tally.add_pairs(patterns, *scored)
        for column in rows:
            self._verdict_counts.update(self._maker(row) for row in compress(column, shared) if row is not None)
        for number, (place, spread) in enumerate(zip(compress(places, shared), spreads, strict=True), 1):
            if spread > NOISE and spread >= self._least and self._keep:
                scores = {first_rater: scored[0][number - 1], second_rater: scored[1][number - 1]}
                self._rank((place[1], place[0]), spread, scores, number)

    def add(self, unit: Unit) -> None:
        """Add a subject."""
        scores = unit.scores
        if self._gold is not None:
            if not scores and not unit.other_scores:
                return
            if unit.label is None:
                self.example = self.example or unit.subject[1]
                self._ask({**scores, **unit.other_scores})
                return
            self.matched += 1
            for rater, score in (*scores.items(), *unit.other_scores.items()) if self._against else ():
                self._against[rater].add({rater: score, self._gold: unit.label})
            scores = {**scores, self._gold: unit.label}
        if unit.other_scores:
            self._ask(unit.other_scores)
            self._excluded += 1
            if len(self._first_excluded) < self._keep:
                self._first_excluded.append(unit.subject)
        self._compare(unit, scores)

    def _ask(self, ratings: Mapping[int, float | None]) -> None:
        """Count that raters were asked, and their failures, without a comparison."""
        for rater, score in ratings.items():
            self._tally.add({rater: score})

    def _compare(self, unit: Unit, scores: Mapping[int, float | None]) -> None:
        spread = self._tally.add(scores)
        if spread is None:
            return
        self._several += unit.contents > 1
        for rater in unit.scores:
            self._verdict_counts[self._maker(unit.rows[rater])] += 1
        if spread > NOISE and spread >= self._least and self._keep:
            self._rank(unit.subject, spread, scores, self._tally.n)

    def _rank(self, subject: Subject, spread: float, scores: Mapping[int, float | None], number: int) -> None:
        rank = round(spread, 9), -number  # of equal spreads the first, which has the lower id
        if len(self._worst) < self._keep or rank > self._worst[0][:2]:
            named = {self._names[rater]: score for rater, score in scores.items() if score is not None}
            put = heapq.heappush if len(self._worst) < self._keep else heapq.heapreplace
            put(self._worst, (*rank, Disagreement(subject, rank[0], named)))
        if len(self._worst) == self._keep:
            self._least = self._worst[0][0] - NOISE

    def document(self) -> dict[str, Any]:
        """Return the JSON document. An undefined figure is null, with its reason in *reasons*."""
        tally, pairs = self._tally, self._tally.pairs
        raters = {self._names[number]: rater for number, rater in sorted(tally.raters.items())}
        figures, method = _figures(tally)
        return {
            **figures,
            "failures": {name: _failures(rater) for name, rater in raters.items() if name != self._label},
            "worst": [_worst(disagreement) for disagreement in self.worst],
            "reasons": self._reasons_with_kinds(figures),
            "different_content": self._excluded,
            "different_content_subjects": [
                {"subject_kind": kind, "subject_id": id} for kind, id in self._first_excluded
            ],
            "several_contents": self._several,
            "fingerprints": self._fingerprints(),
            "between": self._between,
            "pass_agreement": {"agree": tally.on_one_side, "n": tally.n},
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

    def _reasons_with_kinds(self, figures: Mapping[str, Any]) -> dict[str, str]:
        """Return the reasons of nulls; if there is no common subject because raters judged different kinds, with the kinds."""
        if figures["n"] or self._ratings is None:
            return _reasons(figures)
        newest = sorted(self._ratings.newest.items(), key=lambda item: item[0])
        kinds = {self._names[rater]: " and ".join(sorted({kind for _, kind in places})) for rater, places in newest}
        if len(set(kinds.values())) < 2:
            return _reasons(figures)
        kinds_text = ", ".join(f"{name} judged subjects of kind {text}" for name, text in kinds.items())
        return {name: f"{reason}: {kinds_text}" for name, reason in _reasons(figures).items()}

    def _with_gold(self, rater: int, tally: Tally) -> dict[str, Any]:
        """Return the figures of one rater and the labels."""
        figures, method = _figures(tally)
        name = {self._between.removesuffix("s"): self._names[rater]}
        return {**name, **figures, "reasons": _reasons(figures), "alpha_ci_method": method}

    @property
    def worst(self) -> list[Disagreement]:
        """The worst disagreements, the worst first."""
        return [disagreement for _, _, disagreement in sorted(self._worst, key=lambda item: item[:2], reverse=True)]

    def _fingerprints(self) -> dict[str, list[dict[str, Any]]]:
        """Return by label the count of compared verdicts for each fingerprint, with the runs that made them."""
        counts: dict[str, dict[str, Counter[str]]] = defaultdict(lambda: defaultdict(Counter))
        for number, count in sorted(self._verdict_counts.items()):
            judge, run_id, fingerprint = self.makers[number]
            if fingerprint is not None:
                counts[judge][fingerprint][run_id] += count
        return {
            judge: [{"fingerprint": digest, "n": runs.total(), "runs": list(runs)} for digest, runs in by.items()]
            for judge, by in counts.items()
        }

    def _pair(self, pair: Pair) -> dict[str, Any]:
        return {"raters": [self._names[rater] for rater in pair.raters], "n": pair.n, "kappa": pair.kappa}


def _figures(tally: Tally) -> tuple[dict[str, Any], str | None]:
    """Return the figures of a tally, and the method of its interval."""
    interval, raters = tally.interval(), tally.raters.values()
    figures = {
        "n": tally.n,
        "within": tally.within,
        "kappa": _light(tally.pairs),
        "alpha": tally.alpha,
        "alpha_ci": None if interval is None else [interval.low, interval.high],
        "base_rate": _share(sum(rater.passes for rater in raters), sum(rater.compared for rater in raters)),
    }
    return figures, None if interval is None else interval.method


def _light(pairs: list[Pair]) -> float | None:
    """Return kappa of two raters; for more raters the mean over pairs with a kappa (Light, 1971)."""
    defined = [pair.kappa for pair in pairs if pair.kappa is not None]
    return sum(defined) / len(defined) if defined else None


def _kappa_method(pairs: list[Pair]) -> str:
    return "Cohen's kappa" if len(pairs) < 2 else "Light's kappa, the mean of Cohen's over pairs"


def _share(part: int, total: int) -> float | None:
    return part / total if total else None


def _failures(rater: Rater) -> dict[str, Any]:
    """Return the failures of a rater. ``n`` counts its subjects; a subject judged in another attempt counts as judged."""
    return {"n": rater.unit_count, "failed": rater.failed, "rate": rater.failed / rater.unit_count}


def _worst(disagreement: Disagreement) -> dict[str, Any]:
    kind, id = disagreement.subject
    return {"subject_kind": kind, "subject_id": id, "difference": disagreement.spread, "scores": disagreement.scores}


def _reasons(figures: Mapping[str, Any]) -> dict[str, str]:
    """Return the reason of each null in *figures*."""
    return {name: _reason(name, figures) for name, value in figures.items() if value is None}


def _reason(name: str, figures: Mapping[str, Any]) -> str:
    if not figures["n"]:
        return "no subject has two scores on the same content"
    if name == "kappa":
        return f"every rater has all scores on one side of {CUT:g}: chance alone would agree as well"
    if figures["alpha"] is None:
        return "all scores are equal: chance alone would agree as well"
    if figures["n"] == 1:
        return "one subject is too few to estimate how much subjects differ"
    return "too few scores differ: many resamples have only equal scores, for which alpha is not defined"
