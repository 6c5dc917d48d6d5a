"""Sums of money, calls and tokens."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal, get_args

import attrs

from dicast import Cost
from dicast.reading.blocks.spent import DIGITS, EXACT, PLACES, UNCOUNTED, UNPRICED, Spent, amount_of_line
from dicast.toolkit.money import rounded

Group = Literal["model", "judge", "rubric", "session", "day"]
GROUPS: tuple[str, ...] = get_args(Group)


@attrs.frozen
class Spend:
    """The spending of one event: its cost, its calls and their tokens. *tokens* is None if they were not counted."""

    cost: Cost
    calls: int
    tokens: int | None


@attrs.define
class Tally:
    """A sum of spends. *usd* and *msat* add up the known amounts; *unpriced* counts the unknown amounts."""

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
        """Add an amount to the sum of its unit."""
        if cost.amount is None:
            self.unpriced += 1
        elif cost.unit == "usd":
            self.usd = self.usd + cost
        else:
            self.msat = self.msat + cost


@attrs.define
class Sum:
    """A sum of lines in one unit: *amount* in 10^-12 of it, and *exact* for amounts that are not a multiple of 10^-12."""

    amount: int = 0
    digits: int = 0
    exact: Decimal = Decimal(0)
    calls: int = 0
    tokens: int | None = None
    unpriced: int = 0
    unit: str = "usd"

    def add(self, spent: Spent, line: int, flag: int) -> None:
        """Add a line."""
        self.calls += spent.calls[line]
        if not flag & UNCOUNTED:
            self.tokens = (self.tokens or 0) + spent.tokens[line]
        if flag & UNPRICED:
            self.unpriced += 1
        elif flag & EXACT:
            self.exact += amount_of_line(spent, line)
        elif amount := spent.amounts[line]:
            self.amount += amount
            self.digits = max(self.digits, flag >> DIGITS)
        self.unit = spent.payers[spent.codes[line]].unit

    def put(self, tally: Tally) -> None:
        """Add the sum to *tally*."""
        tally.calls += self.calls
        if self.tokens is not None:
            tally.tokens = (tally.tokens or 0) + self.tokens
        tally.unpriced += self.unpriced
        amount = rounded(Decimal(self.amount).scaleb(-PLACES), self.digits)
        tally.add_cost(Cost(amount + self.exact if self.exact else amount, "msat" if self.unit == "msat" else "usd"))
