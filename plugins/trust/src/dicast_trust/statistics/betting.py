"""A test of a mean by betting, valid at any time.

:class:`BettingTest` takes scores one by one and decides ``above``, ``below``, or nothing yet. Other packages reach it without an import
of this package, as a component by its name: ``dicast.component("early_stop", {"trust/anytime": {"at": 0.9, "target": "population"}}).test()``
is a :class:`BettingTest`. Its method ``observe(score)`` takes a score (None for a missing score) and returns the decision; ``document()``
returns ``{decision, n, of, low, high, alpha}``. Scores have to come in random order.

I. Waudby-Smith and A. Ramdas, Estimating means of bounded random variables by betting, Journal of the Royal Statistical Society B 86
(2024), 1-27, for means of a population and, without replacement, of a file; Ville's inequality for the error.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from numpy import ndarray

    Array = ndarray[Any, Any]

BETS = (0.01, 0.02, 0.04, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
"""Stake of each bet, as a share of the capital."""

METHOD = "betting, at any time: the means that neither side rejects at half of alpha, in steps of .001"

CELLS = 8192
"""Most pairs of an observation and a mean in one computation."""

WAITING = 4096
"""Most observations that wait for the update of the interval.

The decision needs the capital against one mean only. The interval needs it for every mean of the grid, so its update can wait.
"""

TOGETHER = 64
"""Most observations in one product. A bet keeps at least 5 % of its capital each time, and .05 ** 64 does not underflow."""

SURE = 1e6
"""Greatest stored logarithm of a capital. A bet wins far below it, so the cap changes no decision."""

TINY = 1e-12
"""A mean this close to 0 counts as 0."""

TOLERANCE = 1e-9
"""A mean this close to a line counts as on the line, as in the gate."""

Decision = Literal["above", "below"]


class Bets:
    """Capital of bets against each of *means*: that the true mean is higher (side 0), and that it is lower (side 1).

    *total* is the number of observations in the file, None for a population. *longest* is the size of the longest session if an
    observation is a session. *strict*: a mean is rejected only if it is impossible, not if it is reached.
    """

    def __init__(self, means: Array, total: int | None, longest: int, *, strict: bool) -> None:
        import numpy as np  # 60 ms; only a run that stops early needs it

        self.means, self.count = means, 0
        self._total, self._longest, self._strict = total, longest, strict
        self._capital = np.zeros((2, len(means), len(BETS)))
        self._sums = np.zeros((2, len(means)))

    def take(self, sums: Array, sizes: Array, bar: float) -> Array:
        """Take observations: *sums* of scores (a missing score is 0 in the first row and 1 in the second), and their *sizes*.

        :return: by side and mean, the number of observations (of all so far) after which the side won, or -1 if it did not. A side wins if its
            capital reaches *bar*, a logarithm, or if every other outcome is impossible.
        """
        import numpy as np

        values = np.repeat(sums[:, :, None], len(self.means), axis=2)
        if self._longest > 1:
            values = (1 + (values - sizes[:, None] * self.means) / self._longest) / 2
        nulls, won = self._nulls(values)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):  # a bet that has already won may overflow
            growth = np.cumprod(_factors(values, nulls), axis=1)
            highest = self._capital.max(axis=-1, keepdims=True)
            capital = growth * np.exp(self._capital - highest)[:, None]
            # 0 times infinity: this bet was lost before, and the best bet has won without bound
            capital[np.isnan(capital)] = 0
            means = capital.mean(axis=-1)
            won[:, 1:] |= np.log(means) + highest[:, None, :, 0] >= bar
            self._capital = np.minimum(self._capital + np.log(growth[:, -1]), SURE)
        first: Array = np.where(won.any(axis=1), self.count + won.argmax(axis=1), -1)
        self._sums = self._sums + values.sum(axis=1)
        self.count += sums.shape[1]
        return first

    def keep(self, which: Array) -> None:
        """Drop all means except the selection *which*."""
        self.means = self.means[which]
        self._capital, self._sums = self._capital[:, which], self._sums[:, which]

    def _nulls(self, values: Array) -> tuple[Array, Array]:
        """Return two arrays for the moments before each of *values*, and after the last.

        The first has the mean of the next observation under each null mean. It has no entry after the last of *values*. The second has, by side,
        whether the observations so far already prove the side right.
        """
        import numpy as np

        null = self.means if self._longest == 1 else np.full(len(self.means), 0.5)
        shape = (2, values.shape[1] + 1, len(self.means))
        if self._total is None:
            return np.broadcast_to(null, shape)[:, :-1], np.zeros(shape, dtype=bool)
        past_sums = self._sums[:, None] + np.concatenate(
            [np.zeros_like(values[:, :1]), np.cumsum(values, axis=1)], axis=1
        )
        remaining = (self._total - self.count - np.arange(shape[1]))[:, None]
        needed, tolerance = self._total * null - past_sums, TOLERANCE * self._total
        above = needed[0] < -tolerance if self._strict else needed[0] <= tolerance
        return needed[:, :-1] / remaining[:-1], np.stack([above, needed[1] - remaining > tolerance])


def _factors(values: Array, nulls: Array) -> Array:
    """Return the factor by which each bet multiplies its capital at each of *values*, if the mean were one of *nulls*, by side.

    A bet against a null mean of 0 (or 1) wins without bound at the first value that differs.
    """
    import numpy as np

    means = np.stack([nulls[0], 1 - nulls[1]])
    gains = np.stack([values[0], 1 - values[1]]) - means  # each side bets that its value exceeds its mean
    possible = means > TINY
    factors: Array = 1 + np.where(possible, gains / np.where(possible, means, 1), 0)[..., None] * np.array(BETS)
    surprise = ~possible & (means > -TINY) & (gains > TINY)
    if surprise.any():
        factors[surprise] = np.inf
    return factors


class BettingTest:
    """Test of a mean against *at*, valid at any time; its error rate is at most *alpha* on each side.

    :param at: the line, between 0 and 1; if *paired*, the difference, between -1 and 1.
    :param alpha: the probability of a wrong decision ``above``, and likewise of a wrong ``below``.
    :param total: the number of observations in the finite set whose mean is tested; None tests the mean of the population behind the scores.
    :param longest: the number of scores in the longest session; above 1, an observation is a session.
    :param paired: scores are differences in [-1, 1].
    """

    def __init__(
        self, at: float, *, alpha: float = 0.05, total: int | None = None, longest: int = 1, paired: bool = False
    ) -> None:
        import numpy as np

        if (
            not (0 < alpha < 1)
            or not ((-1 if paired else 0) < at < 1)
            or longest < 1
            or (total is not None and total < 1)
        ):
            raise ValueError(f"invalid test: at {at}, alpha {alpha}, total {total}, longest {longest}")
        self.at, self.alpha, self.total = at, alpha, total
        self.n, self.decision, self._paired = 0, None, paired
        self._longest, self._bar = longest, -math.log(alpha)
        line = (at + 1) / 2 if paired else at
        grid = (np.arange(-1000, 1001) / 1000 + 1) / 2 if paired else np.arange(1001) / 1000
        self._test = Bets(np.array([line]), total, longest, strict=False)
        self._grid = Bets(grid, total, longest, strict=True)
        self._waiting: list[tuple[float, float, int]] = []
        self._low = self._high = self._scores = 0.0

    decision: Decision | None

    def observe(self, score: float | None) -> Decision | None:
        """Take the score of one subject (None for a missing score) and return the decision so far. After a decision nothing changes.

        :raises ValueError: for a score outside [0, 1], or a difference outside [-1, 1].
        """
        return self.observe_session([score])

    def observe_session(self, scores: Sequence[float | None]) -> Decision | None:
        """Take the scores of one session, or of one subject; as :meth:`observe`."""
        if self.decision is None:
            self._take([self._observation(scores)])
        return self.decision

    def observe_all(self, scores: Iterable[float | None]) -> Decision | None:
        """Take many scores one by one, each of a separate subject; faster than :meth:`observe`."""
        together = [self._observation([score]) for score in scores]
        for start in range(0, len(together), TOGETHER):
            if self.decision is None:
                self._take(together[start : start + TOGETHER])
        return self.decision

    def _observation(self, scores: Sequence[float | None]) -> tuple[float, float, int]:
        least = -1.0 if self._paired else 0.0
        if invalid := [score for score in scores if score is not None and not least <= score <= 1]:
            raise ValueError(f"the score {invalid[0]!r} is not between {least:g} and 1")
        if not 0 < len(scores) <= self._longest:
            raise ValueError(f"a session has {len(scores)} scores, expected 1 to {self._longest}")
        values = [(score + 1) / 2 if self._paired else score for score in scores if score is not None]
        return math.fsum(values), math.fsum(values) + len(scores) - len(values), len(scores)

    def _take(self, observations: list[tuple[float, float, int]]) -> None:
        import numpy as np

        low, high, sizes = np.array(observations, dtype=float).T
        (above,), (below,) = self._test.take(np.stack([low, high]), sizes, self._bar)
        if above >= 0 and (below < 0 or above <= below):
            self.decision = "above"
        elif below >= 0:
            self.decision = "below"
        count = (
            len(observations) if self.decision is None else int(above if self.decision == "above" else below) - self.n
        )
        self.n += count
        for low_sum, high_sum, size in observations[:count]:
            self._low, self._high, self._scores = self._low + low_sum, self._high + high_sum, self._scores + size
        self._waiting += observations[:count]
        if len(self._waiting) >= WAITING:
            self._narrow()

    def _narrow(self) -> None:
        """Drop the means that the waiting observations reject."""
        import numpy as np

        while self._waiting:
            count = max(1, min(TOGETHER, CELLS // len(self._grid.means)))
            low, high, sizes = np.array(self._waiting[:count], dtype=float).T
            del self._waiting[:count]
            rejected_at = self._grid.take(np.stack([low, high]), sizes, math.log(2 / self.alpha))
            is_possible: Array = np.all(rejected_at < 0, axis=0)
            if is_possible.any():  # the true mean may lie between two steps of the grid: then the last means remain
                self._grid.keep(is_possible)

    def interval(self) -> tuple[float, float]:
        """Return the lowest and the highest mean that is not rejected, at 1 - alpha for both sides together."""
        self._narrow()
        if self.total == self.n and self._scores:
            low, high = self._low / self._scores, self._high / self._scores
        else:
            low, high = float(self._grid.means[0]), float(self._grid.means[-1])
        return (2 * low - 1, 2 * high - 1) if self._paired else (low, high)

    def document(self) -> dict[str, object]:
        """Return the state of the test as JSON data; *n* and *of* count observations, which are sessions if sessions were observed."""
        low, high = self.interval()
        state: dict[str, object] = {"decision": self.decision, "n": self.n, "of": self.total, "low": low, "high": high}
        return state | {"alpha": self.alpha}
