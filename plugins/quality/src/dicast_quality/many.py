"""Figures of :mod:`.verdicts`, computed from many verdicts by column."""

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
from dicast.reading.columns import numpy_for

from .arrays import Array, average, percentiles
from .verdicts import ALWAYS, DAY, SHARES, Group, Grouping, Key, Verdicts, day_of

_UNKNOWN, _UNDECIDED = -2, -1
"""Numbers in place of a model: no run recorded the turn; several models without a decision."""


def verdicts_of(
    judged: VerdictColumns, kind: str, by: Grouping, labels: Collection[str] = (), first: int = 0, last: int = ALWAYS
) -> Verdicts:
    """Return the faster of :class:`Verdicts` and :class:`ManyVerdicts` for these rows."""
    np = numpy_for(len(judged.codes))
    if np is None:
        return Verdicts(judged, kind, by, labels, first, last)
    return ManyVerdicts(np, judged, kind, by, labels, first, last)


class ManyVerdicts(Verdicts):
    """Verdicts as numpy arrays; *_chosen* are their rows."""

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
        is_chosen_code = np.array([code in self._rows for code in range(len(judged.origins))], bool)
        times = view(np, judged.times)
        mask = is_chosen_code[self._codes] & (times >= first) & (times < last) & (self._flags & FAILED == 0)
        self._chosen = np.flatnonzero(mask)
        self._numbering: Numbering | None = None
        self._model_numbers: Array = None
        self._model_names: tuple[str, ...] = ()

    @property
    def origins(self) -> list[VerdictOrigin]:
        """Origins of all verdicts and failures, at any time."""
        counts = self._np.bincount(self._codes, minlength=len(self._judged.origins)).tolist()
        return [origin for origin, count in zip(self._judged.origins, counts, strict=True) if count]

    def leave_tools_out(self, runs: Collection[str]) -> int:
        """Drop the verdicts of tools in *runs*, but not people's verdicts; return the number dropped."""
        dropped = self._np.zeros(len(self._judged.origins), bool)
        dropped[list(self._codes_of_tools(runs))] = True
        is_dropped = dropped[self._codes[self._chosen]]
        self._chosen = self._chosen[~is_dropped]
        return int(is_dropped.sum())

    @property
    def numbering(self) -> Numbering:
        """Numbers of subjects, and of turns if they are joined."""
        if self._numbering is None:
            self._numbering = Numbering.cached(self._np, self._judged.names)
        return self._numbering

    def _subjects(self, rows: Array) -> Array:
        """Return the number of the subject in each of *rows*. Equal numbers mean equal subjects of one kind."""
        return self.numbering.of(self._judged.names)[view(self._np, self._judged.numbers)[rows]]

    def keep_latest(self) -> None:
        """Keep only the newest verdict of each judge on each subject."""
        np, origins = self._np, self._judged.origins
        judges = {judge: number for number, judge in enumerate(dict.fromkeys(origin.judge for origin in origins))}
        numbers = np.array([judges[origin.judge] for origin in origins], "i")
        newest = np.empty(self.numbering.size, "q")
        newest_rows = []
        for _, places in rows_by_key(np, numbers[self._codes[self._chosen]]):
            rows = self._chosen[places]
            newest[:] = -1
            newest[self._subjects(rows)] = rows  # the last of several
            newest_rows.append(newest[newest >= 0])
        self._chosen = np.sort(np.concatenate(newest_rows)) if newest_rows else self._chosen

    def join(self, read: Callable[[], ActivityColumns]) -> None:
        """Assign each verdict the model of its turn, like :class:`Verdicts`. The models are cached with the verdicts, and *read* is called once."""
        memo = self._judged.memo
        if "models" not in memo:
            memo["models"] = self._models_of(read())
        self._model_names, models = memo["models"]
        self._model_numbers = models[self._chosen]

    def _models_of(self, activity: ActivityColumns) -> tuple[tuple[str, ...], Array]:
        """Return the recorded models, and the number of each verdict's model."""
        np, judged = self._np, self._judged
        numbering = Numbering.cached(np, judged.names, activity.names)
        models = {
            model: number
            for number, model in enumerate(dict.fromkeys(source.kind_or_model for source in activity.origins))
        }
        runs = {run: number for number, run in enumerate(dict.fromkeys(source.run_id for source in activity.origins))}
        judging_runs = np.array([runs.get(origin.run_id, -1) for origin in judged.origins], _small(len(runs)))[
            self._codes
        ]
        records = _ModelRecords(np, activity, runs, models, numbering)
        return tuple(models), records.models(numbering.of(judged.names), view(np, judged.numbers), judging_runs)

    def groups(self, min_confidence: float) -> Iterator[Group]:
        """Yield the figures of every group. Scores need a confidence of at least *min_confidence*."""
        for key, rows in self._grouped().items():
            yield self._figures(key, rows, min_confidence)

    def _grouped(self) -> Mapping[Key, Any]:
        keys, numbers = self._numbered()
        return {keys[number]: self._chosen[places] for number, places in rows_by_key(self._np, numbers)}

    def _escalating(self) -> Collection[int]:
        codes: list[int] = self._np.unique(self._codes[self._flags & ESCALATED != 0]).tolist()
        return codes

    def _shares(self, rows: Any, names: Mapping[int, str]) -> Iterator[tuple[Decimal, int, int]]:
        np, judges = self._np, {name: number for number, name in enumerate(dict.fromkeys(names.values()))}
        numbers = np.array([judges.get(names.get(code, ""), -1) for code in range(len(self._judged.origins))], "i")
        for number, places in rows_by_key(np, numbers[self._codes[rows]]):
            if number >= 0:
                judge_rows, flags = rows[places], self._flags[rows[places]]
                yield self._amount("usd", judge_rows, flags), len(judge_rows), int(np.count_nonzero(flags & ESCALATED))

    def _numbered(self) -> tuple[Mapping[int, Key], Array]:
        """Return the keys of the groups by number, and the number of each chosen row."""
        np = self._np
        if self.joins:
            return {
                number: (name, None) for number, name in [(-1, None), *enumerate(self._model_names)]
            }, self._model_numbers
        if self._by == "day":
            days, numbers = np.unique(view(np, self._judged.times)[self._chosen] // DAY, return_inverse=True)
            return {number: day_of(day) for number, day in enumerate(days.tolist())}, numbers
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
        """Return the number of subjects in *rows* whose last thumb is down."""
        np, flagged = self._np, flags & DOWN != 0
        if not self._thumbs and not flagged.any():
            return 0
        thumbs = np.zeros(self.numbering.size, "b")
        for id, number in self.numbering.find(self._thumbs).items():
            thumbs[number] = 2 if self._thumbs[str(id)][1] else 1
        subjects = self._subjects(rows)
        last_thumbs = thumbs[subjects]
        thumbs[:] = 0
        thumbs[subjects[(last_thumbs == 2) | (flagged & (last_thumbs == 0))]] = 1
        return int(np.count_nonzero(thumbs))


def _small(count: int) -> str:
    """Return the smallest integer type for *count* numbers and a few negative ones."""
    return "h" if count < 2**15 else "i"


class _ModelRecords:
    """Origins of the recorded models, by the codes of *activity*: numbers of *runs* and of *models*."""

    def __init__(
        self,
        np: ModuleType,
        activity: ActivityColumns,
        runs: Mapping[str, int],
        models: Mapping[str, int],
        numbering: Numbering,
    ) -> None:
        self._np, self._size = np, numbering.size
        self._names, self._numbers, self._codes = (
            numbering.of(activity.names),
            view(np, activity.numbers),
            view(np, activity.codes),
        )
        self._nobody = numbering.find([None]).get(None, -1)
        self._runs = np.array([runs[origin.run_id] for origin in activity.origins], _small(len(runs)))
        self._models = np.array([models[origin.kind_or_model] for origin in activity.origins], "i")
        self._routed = np.array([origin.type == ROUTED for origin in activity.origins], bool)

    def models(self, names: Array, numbers: Array, judging_runs: Array) -> Array:
        """Return the model of each subject, judged in *judging_runs*.

        *numbers* index *names*, which are numbers below the size of the numbering.
        """
        np, runs = self._np, self._runs[self._codes]
        turn_models, result = np.full(self._size, _UNKNOWN, "i"), np.full(len(numbers), _UNKNOWN, "i")
        rows_by_run = dict(parts_by_key(np, runs))
        for run, rows in parts_by_key(np, judging_runs):
            if run in rows_by_run:
                turns = self._write_models(turn_models, rows_by_run[run])
                result[rows] = turn_models[names[numbers[rows]]]
                turn_models[turns] = _UNKNOWN
        missing = np.flatnonzero(result == _UNKNOWN)
        if len(missing):
            last = np.full(self._size, -1, runs.dtype)
            turns = self._names[self._numbers]
            last[turns] = runs  # the last of several
            self._write_models(turn_models, np.flatnonzero(last[turns] == runs))
            result[missing] = np.maximum(turn_models, _UNDECIDED)[names[numbers[missing]]]
        return result

    def _write_models(self, turn_models: Array, rows: slice | Array) -> Array:
        """Write the model of each turn of *rows* into *turn_models*, and return the turns.

        The model is that of the last decision, else of the turn's calls if they have only one.
        """
        turns, codes = self._names[self._numbers[rows]], self._codes[rows]
        if self._nobody >= 0:
            turns, codes = turns[has_turn := turns != self._nobody], codes[has_turn]
        routed, models = self._routed[codes], self._models[codes]
        called, model = turns[~routed], models[~routed]
        turn_models[called[::-1]] = model[::-1]  # the first of several
        turn_models[called[turn_models[called] != model]] = _UNDECIDED
        turn_models[turns[routed]] = models[routed]  # the last of several
        return turns
