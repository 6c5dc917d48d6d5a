"""The figures of :mod:`.verdicts`, made of many verdicts a column at a time."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from decimal import Decimal
from types import ModuleType
from typing import Any, Literal

from dicast import Cost
from dicast.reading import (
    DOWN,
    ESCALATED,
    EXACT,
    EXHAUSTED,
    FAILED,
    ROUTED,
    USD_UNKNOWN,
    ActivityColumns,
    Numbering,
    VerdictColumns,
    VerdictOrigin,
    exact_sum,
    parts_by_key,
    rows_by_key,
    view,
)

from .arrays import Array, average, numpy_for, percentiles
from .verdicts import ALWAYS, SHARES, Group, Grouping, Key, Verdicts

_UNTOLD, _UNDECIDED = -2, -1
"""In place of a model: nobody told of the turn; several models and no decision."""


def verdicts_of(
    judged: VerdictColumns, kind: str, by: Grouping, labels: Collection[str] = (), first: int = 0, last: int = ALWAYS
) -> Verdicts:
    """The verdicts of :class:`Verdicts`, in the form that takes less time."""
    np = numpy_for(len(judged.codes))
    if np is None:
        return Verdicts(judged, kind, by, labels, first, last)
    return ManyVerdicts(np, judged, kind, by, labels, first, last)


class ManyVerdicts(Verdicts):
    """Verdicts as arrays of numpy: *_chosen* are the rows."""

    def __init__(
        self,
        np: ModuleType,
        judged: VerdictColumns,
        kind: str,
        by: Grouping,
        labels: Collection[str],
        first: int,
        last: int,
    ) -> None:
        super().__init__(VerdictColumns(origins=judged.origins), kind, by, labels, first, last)
        self._np, self._judged = np, judged
        self._codes, self._flags = view(np, judged.codes), view(np, judged.flags)
        wanted = np.array([code in self._rows for code in range(len(judged.origins))], bool)
        times = view(np, judged.times)
        mask = wanted[self._codes] & (times >= first) & (times < last) & (self._flags & FAILED == 0)
        self._chosen = np.flatnonzero(mask)
        self._numbering: Numbering | None = None
        self._told: Array = None
        self._told_names: tuple[str, ...] = ()

    @property
    def origins(self) -> list[VerdictOrigin]:
        """Who has made verdicts, or failed, at whatever time."""
        there = self._np.bincount(self._codes, minlength=len(self._judged.origins)).tolist()
        return [origin for origin, count in zip(self._judged.origins, there, strict=True) if count]

    def leave_tools_out(self, runs: Collection[str]) -> int:
        """Drop the verdicts that tools asked for in *runs*, but not those of people; return their number."""
        dropped = self._np.zeros(len(self._judged.origins), bool)
        dropped[list(self._codes_of_tools(runs))] = True
        is_dropped = dropped[self._codes[self._chosen]]
        self._chosen = self._chosen[~is_dropped]
        return int(is_dropped.sum())

    @property
    def numbering(self) -> Numbering:
        """The numbers of subjects, and of turns where they are joined."""
        if self._numbering is None:
            self._numbering = Numbering.cached(self._np, self._judged.names)
        return self._numbering

    def _subjects(self, rows: Array) -> Array:
        """The number of the subject of each of *rows*; equal ones are equal subjects, of one kind."""
        return self.numbering.of(self._judged.names)[view(self._np, self._judged.numbers)[rows]]

    def keep_latest(self) -> None:
        """Drop all but the newest verdict of each judge on each subject."""
        np, origins = self._np, self._judged.origins
        judges = {judge: number for number, judge in enumerate(dict.fromkeys(origin.judge for origin in origins))}
        numbers = np.array([judges[origin.judge] for origin in origins], "i")
        newest = np.empty(self.numbering.size, "q")
        kept = []
        for _, places in rows_by_key(np, numbers[self._codes[self._chosen]]):
            rows = self._chosen[places]
            newest[:] = -1
            newest[self._subjects(rows)] = rows  # of several the last
            kept.append(newest[newest >= 0])
        self._chosen = np.sort(np.concatenate(kept)) if kept else self._chosen

    def join(self, told: Callable[[], ActivityColumns]) -> None:
        """Give each verdict the model of its turn, as :class:`Verdicts` says; it is kept with the verdicts, and *told* asked for once."""
        memo = self._judged.memo
        if "models" not in memo:
            memo["models"] = self._models_of(told())
        self._told_names, models = memo["models"]
        self._told = models[self._chosen]

    def _models_of(self, told: ActivityColumns) -> tuple[tuple[str, ...], Array]:
        """The models that were told of, and the number of each verdict's."""
        np, judged = self._np, self._judged
        numbering = Numbering.cached(np, judged.names, told.names)
        models = {
            model: number for number, model in enumerate(dict.fromkeys(one.kind_or_model for one in told.origins))
        }
        runs = {run: number for number, run in enumerate(dict.fromkeys(one.run_id for one in told.origins))}
        asked = np.array([runs.get(origin.run_id, -1) for origin in judged.origins], _small(len(runs)))[self._codes]
        tellers = _Tellers(np, told, runs, models, numbering)
        return tuple(models), tellers.models(numbering.of(judged.names), view(np, judged.numbers), asked)

    def groups(self, min_confidence: float) -> Iterator[Group]:
        """The figures of every group; *min_confidence* is what a verdict needs to enter the scores."""
        for key, rows in self._grouped().items():
            yield self._figures(key, rows, min_confidence)

    def _grouped(self) -> Mapping[Key, Any]:
        keys, numbers = self._numbered()
        return {keys[number]: self._chosen[places] for number, places in rows_by_key(self._np, numbers)}

    def _escalating(self) -> Collection[int]:
        found: list[int] = self._np.unique(self._codes[self._flags & ESCALATED != 0]).tolist()
        return found

    def _shares(self, rows: Any, names: Mapping[int, str]) -> Iterator[tuple[Decimal, int, int]]:
        np, judges = self._np, {name: number for number, name in enumerate(dict.fromkeys(names.values()))}
        numbers = np.array([judges.get(names.get(code, ""), -1) for code in range(len(self._judged.origins))], "i")
        for number, places in rows_by_key(np, numbers[self._codes[rows]]):
            if number >= 0:
                found, flags = rows[places], self._flags[rows[places]]
                yield self._amount("usd", found, flags), len(found), int(np.count_nonzero(flags & ESCALATED))

    def _numbered(self) -> tuple[Mapping[int, Key], Array]:
        """The keys of the groups by number, and the number of each chosen row."""
        np = self._np
        if self.joins:
            return {number: (name, None) for number, name in [(-1, None), *enumerate(self._told_names)]}, self._told
        keys: dict[Key, int] = {}
        of_codes = [keys.setdefault(self._key(origin), len(keys)) for origin in self._judged.origins]
        return {number: key for key, number in keys.items()}, np.array(of_codes, "i")[self._codes[self._chosen]]

    def _figures(self, key: Key, rows: Array, min_confidence: float) -> Group:
        np, judged = self._np, self._judged
        persons = np.array([code in self._persons for code in range(len(judged.origins))], bool)[self._codes[rows]]
        people = int(np.count_nonzero(persons))
        rows = rows[~persons] if people and self._without_people else rows
        if not len(rows):
            return self._nobody(key, people)
        scores, confidences, flags = (
            view(np, judged.scores)[rows],
            view(np, judged.confidences)[rows],
            self._flags[rows],
        )
        counted = scores[confidences >= min_confidence] if min_confidence > 0 else scores
        usd, msat = self._sum("usd", rows, flags), self._sum("msat", rows, flags)
        unpriced, escalated, exhausted = (
            int(np.count_nonzero(flags & bit)) for bit in (USD_UNKNOWN, ESCALATED, EXHAUSTED)
        )
        median, tenth = percentiles(np, counted, SHARES)
        figures = average(np, counted), median, tenth, average(np, confidences)
        costs, down = (usd, msat, unpriced), self._thumbs_down(rows, flags)
        return Group(key, len(rows), len(counted), *figures, *costs, down, escalated, exhausted, people)

    def _sum(self, unit: Literal["usd", "msat"], rows: Array, flags: Array) -> Cost:
        amount = self._amount(unit, rows, flags)
        return Cost(amount, unit) if amount else Cost.zero(unit)

    def _amount(self, unit: Literal["usd", "msat"], rows: Array, flags: Array) -> Decimal:
        np, judged = self._np, self._judged
        amounts = view(np, judged.usd if unit == "usd" else judged.msat)[rows]
        paid = np.flatnonzero((amounts != 0) | (flags & EXACT != 0))
        if not len(paid):
            return Decimal(0)
        exact = rows[paid][flags[paid] & EXACT != 0].tolist()
        digits = int(judged.decimals(flags[paid], unit).max())
        return judged.amount(unit, exact_sum(np, amounts[paid]), digits, exact)

    def _thumbs_down(self, rows: Array, flags: Array) -> int:
        """How many subjects of *rows* were given a thumb down last."""
        np, flagged = self._np, flags & DOWN != 0
        if not self._thumbs and not flagged.any():
            return 0
        given = np.zeros(self.numbering.size, "b")
        for id, number in self.numbering.find(self._thumbs).items():
            given[number] = 2 if self._thumbs[str(id)][1] else 1
        subjects = self._subjects(rows)
        said = given[subjects]
        given[:] = 0
        given[subjects[(said == 2) | (flagged & (said == 0))]] = 1
        return int(np.count_nonzero(given))


def _small(count: int) -> str:
    """The type of the smallest numbers that has so many, and some below 0."""
    return "h" if count < 2**15 else "i"


class _Tellers:
    """Who tells which model, by the codes of *told*: numbers of *runs* and of *models*."""

    def __init__(
        self,
        np: ModuleType,
        told: ActivityColumns,
        runs: Mapping[str, int],
        models: Mapping[str, int],
        numbering: Numbering,
    ) -> None:
        self._np, self._size = np, numbering.size
        self._names, self._numbers, self._codes = numbering.of(told.names), view(np, told.numbers), view(np, told.codes)
        self._nobody = numbering.find([None]).get(None, -1)
        self._runs = np.array([runs[one.run_id] for one in told.origins], _small(len(runs)))
        self._models = np.array([models[one.kind_or_model] for one in told.origins], "i")
        self._routed = np.array([one.type == ROUTED for one in told.origins], bool)

    def models(self, names: Array, numbers: Array, asked: Array) -> Array:
        """The model of each subject, judged in the run *asked*: by *numbers* of *names*, which are numbers below the size of the numbering."""
        np, runs = self._np, self._runs[self._codes]
        own, found = np.full(self._size, _UNTOLD, "i"), np.full(len(numbers), _UNTOLD, "i")
        told = dict(parts_by_key(np, runs))
        for run, rows in parts_by_key(np, asked):
            if run in told:
                turns = self._tell(own, told[run])
                found[rows] = own[names[numbers[rows]]]
                own[turns] = _UNTOLD
        apart = np.flatnonzero(found == _UNTOLD)
        if len(apart):
            last = np.full(self._size, -1, runs.dtype)
            turns = self._names[self._numbers]
            last[turns] = runs  # of several the last
            self._tell(own, np.flatnonzero(last[turns] == runs))
            found[apart] = np.maximum(own, _UNDECIDED)[names[numbers[apart]]]
        return found

    def _tell(self, own: Array, rows: slice | Array) -> Array:
        """Put the model of each turn of *rows* into *own*: the last decision, else that of its calls where it is one; return the turns."""
        turns, codes = self._names[self._numbers[rows]], self._codes[rows]
        if self._nobody >= 0:
            turns, codes = turns[there := turns != self._nobody], codes[there]
        routed, models = self._routed[codes], self._models[codes]
        called, model = turns[~routed], models[~routed]
        own[called[::-1]] = model[::-1]  # the first
        own[called[own[called] != model]] = _UNDECIDED
        own[turns[routed]] = models[routed]  # the last
        return turns
