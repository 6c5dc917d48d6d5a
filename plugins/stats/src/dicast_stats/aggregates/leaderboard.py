"""Ranking of several systems by pairwise comparisons."""

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
from ..numbers.values import ignore_float_warnings, parse_number
from ..scores.columns import AlignedColumns
from ..scores.records import read_metrics, record_score

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ..numbers.values import Column

    Wins = NDArray[np.float64]
    """Square matrix of the wins of the row's system over the column's; a tie is half a win for each."""

_MOST = 100
"""Largest number of systems; more names are most likely ids of subjects."""

_STEPS, _LONGEST = 100, 2.0
"""Largest number of steps of Newton's method, and largest length of a step."""

_EQUAL = 1e-9
"""Largest difference of two strengths that result from equal wins."""

_Z = NormalDist().inv_cdf(0.975)

_NO_GAMES = "no two systems were compared: name the row's columns with both systems (first, second), or let two criteria be the systems"


@attrs.frozen
class Leaderboard:
    """Ranking of systems by their wins over each other, with an interval for each rank.

    With *first* and *second* a record compares two systems, named in these columns of its row. A score above 0.5 is a win of the first
    system, below 0.5 of the second, and 0.5 a tie, as ``llm/pairwise`` scores. Without these options the criteria are the systems, and a
    record compares all criteria that it has scores of: the higher score wins. ``systems`` maps names, best first, to ``rank``, ``rank_low`` to
    ``rank_high``, ``strength`` with ``ci_low`` and ``ci_high``, ``wins``, ``ties``, ``losses``, ``n`` and ``words``. Systems of equal strength share a rank.

    A strength is the logarithm of the odds of winning against an average system, by R. A. Bradley and M. E. Terry (Biometrika 39, 1952,
    324-345); it is also the ``effect_size``. A tie counts as half a win for each side. One win and one loss against an average system are added
    for each system, which keeps the strength finite. The 95 % intervals are by a seeded bootstrap over subjects and hold for all systems at once:
    they use the largest of all studentized differences. If all resamples are equal, the standard error is the model's. ``rank_low`` is one more than the
    number of systems that are better, and ``rank_high`` the number of systems minus the number that are worse. A system is better or worse if
    the interval of the difference excludes 0.

    :param first: the row's column with the name of the system whose output was judged.
    :param second: the row's column with the name of the system that it was compared with.
    :param criterion: the name in ``metrics.scores`` whose score decides the winner; by default the record's score. Only with *first* and *second*.
    :param resamples: the number of resamples, 100 or more.
    """

    name = "leaderboard"

    first: str | None = None
    second: str | None = None
    criterion: str | None = None
    resamples: int = attrs.field(default=1_000, validator=Within(100, 100_000, "from 100 to 100000"))

    def __attrs_post_init__(self) -> None:
        if (self.first is None) != (self.second is None):
            raise ConfigError("first and second need each other; set both to the columns with the names of the systems")
        if self.criterion is not None and self.first is None:
            raise ConfigError("criterion needs first and second; without them the criteria are the systems")

    @asynccontextmanager
    async def open(self, run: RunContext) -> AsyncIterator[Games | Columns]:
        """Yield a collector without records."""
        yield Columns(self.resamples) if self.first is None else Games(self)


class Games:
    """Collector of the winner of each comparison of two systems."""

    def __init__(self, options: Leaderboard) -> None:
        self._options = options
        self._systems: dict[str, int] = {}
        self._sides, self._results, self._unknown = (array("i"), array("i")), array("d"), 0

    def add(self, record: Record) -> None:
        """Add a record."""
        game = self._read_game(record)
        self._unknown += game is None
        if game is not None:
            for side, system in zip(self._sides, game[:2], strict=True):
                side.append(self._systems.setdefault(system, len(self._systems)))
            self._results.append(game[2])

    def _read_game(self, record: Record) -> tuple[str, str, float] | None:
        options, row = self._options, record.get("row") or {}
        systems = [lookup(row, str(name)) for name in (options.first, options.second)]
        first, second = map(str, systems)
        score = (
            record_score(record)
            if options.criterion is None
            else parse_number(read_metrics(record, "scores").get(options.criterion))
        )
        if score is None or first == second or any(system in (MISSING, None, "") for system in systems):
            return None
        result = 0.5 if abs(score - 0.5) <= NOISE else float(score > 0.5)  # a tie
        return first, second, result

    def finish(self) -> Mapping[str, object]:
        """Return the systems, best first."""
        import numpy as np  # 0.1 s, which starting a run does not spend

        results = np.frombuffer(self._results)
        if reason := _system_count_problem(self._systems):
            return _document(len(results), self._unknown, {}, reason)
        first, second = (np.frombuffer(side, np.intc) for side in self._sides)
        groups, systems = _subject_groups(len(results)), len(self._systems)
        games, tallies = np.zeros((groups.max() + 1, systems, systems)), np.zeros((3, systems), int)
        for winners, losers, ahead in ((first, second, results), (second, first, 1 - results)):
            np.add.at(games, (groups, winners, losers), ahead)
            _count_results(tallies, winners, ahead)
        return _document(
            len(results), self._unknown, _rank_systems(games, list(self._systems), tallies, self._options.resamples)
        )


class Columns:
    """Collector of the scores of each criterion, where the criteria are the systems."""

    def __init__(self, resamples: int) -> None:
        self._resamples, self._columns = resamples, AlignedColumns("scores")
        self.add = self._columns.add

    def finish(self) -> Mapping[str, object]:
        """Return the systems, best first."""
        import numpy as np

        columns = {name: column for name, column in self._columns.finish().items() if not np.isnan(column).all()}
        is_scored = [~np.isnan(column) for column in columns.values()]
        compared_count = int((np.sum(is_scored, 0) > 1).sum()) if is_scored else 0
        uncompared_count = self._columns.rows - compared_count
        if reason := _system_count_problem(columns) or ("" if compared_count else _NO_GAMES):
            return _document(compared_count, uncompared_count, {}, reason)
        groups = _subject_groups(self._columns.rows)
        games, tallies = np.zeros((groups.max() + 1, len(columns), len(columns))), np.zeros((3, len(columns)), int)
        for (first, ours), (second, theirs) in combinations(enumerate(columns.values()), 2):
            both = is_scored[first] & is_scored[second]
            with ignore_float_warnings():
                results, within = np.sign(raw_differences(ours[both], theirs[both])) / 2 + 0.5, groups[both]
            games[:, first, second] = np.bincount(within, results, len(games))
            games[:, second, first] = np.bincount(within, 1 - results, len(games))
            for place, result in ((first, results), (second, 1 - results)):
                _count_results(tallies, np.full(len(result), place), result)
        return _document(
            compared_count, uncompared_count, _rank_systems(games, list(columns), tallies, self._resamples)
        )


def _system_count_problem(systems: Collection[str]) -> str:
    if len(systems) < 2:  # a comparison needs two
        return _NO_GAMES
    return f"{len(systems):,} systems; at most {_MOST} can be ranked" if len(systems) > _MOST else ""


def _subject_groups(count: int) -> Any:
    """Return the group of each subject: a group of its own, or one of :data:`PARTS` random groups if there are more subjects."""
    import numpy as np

    return np.random.default_rng(SEED).permutation(count) % PARTS if count > PARTS else np.arange(count)


def _count_results(tallies: Any, systems: Any, results: Column) -> None:
    """Add the *results* of *systems* to *tallies*, which has a row each for wins, ties and losses."""
    import numpy as np

    for place, result in enumerate((1.0, 0.5, 0.0)):
        tallies[place] += np.bincount(systems[results == result], minlength=tallies.shape[1])


def _document(
    count: int, without: int, systems: Mapping[str, Mapping[str, Any]], reason: str = ""
) -> Mapping[str, object]:
    counts = {"n": count, "without": without, "systems": systems}
    if reason:
        return {**counts, "reason": reason}
    tied = [system for system, figures in systems.items() if figures["rank_low"] == 1]
    return {
        **counts,
        "words": f"{tied[0]} is ahead of all others" if len(tied) == 1 else f"not decided among {', '.join(tied)}",
    }


def fit_strengths(wins: Wins, start: Column | None = None) -> Column:
    """Return the Bradley-Terry strengths that maximize the likelihood of *wins*.

    One win and one loss of each system against an average system, whose strength is 0, are added.
    """
    import numpy as np

    values = np.zeros(len(wins)) if start is None else start.copy()
    for _ in range(_STEPS):  # Newton's method on a concave function, from near its maximum; about ten steps suffice
        slope, information = _slope(wins, values)
        step = np.linalg.solve(information, slope)
        size = float(abs(step).max())
        values += step * min(1.0, _LONGEST / max(size, _LONGEST))
        if size < NOISE:
            break
    return values


def _slope(wins: Wins, values: Column) -> tuple[Column, Wins]:
    """Return the gradient of the log-likelihood at the strengths *values*, and the Fisher information."""
    import numpy as np
    from scipy.special import expit  # type: ignore[import-untyped]  # no types

    games = wins + wins.T
    chances, average_chances = expit(values[:, None] - values), expit(values)
    curve = games * chances * (1 - chances)
    information = np.diag(curve.sum(1) + 2 * average_chances * (1 - average_chances)) - curve
    return (wins - games * chances).sum(1) + 1 - 2 * average_chances, information


def _rank_systems(games: Wins, systems: Sequence[str], tallies: Any, resamples: int) -> dict[str, dict[str, Any]]:
    import numpy as np

    values, count = fit_strengths(games.sum(0)), len(games)
    draw = np.random.default_rng(SEED)
    flat = games.reshape(count, -1)
    resampled = np.array([
        fit_strengths((draw.multinomial(count, np.full(count, 1 / count)) @ flat).reshape(games.shape[1:]), values) for _ in range(resamples)
    ])  # fmt: skip
    covariance = np.linalg.inv(_slope(games.sum(0), values)[1])
    variances = np.diag(covariance)
    spread, reach = _simultaneous(resampled - values, np.sqrt(variances))
    differences = values[:, None] - values
    deviations = (resampled[:, :, None] - resampled[:, None, :] - differences).reshape(resamples, -1)
    errors, quantile = _simultaneous(
        deviations, np.sqrt(np.maximum(variances[:, None] + variances - 2 * covariance, 0)).ravel()
    )
    margin = (errors * quantile).reshape(differences.shape)
    equal = abs(differences) <= _EQUAL
    better, behind = (differences > margin) & ~equal, (differences < -margin) & ~equal
    board = {}
    for k in np.argsort(-values, kind="stable").tolist():
        low, high = 1 + int(behind[k].sum()), len(systems) - int(better[k].sum())
        ahead = int(((differences[:, k] > 0) & ~equal[:, k]).sum())
        figures = {"strength": float(values[k]), "effect_size": float(values[k])}
        figures |= {"ci_low": float(values[k] - reach * spread[k]), "ci_high": float(values[k] + reach * spread[k])}
        words = f"rank {low}" if low == high else f"rank {low} to {high}"
        counts = dict(
            zip(("wins", "ties", "losses", "n"), (*tallies[:, k].tolist(), int(tallies[:, k].sum())), strict=True)
        )
        ranks = {"rank": 1 + ahead, "rank_low": low, "rank_high": high}
        board[systems[k]] = {**ranks, **figures, **counts, "words": words}
    return board


def _simultaneous(deviations: Column, model_errors: Column) -> tuple[Column, float]:
    """Return the standard error of each column of *deviations*, and the 95 % quantile of the largest studentized deviation of a row.

    If all resamples are equal, the standard error is the one in *model_errors*. The quantile is at least that of a single normal number.
    """
    import numpy as np

    errors = deviations.std(0, ddof=1)
    errors = np.where(errors > NOISE, errors, model_errors)
    is_positive = errors > NOISE
    largest = (abs(deviations[:, is_positive]) / errors[is_positive]).max(1) if is_positive.any() else np.zeros(1)
    return errors, max(_Z, float(np.quantile(largest, 0.95)))
