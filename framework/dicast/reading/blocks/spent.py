"""The spending as columns: calls of agents, and settled, released or lost amounts for judging."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import blake2b
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import orjson

from ..._kernel.events import SPEND_LOST, SPEND_RELEASED, SPEND_SETTLED
from ..._kernel.values import Cost
from ..._kernel.values.errors import InvalidCost
from ...toolkit.ledger_lines.redaction import plain
from ...toolkit.money import scaled_digits
from ..columns import kept, rows_between
from ..names import Names
from ..verdict_columns import milliseconds

if TYPE_CHECKING:
    from ..columns import Ints

AGENT = "llm.call_completed"
"""Type of a call of the judged agent, as its trace reports it."""

SPENT = (SPEND_SETTLED, SPEND_RELEASED, SPEND_LOST)
_USAGE = (("input_tokens", "output_tokens"), ("prompt_tokens", "completion_tokens"))
"""Fields with the tokens of a call in a trace without ``total_tokens``; the first pair whose fields are both present counts."""


SPENT_TYPES = (AGENT, *SPENT)

UNPRICED, UNCOUNTED, EXACT = 1, 2, 4
"""The flags of a line: an unknown price, uncounted tokens, an amount stored as text."""

DIGITS = 8
PLACES = 12
_MOST = 2**62
_EVER = 2**62
"""A time in milliseconds after all events."""

_UNKNOWN = Cost.unknown()
DAY = 86_400_000
"""Milliseconds."""


class Payer(NamedTuple):
    """The facts that many lines share."""

    run_id: str
    type: str
    unit: str
    model: str | None
    judge: str | None

    def group(self, by: str) -> str | None:
        """Return the model or the judge. A call of an agent has no judge."""
        return self.model if by == "model" else None if self.type == AGENT else self.judge


Line = tuple[tuple[Any, ...], int, int, int, int, int, int, str | None, list[str] | None]
"""The fields of the :class:`Payer`, the time, the flags, the amount, the tokens, the calls, the mark, the session, and the amount as text if it does not fit in a column."""


@attrs.define
class Spent:
    """Columns with one line per event, in the order of the ledger.

    *marks* identify calls and reservations by 8 bytes of a digest. *amounts* are in 10^-12 of the payer's unit; *exact* has other amounts by line.
    *numbers* are the numbers of sessions among *names*.
    """

    times: Ints
    codes: Ints
    flags: Ints
    amounts: Ints
    tokens: Ints
    calls: Ints
    marks: Ints
    numbers: Ints
    names: Names
    payers: list[Payer]
    exact: Mapping[int, str]

    @property
    def sessions(self) -> list[str | None]:
        """The session of each line."""
        return self.names.texts_of(self.numbers)

    def within(self, first: int | None, last: int | None) -> Spent:
        """Return the lines from *first*, inclusive, to *last*, exclusive, in milliseconds since 1970; None is an open end."""
        chosen = rows_between(self.times, -_EVER if first is None else first, _EVER if last is None else last)
        if chosen is None:
            return self
        columns = (self.times, self.codes, self.flags, self.amounts, self.tokens, self.calls, self.marks, self.numbers)
        selected: list[Any] = kept(columns, chosen)
        lines = compress(range(len(chosen)), chosen) if self.exact else ()
        places = {line: place for place, line in enumerate(lines)}
        exact = {places[line]: text for line, text in self.exact.items() if line in places}
        times, codes, flags, amounts, tokens, calls, marks, numbers = selected
        return Spent(times, codes, flags, amounts, tokens, calls, marks, numbers, self.names, self.payers, exact)

    def day(self, line: int) -> str:
        """Return the day of *line* in UTC."""
        return day_of(self.times[line] // DAY)


def day_of(number: int) -> str:
    """Return the day with *number*, counted from the first day of 1970."""
    return datetime.fromtimestamp(number * 86_400, UTC).date().isoformat()


def spent_of(
    type_: str,
    time: str,
    run_id: str,
    session_id: str | None,
    turn_id: str | None,
    payload: Any,
    times: dict[str, int] | None = None,
) -> Line | None:
    """Return the line of an event of :data:`SPENT_TYPES`; None if its payload does not have the form of its type.

    The values are those of the event. *times* caches parsed times, for callers with many events of one time.
    """
    times = {} if times is None else times
    try:
        if type_ == AGENT:
            identity = orjson.dumps([session_id, turn_id, payload], plain, orjson.OPT_SORT_KEYS)
            amount, calls, tokens = _amount_of_call(payload.get("cost_usd")), 1, tokens_of(payload.get("usage"))
        else:
            identity = orjson.dumps(payload["reservation_id"])
            amount, calls, tokens = _judging(type_, payload)
        if type(calls) is not int or type(tokens) not in (int, type(None)):
            return None
        if not 0 <= calls <= _MOST > abs(tokens or 0):
            return None
        model, judge = payload.get("model"), payload.get("judge")
        unit, flags, number, exact = amount
        payer = run_id, type_, unit, None if model is None else str(model), None if judge is None else str(judge)
        moment = times.get(time)
        if moment is None:
            moment = times[time] = _milliseconds(time)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, InvalidCost):
        return None
    flags |= UNCOUNTED * (tokens is None)
    mark = int.from_bytes(blake2b(identity, digest_size=8).digest(), "big", signed=True)
    return payer, moment, flags, number, tokens or 0, calls, mark, session_id, exact


Amount = tuple[str, int, int, list[str] | None]
"""The unit, the flags and the number of an amount, and the amount as text if it does not fit."""


def _judging(type_: str, payload: Mapping[str, Any]) -> tuple[Amount, Any, Any]:
    """Return the amount, the calls and the tokens of an event of :data:`SPENT`."""
    if type_ == SPEND_RELEASED:
        return ("usd", 0, 0, None), 0, None
    amount, unit = payload["amount"], payload["unit"]
    stored = _plain_amount(amount, unit) or _stored_amount(Cost(amount, unit))
    return stored, payload.get("calls") or int(any(stored[1:])), payload.get("tokens")


def _amount_of_call(cost: object) -> Amount:
    """Return the amount that a trace states for a call."""
    return _plain_amount(cost, "usd") or _stored_amount(agent_cost(cost))


def _plain_amount(amount: object, unit: Any) -> Amount | None:
    """Return an amount whose text is digits with decimals; None for another amount or unit."""
    scaled = scaled_digits(amount, PLACES)
    if scaled is None or scaled[0] > _MOST or unit not in ("usd", "msat"):
        return None
    number, digits = scaled
    return unit, digits << DIGITS if number else 0, number, None


def _stored_amount(cost: Cost) -> Amount:
    if cost.amount is None:
        return cost.unit, UNPRICED, 0, None
    if not cost.amount:
        return cost.unit, 0, 0, None
    amount, digits = cost.amount.scaleb(PLACES), max(0, -int(cost.amount.as_tuple().exponent))
    if amount != amount.to_integral_value() or amount > _MOST or digits > PLACES:
        return cost.unit, EXACT, 0, [f"{cost.amount:f}"]
    return cost.unit, digits << DIGITS, int(amount), None


def _milliseconds(time: str) -> int:
    moment = datetime.fromisoformat(time)
    return milliseconds(moment if moment.tzinfo else moment.replace(tzinfo=UTC))


def amount_of_line(spent: Spent, line: int) -> Decimal:
    """Return the amount of a line whose price is known, with the decimals of the event."""
    if spent.flags[line] & EXACT:
        return Decimal(spent.exact[line])
    digits = spent.flags[line] >> DIGITS
    return Decimal(spent.amounts[line] // 10 ** (PLACES - digits)).scaleb(-digits)


def agent_cost(cost: object) -> Cost:
    """Return the cost that a trace states for a call; an unknown cost if it is not an amount of money."""
    if isinstance(cost, float):
        cost = Decimal(repr(cost))
    try:
        return _UNKNOWN if cost is None else Cost(cost)
    except InvalidCost:
        return _UNKNOWN


def tokens_of(usage: object) -> int | None:
    """Return the number of tokens of a call in a trace; None if the trace does not count them."""
    if not isinstance(usage, dict | Mapping):  # an exact dict in a tenth of the time
        return None
    get = usage.get
    if type(total := get("total_tokens")) is int:
        return total
    for first, second in _USAGE:
        if type(read := get(first)) is int and type(written := get(second)) is int:
            return read + written
    return None
