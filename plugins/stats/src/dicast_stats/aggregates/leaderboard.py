"""Which of several systems is better, from comparisons of two at a time."""

from __future__ import annotations

from array import array
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from itertools import combinations
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

import attrs

from dicast import ConfigError, Record, RunContext, Within
from dicast.toolkit.json_values import MISSING, lookup

from ..numbers.bootstrap import PARTS, SEED
from ..numbers.ties import NOISE, raw_differences
from ..numbers.values import number, quiet
from ..scores.columns import AlignedColumns
from ..scores.records import mapping, score_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..numbers.values import Column

    Wins = NDArray[np.float64]
    """Square: how often the system of the row won over that of the column, a tie as half a win of each."""

_MOST = 100
"""More systems than these are no leaderboard: their names are most likely ids."""

_STEPS, _LONGEST = 100, 2.0
"""How many steps Newton's method takes at most, and how long one is at most."""

_EQUAL = 1e-9
"""How near two strengths are that come from equal wins."""

_Z = NormalDist().inv_cdf(0.975)

_NONE = "no two systems were compared: name the row's columns with both systems (first, second), or let two criteria be the systems"


@attrs.frozen
class Leaderboard:
    """Ranks systems by how often each was the better one, with an interval for each rank.

    With *first* and *second* a record compares two systems, which its row names in these columns; a score above 0.5 is a win of the first one, below it
    of the second, and 0.5 a tie, as ``llm/pairwise`` scores. Without them the criteria are the systems, and each record compares all that it has scores
    of: the higher score wins. ``systems`` has by name, best first, ``rank``, ``rank_low`` to ``rank_high``, ``strength`` with ``ci_low`` and
    ``ci_high``, ``wins``, ``ties``, ``losses``, ``n`` and ``words``. Systems of one strength share a rank.

    A strength is the logarithm of the odds of winning over an average system, by R. A. Bradley and M. E. Terry (Biometrika 39, 1952, 324-345), with a tie as half
    a win each, and one win and one loss of each system over an average one, which keeps it finite; it is the ``effect_size`` too. The intervals are by the bootstrap over
    subjects, seeded: 95 %, and for all systems at once, from the largest of all studentised differences; a standard error is the model's own where the resamples are all alike. A rank goes from one more than the
    systems that are better to the number of all less those that are worse, where the interval of the difference leaves out 0.

    :param first: the row's column with the name of the system whose output was judged.
    :param second: the one with the name of the system that it was compared with.
    :param criterion: which of ``metrics.scores`` says who won; by default the record's score. With *first* and *second* alone.
    :param resamples: how many resamples there are, 100 or more.
    """

    name = "leaderboard"

    first: str | None = None
    second: str | None = None
    criterion: str | None = None
    resamples: int = attrs.field(default=1_000, validator=Within(100, 100_000, "from 100 to 100000"))

    def __attrs_post_init__(self) -> None:
        if (self.first is None) != (self.second is None):
            raise ConfigError("first and second go together: the columns with the names of both systems")
        if self.criterion is not None and self.first is None:
            raise ConfigError("criterion says who won of first and second; without these the criteria are the systems")

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Games | Columns]:
        """Begin with no record."""
        yield Columns(self.resamples) if self.first is None else Games(self)


class Games:
    """Takes records, and keeps who won over whom."""

    def __init__(self, options: Leaderboard) -> None:
        self._options = options
        self._systems: dict[str, int] = {}
        self._sides, self._results, self._unknown = (array("i"), array("i")), array("d"), 0

    def add(self, record: Record) -> None:
        """Take a record."""
        found = self._named(record)
        self._unknown += found is None
        if found is not None:
            for side, system in zip(self._sides, found[:2], strict=True):
                side.append(self._systems.setdefault(system, len(self._systems)))
            self._results.append(found[2])

    def _named(self, record: Record) -> tuple[str, str, float] | None:
        options, row = self._options, record.get("row") or {}
        systems = [lookup(row, str(name)) for name in (options.first, options.second)]
        first, second = map(str, systems)
        score = (
            score_of(record) if options.criterion is None else number(mapping(record, "scores").get(options.criterion))
        )
        if score is None or first == second or any(system in (MISSING, None, "") for system in systems):
            return None
        result = 0.5 if abs(score - 0.5) <= NOISE else float(score > 0.5)  # a tie
        return first, second, result

    def finish(self) -> Mapping[str, object]:
        """The systems, best first."""
        import numpy as np  # 0.1 s, which starting a run does not spend

        results = np.frombuffer(self._results)
        if why := _too_few_or_many(self._systems):
            return _document(len(results), self._unknown, {}, why)
        first, second = (np.frombuffer(side, np.intc) for side in self._sides)
        groups, systems = _groups(len(results)), len(self._systems)
        games, tallies = np.zeros((groups.max() + 1, systems, systems)), np.zeros((3, systems), int)
        for one, other, ahead in ((first, second, results), (second, first, 1 - results)):
            np.add.at(games, (groups, one, other), ahead)
            _count(tallies, one, ahead)
        return _document(
            len(results), self._unknown, _ranked(games, list(self._systems), tallies, self._options.resamples)
        )


class Columns:
    """Takes records, and keeps the scores of each criterion, which is a system."""

    def __init__(self, resamples: int) -> None:
        self._resamples, self._columns = resamples, AlignedColumns("scores")
        self.add = self._columns.add

    def finish(self) -> Mapping[str, object]:
        """The systems, best first."""
        import numpy as np

        columns = {name: column for name, column in self._columns.finish().items() if not np.isnan(column).all()}
        known = [~np.isnan(column) for column in columns.values()]
        compared = int((np.sum(known, 0) > 1).sum()) if known else 0
        without = self._columns.rows - compared
        if why := _too_few_or_many(columns) or ("" if compared else _NONE):
            return _document(compared, without, {}, why)
        groups = _groups(self._columns.rows)
        games, tallies = np.zeros((groups.max() + 1, len(columns), len(columns))), np.zeros((3, len(columns)), int)
        for (one, ours), (other, theirs) in combinations(enumerate(columns.values()), 2):
            both = known[one] & known[other]
            with quiet():
                results, within = np.sign(raw_differences(ours[both], theirs[both])) / 2 + 0.5, groups[both]
            games[:, one, other] = np.bincount(within, results, len(games))
            games[:, other, one] = np.bincount(within, 1 - results, len(games))
            for place, result in ((one, results), (other, 1 - results)):
                _count(tallies, np.full(len(result), place), result)
        return _document(compared, without, _ranked(games, list(columns), tallies, self._resamples))


def _too_few_or_many(systems: Collection[str]) -> str:
    if len(systems) < 2:  # one is compared with another
        return _NONE
    return f"{len(systems):,} systems, and {_MOST} are the most" if len(systems) > _MOST else ""


def _groups(count: int) -> Any:
    """The group of each subject: its own, or where there are many a random one of :data:`PARTS`."""
    import numpy as np

    return np.random.default_rng(SEED).permutation(count) % PARTS if count > PARTS else np.arange(count)


def _count(tallies: Any, systems: Any, results: Column) -> None:
    """Add to *tallies*, a row each for wins, ties and losses, what *systems* came to."""
    import numpy as np

    for place, result in enumerate((1.0, 0.5, 0.0)):
        tallies[place] += np.bincount(systems[results == result], minlength=tallies.shape[1])


def _document(
    count: int, without: int, systems: Mapping[str, Mapping[str, Any]], reason: str = ""
) -> Mapping[str, object]:
    counts = {"n": count, "without": without, "systems": systems}
    if reason:
        return {**counts, "reason": reason}
    tied = [system for system, one in systems.items() if one["rank_low"] == 1]
    return {
        **counts,
        "words": f"{tied[0]} is ahead of all others" if len(tied) == 1 else f"not decided among {', '.join(tied)}",
    }


def strengths(wins: Wins, start: Column | None = None) -> Column:
    """The Bradley-Terry strengths that make *wins* the likeliest, with one win and one loss of each over an average system, whose strength is 0."""
    import numpy as np

    found = np.zeros(len(wins)) if start is None else start.copy()
    for _ in range(_STEPS):  # Newton's method on a concave function, from near its top; some ten steps do
        slope, information = _slope(wins, found)
        step = np.linalg.solve(information, slope)
        size = float(abs(step).max())
        found += step * min(1.0, _LONGEST / max(size, _LONGEST))
        if size < NOISE:
            break
    return found


def _slope(wins: Wins, found: Column) -> tuple[Column, Wins]:
    """The gradient of the log-likelihood at the strengths *found*, and the Fisher information."""
    import numpy as np
    from scipy.special import expit  # type: ignore[import-untyped]  # no types

    games = wins + wins.T
    chances, alone = expit(found[:, None] - found), expit(found)
    curve = games * chances * (1 - chances)
    information = np.diag(curve.sum(1) + 2 * alone * (1 - alone)) - curve
    return (wins - games * chances).sum(1) + 1 - 2 * alone, information


def _ranked(games: Wins, systems: Sequence[str], tallies: Any, resamples: int) -> dict[str, dict[str, Any]]:
    import numpy as np

    found, count = strengths(games.sum(0)), len(games)
    draw = np.random.default_rng(SEED)
    flat = games.reshape(count, -1)
    again = np.array([
        strengths((draw.multinomial(count, np.full(count, 1 / count)) @ flat).reshape(games.shape[1:]), found) for _ in range(resamples)
    ])  # fmt: skip
    covariance = np.linalg.inv(_slope(games.sum(0), found)[1])
    own = np.diag(covariance)
    spread, reach = _simultaneous(again - found, np.sqrt(own))
    differences = found[:, None] - found
    apart = (again[:, :, None] - again[:, None, :] - differences).reshape(resamples, -1)
    errors, quantile = _simultaneous(apart, np.sqrt(np.maximum(own[:, None] + own - 2 * covariance, 0)).ravel())
    margin = (errors * quantile).reshape(differences.shape)
    equal = abs(differences) <= _EQUAL
    better, behind = (differences > margin) & ~equal, (differences < -margin) & ~equal
    board = {}
    for k in np.argsort(-found, kind="stable").tolist():
        low, high = 1 + int(behind[k].sum()), len(systems) - int(better[k].sum())
        ahead = int(((differences[:, k] > 0) & ~equal[:, k]).sum())
        figures = {"strength": float(found[k]), "effect_size": float(found[k])}
        figures |= {"ci_low": float(found[k] - reach * spread[k]), "ci_high": float(found[k] + reach * spread[k])}
        words = f"rank {low}" if low == high else f"rank {low} to {high}"
        counts = dict(
            zip(("wins", "ties", "losses", "n"), (*tallies[:, k].tolist(), int(tallies[:, k].sum())), strict=True)
        )
        ranks = {"rank": 1 + ahead, "rank_low": low, "rank_high": high}
        board[systems[k]] = {**ranks, **figures, **counts, "words": words}
    return board


def _simultaneous(deviations: Column, own: Column) -> tuple[Column, float]:
    """The standard error of each column of *deviations*, and the 95 % quantile of the largest studentised one of a row.

    An error is the model's, *own*, where resamples are all alike and show none; the quantile is no less than that of one normal number.
    """
    import numpy as np

    errors = deviations.std(0, ddof=1)
    errors = np.where(errors > NOISE, errors, own)
    there = errors > NOISE
    largest = (abs(deviations[:, there]) / errors[there]).max(1) if there.any() else np.zeros(1)
    return errors, max(_Z, float(np.quantile(largest, 0.95)))
