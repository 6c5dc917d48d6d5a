"""What a comparison of raters comes to, as a document and as text."""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterator, Mapping
from typing import Any

import attrs

from .options import shown
from .ratings import Between, Subject
from .reliability import CUT, NOISE, Pair, Rater, Tally

_MEANINGS = ((0.8, "reliable"), (0.667, "enough for tentative conclusions"), (-math.inf, "too little to rely on"))
"""From which alpha on what may be concluded: K. Krippendorff, Content Analysis (2004), 11.4.4."""


@attrs.frozen
class Disagreement:
    """A subject with its scores by rater, and how far these lie apart."""

    subject: Subject
    spread: float
    scores: Mapping[str, float]


class Comparison:
    """Takes subjects with their scores, keeps the *worst* disagreements, and says how far the raters agree.

    *raters* are numbers by name, *gold* is the name of the one that is a file of labels. *matched* counts the subjects that
    were judged and have a label, *example* is the id of one that was judged and has none.
    """

    def __init__(
        self, between: Between, raters: Mapping[str, int], window: float, worst: int, gold: str | None
    ) -> None:
        self._between, self._window, self._keep = between, window, worst
        self._names = {number: name for name, number in raters.items()}
        self._label, self._gold = gold, None if gold is None else raters[gold]
        self._tally = Tally(window)
        self._worst: list[tuple[float, int, Disagreement]] = []
        self.matched = 0
        self.example: str | None = None

    def add(self, subject: Subject, ratings: Mapping[int, float | None]) -> None:
        """Add a subject with its scores by number of the rater."""
        if self._gold in ratings:
            if len(ratings) == 1:
                return
            self.matched += 1
        elif self.example is None:
            self.example = subject[1]
        spread = self._tally.add(ratings)
        if spread is None or spread <= NOISE or not self._keep:
            return
        rank = spread, -self._tally.n  # of equal ones the first
        if len(self._worst) < self._keep or rank > self._worst[0][:2]:
            scores = {self._names[rater]: score for rater, score in ratings.items() if score is not None}
            put = heapq.heappush if len(self._worst) < self._keep else heapq.heapreplace
            put(self._worst, (*rank, Disagreement(subject, spread, scores)))

    def document(self) -> dict[str, Any]:
        """The JSON document. What is not defined is null, and *reasons* says why."""
        tally, pairs = self._tally, self._tally.pairs
        raters = {self._names[number]: rater for number, rater in sorted(tally.raters.items())}
        interval = tally.interval()
        found = {
            "n": tally.n,
            "within": tally.within,
            "kappa": _light(pairs),
            "alpha": tally.alpha,
            "alpha_ci": None if interval is None else [interval.low, interval.high],
            "base_rate": _share(
                sum(one.passes for one in raters.values()), sum(one.compared for one in raters.values())
            ),
        }
        return {
            **found,
            "failures": {name: _failures(rater) for name, rater in raters.items() if name != self._label},
            "worst": [_worst(one) for one in self.worst],
            "reasons": {name: _reason(name, tally.n) for name, value in found.items() if value is None},
            "between": self._between,
            "window": self._window,
            "alpha_ci_method": None if interval is None else interval.method,
            "kappa_method": _kappa_method(pairs),
            "kappa_pairs": [self._pair(pair) for pair in pairs],
            "raters": {
                name: {"n": rater.compared, "base_rate": _share(rater.passes, rater.compared)}
                for name, rater in raters.items()
            },
        }

    @property
    def worst(self) -> list[Disagreement]:
        """The worst disagreements, the worst first."""
        return [one for _, _, one in sorted(self._worst, key=lambda item: item[:2], reverse=True)]

    def _pair(self, pair: Pair) -> dict[str, Any]:
        return {"raters": [self._names[rater] for rater in pair.raters], "n": pair.n, "kappa": pair.kappa}

    def lines(self) -> Iterator[str]:
        """The document as text: how many subjects, and what chance leaves of the agreement, before any share."""
        found = self.document()
        (base,) = shown("{:.1%}".format, found["base_rate"])
        names = " and ".join(found["raters"]) if len(found["raters"]) < 4 else f"{len(found['raters'])} {self._between}"
        yield f"{names}: {found['n']:,} subjects with two scores or more, {base} of the scores pass"
        yield f"  Krippendorff's alpha  {_alpha_text(found)}"
        yield f"  {found['kappa_method'].partition(',')[0]:<20}  {_defined(found, 'kappa')}"
        (share,) = shown("{:.1%}".format, found["within"])
        yield f"  within {self._window:<13g}  {share} of the subjects"
        yield "raters: passes, failures"
        width = max(map(len, found["raters"]), default=0)
        for name, rater in found["raters"].items():
            (passes,), failed = shown("{:.1%}".format, rater["base_rate"]), found["failures"].get(name)
            share = f"{failed['failed']:,} of {failed['n']:,} ({failed['rate']:.1%})" if failed else "-"
            yield f"  {name:<{width}}  {passes:>6}  {share}"
        if len(found["kappa_pairs"]) > 1:
            yield "kappa by pair:"
            for pair in found["kappa_pairs"]:
                (kappa,) = shown("{:.4f}".format, pair["kappa"])
                yield f"  {kappa:>7}  {' and '.join(pair['raters'])} ({pair['n']:,} subjects)"
        if self._worst:
            yield "worst disagreements: (dicast show ID says why)"
        for one in self.worst:
            yield f"  {' '.join(one.subject)}  {', '.join(f'{name} {score:.4f}' for name, score in one.scores.items())}"


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


def _reason(name: str, n: int) -> str:
    """Why there is no figure *name* over *n* subjects."""
    if not n:
        return "no subject has two scores"
    return {
        "alpha": "all scores are equal: chance alone would agree as well",
        "kappa": f"every rater has all scores on one side of {CUT:g}: chance alone would agree as well",
        "alpha_ci": "too few scores differ: a quarter of the resamples or more hold equal ones alone, which have no alpha",
    }[name]


def _defined(found: Mapping[str, Any], name: str) -> str:
    return f"{found[name]:.4f}" if found[name] is not None else f"not defined: {found['reasons'][name]}"


def _alpha_text(found: Mapping[str, Any]) -> str:
    text = _defined(found, "alpha")
    if found["alpha"] is None:
        return text
    interval = found["alpha_ci"]
    between = "no interval" if interval is None else f"95 % interval {interval[0]:.4f} to {interval[1]:.4f} (bootstrap)"
    meaning = next(words for bound, words in _MEANINGS if found["alpha"] >= bound)
    return f"{text}, {between}: {meaning}"
