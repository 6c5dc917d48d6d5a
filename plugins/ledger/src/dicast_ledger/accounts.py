"""Sums of the money in a ledger's events, by model, judge, rubric, session or day."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any

import orjson

from dicast import Cost, Event, LedgerError
from dicast.reading.blocks.spent import AGENT, Payer, Spent, agent_cost, amount_of_line, tokens_of
from dicast.reading.columns import numpy_for

from .many_spent import ManySpent
from .sums import GROUPS, Group, Spend, Sum, Tally

__all__ = ["EVALS", "GROUPS", "Accounts", "Group", "Tally"]

EVALS = ("eval.started", "eval.completed", "eval.failed")


class Accounts:
    """Sums of events in their order. Memory grows with the groups and with the verdicts that are open at one time.

    *groups* maps the name of a group to its sum; None has the amounts that belong to no group of this kind, such as the calls of the agent
    in a grouping by judge. *lost* is the sum that was reserved by calls that ended without a settlement, *unsettled* that sum and the open reservations.
    """

    def __init__(self, by: Group) -> None:
        self._by = by
        self.groups: dict[str | None, Tally] = {}
        self.total, self.lost, self.unsettled = Tally(), Tally(), Tally()
        self._lost: dict[object, Cost] = {}
        self._rubrics: dict[object, str] = {}
        self._open_spends: dict[object, list[Spend]] = {}

    def read(self, events: Iterable[Event]) -> Accounts:
        """Add all *events*, and return this object."""
        with closing(_RecordedCalls()) as calls:
            for event in events:
                if event.type in EVALS:
                    self._eval(event)
                elif event.type != AGENT:
                    self._money(event)
                elif not calls.is_repeat(event):
                    self._call(event)
        for eval_id in list(self._open_spends):
            self._release(eval_id, self._rubrics.get(eval_id))
        return self._add_lost()

    def read_lines(self, spent: Spent, run_id: str | None, *, include_eval: bool) -> Accounts:
        """Add the columns *spent* of one run or of all runs, as :meth:`read` adds events."""
        np = numpy_for(len(spent.codes))
        if np is None:
            self._read_each(spent, run_id, include_eval=include_eval)
        else:
            lines = ManySpent(np, spent, run_id, judging=include_eval)
            for line in lines.about_lost():
                self._counts(spent, line, spent.payers[spent.codes[line]], spent.marks[line])
            for group, subtotal in lines.sums(self._by):
                subtotal.put(self.groups.setdefault(group, Tally()))
            for _, subtotal in lines.sums(None):
                subtotal.put(self.total)
        return self._add_lost()

    def add_open(self, reservations: Iterable[Event]) -> None:
        """Add open *reservations* to the unsettled sum."""
        for event in reservations:
            payload: Mapping[str, Any] = event.payload
            self.unsettled.add_cost(Cost(payload["amount"], payload["unit"]))

    def _add_lost(self) -> Accounts:
        for cost in self._lost.values():
            self.lost.add_cost(cost)
            self.unsettled.add_cost(cost)
        return self

    def _read_each(self, spent: Spent, run_id: str | None, *, include_eval: bool) -> None:
        """Add the columns *spent* line by line, without numpy."""
        first_runs: dict[int, str] = {}
        sums: dict[tuple[str | None, int], Sum] = {}
        name = self._namer(spent)
        for line, (code, flag) in enumerate(zip(spent.codes, spent.flags, strict=True)):
            payer = spent.payers[code]
            if run_id is not None and payer.run_id != run_id:
                continue
            mark = spent.marks[line]
            if payer.type == AGENT:
                if first_runs.setdefault(mark, payer.run_id) != payer.run_id:
                    continue
            elif not include_eval or not self._counts(spent, line, payer, mark):
                continue
            key = name(line), payer.unit == "msat"
            subtotal = sums.get(key)
            if subtotal is None:
                subtotal = sums[key] = Sum()
            subtotal.add(spent, line, flag)
        for (group, _), subtotal in sums.items():
            subtotal.put(self.groups.setdefault(group, Tally()))
            subtotal.put(self.total)

    def _counts(self, spent: Spent, line: int, payer: Payer, reservation: int) -> bool:
        """Return True for a line with a paid amount. A lost amount is stored until a later line about the same reservation replaces it."""
        self._lost.pop(reservation, None)
        if payer.type == "spend.lost":
            self._lost[reservation] = Cost(amount_of_line(spent, line), "msat" if payer.unit == "msat" else "usd")
        return payer.type == "spend.settled"

    def _namer(self, spent: Spent) -> Callable[[int], str | None]:
        """Return a function that returns the group of a line."""
        if self._by == "session":
            return spent.sessions.__getitem__
        if self._by == "day":
            return spent.day
        names = [payer.group(self._by) for payer in spent.payers]
        return lambda line: names[spent.codes[line]]

    def _call(self, event: Event) -> None:
        payload: Mapping[str, Any] = event.payload
        spend = Spend(agent_cost(payload.get("cost_usd")), 1, tokens_of(payload.get("usage")))
        self._add(spend, None if self._by in ("judge", "rubric") else self._key(event))

    def _money(self, event: Event) -> None:
        payload: Mapping[str, Any] = event.payload
        self._lost.pop(payload["reservation_id"], None)  # a late event replaces the lost amount
        if event.type == "spend.lost":
            self._lost[payload["reservation_id"]] = Cost(payload["amount"], payload["unit"])
        elif event.type == "spend.settled":
            cost = Cost(payload["amount"], payload["unit"])
            # a component that asks no chat model counts as one call if it has a cost
            spend = Spend(cost, payload.get("calls") or int(not cost.is_zero), payload.get("tokens"))
            if self._by == "rubric":
                self._open_spends.setdefault(payload.get("eval_id"), []).append(spend)
            else:
                self._add(spend, self._key(event))

    def _eval(self, event: Event) -> None:
        """Release the amounts of a verdict to its rubric. A judgment without a verdict has the rubric that it was started with.

        :raises LedgerError: if the event has no verdict's id, because the ledger was changed.
        """
        if "eval_id" not in event.payload:
            raise LedgerError(f"the event {event.id} ({event.type}) has no eval_id: run dicast ledger verify")
        eval_id = event.payload["eval_id"]
        if event.type == "eval.started":
            self._rubrics[eval_id] = str(event.payload.get("rubric_id"))
            return
        planned = self._rubrics.pop(eval_id, None)
        rubric = event.payload.get("rubric_id", planned)
        self._release(eval_id, None if rubric is None else str(rubric))

    def _release(self, eval_id: object, rubric: str | None) -> None:
        for spend in self._open_spends.pop(eval_id, ()):
            self._add(spend, rubric)

    def _key(self, event: Event) -> str | None:
        if self._by == "session":
            return event.session_id
        if self._by == "day":
            return _day(event.time)
        name = event.payload.get(self._by)
        return None if name is None else str(name)

    def _add(self, spend: Spend, group: str | None) -> None:
        self.groups.setdefault(group, Tally()).add(spend)
        self.total.add(spend)


class _RecordedCalls:
    """Set of the recorded calls of the agent. Each run over a trace records all calls of the trace, but they were paid once."""

    def __init__(self) -> None:
        # A temporary file, because there may be more calls than fit in memory.
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("CREATE TABLE calls (key BLOB PRIMARY KEY, run_id TEXT) WITHOUT ROWID")

    def close(self) -> None:
        """Delete the temporary file."""
        self._database.close()

    def is_repeat(self, event: Event) -> bool:
        """Record the call, and return True if another run recorded it first. Equal calls of one run count as several calls."""
        call = [event.session_id, event.turn_id, event.payload]
        key = sha256(orjson.dumps(call, option=orjson.OPT_SORT_KEYS)).digest()[:16]
        new = self._database.execute("INSERT OR IGNORE INTO calls VALUES (?, ?)", (key, event.run_id)).rowcount
        if new:
            return False
        (first,) = self._database.execute("SELECT run_id FROM calls WHERE key = ?", (key,)).fetchone()
        return bool(first != event.run_id)


def _day(time: str) -> str:
    """Return the day in UTC."""
    moment = datetime.fromisoformat(time)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).date().isoformat()
