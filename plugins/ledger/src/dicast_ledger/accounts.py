"""Who spent what: the money in a ledger's events, added up by model, judge, rubric, session or day."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import sha256
from typing import Any, Literal, get_args

import attrs
import orjson

from dicast import Cost, Event, InvalidCost

Group = Literal["model", "judge", "rubric", "session", "day"]
GROUPS: tuple[str, ...] = get_args(Group)

AGENT = "llm.call_completed"
"""A call of the agent that is judged, as its trace tells it."""

SPENT = ("spend.settled", "spend.released", "spend.lost")
EVALS = ("eval.started", "eval.completed", "eval.failed")

_USAGE = (("total_tokens",), ("input_tokens", "output_tokens"), ("prompt_tokens", "completion_tokens"))
"""How a trace may count a call's tokens; the first that is there counts."""


@attrs.frozen
class Spend:
    """What one event says was spent: on how many calls, and how many tokens they took, None where nobody has counted."""

    cost: Cost
    calls: int
    tokens: int | None


@attrs.define
class Tally:
    """A sum of spends. *usd* and *msat* add up the amounts that are known, *unpriced* counts those that are not."""

    usd: Cost = Cost.zero()
    msat: Cost = Cost.zero("msat")
    calls: int = 0
    tokens: int | None = None
    unpriced: int = 0

    def add(self, spend: Spend) -> None:
        """Add one spend."""
        self.calls += spend.calls
        if spend.tokens is not None:
            self.tokens = (self.tokens or 0) + spend.tokens
        self.add_cost(spend.cost)

    def add_cost(self, cost: Cost) -> None:
        """Add an amount, to those of its own unit."""
        if cost.amount is None:
            self.unpriced += 1
        elif cost.unit == "usd":
            self.usd = self.usd + cost
        else:
            self.msat = self.msat + cost


class Accounts:
    """Adds up events in their order. Memory grows with the groups and with the verdicts that are open at one time.

    *groups* are the sums by name of the group; None has what belongs to no group of this kind, such as the agent's own
    calls where judges are told apart. *lost* is what calls that ended unheard were given.
    """

    def __init__(self, by: Group) -> None:
        self._by = by
        self.groups: dict[str | None, Tally] = {}
        self.total, self.lost = Tally(), Tally()
        self._lost: dict[object, Cost] = {}
        self._rubrics: dict[object, str] = {}
        self._held: dict[object, list[Spend]] = {}

    def read(self, events: Iterable[Event]) -> Accounts:
        """Take all *events* into account."""
        with closing(_Told()) as told:
            for event in events:
                if event.type in EVALS:
                    self._eval(event)
                elif event.type != AGENT:
                    self._money(event)
                elif not told.again(event):
                    self._call(event)
        for eval_id in list(self._held):
            self._release(eval_id, self._rubrics.get(eval_id))
        for cost in self._lost.values():
            self.lost.add_cost(cost)
        return self

    def _call(self, event: Event) -> None:
        payload: Mapping[str, Any] = event.payload
        spend = Spend(_agent_cost(payload.get("cost_usd")), 1, _tokens(payload.get("usage")))
        self._add(spend, None if self._by in ("judge", "rubric") else self._key(event))

    def _money(self, event: Event) -> None:
        payload: Mapping[str, Any] = event.payload
        self._lost.pop(payload["reservation_id"], None)  # a late word replaces what was lost
        if event.type == "spend.lost":
            self._lost[payload["reservation_id"]] = Cost(payload["amount"], payload["unit"])
        elif event.type == "spend.settled":
            cost = Cost(payload["amount"], payload["unit"])
            # a component that asks no chat model is called itself
            spend = Spend(cost, payload.get("calls") or int(not cost.is_zero), payload.get("tokens"))
            if self._by == "rubric":
                self._held.setdefault(payload.get("eval_id"), []).append(spend)
            else:
                self._add(spend, self._key(event))

    def _eval(self, event: Event) -> None:
        """A verdict says which rubric it was made by; one that failed, or never came, which one it was begun with."""
        eval_id = event.payload["eval_id"]
        if event.type == "eval.started":
            self._rubrics[eval_id] = str(event.payload.get("rubric_id"))
            return
        planned = self._rubrics.pop(eval_id, None)
        found = event.payload.get("rubric_id", planned)
        self._release(eval_id, None if found is None else str(found))

    def _release(self, eval_id: object, rubric: str | None) -> None:
        for spend in self._held.pop(eval_id, ()):
            self._add(spend, rubric)

    def _key(self, event: Event) -> str | None:
        if self._by == "session":
            return event.session_id
        if self._by == "day":
            return _day(event.time)
        found = event.payload.get(self._by)
        return None if found is None else str(found)

    def _add(self, spend: Spend, group: str | None) -> None:
        self.groups.setdefault(group, Tally()).add(spend)
        self.total.add(spend)


class _Told:
    """Which of the agent's calls other runs have told already: each run over a trace tells them all, and they were paid once."""

    def __init__(self) -> None:
        # A file without a name, gone with the process: there may be more calls than fit in memory.
        self._database = sqlite3.connect("", isolation_level=None)
        self._database.execute("PRAGMA journal_mode = OFF")
        self._database.execute("CREATE TABLE calls (key BLOB PRIMARY KEY, run_id TEXT) WITHOUT ROWID")

    def close(self) -> None:
        """Forget them."""
        self._database.close()

    def again(self, event: Event) -> bool:
        """Whether an earlier run has told this call; alike ones of a single run are several calls."""
        call = [event.session_id, event.turn_id, event.payload]
        key = sha256(orjson.dumps(call, option=orjson.OPT_SORT_KEYS)).digest()[:16]
        new = self._database.execute("INSERT OR IGNORE INTO calls VALUES (?, ?)", (key, event.run_id)).rowcount
        if new:
            return False
        (first,) = self._database.execute("SELECT run_id FROM calls WHERE key = ?", (key,)).fetchone()
        return bool(first != event.run_id)


def _agent_cost(given: object) -> Cost:
    """What a trace says that a call cost; unknown where that is no amount of money."""
    if isinstance(given, float):
        given = Decimal(repr(given))
    try:
        return Cost(given)
    except InvalidCost:
        return Cost.unknown()


def _tokens(usage: object) -> int | None:
    if not isinstance(usage, Mapping):
        return None
    for names in _USAGE:
        counts = [count for name in names if type(count := usage.get(name)) is int]
        if len(counts) == len(names):
            return sum(counts)
    return None


def _day(time: str) -> str:
    """The day in UTC."""
    moment = datetime.fromisoformat(time)
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).date().isoformat()
