"""Checks for the leases of ledgers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from .._kernel.contract.implements import implements
from .._kernel.leases.protocol import Leasing
from .._kernel.stream.opening_context import opening
from .._kernel.values import Claim, Lease, Query, Refusal
from .._kernel.values.clock import Clock
from .._kernel.values.errors import LedgerError
from .conformance import Conformance
from .ledger_events import RUN, make_cap, make_event, make_lost, make_reservation
from .pipeline import Bench


class LeaseConformance(Conformance):
    """Checks for a ledger's leases; a ledger without leases passes."""

    @pytest.fixture
    def clock(self) -> Clock:
        """Return the clock that mints ids and times of events."""
        return Clock()

    def test_a_lease_has_one_owner_at_a_time(self, component: Any, bench: Bench, clock: Clock) -> None:
        """A lease that is over, dead or released goes to the next owner, with a greater token; its previous owner is refused."""

        async def lease(first: Any, second: Any) -> None:
            assert first.take_lease(RUN, "first", 600, _nobody) is None
            current = second.take_lease(RUN, "second", 600, _nobody)
            assert (current.owner, current.token, current.over) == ("first", 1, False), "the lease of the first owner"
            second.append([make_event(clock, "run.started", {})])
            assert second.take_lease(RUN, "second", 600, lambda lease: lease.owner == "first") is None, "its owner died"
            refused = make_event(clock, "run.completed", {})
            with pytest.raises(LedgerError):
                first.append([refused])
            with pytest.raises(LedgerError):
                first.reserve([Claim(make_reservation(clock, "0"), [])], make_lost(clock), [refused])
            with pytest.raises(LedgerError):
                first.renew_lease()
            first.release_lease()
            assert (second.lease_of(RUN).token, second.lease_of(RUN).over) == (2, False), (
                "a previous owner ends no lease"
            )
            second.release_lease()
            assert second.lease_of(RUN).over
            assert first.take_lease(RUN, "first", 600, _nobody) is None
            assert first.lease_of(RUN).token == 3
            assert [entry.event.type for entry in first.read(Query())] == ["run.started"]
            assert first.lease_of("another") is None

        self._with_two(component, bench, lease)

    def test_a_lease_that_is_over_is_its_owners_until_another_takes_it(
        self, component: Any, bench: Bench, clock: Clock
    ) -> None:
        """After a machine slept, its process continues if no other process took the run: its next event renews the lease. Reservations end with the lease."""

        async def sleep(first: Any, second: Any) -> None:
            assert first.take_lease(RUN, "first", -1, _nobody) is None
            assert first.lease_of(RUN).over
            claim = Claim(make_reservation(clock, "0.02"), [cap := make_cap("0.03")])
            assert first.reserve([claim], make_lost(clock)) == [None], "no other owner has taken the lease"
            event = make_event(clock, "run.started", {})
            assert second.take_lease("other", "second", 600, _nobody) is None
            refusals = second.reserve([Claim(make_reservation(clock, "0.02"), [cap])], make_lost(clock), [event])
            assert refusals == [Refusal(cap, wait=False)], "the reservation ended with its run's lease, and counts"
            second.release_lease()
            assert second.take_lease(RUN, "second", 600, _nobody) is None
            with pytest.raises(LedgerError):
                first.append([event])

        self._with_two(component, bench, sleep)

    def _with_two(self, component: Any, bench: Bench, work: Callable[[Any, Any], Awaitable[None]]) -> None:
        """Call *work* with two live objects on one ledger, unless the ledger has no leases, which is allowed."""

        async def use() -> None:
            async with opening(component, None) as first, opening(component, None) as second:
                if implements(first, Leasing):
                    await work(first, second)

        bench.folder.mkdir(exist_ok=True)
        asyncio.run(use())


def _nobody(lease: Lease) -> bool:
    return False
