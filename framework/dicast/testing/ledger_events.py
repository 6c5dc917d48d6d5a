"""Builders of money events, caps and closings for the tests of ledgers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._kernel.values import Cap, Cost, Event, Lost
from .._kernel.values.clock import Clock

RUN = "01KDZ3W5Z0000000000000TEST"


def make_event(clock: Clock, type_: str, payload: Mapping[str, object], *, run_id: str = RUN, **fields: Any) -> Event:
    """Return an event of type *type_*, minted now."""
    id_, time = clock.stamp()
    return Event(id_, type_, time, run_id, payload, **fields)


def make_cap(limit: str, unit: str = "usd", scope: str = f"run:{RUN}") -> Cap:
    """Return a cap of *limit* in *scope*."""
    return Cap(scope, "run_cap", Cost(limit, unit))  # type: ignore[arg-type]  # one of the units


def make_reservation(
    clock: Clock, amount: str, *, scopes: Sequence[str] = (f"run:{RUN}",), lease_until: str | None = None
) -> Event:
    """Return a ``spend.reserved`` event. Its lease lasts ten minutes unless *lease_until* is passed."""
    payload = {
        "reservation_id": clock.id(),
        "scopes": list(scopes),
        "amount": amount,
        "unit": "usd",
        "lease_until": lease_until or clock.after(600),
    }
    return make_event(clock, "spend.reserved", payload)


def make_closing(clock: Clock, type_: str, reservation: Event, amount: str | None = None) -> Event:
    """Return the event that ends *reservation*."""
    payload: dict[str, object] = {"reservation_id": reservation.payload["reservation_id"]}
    return make_event(clock, type_, payload | ({} if amount is None else {"amount": amount, "unit": "usd"}))


def make_lost(clock: Clock) -> Lost:
    """Return *lost* for ``reserve``: the rule for reservations whose lease is over."""
    return Lost(*clock.stamp())
