"""What was spent, as columns: calls that agents made, and what was settled, released or lost for judging them."""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from hashlib import blake2b
from itertools import compress
from typing import TYPE_CHECKING, Any, NamedTuple

import attrs
import orjson

from dicast import Cost, Event, InvalidCost
from dicast.reading import Names, milliseconds

if TYPE_CHECKING:
    from dicast.reading import Ints

AGENT = "llm.call_completed"
"""A call of the agent that is judged, as its trace tells it."""

SPENT = ("spend.settled", "spend.released", "spend.lost")
_USAGE = (("total_tokens",), ("input_tokens", "output_tokens"), ("prompt_tokens", "completion_tokens"))
"""How a trace may count a call's tokens; the first that is there counts."""


SPENT_TYPES = (AGENT, *SPENT)

UNPRICED, UNCOUNTED, EXACT = 1, 2, 4
"""What a flag says: that the price is not known, that nobody has counted tokens, that the amount stands in the text."""

DIGITS = 8
PLACES = 12
_MOST = 2**62
_UNKNOWN = Cost.unknown()
DAY = 86_400_000
"""Milliseconds."""


class Payer(NamedTuple):
    """What many of them have in common."""

    run_id: str
    type: str
    unit: str
    model: str | None
    judge: str | None

    def group(self, by: str) -> str | None:
        """Its model, or its judge, which an agent has none."""
        return self.model if by == "model" else None if self.type == AGENT else self.judge


Found = tuple[Payer, tuple[Any, ...], tuple[Any, ...], str | None, list[str] | None]
"""The payer, the numbers before and behind its code, the session, and the amount as text where it is no whole number."""


@attrs.define
class Spent:
    """One line an event, in the order of the ledger.

    *marks* tell calls apart, and reservations, by 8 bytes of a digest; *amounts* are in 10^-12 of the payer's unit, or in *exact* by line;
    *numbers* are those of sessions among *names*.
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
        chosen = [(first is None or first <= time) and (last is None or time < last) for time in self.times]
        columns = (self.times, self.codes, self.flags, self.amounts, self.tokens, self.calls, self.marks, self.numbers)
        kept: list[Any] = [array(_code_of(column), compress(column, chosen)) for column in columns]
        places = {line: place for place, line in enumerate(compress(range(len(chosen)), chosen))}
        exact = {places[line]: text for line, text in self.exact.items() if line in places}
        times, codes, flags, amounts, tokens, calls, marks, numbers = kept
        return Spent(times, codes, flags, amounts, tokens, calls, marks, numbers, self.names, self.payers, exact)

    def day(self, line: int) -> str:
        """The day in UTC."""
        return day_of(self.times[line] // DAY)


def _code_of(column: Any) -> str:
    found: str = column.format if isinstance(column, memoryview) else column.typecode
    return found


def day_of(number: int) -> str:
    """The day that is so many days behind the first of 1970."""
    return datetime.fromtimestamp(number * 86_400, UTC).date().isoformat()


def spent_of(event: Event) -> Found | None:
    """The line of an event of :data:`SPENT_TYPES`; None of one whose payload is not as its type asks."""
    try:
        return _of_call(event) if event.type == AGENT else _of_judging(event)
    except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, InvalidCost):
        return None


def _of_call(event: Event) -> Found | None:
    payload: Mapping[str, Any] = event.payload
    call = orjson.dumps([event.session_id, event.turn_id, payload], plain, orjson.OPT_SORT_KEYS)
    return _found(event, call, agent_cost(payload.get("cost_usd")), 1, tokens_of(payload.get("usage")))


def _of_judging(event: Event) -> Found | None:
    payload: Mapping[str, Any] = event.payload
    reservation = orjson.dumps(payload["reservation_id"])
    if event.type == "spend.released":
        return _found(event, reservation, Cost.zero(), 0, None)
    cost = Cost(payload["amount"], payload["unit"])
    calls = payload.get("calls") or int(not cost.is_zero)
    tokens = payload.get("tokens")
    return _found(event, reservation, cost, calls, tokens)


def _found(event: Event, told: bytes, cost: Cost, calls: Any, tokens: Any) -> Found | None:
    if type(calls) is not int or type(tokens) not in (int, type(None)) or not 0 <= calls <= _MOST > abs(tokens or 0):
        return None
    payload: Mapping[str, Any] = event.payload
    model, judge = (None if (name := payload.get(key)) is None else str(name) for key in ("model", "judge"))
    payer = Payer(event.run_id, event.type, cost.unit, model, judge)
    flags, amount, exact = UNCOUNTED * (tokens is None), 0, None
    if cost.amount is None:
        flags |= UNPRICED
    elif cost.amount:
        whole, digits = cost.amount.scaleb(PLACES), max(0, -int(cost.amount.as_tuple().exponent))
        if whole != whole.to_integral_value() or whole > _MOST or digits > PLACES:
            flags, exact = flags | EXACT, f"{cost.amount:f}"
        else:
            flags, amount = flags | digits << DIGITS, int(whole)
    moment = datetime.fromisoformat(event.time)
    time = milliseconds(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
    mark = int.from_bytes(blake2b(told, digest_size=8).digest(), "big", signed=True)
    return (
        payer,
        (time,),
        (flags, amount, tokens or 0, calls, mark),
        event.session_id,
        None if exact is None else [exact],
    )


def amount_of_line(spent: Spent, line: int) -> Decimal:
    """The amount of a line whose price is known, with the decimals that it was written with."""
    if spent.flags[line] & EXACT:
        return Decimal(spent.exact[line])
    digits = spent.flags[line] >> DIGITS
    return Decimal(spent.amounts[line] // 10 ** (PLACES - digits)).scaleb(-digits)


def agent_cost(given: object) -> Cost:
    """What a trace says that a call cost; unknown where that is no amount of money."""
    if isinstance(given, float):
        given = Decimal(repr(given))
    try:
        return _UNKNOWN if given is None else Cost(given)
    except InvalidCost:
        return _UNKNOWN


def tokens_of(usage: object) -> int | None:
    """How many tokens a trace says that a call took; None where it does not count them."""
    if not isinstance(usage, Mapping):
        return None
    for names in _USAGE:
        counts = [count for name in names if type(count := usage.get(name)) is int]
        if len(counts) == len(names):
            return sum(counts)
    return None


def plain(value: object) -> object:
    """JSON of what is none yet, as the ledger writes it."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Decimal):
        return f"{value:f}"
    raise TypeError(f"{type(value).__name__} is not JSON")
