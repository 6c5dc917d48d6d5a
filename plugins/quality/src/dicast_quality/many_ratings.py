"""The ratings of :mod:`.ratings`, put together of many verdicts a column at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, NamedTuple

from dicast import Ledger
from dicast.reading import (
    FAILED,
    ActivityColumns,
    LabeledOutputs,
    Numbering,
    VerdictColumns,
    read_verdicts,
    rows_by_key,
    view,
)

from .arrays import MANY, Array, numpy_for
from .contents import Contents, Place
from .ratings import Ratings, Unit, Wanted, rater_name
from .reliability import CUT, NOISE

MOST_CELLS, MOST_RATERS = 20_000_000, 30
"""A table of more raters, or with more cells, would take more memory than it saves time."""


class Table(NamedTuple):
    """What *raters* (numbers, ascending) say of subjects. Each array has a line for a rater, and a column for a subject that two have scored.

    *rows* are the verdicts, -1 where there is none that counts, *scores* NaN where there is none, *spreads* say how far the scores of a
    subject lie apart. *places* are the numbers of the subjects, in the order of ids. *patterns* count what raters say of all subjects, as
    :class:`.reliability.Tally` has it; *apart* are the subjects with verdicts about another content, whose scores do not count.
    """

    raters: Sequence[int]
    places: Array
    rows: Array
    scores: Array
    spreads: Array
    patterns: Mapping[tuple[int, ...], int]
    apart: Sequence[Unit]


def ratings_of(ledger: Ledger, wanted: Wanted, labels: LabeledOutputs | None = None) -> Ratings:
    """Return the ratings of *wanted* in *ledger*, in the form that takes less time; the last ratings are kept with the verdicts.

    :param labels: leave out verdicts about other outputs than their subjects' labels.
    """
    found = read_verdicts(ledger, wanted.only).unit_scores()
    if labels is not None and labels.is_selective:
        chosen = Ratings(found, labels)
        chosen.read(ledger, wanted)
        return chosen
    kept: tuple[Wanted, Ratings] | None = found.memo.get("ratings")
    if kept is not None and kept[0] == wanted:
        return kept[1]
    np = numpy_for(len(found.codes))
    ratings = Ratings(found) if np is None else ManyRatings(np, found)
    ratings.read(ledger, wanted)
    if np is not None:
        found.memo["ratings"] = wanted, ratings
    return ratings


class ManyRatings(Ratings):
    """Ratings as arrays of numpy. *table* is None where there are too many raters for one."""

    def __init__(self, np: ModuleType, judged: VerdictColumns) -> None:
        super().__init__(judged)
        self.np = np
        self._by_code = dict(rows_by_key(np, view(np, judged.codes)))
        self._kinds: list[str] = []
        self._rows: dict[int, Array] = {}
        self._numbering = Numbering(np)
        self._newest_rows: Mapping[int, Mapping[Place, int]] | None = None
        self._table: Table | None = None

    @property
    def newest(self) -> Mapping[int, Mapping[Place, int]]:
        """By rater and subject the row of the newest verdict."""
        if self._newest_rows is None:
            self._newest_rows = {rater: self._by_place(rows) for rater, rows in self._rows.items()}
        return self._newest_rows

    @newest.setter
    def newest(self, found: Mapping[int, Mapping[Place, int]]) -> None:
        self._newest_rows = found or None

    def _by_place(self, rows: Array) -> Mapping[Place, int]:
        places = self.np.flatnonzero(rows >= 0)
        order, ids = self._numbering.sorted_texts(places // len(self._kinds))
        ordered = places[order]
        kinds = map(self._kinds.__getitem__, (ordered % len(self._kinds)).tolist())
        return dict(zip(zip(ids, kinds, strict=True), rows[ordered].tolist(), strict=True))

    def _first_rows(self) -> Mapping[int, int]:
        return {code: int(rows[0]) for code, rows in self._by_code.items()}

    def _contents(self, reads: Sequence[ActivityColumns], kind: str | None) -> Contents:
        if len(reads) > 1 or len(reads[0].codes) < MANY:
            return super()._contents(reads, kind)
        return Contents.of_many(self.np, Numbering.cached(self.np, reads[0].names), reads[0], kind)

    def _rate(self, ledger: Ledger, wanted: Wanted, chosen: Sequence[int]) -> None:
        np, found = self.np, self.judged
        self._kinds = list(dict.fromkeys(found.origins[code].kind for code in chosen))
        named = self._named(ledger, wanted, {code: self._by_code[code] for code in chosen})
        self._numbering = numbering = Numbering.cached(np, found.names)
        cells = numbering.size * len(self._kinds) * len(named)
        if cells > MOST_CELLS or len(named) > MOST_RATERS:
            self.newest = {self._number(name): self._newest(sorted(map(int, rows))) for name, rows in named.items()}
            return
        kinds = np.array([self._kinds.index(one.kind) if one.kind in self._kinds else -1 for one in found.origins], "q")
        names = numbering.of(found.names).astype("q" if len(self._kinds) > 1 else "i")
        for name, rows in named.items():
            ordered = np.concatenate([np.atleast_1d(np.asarray(part)) for part in rows])
            ordered = ordered if (ordered[1:] > ordered[:-1]).all() else np.sort(ordered)
            places = names[view(np, found.numbers)[ordered]]
            if len(self._kinds) > 1:
                places = places * len(self._kinds) + kinds[view(np, found.codes)[ordered]]
            self._rows[self._number(name)] = self._newest_of(ordered, places, numbering.size * len(self._kinds))

    def _named(self, ledger: Ledger, wanted: Wanted, rows: Mapping[int, Any]) -> Mapping[str, Any]:
        if wanted.between == "rubrics":
            listed = {code: found.tolist() for code, found in rows.items()}
            return {name: [found] for name, found in super()._named(ledger, wanted, listed).items()}
        names: dict[str, list[Array]] = {}
        for code, found in rows.items():
            names.setdefault(rater_name(self.judged.origins[code], wanted.between), []).append(found)
        return names

    def _newest_of(self, rows: Array, places: Array, size: int) -> Array:
        """By place the row of the newest verdict; a failure, of which the first counts, does not take a verdict back."""
        np = self.np
        failed = view(np, self.judged.flags)[rows] & FAILED != 0
        newest = np.full(size, -1, "i")
        newest[places[failed][::-1]] = rows[failed][::-1]
        newest[places[~failed]] = rows[~failed]
        return newest

    @property
    def table(self) -> Table | None:
        """What the raters say, None where there are too many of them."""
        if self._table is None and self._rows:
            self._table = self._made_table()
        return self._table

    def _made_table(self) -> Table:
        np, raters = self.np, sorted(self._rows)
        rows = np.stack([self._rows[rater] for rater in raters])
        seen = np.flatnonzero((rows >= 0).any(axis=0))
        rows = rows[:, seen]
        scores = view(np, self.judged.scores)[rows]
        scores[(rows < 0) | (view(np, self.judged.flags)[rows] & FAILED != 0)] = np.nan
        apart = self._set_apart(raters, seen, rows, scores)
        patterns = self._patterns(raters, rows, scores)
        compared = np.flatnonzero((~np.isnan(scores)).sum(axis=0) > 1)
        compared = compared[self._order(seen[compared])]
        rows, scores = rows[:, compared], scores[:, compared]
        return Table(raters, seen[compared], rows, scores, _spreads(np, scores), patterns, apart)

    def _order(self, places: Array) -> Array:
        """The order of *places* by ids, and of equal ones by kinds."""
        np = self.np
        order, ids = self._numbering.sorted_texts(places // len(self._kinds))
        kinds = list(map(self._kinds.__getitem__, (places[order] % len(self._kinds)).tolist()))
        ordered = sorted(range(len(ids)), key=kinds.__getitem__) if len(self._kinds) > 1 else range(len(ids))
        return order[np.array(sorted(ordered, key=ids.__getitem__), "q")]

    def subject(self, place: int) -> Place:
        """The subject with a number."""
        number, kind = divmod(place, len(self._kinds))
        return self._numbering.sorted_texts(self.np.array([number]))[1][0], self._kinds[kind]

    def several(self, places: Array) -> int:
        """Under how many of *places* several contents were read."""
        found = [place for _, place in self._several_places()]
        return int(self.np.isin(places, found).sum()) if found else 0

    def _several_places(self) -> Sequence[tuple[Place, int]]:
        """The subjects under whose ids several contents were read, in the order of ids, with their numbers."""
        several = [place for place in sorted(self.contents.several) if place[1] in self._kinds]
        numbers = self._numbering.find({id for id, _ in several}) if several else {}
        kinds = {kind: number for number, kind in enumerate(self._kinds)}
        return [(one, numbers[one[0]] * len(kinds) + kinds[one[1]]) for one in several if one[0] in numbers]

    def _set_apart(self, raters: Sequence[int], seen: Array, rows: Array, scores: Array) -> Sequence[Unit]:
        """Take verdicts about other contents out of *rows* and *scores*, in the order of ids; return the subjects that have some."""
        apart, lines = [], {rater: line for line, rater in enumerate(raters)}
        for place, at in self._several_places():
            column = int(self.np.searchsorted(seen, at))
            if column == len(seen) or seen[column] != at:
                continue
            found = {rater: int(rows[line, column]) for rater, line in lines.items() if rows[line, column] >= 0}
            unit = self._unit((place[1], place[0]), found, self.contents.count(place), None)
            for rater in unit.apart:
                rows[lines[rater], column], scores[lines[rater], column] = -1, self.np.nan
            apart += [unit] if unit.apart else []
        return apart

    def _patterns(self, raters: Sequence[int], rows: Array, scores: Array) -> Mapping[tuple[int, ...], int]:
        """How often raters say what of a subject: 3 times the rater and 0 below :data:`CUT`, 1 from there on, 2 of a failure."""
        np = self.np
        states = np.where(rows < 0, 0, np.where(np.isnan(scores), 3, 1 + (scores >= CUT - NOISE)))
        keys = np.zeros(rows.shape[1], "q")
        for line in states:
            keys = keys * 4 + line
        found: dict[tuple[int, ...], int] = {}
        for key, count in zip(*(part.tolist() for part in np.unique(keys, return_counts=True)), strict=True):
            digits = [key >> 2 * place & 3 for place in range(len(raters) - 1, -1, -1)]
            pattern = tuple(3 * rater + digit - 1 for rater, digit in zip(raters, digits, strict=True) if digit)
            if pattern:
                found[pattern] = count
        return found


def _spreads(np: ModuleType, scores: Array) -> Array:
    """The highest less the lowest score of each column; there are two at the least."""
    if len(scores) == 2:
        return np.abs(scores[0] - scores[1])
    return np.nanmax(scores, axis=0) - np.nanmin(scores, axis=0) if scores.shape[1] else np.zeros(0)
