"""The sums of :mod:`.accounts` over many lines, computed a column at a time with numpy."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

from dicast.reading import Numbering, first_places, view
from dicast.reading.blocks.spent import AGENT, DAY, DIGITS, EXACT, UNCOUNTED, UNPRICED, Spent, amount_of_line, day_of

from .sums import Group, Sum

Array = Any
"""An array of numpy."""


class ManySpent:
    """The counted lines of *spent*, for one run or for all: the agents' calls and, with *judging*, the settled amounts for judging."""

    def __init__(self, np: ModuleType, spent: Spent, run_id: str | None, *, judging: bool) -> None:
        self._np, self._spent = np, spent
        self._codes, self._flags = view(np, spent.codes), view(np, spent.flags)
        payers = spent.payers
        mine = np.array([run_id in (None, payer.run_id) for payer in payers], bool)
        self._agents = np.array([payer.type == AGENT for payer in payers], bool)
        settled = np.array([judging and payer.type == "spend.settled" for payer in payers], bool)
        calls = self._first_recorded(np.flatnonzero((mine & self._agents)[self._codes]))
        self._lines = np.sort(np.concatenate([calls, np.flatnonzero((mine & settled)[self._codes])]))
        self._judging = (mine & ~self._agents)[self._codes] if judging else np.zeros(len(self._codes), bool)

    def _first_recorded(self, lines: Array) -> Array:
        """Return the *lines* whose call no other run has recorded before. Each run over a trace records all its calls, and they were paid once."""
        np, payers = self._np, self._spent.payers
        numbers = {run: number for number, run in enumerate(dict.fromkeys(payer.run_id for payer in payers))}
        runs = np.array([numbers[payer.run_id] for payer in payers], "i")[self._codes[lines]]
        if not len(lines) or (runs == runs[0]).all():
            return lines
        return lines[runs[first_places(np, view(np, self._spent.marks)[lines])] == runs]

    def about_lost(self) -> Iterator[int]:
        """Yield, in their order, the lines about reservations that have a loss."""
        np, marks = self._np, view(self._np, self._spent.marks)
        lost = np.array([payer.type == "spend.lost" for payer in self._spent.payers], bool)[self._codes] & self._judging
        if lost.any():
            yield from np.flatnonzero(self._judging & np.isin(marks, marks[lost])).tolist()

    def sums(self, by: Group | None) -> Iterator[tuple[str | None, Sum]]:
        """Yield the sum of each group and unit; without *by* the sum of all lines in each unit."""
        np, spent = self._np, self._spent
        if not len(self._lines):
            return
        names, groups = self._grouped(by)
        msat = np.array([payer.unit == "msat" for payer in spent.payers], bool)[self._codes[self._lines]]
        keys = groups.astype("q") * 2 + msat
        order = np.argsort(keys, kind="stable")
        lines, keys = self._lines[order], keys[order]
        starts = np.flatnonzero(np.concatenate(([True], keys[1:] != keys[:-1])))
        sums = self._added(lines, starts)
        for key, subtotal in zip(keys[starts].tolist(), sums, strict=True):
            subtotal.unit = "msat" if key & 1 else "usd"
            yield names[key >> 1], subtotal

    def _grouped(self, by: Group | None) -> tuple[Any, Array]:
        """Return the names of the groups by number, and the group number of each line."""
        np, spent, codes = self._np, self._spent, self._codes[self._lines]
        if by == "session":
            numbering = Numbering(np, spent.names)
            numbers = numbering.of(spent.names)[view(np, spent.numbers)[self._lines]]
            used = np.unique(numbers)
            order, names = numbering.sorted_texts(used)
            return dict(zip(used[order].tolist(), names, strict=True)), numbers
        if by is None:
            return [None], np.zeros(len(codes), "i")
        if by == "day":
            days = view(np, spent.times)[self._lines] // DAY
            return {day: day_of(day) for day in np.unique(days).tolist()}, days
        named: dict[str | None, int] = {}
        numbers = [named.setdefault(name, len(named)) for name in (payer.group(by) for payer in spent.payers)]
        return list(named), np.array(numbers, "i")[codes]

    def _added(self, lines: Array, starts: Array) -> Iterator[Sum]:
        """Yield the sum of *lines* from each of *starts* to the next."""
        np, spent, flags = self._np, self._spent, self._flags[lines]
        amounts, tokens = view(np, spent.amounts)[lines], view(np, spent.tokens)[lines]
        calls, decimals = view(np, spent.calls)[lines], np.where(amounts != 0, flags >> DIGITS, 0)
        add = np.add.reduceat
        columns = [
            *(add(part, starts) for part in (amounts >> 32, amounts & 0xFFFFFFFF)),
            np.maximum.reduceat(decimals, starts),
            *(add(part, starts) for column in (calls, tokens) for part in (column >> 32, column & 0xFFFFFFFF)),
            *(add(chosen.astype("q"), starts) for chosen in (flags & UNCOUNTED == 0, flags & UNPRICED != 0)),
        ]
        exact = np.flatnonzero(flags & EXACT != 0)
        places = np.searchsorted(starts, exact, side="right") - 1
        exact_lines: dict[int, list[int]] = {}
        for place, line in zip(places.tolist(), lines[exact].tolist(), strict=True):
            exact_lines.setdefault(place, []).append(line)
        for place, values in enumerate(zip(*(column.tolist() for column in columns), strict=True)):
            high, low, digits, calls_high, calls_low, tokens_high, tokens_low, counted, unpriced = values
            token_count = (tokens_high << 32) + tokens_low if counted else None
            subtotal = Sum(
                (high << 32) + low, digits, calls=(calls_high << 32) + calls_low, tokens=token_count, unpriced=unpriced
            )
            for line in exact_lines.get(place, ()):
                subtotal.exact += amount_of_line(spent, line)
            yield subtotal
