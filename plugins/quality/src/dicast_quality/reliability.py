"""Agreement of raters: Krippendorff's alpha with its interval, Cohen's kappa, the share within a window, the base rate.

A rater is a judge, a run, a version of a rubric or a file of labels; a unit is a subject that some raters rated. Alpha is
defined in K. Krippendorff, Content Analysis (2004), chapter 11, with the interval metric: any number of raters, missing ratings
allowed. Kappa is J. Cohen's (1960), on scores cut at :data:`CUT`; for more than two raters it is the mean over pairs
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
"""Lowest passing score."""

NOISE = 1e-9
"""Rounding error of a difference of two scores: .8 - .65 counts as .15."""

_PASSING = CUT - NOISE
BLOCKS = 1000
RESAMPLES = 2000
SEED = 0
_LOW, _PASS, _FAILED = range(3)
"""State of a rater's verdict on a unit. A pattern has 3 · rater + state for each rater."""


@attrs.frozen
class Interval:
    """A 95 % interval of alpha, and its method."""

    low: float
    high: float
    method: str


@attrs.frozen
class Pair:
    """Two raters, the number of units that both scored, and their kappa; None if it is undefined."""

    raters: tuple[int, int]
    n: int
    kappa: float | None


@attrs.frozen
class Rater:
    """One rater over all units: the number of units it was asked about (*unit_count*), and of its failures.

    *compared* counts its scores on units that other raters scored too; *passes* counts the passing scores among them.
    """

    unit_count: int
    failed: int
    compared: int
    passes: int


class Tally:
    """Accumulator of units that keeps sums only. Its memory does not grow with the number of units.

    Alpha follows from sums over units: with m scores x in a unit, D = sum of (x_i - x_j)^2 over its pairs / (m - 1), and with n
    scores in all, alpha = 1 - (n - 1) sum(D) / (n sum(x^2) - sum(x)^2). The sums are kept in *BLOCKS* parts. Up to that many
    units, each unit is a part, and resampling parts is the bootstrap over units. More units are assigned to parts at random and independently,
    and resampling the parts has the same limit.
    """

    def __init__(self, window: float) -> None:
        self._reach = window + NOISE
        self._within = 0
        self._patterns: Counter[tuple[int, ...]] = Counter()
        self._random = random.Random(SEED)
        self._start = 0.0
        self._np: ModuleType | None = None
        self.n = 0
        self._differences, self._sums, self._squares, self._counts = ([0.0] * BLOCKS for _ in range(4))

    def add(self, ratings: Mapping[int, float | None]) -> float | None:
        """Add a unit: scores by rater in a constant order, None for a failure.

        Return the spread of its scores; None for fewer than two scores, which carry no information on agreement.
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
        """Add units that only *rater* was asked about, each with its score, None for a failure."""
        self._patterns.update((state,) for state in states(rater, scores))

    def add_pairs(
        self, states: Iterable[tuple[int, ...]], firsts: Sequence[float], seconds: Sequence[float]
    ) -> list[float]:
        """Add units that at most two raters were asked about; return the spreads of units with two scores.

        *states* are the patterns of all units. *firsts* and *seconds* are the scores of units with two, all in the order of units. The result equals
        :meth:`add` of each unit. Written flat, for speed.
        """
        self._patterns.update(states)
        spreads = [abs(left - right) for left, right in zip(firsts, seconds, strict=True)]
        reach, alone = self._reach, max(0, min(len(firsts), BLOCKS - self.n))
        self._within += sum(spread <= reach for spread in spreads)
        for left, right, spread in zip(firsts[:alone], seconds[:alone], spreads[:alone], strict=True):
            self._put((left, right), spread)
        if alone == len(firsts):
            return spreads
        if self.n == BLOCKS:
            self._scatter()
        start, draw, differences = self._start, self._random.random, self._differences
        sums, squares, counts = self._sums, self._squares, self._counts
        for first, second, spread in zip(firsts[alone:], seconds[alone:], spreads[alone:], strict=True):
            part, left, right = int(draw() * BLOCKS), first - start, second - start
            sums[part] += left + right
            squares[part] += left * left + right * right
            differences[part] += spread * spread
            counts[part] += 2
        self.n += len(firsts) - alone
        return spreads

    def add_table(self, np: ModuleType, patterns: Mapping[tuple[int, ...], int], scores: Array, spreads: Array) -> None:
        """Add units with at least two scores. *scores* has a row per rater and a column per unit, with NaN for a missing score.

        *patterns* count the ratings of all units, including units with fewer scores. The result equals :meth:`add` of each unit, computed by column.
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
        sums = self._sums, self._squares, self._differences, self._counts
        put_in_parts(np, sums, self._random, scores[:, alone:] - self._start, spreads[alone:])

    def _put(self, scores: Sequence[float], spread: float) -> None:
        """Add the scores of a unit to a part: a new part while there are enough, then a random one. Written flat, for speed."""
        part = n = self.n
        if n >= BLOCKS:
            if n == BLOCKS:
                self._scatter()
            part = int(self._random.random() * BLOCKS)
        elif not n:
            self._start = scores[0]  # as the origin it keeps sums of squares small and exact
        self.n = n + 1
        start, count = self._start, len(scores)
        if count == 2:
            first_offset, second_offset = scores[0] - start, scores[1] - start
            self._sums[part] += first_offset + second_offset
            self._squares[part] += first_offset * first_offset + second_offset * second_offset
            self._differences[part] += spread * spread
        else:
            self._sums[part] += sum(score - start for score in scores)
            self._squares[part] += sum((score - start) ** 2 for score in scores)
            self._differences[part] += _differences(scores)
        self._counts[part] += count

    def _scatter(self) -> None:
        """Move the units, so far one per part, to random parts."""
        places = [int(self._random.random() * BLOCKS) for _ in range(BLOCKS)]
        for sums in (self._differences, self._sums, self._squares, self._counts):
            alone, sums[:] = sums[:], [0.0] * BLOCKS
            for place, value in zip(places, alone, strict=True):
                sums[place] += value

    @property
    def within(self) -> float | None:
        """Share of units whose scores are all within the window."""
        return self._within / self.n if self.n else None

    @property
    def on_one_side(self) -> int:
        """Number of units whose scores all pass or all do not."""
        sides = ((count, {state % 3 for state in pattern}) for pattern, count in self._scored_patterns())
        return sum(count for count, states in sides if len(states) == 1)

    def _scored_patterns(self) -> Iterator[tuple[list[int], int]]:
        """Yield the patterns of units with two scores or more, without failures, with their counts."""
        for pattern, count in self._patterns.items():
            scored = [state for state in pattern if state % 3 != _FAILED]
            if len(scored) > 1:
                yield scored, count

    @property
    def alpha(self) -> float | None:
        """Krippendorff's alpha; None if all scores are equal, or there are none."""
        return _alpha(*(fsum(part) for part in self._parts()))

    def interval(self) -> Interval | None:
        """Return the 95 % interval of alpha, by the percentiles of resamples.

        A resample with equal scores only has no alpha and is left out. The interval is None if a quarter of the resamples are left out, for instance
        if one subject has all the variation. Perfect agreement gives [1, 1]: resamples cannot show a disagreement that never occurred.
        """
        is_defined = self.n > 1 and self.alpha is not None
        alphas = [_alpha(*sums) for sums in self._resampled()] if is_defined else []
        defined = sorted(alpha for alpha in alphas if alpha is not None)
        if len(defined) < RESAMPLES * 3 / 4:
            return None
        groups = "" if self.n <= BLOCKS else f" in {BLOCKS:,} random groups"
        left = (
            f", {RESAMPLES - len(defined):,} of them left out for having equal scores alone" if None in alphas else ""
        )
        method = f"percentile bootstrap over subjects{groups}, {RESAMPLES:,} resamples, seed {SEED}{left}"
        return Interval(percentile(defined, 0.025), percentile(defined, 0.975), method)

    def _resampled(self) -> Iterator[Sequence[float]]:
        """Yield the sums of each resample of the parts."""
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
        return tuple(part[:used] for part in (self._differences, self._sums, self._squares, self._counts))

    @property
    def pairs(self) -> list[Pair]:
        """Every pair of raters who share a unit, with their kappa."""
        tables: dict[tuple[int, int], Counter[tuple[bool, bool]]] = defaultdict(Counter)
        for states, count in self._scored():
            for (first, state), (second, other_state) in combinations(states, 2):
                tables[first, second][state, other_state] += count
        return [Pair(raters, table.total(), _kappa(table)) for raters, table in sorted(tables.items())]

    @property
    def raters(self) -> dict[int, Rater]:
        """Counts of each rater."""
        asked_counts, failed, compared, passes = (Counter[int]() for _ in range(4))
        for pattern, count in self._patterns.items():
            for rater, state in (divmod(code, 3) for code in pattern):
                asked_counts[rater] += count
                failed[rater] += count * (state == _FAILED)
        for states, count in self._scored():
            for rater, good in states:
                compared[rater] += count
                passes[rater] += count * good
        return {
            number: Rater(asked_counts[number], failed[number], compared[number], passes[number])
            for number in asked_counts
        }

    def _scored(self) -> Iterator[tuple[list[tuple[int, bool]], int]]:
        """Yield the scores of units with two or more, and the count of such units."""
        for pattern, count in self._patterns.items():
            states = [(code // 3, code % 3 == _PASS) for code in pattern if code % 3 != _FAILED]
            if len(states) > 1:
                yield states, count


def states(rater: int, scores: Iterable[float | None]) -> list[int]:
    """Return the states of *rater* in patterns for its *scores*; None is a failure."""
    failed, low, passing = 3 * rater + _FAILED, 3 * rater + _LOW, 3 * rater + _PASS
    return [failed if score is None else passing if score >= _PASSING else low for score in scores]


def _differences(scores: Sequence[float]) -> float:
    """Return the sum of the squared differences of all pairs, divided by the number of scores minus 1."""
    mean = fsum(scores) / len(scores)
    return len(scores) * fsum((score - mean) ** 2 for score in scores) / (len(scores) - 1)


def _alpha(differences: float, total: float, squares: float, count: float) -> float | None:
    expected = count * squares - total * total
    if expected <= 1e-12 * count * squares:  # all scores are equal up to rounding
        return None
    return 1 - (count - 1) * differences / expected


def _kappa(table: Counter[tuple[bool, bool]]) -> float | None:
    """Return Cohen's kappa of a table of passes; None if chance alone would give perfect agreement."""
    n = table.total()
    firsts, seconds = table[True, True] + table[True, False], table[True, True] + table[False, True]
    chance = firsts * seconds + (n - firsts) * (n - seconds)
    if chance == n * n:
        return None
    return (n * (table[True, True] + table[False, False]) - chance) / (n * n - chance)
