"""Money: what a call may cost is reserved before it is made and settled after, in the ledger that all processes share."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from decimal import Decimal
from typing import Any, Protocol
from weakref import WeakValueDictionary

from ..classes import evolve, frozen
from ..contract.protocols import Ledger
from ..events import BUDGET_THROTTLED, SPEND_LOST, SPEND_RELEASED, SPEND_RESERVED, SPEND_SETTLED
from ..plan.sections import Budget
from ..timing.turns import resting
from ..values import Cap, Claim, Cost, Entry, Event, Failure, Refusal, Subject, sensitivity
from ..values.clock import Clock

POLL_SECONDS = 0.2
"""How often a reservation that waits for others looks again, for those of other processes."""

ESTIMATE_ADVICE = "Give it estimate(subject), which returns the highest cost of one call"
NO_ESTIMATE = "no_estimate"
"""Why a call is refused whose component costs money and estimates nothing."""

FIRST_SECONDS = 5.0
"""How long the first call of a component may keep its other calls waiting."""

GRACE_SECONDS = 60.0
"""How much longer than the call's own timeout a reservation lives before it counts as lost."""


class Record(Protocol):
    """Where events go; the runner's stream."""

    def event(
        self,
        type_: str,
        payload: Mapping[str, object],
        subject: Subject | None = None,
        sensitivity: str = "pseudonymous",
    ) -> Event:
        """Make an event without recording it."""
        ...

    def emit(self, events: Sequence[Event]) -> None:
        """Put *events* into the stream, which the ledger takes soon."""
        ...

    def commit_soon(self) -> None:
        """Append everything that was emitted to the ledger before anything is waited for."""
        ...

    def commit(self) -> None:
        """Append everything that was emitted to the ledger, and let it decide what is claimed, now."""
        ...

    def claim(self, claim: Claim, lost: Callable[[Entry], Event]) -> asyncio.Future[Refusal | None]:
        """Let the ledger decide *claim* soon, after all that was emitted before; cancelled before, it takes the claim back."""
        ...


@frozen
class Reservation:
    """Room made for one call."""

    id: str
    eval_id: str | None
    subject: Subject
    projected: Cost


class BudgetGate:
    """Makes and closes the reservations of one run."""

    def __init__(
        self,
        limits: Budget,
        ledger: Ledger,
        record: Record,
        clock: Clock,
        run_id: str,
        alive: Callable[[str], bool] = bool,
    ) -> None:
        """*alive* says whether the run of an id is under way in some process; without it every run is taken to be."""
        self._limits, self._ledger, self._record, self._clock = limits, ledger, record, clock
        self._run_id, self._alive = run_id, alive
        self._changed = asyncio.get_running_loop().create_future()
        self._lines: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._left: dict[tuple[str | None, str, str, str], list[Reservation]] = {}
        self.dearest: dict[str, Cost] = {}
        """The cost of the most expensive call of each component that cost more than its estimate: no later estimate is lower."""
        self._first: dict[str, asyncio.Future[None]] = {}

    async def reserve(
        self,
        subject: Subject,
        eval_id: str | None,
        cost: Cost,
        seconds: float,
        *,
        patient: bool = True,
        lasting: bool = False,
    ) -> Reservation | Refusal:
        """Make room for a call on *subject* that costs at most *cost* and takes at most *seconds*.

        *lasting* room stays open when the process ends: the reply is in a batch, and a process that resumes the run takes it.

        Waits while a cap is exceeded only because of reservations that are still open, unless it is not *patient*: a call
        inside another that holds one would wait for that.
        """
        if lasting and (adopted := self._adopt(subject, eval_id, cost)) is not None:
            return adopted
        claimed = subject, eval_id, cost, seconds, lasting
        changed, found = self._changed, await self._try(*claimed)
        if isinstance(found, Refusal) and found.wait and patient:
            # First come, first served; whoever waits gives the turn back, as the room may come from calls that need one.
            async with resting(), self._lines.setdefault(found.cap.scope, asyncio.Lock()):
                while isinstance(found, Refusal) and found.wait:
                    if not changed.done():
                        self._write_off_the_dead()
                        await asyncio.wait({changed}, timeout=POLL_SECONDS)
                    changed, found = self._changed, await self._try(*claimed)
                self._emit()  # whoever is next may find room, too
        if isinstance(found, Refusal):
            self._throttled(subject, found, cost)
        return found

    async def admit(
        self,
        subject: Subject,
        eval_id: str | None,
        costs: Mapping[str, Cost],
        seconds: float,
        lasting: Collection[str] = (),
    ) -> Mapping[str, Reservation] | Refusal:
        """Reserve a call for each of *costs*, by its key, or no call at all; waits like :meth:`reserve`.

        The room of *lasting* ones, by their keys, stays open when the process ends.
        """
        adopted = {key: self._adopt(subject, eval_id, cost) for key, cost in costs.items() if key in lasting}
        held = {key: one for key, one in adopted.items() if one is not None}
        costs = {key: cost for key, cost in costs.items() if key not in held}
        for unit in dict.fromkeys(cost.unit for cost in costs.values()):
            mine = {key: cost for key, cost in costs.items() if cost.unit == unit}
            keys, total = mine.keys() & {*lasting}, sum(mine.values(), Cost.zero(unit))
            whole = await self.reserve(subject, eval_id, total, seconds, lasting=keys == mine.keys())
            if isinstance(whole, Refusal):
                self.release(*held.values())
                return whole
            held |= dict.fromkeys(mine, whole) if len(mine) == 1 else self._split(whole, mine, seconds, keys)
        return held

    def _split(
        self, whole: Reservation, costs: Mapping[str, Cost], seconds: float, lasting: Collection[str]
    ) -> Mapping[str, Reservation]:
        """Close *whole* and reserve its parts instead, in one transaction, so that nobody gets the room in between."""
        self._record.commit()  # who claimed before is answered while *whole* still takes the room
        self._record.emit([self._record.event(SPEND_RELEASED, {"reservation_id": whole.id}, whole.subject)])
        of = whole.subject, whole.eval_id
        parts = {key: self._claim(*of, cost, seconds, lasting=key in lasting) for key, cost in costs.items()}
        answers = {key: self._record.claim(claim, self.lost) for key, (_, claim) in parts.items()}
        self._record.commit()
        return {key: part for key, (part, _) in parts.items() if answers[key].result() is None}

    def _adopt(self, subject: Subject, eval_id: str | None, cost: Cost) -> Reservation | None:
        """Return the open reservation of an earlier process for such a call; a reservation that is too small is released."""
        left = self._left.get((eval_id, subject.kind, subject.id, cost.unit)) if self._left else None
        if not left:
            return None
        held = left.pop()
        if not exceeds(cost, held.projected):
            return evolve(held, subject=subject)
        self.release(held)
        return None

    async def _try(
        self, subject: Subject, eval_id: str | None, cost: Cost, seconds: float, lasting: bool
    ) -> Reservation | Refusal:
        reservation, claim = self._claim(subject, eval_id, cost, seconds, lasting=lasting)
        answer = self._record.claim(claim, self.lost)
        try:
            refusal = await answer
        except asyncio.CancelledError:
            if not (answer.cancel() or answer.cancelled() or answer.exception() or answer.result()):
                self.release(reservation)  # it was granted just before
            raise
        return reservation if refusal is None else refusal

    def charge(
        self, subject: Subject, eval_id: str | None, cost: Cost, unit: Mapping[str, object], component: str = ""
    ) -> None:
        """Record what *component* spent without announcing it. It is gone, so it is not refused; it is an overrun.

        From then on its calls are reserved for like others, so that an overrun blocks the next call.
        """
        self._expect(component, cost)
        reservation, claim = self._claim(subject, eval_id, Cost.zero(cost.unit), 0.0)
        self._emit(claim.event, self._settled(reservation, cost, unit))

    def note(self, subject: Subject, eval_id: str | None, unit: Mapping[str, object]) -> None:
        """Record a call that is known to cost nothing, and for which nothing was reserved."""
        price = {"reservation_id": None, "amount": "0", "unit": "usd", "pricing_version": None}
        payload = {**price, "eval_id": eval_id, "overrun": False, **unit}
        self._record.emit([self._record.event(SPEND_SETTLED, payload, subject, sensitivity(payload))])

    def _expect(self, component: str, cost: Cost) -> None:
        """Project no later call of *component* to cost less than *cost*."""
        before = self.dearest.get(component, Cost.zero(cost.unit))
        if cost.amount is not None and (before.unit != cost.unit or exceeds(cost, before)):
            self.dearest[component] = cost

    def projected(self, component: str, estimate: Cost) -> Cost:
        """Return the projected cost of a call of *component*: its *estimate*, or the most expensive call so far."""
        before = self.dearest.get(component, estimate)
        return before if estimate.is_zero or exceeds(before, estimate) else estimate

    @asynccontextmanager
    async def first_alone(self, component: str) -> AsyncIterator[None]:
        """Let the first call of *component* end before others start, which know then whether it costs more than its estimate.

        They wait for at most :data:`FIRST_SECONDS`.
        """
        first = self._first.get(component)
        if first is not None:
            if not first.done():
                await asyncio.wait({first}, timeout=FIRST_SECONDS)
            yield
            return
        self._first[component] = first = asyncio.get_running_loop().create_future()
        try:
            yield
        finally:
            first.set_result(None)

    def refuse_unannounced(
        self, component: str, label: str, subject: Subject, advice: str = ESTIMATE_ADVICE
    ) -> Failure | None:
        """Return a Failure where *component* costs money, has no estimate, and a cap is to hold in this unit; None elsewhere."""
        if (cost := self.dearest.get(component)) is None:
            return None
        scopes = self._scopes(subject.session_id)
        caps = [Cap(scope, NO_ESTIMATE, limit) for scope, _, limits in scopes for limit in limits]
        cap = next((cap for cap in caps if cap.limit.unit == cost.unit), None)
        if cap is None:
            return None
        self._throttled(subject, Refusal(cap, wait=False), cost)
        message = f"{label} reports a cost of {cost} and estimates nothing, so no cap can hold. {advice}"
        return Failure("throttled_no_heuristic", message, throttled_reason=NO_ESTIMATE)

    def settle(
        self, reservation: Reservation, cost: Cost, unit: Mapping[str, object], component: str | None = None
    ) -> None:
        """Close *reservation* with what the call did cost; *unit* says what was bought, and the reply itself."""
        if component is not None and exceeds(cost, reservation.projected):
            self._expect(component, cost)
        self._emit(self._settled(reservation, cost, unit))

    def _settled(self, reservation: Reservation, cost: Cost, unit: Mapping[str, object]) -> Event:
        payload = {
            "reservation_id": reservation.id,
            "amount": cost.decimal,
            "unit": cost.unit,
            "pricing_version": cost.pricing_version,
            "eval_id": reservation.eval_id,
            "overrun": exceeds(cost, reservation.projected),
            **unit,
        }
        return self._record.event(SPEND_SETTLED, payload, reservation.subject, sensitivity(payload))

    def release(self, *held: Reservation) -> None:
        """Close what is *held* for a call that cost nothing."""
        self._emit(*(self._record.event(SPEND_RELEASED, {"reservation_id": one.id}, one.subject) for one in held))

    def forfeit(self, *held: Reservation) -> None:
        """Close what is *held* for a call that ended unheard: it counts as spent, because it may have been."""
        for one in held:
            payload = {"reservation_id": one.id, "amount": one.projected.decimal, "unit": one.projected.unit}
            self._emit(self._record.event(SPEND_LOST, payload, one.subject))

    def write_off(self) -> None:
        """End the reservations of a dead process of this run. They count as spent, because they may have been.

        Reservations for calls in batches stay open for the same calls of this process.
        """
        entries = self._ledger.reservations(self._run_id)
        self._emit(*(self.lost(entry) for entry in entries if not _is_lasting(entry)))
        for entry in filter(_is_lasting, entries):
            event = entry.event
            payload: Mapping[str, Any] = event.payload
            subject = Subject(str(event.subject_kind), str(event.subject_id), session_id=event.session_id)
            cost = Cost(Decimal(str(payload["amount"])), payload["unit"])
            held = Reservation(str(payload["reservation_id"]), payload["eval_id"], subject, cost)
            self._left.setdefault((held.eval_id, subject.kind, subject.id, cost.unit), []).append(held)

    def close(self) -> None:
        """End the open reservations of earlier processes for calls that were not repeated. They count as spent."""
        left, self._left = self._left, {}
        self.forfeit(*(held for of_call in left.values() for held in of_call))

    def _write_off_the_dead(self) -> None:
        """End what processes that died had reserved, in whichever run; their leases may be long.

        The ledger alone has it: it is not this run's loss.
        """
        entries = self._ledger.reservations(None)
        held = [entry for entry in entries if entry.event.run_id != self._run_id and not _is_lasting(entry)]
        dead = {run_id for run_id in {entry.event.run_id for entry in held} if not self._alive(run_id)}
        self._ledger.append([self.lost(entry) for entry in held if entry.event.run_id in dead])

    def lost(self, entry: Entry) -> Event:
        """The ``spend.lost`` event for the reservation made at *entry*."""
        held = entry.event
        payload = {key: held.payload[key] for key in ("reservation_id", "amount", "unit")}
        event = self._record.event(SPEND_LOST, payload)
        return evolve(event, run_id=held.run_id, session_id=held.session_id)

    def _claim(
        self, subject: Subject, eval_id: str | None, cost: Cost, seconds: float, *, lasting: bool = False
    ) -> tuple[Reservation, Claim]:
        reservation, scopes = Reservation(self._clock.id(), eval_id, subject, cost), self._scopes(subject.session_id)
        payload = {
            "reservation_id": reservation.id,
            "scopes": [scope for scope, _, _ in scopes],
            "amount": cost.decimal,
            "unit": cost.unit,
            "lease_until": self._clock.after(seconds + GRACE_SECONDS),
            "eval_id": eval_id,
            **({"outlives_run": True} if lasting else {}),
        }
        caps = [Cap(scope, reason, limit) for scope, reason, limits in scopes for limit in limits]
        return reservation, Claim(self._record.event(SPEND_RESERVED, payload, subject), caps)

    def _scopes(self, session: str | None) -> list[tuple[str, str, Sequence[Cost]]]:
        """What a call in *session* counts in, with the reason that its caps give and their limits."""
        day, run = f"day:{self._clock.day()}", f"run:{self._run_id}"
        own = [] if session is None else [(f"session:{session}", "session_cap", self._limits.session)]
        return [*own, (day, "daily_cap", self._limits.day), (run, "run_cap", self._limits.run)]

    def _throttled(self, subject: Subject, refusal: Refusal, cost: Cost) -> None:
        cap = refusal.cap
        payload = {
            "reason": cap.reason,
            "scope": cap.scope,
            "limit": cap.limit.decimal,
            "projected": cost.decimal,
            "unit": cap.limit.unit,
        }
        self._record.emit([self._record.event(BUDGET_THROTTLED, payload, subject)])

    def _emit(self, *events: Event) -> None:
        """Tell what became of reservations, and let those try again that were refused before."""
        self._record.emit(events)
        self._record.commit_soon()
        self._changed.set_result(None)
        self._changed = asyncio.get_running_loop().create_future()


def _is_lasting(entry: Entry) -> bool:
    """Whether the reservation made at *entry* stays open when its process ends."""
    return bool(entry.event.payload.get("outlives_run"))


def exceeds(cost: Cost, projected: Cost) -> bool:
    """Whether *cost* is known to be more than was *projected*."""
    if cost.amount is None or projected.amount is None or cost.unit != projected.unit:
        return False
    return cost.amount > projected.amount
