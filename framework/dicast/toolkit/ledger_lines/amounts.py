"""Amounts and times in the payloads of ``spend.*`` events."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, Literal

from dicast import Cap, Cost, Event, LedgerError, Refusal


def amount_of(payload: Mapping[str, Any]) -> Decimal:
    """Return the amount of a ``spend.*`` payload.

    :raises ValueError: if it is negative or not finite. The callers name the event.
    :raises TypeError: if it is a binary float.
    """
    if not isinstance(payload["amount"], int | str | Decimal):
        raise TypeError(f"an amount is a decimal string, not {payload['amount']!r}")
    amount = Decimal(payload["amount"])
    if not amount.is_finite() or amount < 0:
        raise ValueError(f"an amount is finite and not negative, not {amount}")
    return amount


def claimed_amount(event: Event) -> tuple[Decimal, str]:
    """Return the amount and the unit of a claim's event.

    :raises LedgerError: if it has no valid amount.
    """
    try:
        return amount_of(event.payload), str(event.payload["unit"])
    except (KeyError, ArithmeticError, TypeError, ValueError) as error:
        raise LedgerError(
            f"event {event.id} has no valid amount to reserve, {error!r}: {dict(event.payload)}"
        ) from error


def claim_refusal(
    caps: Sequence[Cap], amount: Decimal, unit: str, total: Callable[[Literal["spend", "held"], str, str], Decimal]
) -> Refusal | None:
    """Return the refusal of a claim of *amount* under *caps*, or None if every cap allows it. An amount of 0 is always allowed.

    The refusal names the first cap that the spent amounts exceed, else the first cap that only open reservations exceed.

    :param total: returns the sum of the spent amounts (``spend``) or of the open reservations (``held``) of a scope and a unit.
    """
    waiting = None
    for cap in caps if amount else ():
        if cap.limit.unit != unit or cap.limit.amount is None:
            continue
        spent = total("spend", cap.scope, unit)
        if spent + amount > cap.limit.amount:
            return Refusal(cap, wait=False, spent=Cost(spent, unit))
        held = total("held", cap.scope, unit)
        if waiting is None and spent + held + amount > cap.limit.amount:
            waiting = Refusal(cap, wait=True, spent=Cost(spent + held, unit))
    return waiting


def utc_moment(text: str) -> str:
    """Return an ISO 8601 time in a form that can be compared as text. A time without an offset is UTC."""
    moment = datetime.fromisoformat(text)
    utc = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    return utc.isoformat(timespec="microseconds")
