"""Options and prices that chat models with batches share."""

from __future__ import annotations

from decimal import Decimal
from math import inf
from typing import Any

import attrs

from ..._kernel.values import Cost, Usage
from ..._kernel.values.bounds import Within

SHARE = Decimal("0.5")
"""Price of a call in a batch, as a share of the list price."""

_NOT_COUNTED = {"counts": False}


def poll() -> Any:
    """Return a field for ``poll``: the seconds between two requests for the state of a batch."""
    check = Within(0, inf, "more than 0 seconds", open=True)
    return attrs.field(default=60.0, validator=check, metadata=_NOT_COUNTED)


def max_items(most: int) -> Any:
    """Return a field for ``max_items``: the calls in one batch, *most* by default and at most."""
    return attrs.field(default=most, validator=Within(1, most, f"1 to {most:,}"), metadata=_NOT_COUNTED)


def batch_cost(cost: Cost) -> Cost:
    """Return a listed *cost* at the price of batches; the pricing version names the discount."""
    if cost.amount is None or cost.is_zero:
        return cost
    version = f"{cost.pricing_version}, half of it (batch)"
    return attrs.evolve(cost, amount=cost.amount * SHARE, pricing_version=version)


def at_batch_price(options: Any, cost: Cost) -> Cost:
    """Return the *cost* of a single call at the price of batches; the option ``price`` is the price of batches already."""
    return cost if options.price is not None else batch_cost(cost)


def usage_cost(options: Any, usage: Usage) -> Cost:
    """Return the cost of *usage* at the price of batches, as a method of a model's options."""
    return at_batch_price(options, options.chat.cost(usage))


def batch_identity(options: Any) -> dict[str, object]:
    """Return the options that decide a reply along with the request, as a method of a model's options."""
    return {**options.chat.identity(), "batch": True}
