"""Ratings of :mod:`.ratings`, assembled from many verdicts by column."""

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
from dicast.reading.columns import numpy_for

from .arrays import Array
from .contents import Contents, Place
from .ratings import Ratings, Unit, VerdictFilter, rater_name
from .reliability import CUT, NOISE

MOST_CELLS, MOST_RATERS = 20_000_000, 30
"""Limits of a table. A larger one would cost more memory than it saves time."""


class Table(NamedTuple):
    """Ratings of subjects that two raters scored. Each array has a row per rater (*raters*, ascending) and a column per subject.

    *rows* are the verdicts, -1 if none counts; *scores* are NaN if missing; *spreads* are the differences of a subject's highest and lowest score.
    *places* are the numbers of the subjects, in the order of ids. *patterns* count the ratings of all subjects, as in
    :class:`.reliability.Tally`. *excluded* are the subjects with verdicts about another content, whose scores do not count.
    """

    raters: Sequence[int]
    places: Array
    rows: Array
    scores: Array
    spreads: Array
    patterns: Mapping[tuple[int, ...], int]
    excluded: Sequence[Unit]


def ratings_of(ledger: Ledger, filter: VerdictFilter, labels: LabeledOutputs | None = None) -> Ratings:
    """Return the chosen ratings in *ledger*, in the faster form. The last ratings are cached with the verdicts.

    :param labels: leave out verdicts about other outputs than their subjects' labels.
    """
    columns = read_verdicts(ledger, filter.only).unit_scores()
    if labels is not None and labels.is_selective:
        chosen = Ratings(columns, labels)
        chosen.read(ledger, filter)
        return chosen
    cached: tuple[VerdictFilter, Ratings] | None = columns.memo.get("ratings")
    if cached is not None and cached[0] == filter:
        return cached[1]
    np = numpy_for(len(columns.codes))
    ratings = Ratings(columns) if np is None else ManyRatings(np, columns)
    ratings.read(ledger, filter)
    if np is not None:
        columns.memo["ratings"] = filter, ratings
    return ratings


class ManyRatings(Ratings):
    """Ratings as numpy arrays. *table* is None if there are too many raters for one."""

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
        """Row of the newest verdict by rater and subject."""
        if self._newest_rows is None:
            self._newest_rows = {rater: self._by_place(rows) for rater, rows in self._rows.items()}
        return self._newest_rows

    @newest.setter
    def newest(self, rows: Mapping[int, Mapping[Place, int]]) -> None:
        self._newest_rows = rows or None

    def _by_place(self, rows: Array) -> Mapping[Place, int]:
        places = self.np.flatnonzero(rows >= 0)
        order, ids = self._numbering.sorted_texts(places // len(self._kinds))
        ordered = places[order]
        kinds = map(self._kinds.__getitem__, (ordered % len(self._kinds)).tolist())
        return dict(zip(zip(ids, kinds, strict=True), rows[ordered].tolist(), strict=True))

    def _first_rows(self) -> Mapping[int, int]:
        return {code: int(rows[0]) for code, rows in self._by_code.items()}

    def _contents(self, reads: Sequence[ActivityColumns], kind: str | None) -> Contents:
        if len(reads) > 1 or numpy_for(len(reads[0].codes)) is None:
            return super()._contents(reads, kind)
        return Contents.of_many(self.np, Numbering.cached(self.np, reads[0].names), reads[0], kind)

    def _rate(self, ledger: Ledger, filter: VerdictFilter, chosen: Sequence[int]) -> None:
        np, columns = self.np, self.judged
        self._kinds = list(dict.fromkeys(columns.origins[code].kind for code in chosen))
        named = self._named(ledger, filter, {code: self._by_code[code] for code in chosen})
        self._numbering = numbering = Numbering.cached(np, columns.names)
        cells = numbering.size * len(self._kinds) * len(named)
        if cells > MOST_CELLS or len(named) > MOST_RATERS:
            self.newest = {self._number(name): self._newest(sorted(map(int, rows))) for name, rows in named.items()}
            return
        kinds = np.array(
            [self._kinds.index(origin.kind) if origin.kind in self._kinds else -1 for origin in columns.origins], "q"
        )
        names = numbering.of(columns.names).astype("q" if len(self._kinds) > 1 else "i")
        for name, rows in named.items():
            ordered = np.concatenate([np.atleast_1d(np.asarray(part)) for part in rows])
            ordered = ordered if (ordered[1:] > ordered[:-1]).all() else np.sort(ordered)
            places = names[view(np, columns.numbers)[ordered]]
            if len(self._kinds) > 1:
                places = places * len(self._kinds) + kinds[view(np, columns.codes)[ordered]]
            self._rows[self._number(name)] = self._newest_of(ordered, places, numbering.size * len(self._kinds))

    def _named(self, ledger: Ledger, filter: VerdictFilter, rows: Mapping[int, Any]) -> Mapping[str, Any]:
        if filter.between == "rubrics":
            listed = {code: code_rows.tolist() for code, code_rows in rows.items()}
            return {name: [code_rows] for name, code_rows in super()._named(ledger, filter, listed).items()}
        names: dict[str, list[Array]] = {}
        for code, code_rows in rows.items():
            names.setdefault(rater_name(self.judged.origins[code], filter.between), []).append(code_rows)
        return names

    def _newest_of(self, rows: Array, places: Array, size: int) -> Array:
        """Return by place the row of the newest verdict. A failure does not replace a verdict; of several failures the first counts."""
        np = self.np
        failed = view(np, self.judged.flags)[rows] & FAILED != 0
        newest = np.full(size, -1, "i")
        newest[places[failed][::-1]] = rows[failed][::-1]
        newest[places[~failed]] = rows[~failed]
        return newest

    @property
    def table(self) -> Table | None:
        """Ratings of all raters; None if there are too many raters."""
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
        excluded = self._set_apart(raters, seen, rows, scores)
        patterns = self._patterns(raters, rows, scores)
        compared = np.flatnonzero((~np.isnan(scores)).sum(axis=0) > 1)
        compared = compared[self._order(seen[compared])]
        rows, scores = rows[:, compared], scores[:, compared]
        return Table(raters, seen[compared], rows, scores, _spreads(np, scores), patterns, excluded)

    def _order(self, places: Array) -> Array:
        """Return the order of *places* by ids, then by kinds."""
        np = self.np
        order, ids = self._numbering.sorted_texts(places // len(self._kinds))
        kinds = list(map(self._kinds.__getitem__, (places[order] % len(self._kinds)).tolist()))
        ordered = sorted(range(len(ids)), key=kinds.__getitem__) if len(self._kinds) > 1 else range(len(ids))
        return order[np.array(sorted(ordered, key=ids.__getitem__), "q")]

    def subject(self, place: int) -> Place:
        """Return the subject with a number."""
        number, kind = divmod(place, len(self._kinds))
        return self._numbering.sorted_texts(self.np.array([number]))[1][0], self._kinds[kind]

    def several(self, places: Array) -> int:
        """Return the number of *places* under which several contents were read."""
        several_places = [place for _, place in self._several_places()]
        return int(self.np.isin(places, several_places).sum()) if several_places else 0

    def _several_places(self) -> Sequence[tuple[Place, int]]:
        """Return the subjects with several contents in the order of ids, with their numbers."""
        several = [place for place in sorted(self.contents.several) if place[1] in self._kinds]
        numbers = self._numbering.find({id for id, _ in several}) if several else {}
        kinds = {kind: number for number, kind in enumerate(self._kinds)}
        return [
            (subject, numbers[subject[0]] * len(kinds) + kinds[subject[1]])
            for subject in several
            if subject[0] in numbers
        ]

    def _set_apart(self, raters: Sequence[int], seen: Array, rows: Array, scores: Array) -> Sequence[Unit]:
        """Remove verdicts about other contents from *rows* and *scores*; return the affected subjects, in the order of ids."""
        excluded, lines = [], {rater: line for line, rater in enumerate(raters)}
        for place, at in self._several_places():
            column = int(self.np.searchsorted(seen, at))
            if column == len(seen) or seen[column] != at:
                continue
            subject_rows = {rater: int(rows[line, column]) for rater, line in lines.items() if rows[line, column] >= 0}
            unit = self._unit((place[1], place[0]), subject_rows, self.contents.count(place), None)
            for rater in unit.other_scores:
                rows[lines[rater], column], scores[lines[rater], column] = -1, self.np.nan
            excluded += [unit] if unit.other_scores else []
        return excluded

    def _patterns(self, raters: Sequence[int], rows: Array, scores: Array) -> Mapping[tuple[int, ...], int]:
        """Return the count of each pattern of ratings.

        An element is 3 times the rater, plus 0 for a score below :data:`CUT`, 1 for a higher score, and 2 for a failure.
        """
        np = self.np
        states = np.where(rows < 0, 0, np.where(np.isnan(scores), 3, 1 + (scores >= CUT - NOISE)))
        keys = np.zeros(rows.shape[1], "q")
        for line in states:
            keys = keys * 4 + line
        counts: dict[tuple[int, ...], int] = {}
        for key, count in zip(*(part.tolist() for part in np.unique(keys, return_counts=True)), strict=True):
            digits = [key >> 2 * place & 3 for place in range(len(raters) - 1, -1, -1)]
            pattern = tuple(3 * rater + digit - 1 for rater, digit in zip(raters, digits, strict=True) if digit)
            if pattern:
                counts[pattern] = count
        return counts


def _spreads(np: ModuleType, scores: Array) -> Array:
    """Return the highest minus the lowest score of each column. Each column has at least two scores."""
    if len(scores) == 2:
        return np.abs(scores[0] - scores[1])
    return np.nanmax(scores, axis=0) - np.nanmin(scores, axis=0) if scores.shape[1] else np.zeros(0)
