"""How far raters agree: Krippendorff's alpha with its interval, Cohen's kappa, the share within a window, the base rate.

A rater is a judge, a run, a version of a rubric or a file of labels; a unit is a subject, rated by some of them. Alpha is the
one of K. Krippendorff, Content Analysis (2004), chapter 11, with the interval metric: any number of raters, missing ratings
allowed. Kappa is J. Cohen's (1960), on scores cut at :data:`CUT`; of more than two raters the mean over pairs is taken
(R. J. Light, 1971).
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from math import fsum, isnan
from operator import itemgetter
from types import ModuleType

import attrs

from .arrays import Array
from .draws import put_in_parts, resampled
from .percentile import percentile

CUT = 0.5
"""A score from here on is a pass."""

NOISE = 1e-9
"""How much a difference of two scores may be off: .8 - .65 is not more than .15."""

_PASSING = CUT - NOISE
BLOCKS = 1000
RESAMPLES = 2000
SEED = 0
_LOW, _PASS, _FAILED = range(3)
"""What a rater says of a unit; a pattern is 3 · rater + this, for each rater."""


@attrs.frozen
class Interval:
    """A 95 % interval of alpha, and how it was made."""

    low: float
    high: float
    method: str


@attrs.frozen
class Pair:
    """Two raters: on how many units both gave a score, and their kappa, None where it is not defined."""

    raters: tuple[int, int]
    n: int
    kappa: float | None


@attrs.frozen
class Rater:
    """One rater over all units: on how many it was asked, on how many of them it failed.

    *compared* counts its scores on units that others have scored too, *passes* those of them that are passes.
    """

    asked: int
    failed: int
    compared: int
    passes: int


class Tally:
    """Takes units one by one and keeps sums. Memory does not grow with their number.

    Alpha follows from sums over units: with m scores x in a unit, D = sum of (x_i - x_j)^2 over its pairs / (m - 1), and with n
    scores in all, alpha = 1 - (n - 1) sum(D) / (n sum(x^2) - sum(x)^2). The sums are kept in *BLOCKS* parts. Up to that many
    units each is a part, and resampling parts is the bootstrap over units; more of them are put into parts at random, each by
    itself, and resampling these has the same limit.
    """

    def __init__(self, window: float) -> None:
        self._reach = window + NOISE
        self._within = 0
        self._patterns: Counter[tuple[int, ...]] = Counter()
        self._random = random.Random(SEED)
        self._start = 0.0
        self._np: ModuleType | None = None
        self.n = 0
        self._apart, self._sums, self._squares, self._counts = ([0.0] * BLOCKS for _ in range(4))

    def add(self, ratings: Mapping[int, float | None]) -> float | None:
        """Add a unit: scores by rater in a constant order, None for one that failed.

        Return how far its scores lie apart; None where there are fewer than two, which say nothing of agreement.
        """
        pattern, scores = [], []
        for rater, score in ratings.items():
            if score is None:
                pattern.append(3 * rater + _FAILED)
            else:
                pattern.append(3 * rater + (score >= _PASSING))
                scores.append(score)
        self._patterns[tuple(pattern)] += 1
        if len(scores) < 2:
            return None
        spread = abs(scores[0] - scores[1]) if len(scores) == 2 else max(scores) - min(scores)
        if spread <= self._reach:
            self._within += 1
        self._put(scores, spread)
        return spread

    def ask(self, rater: int, scores: Iterable[float | None]) -> None:
        """Add units that *rater* alone was asked about: each with its score, None for one that failed."""
        self._patterns.update((state,) for state in states(rater, scores))

    def add_pairs(self, states: Iterable[tuple[int, ...]], ones: Sequence[float], twos: Sequence[float]) -> list[float]:
        """Add units that two raters were asked about at the most; return how far the scores lie apart where both gave one.

        *states* are those of each unit, *ones* and *twos* the scores of those units that have two, all in the order of units. It
        does what :meth:`add` does for each unit. Written flat, for speed.
        """
        self._patterns.update(states)
        spreads = [abs(one - two) for one, two in zip(ones, twos, strict=True)]
        reach, alone = self._reach, max(0, min(len(ones), BLOCKS - self.n))
        self._within += sum(spread <= reach for spread in spreads)
        for one, two, spread in zip(ones[:alone], twos[:alone], spreads[:alone], strict=True):
            self._put((one, two), spread)
        if alone == len(ones):
            return spreads
        if self.n == BLOCKS:
            self._scatter()
        start, draw, apart = self._start, self._random.random, self._apart
        sums, squares, counts = self._sums, self._squares, self._counts
        for first, second, spread in zip(ones[alone:], twos[alone:], spreads[alone:], strict=True):
            part, one, two = int(draw() * BLOCKS), first - start, second - start
            sums[part] += one + two
            squares[part] += one * one + two * two
            apart[part] += spread * spread
            counts[part] += 2
        self.n += len(ones) - alone
        return spreads

    def add_table(self, np: ModuleType, patterns: Mapping[tuple[int, ...], int], scores: Array, spreads: Array) -> None:
        """Add units that two have scored at the least: *scores* have a line for a rater and a column for a unit, NaN where there is none.

        *patterns* count what was said of all units, also of others. It does what :meth:`add` does for each, a column at a time.
        """
        self._np = np
        self._patterns.update(patterns)
        self._within += int(np.count_nonzero(spreads <= self._reach))
        count = scores.shape[1]
        alone = max(0, min(count, BLOCKS - self.n))
        for place in range(alone):
            self._put([score for score in scores[:, place].tolist() if not isnan(score)], float(spreads[place]))
        if alone == count:
            return
        if self.n == BLOCKS:
            self._scatter()
        self.n += count - alone
        sums = self._sums, self._squares, self._apart, self._counts
        put_in_parts(np, sums, self._random, scores[:, alone:] - self._start, spreads[alone:])

    def _put(self, scores: Sequence[float], spread: float) -> None:
        """Add the scores of a unit to a part: one of its own while there are enough, then any. Written flat, for speed."""
        part = n = self.n
        if n >= BLOCKS:
            if n == BLOCKS:
                self._scatter()
            part = int(self._random.random() * BLOCKS)
        elif not n:
            self._start = scores[0]  # counted from it, sums of squares stay small, and exact
        self.n = n + 1
        start, count = self._start, len(scores)
        if count == 2:
            one, two = scores[0] - start, scores[1] - start
            self._sums[part] += one + two
            self._squares[part] += one * one + two * two
            self._apart[part] += spread * spread
        else:
            self._sums[part] += sum(score - start for score in scores)
            self._squares[part] += sum((score - start) ** 2 for score in scores)
            self._apart[part] += _apart(scores)
        self._counts[part] += count

    def _scatter(self) -> None:
        """Put the units, each in a part of its own as yet, into random parts too."""
        places = [int(self._random.random() * BLOCKS) for _ in range(BLOCKS)]
        for sums in (self._apart, self._sums, self._squares, self._counts):
            alone, sums[:] = sums[:], [0.0] * BLOCKS
            for place, value in zip(places, alone, strict=True):
                sums[place] += value

    @property
    def within(self) -> float | None:
        """The share of units whose scores all lie within the window."""
        return self._within / self.n if self.n else None

    @property
    def alpha(self) -> float | None:
        """Krippendorff's alpha; None where all scores are equal, or there are none."""
        return _alpha(*(fsum(part) for part in self._parts()))

    def interval(self) -> Interval | None:
        """The 95 % interval of alpha, by the percentiles of resamples.

        A resample of equal scores alone has no alpha and is left out; None where that befalls a quarter of them, as it
        does where all variation comes from one subject. Of perfect agreement it is [1, 1]: resamples cannot show what did
        not happen once.
        """
        known = self.n > 1 and self.alpha is not None
        alphas = [_alpha(*sums) for sums in self._resampled()] if known else []
        found = sorted(alpha for alpha in alphas if alpha is not None)
        if len(found) < RESAMPLES * 3 / 4:
            return None
        groups = "" if self.n <= BLOCKS else f" in {BLOCKS:,} random groups"
        left = f", {RESAMPLES - len(found):,} of them left out for having equal scores alone" if None in alphas else ""
        method = f"percentile bootstrap over subjects{groups}, {RESAMPLES:,} resamples, seed {SEED}{left}"
        return Interval(percentile(found, 0.025), percentile(found, 0.975), method)

    def _resampled(self) -> Iterator[Sequence[float]]:
        """The sums of each resample of the parts."""
        parts, draw = self._parts(), random.Random(SEED)
        if self._np is not None:
            yield from resampled(self._np, parts, draw, RESAMPLES)
            return
        blocks = range(len(parts[0]))
        for _ in range(RESAMPLES):
            pick = itemgetter(*draw.choices(blocks, k=len(blocks)))
            yield [sum(pick(part)) for part in parts]

    def _parts(self) -> tuple[Sequence[float], ...]:
        used = min(self.n, BLOCKS)
        return tuple(part[:used] for part in (self._apart, self._sums, self._squares, self._counts))

    @property
    def pairs(self) -> list[Pair]:
        """Every pair of raters who share a unit, with their kappa."""
        tables: dict[tuple[int, int], Counter[tuple[bool, bool]]] = defaultdict(Counter)
        for states, count in self._scored():
            for (first, one), (second, other) in combinations(states, 2):
                tables[first, second][one, other] += count
        return [Pair(raters, table.total(), _kappa(table)) for raters, table in sorted(tables.items())]

    @property
    def raters(self) -> dict[int, Rater]:
        """What is known of each rater."""
        asked, failed, compared, passes = (Counter[int]() for _ in range(4))
        for pattern, count in self._patterns.items():
            for rater, state in (divmod(code, 3) for code in pattern):
                asked[rater] += count
                failed[rater] += count * (state == _FAILED)
        for states, count in self._scored():
            for rater, good in states:
                compared[rater] += count
                passes[rater] += count * good
        return {one: Rater(asked[one], failed[one], compared[one], passes[one]) for one in asked}

    def _scored(self) -> Iterator[tuple[list[tuple[int, bool]], int]]:
        """The scores of units that have two or more, and how often there are such units."""
        for pattern, count in self._patterns.items():
            states = [(code // 3, code % 3 == _PASS) for code in pattern if code % 3 != _FAILED]
            if len(states) > 1:
                yield states, count


def states(rater: int, scores: Iterable[float | None]) -> list[int]:
    """What *rater* says of units, as a pattern has it, by its scores; None for one that failed."""
    failed, low, passing = 3 * rater + _FAILED, 3 * rater + _LOW, 3 * rater + _PASS
    return [failed if score is None else passing if score >= _PASSING else low for score in scores]


def _apart(scores: Sequence[float]) -> float:
    """The squared differences of all pairs, over one less than there are scores."""
    mean = fsum(scores) / len(scores)
    return len(scores) * fsum((score - mean) ** 2 for score in scores) / (len(scores) - 1)


def _alpha(apart: float, total: float, squares: float, count: float) -> float | None:
    expected = count * squares - total * total
    if expected <= 1e-12 * count * squares:  # all scores are equal, but for rounding
        return None
    return 1 - (count - 1) * apart / expected


def _kappa(table: Counter[tuple[bool, bool]]) -> float | None:
    """Cohen's kappa of a table of passes; None where chance alone would make both agree always."""
    n = table.total()
    firsts, seconds = table[True, True] + table[True, False], table[True, True] + table[False, True]
    chance = firsts * seconds + (n - firsts) * (n - seconds)
    if chance == n * n:
        return None
    return (n * (table[True, True] + table[False, False]) - chance) / (n * n - chance)
