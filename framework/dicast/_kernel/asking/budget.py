"""Money: the highest cost of a call is reserved before it and settled after it, in the ledger that all processes share."""

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
from ..values import Cap, Claim, Cost, Entry, Event, Failure, Lost, Refusal, Subject, sensitivity
from ..values.clock import Clock
from .day_share import DayShare
from .unpaid_tries import UnpaidTries

POLL_SECONDS = 0.2
"""Seconds between two checks of a waiting reservation for reservations of other processes."""

MODEL_ADVICE = "Give its chat model estimate(request), which returns the highest cost of one call"
ESTIMATE_ADVICE = "Give it estimate(subject), which returns the highest cost of one call"
NO_ESTIMATE = "no_estimate"
"""Reason to refuse a call whose component costs money and has no estimate."""

FIRST_SECONDS = 5.0
"""Maximum seconds for which the first call of a component delays its other calls."""

GRACE_SECONDS = 60.0
"""Seconds after the call's own timeout until a reservation counts as lost."""


class Record(Protocol):
    """Receiver of events: the stream of the run."""

    def event(
        self,
        type_: str,
        payload: Mapping[str, object],
        subject: Subject | None = None,
        sensitivity: str = "pseudonymous",
    ) -> Event:
        """Return an event without recording it."""
        ...

    def emit(self, events: Sequence[Event]) -> None:
        """Add *events* to the stream, which appends them to the ledger soon."""
        ...

    def commit_soon(self) -> None:
        """Append all emitted events to the ledger before the next wait."""
        ...

    def commit(self) -> None:
        """Append all emitted events to the ledger, and let it decide the claims, at once."""
        ...

    def claim(self, claim: Claim, lost: Lost) -> asyncio.Future[Refusal | None]:
        """Submit *claim* to the ledger, which decides it soon, after all events emitted earlier. Cancelling before that withdraws the claim."""
        ...


@frozen
class Reservation:
    """Money that is reserved for one call."""

    id: str
    eval_id: str | None
    subject: Subject
    projected: Cost


class BudgetGate:
    """Reservations of one run."""

    def __init__(
        self,
        limits: Budget,
        ledger: Ledger,
        record: Record,
        clock: Clock,
        run_id: str,
        alive: Callable[[str], bool] = bool,
        share: DayShare | None = None,
        whole: Budget | None = None,
    ) -> None:
        """Create the gate. *alive* returns whether a process carries out the run of an id; without it every run counts as alive.

        :param share: a further cap of the day.
        :param whole: the caps of the file, if *limits* and *share* are shares of them.
        """
        self._whole = {} if whole is None else {"run_cap": whole.run, "daily_cap": whole.day}
        self._limits, self._ledger, self._record, self._clock = limits, ledger, record, clock
        self._run_id, self._alive, self._share, self.unpaid = run_id, alive, share, UnpaidTries()
        self._changed = asyncio.get_running_loop().create_future()
        self._queues: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._adoptable: dict[tuple[str | None, str, str, str], list[Reservation]] = {}
        self.highest_costs: dict[str, Cost] = {}
        """Highest cost of a call by component, for components that exceeded their estimates. Later projections are at least as high."""
        self.unannounced: dict[str, Cost] = {}
        """Highest cost of a call without a reservation, by component."""
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
        """Reserve *cost*, an upper bound for a call on *subject*, for *seconds*, an upper bound of its duration.

        Return the reservation, or the refusal of a cap. A cap may be exceeded only because of open reservations. A *patient* call
        waits for their end. A call inside another call with a reservation must not be patient: it would wait for its owner.

        :param lasting: keep the reservation open when the process ends: the reply is in a batch, and a process that resumes the run adopts it.
        """
        if lasting and (adopted := self._adopt(subject, eval_id, cost)) is not None:
            return adopted
        claimed = subject, eval_id, cost, seconds, lasting
        changed, result = self._changed, await self._try(*claimed)
        if isinstance(result, Refusal) and result.wait and patient:
            # First come, first served. A waiting call returns its turn, because calls that need a turn may release the money.
            async with resting(), self._queues.setdefault(result.cap.scope, asyncio.Lock()):
                while isinstance(result, Refusal) and result.wait:
                    if not changed.done():
                        self._write_off_the_dead()
                        await asyncio.wait({changed}, timeout=POLL_SECONDS)
                    changed, result = self._changed, await self._try(*claimed)
                self._emit()  # the next waiting call may fit too
        if isinstance(result, Refusal):
            self._record_throttle(subject, result, cost)
        return result

    async def admit(
        self,
        subject: Subject,
        eval_id: str | None,
        costs: Mapping[str, Cost],
        seconds: float,
        lasting: Collection[str] = (),
    ) -> Mapping[str, Reservation] | Refusal:
        """Reserve all of *costs*, by their keys, or nothing; return the reservations or the refusal of a cap. It waits like :meth:`reserve`.

        The reservations of *lasting* keys stay open when the process ends.
        """
        adopted = {key: self._adopt(subject, eval_id, cost) for key, cost in costs.items() if key in lasting}
        reservations = {key: adoption for key, adoption in adopted.items() if adoption is not None}
        costs = {key: cost for key, cost in costs.items() if key not in reservations}
        for unit in dict.fromkeys(cost.unit for cost in costs.values()):
            unit_costs = {key: cost for key, cost in costs.items() if cost.unit == unit}
            keys, total = unit_costs.keys() & {*lasting}, sum(unit_costs.values(), Cost.zero(unit))
            reservation = await self.reserve(subject, eval_id, total, seconds, lasting=keys == unit_costs.keys())
            if isinstance(reservation, Refusal):
                self.release(*reservations.values())
                return reservation
            reservations |= (
                dict.fromkeys(unit_costs, reservation)
                if len(unit_costs) == 1
                else self._split(reservation, unit_costs, seconds, keys)
            )
        return reservations

    def _split(
        self, reservation: Reservation, costs: Mapping[str, Cost], seconds: float, lasting: Collection[str]
    ) -> Mapping[str, Reservation]:
        """Close *reservation* and reserve its parts instead, in one transaction, so that no other call takes the money in between."""
        self._record.commit()  # earlier claims are decided while *reservation* still holds the money
        self._record.emit([self._record.event(SPEND_RELEASED, {"reservation_id": reservation.id}, reservation.subject)])
        of = reservation.subject, reservation.eval_id
        parts = {key: self._claim(*of, cost, seconds, lasting=key in lasting) for key, cost in costs.items()}
        answers = {key: self._record.claim(claim, self._lost()) for key, (_, claim) in parts.items()}
        self._record.commit()
        return {key: part for key, (part, _) in parts.items() if answers[key].result() is None}

    def _adopt(self, subject: Subject, eval_id: str | None, cost: Cost) -> Reservation | None:
        """Return the reservation that an earlier process left open for the same call; None if there is none. A reservation that is too small is released."""
        adoptable = self._adoptable.get((eval_id, subject.kind, subject.id, cost.unit)) if self._adoptable else None
        if not adoptable:
            return None
        reservation = adoptable.pop()
        if not exceeds(cost, reservation.projected):
            return evolve(reservation, subject=subject)
        self.release(reservation)
        return None

    async def _try(
        self, subject: Subject, eval_id: str | None, cost: Cost, seconds: float, lasting: bool
    ) -> Reservation | Refusal:
        reservation, claim = self._claim(subject, eval_id, cost, seconds, lasting=lasting)
        answer = self._record.claim(claim, self._lost())
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
        """Record the *cost* of a call of *component* that had no reservation, as an overrun: the money is spent and cannot be refused.

        All later calls of the component need reservations, so that an overrun blocks the next call.
        """
        self._note_highest_cost(self.highest_costs, component, cost)
        self._note_highest_cost(self.unannounced, component, cost)
        reservation, claim = self._claim(subject, eval_id, Cost.zero(cost.unit), 0.0)
        self._emit(claim.event, self._settled(reservation, cost, unit))

    def note(self, subject: Subject, eval_id: str | None, unit: Mapping[str, object]) -> None:
        """Record a call that is known to cost nothing, and had no reservation."""
        price = {"reservation_id": None, "amount": "0", "unit": "usd", "pricing_version": None}
        payload = {**price, "eval_id": eval_id, "overrun": False, **unit}
        self._record.emit([self._record.event(SPEND_SETTLED, payload, subject, sensitivity(payload))])

    @staticmethod
    def _note_highest_cost(costs: dict[str, Cost], component: str, cost: Cost) -> None:
        """Set *cost* as the highest cost of *component* in *costs*, unless an earlier one is higher."""
        previous = costs.get(component, Cost.zero(cost.unit))
        if cost.amount is not None and (previous.unit != cost.unit or exceeds(cost, previous)):
            costs[component] = cost

    def projected(self, component: str, estimate: Cost) -> Cost:
        """Return the projected cost of a call of *component*: its *estimate*, or the most expensive call so far."""
        previous = self.highest_costs.get(component, estimate)
        return previous if estimate.is_zero or exceeds(previous, estimate) else estimate

    @asynccontextmanager
    async def first_alone(self, component: str) -> AsyncIterator[None]:
        """Make the other calls of *component* wait for the end of its first call, which shows whether it costs more than its estimate.

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
        """Return a Failure if a call of *component* cost money without a reservation, and there is a cap in this unit; otherwise None.

        A call above its reservation is no reason to refuse the next one, which reserves as much.
        """
        if (cost := self.unannounced.get(component)) is None:
            return None
        scopes = self._scopes(subject.session_id)
        caps = [Cap(scope, NO_ESTIMATE, limit) for scope, _, limits in scopes for limit in limits]
        cap = next((cap for cap in caps if cap.limit.unit == cost.unit), None)
        if cap is None:
            return None
        self._record_throttle(subject, Refusal(cap, wait=False), cost)
        message = f"{label} reports a cost of {cost} and estimates nothing, so no cap can hold. {advice}"
        return Failure("throttled_no_heuristic", message, throttled_reason=NO_ESTIMATE)

    def settle(
        self, reservation: Reservation, cost: Cost, unit: Mapping[str, object], component: str | None = None
    ) -> None:
        """Close *reservation* with the *cost* of the call; *unit* describes the purchase, with the reply."""
        if component is not None and exceeds(cost, reservation.projected):
            self._note_highest_cost(self.highest_costs, component, cost)
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

    def release(self, *reservations: Reservation) -> None:
        """Close *reservations* of a call that cost nothing."""
        payloads = (({"reservation_id": reservation.id}, reservation.subject) for reservation in reservations)
        self._emit(*(self._record.event(SPEND_RELEASED, payload, subject) for payload, subject in payloads))

    def forfeit(self, *reservations: Reservation) -> None:
        """Close *reservations* of a call that ended without an answer. The reserved amounts count as spent, because the call may have been billed."""
        for reservation in reservations:
            payload = {
                "reservation_id": reservation.id,
                "amount": reservation.projected.decimal,
                "unit": reservation.projected.unit,
            }
            self._emit(self._record.event(SPEND_LOST, payload, reservation.subject))

    def write_off(self) -> None:
        """Close the reservations that a dead process of this run left open. They count as spent, because the calls may have been billed.

        Reservations for calls in batches stay open for the same calls of this process.
        """
        entries, lost = self._ledger.reservations(self._run_id), self._lost()
        self._emit(*(lost(entry) for entry in entries if not _is_lasting(entry)))
        for entry in filter(_is_lasting, entries):
            event = entry.event
            payload: Mapping[str, Any] = event.payload
            subject = Subject(str(event.subject_kind), str(event.subject_id), session_id=event.session_id)
            cost = Cost(Decimal(str(payload["amount"])), payload["unit"])
            reservation = Reservation(str(payload["reservation_id"]), payload["eval_id"], subject, cost)
            self._adoptable.setdefault((reservation.eval_id, subject.kind, subject.id, cost.unit), []).append(
                reservation
            )

    def close(self) -> None:
        """End the open reservations of earlier processes for calls that were not repeated. They count as spent."""
        adoptable, self._adoptable = self._adoptable, {}
        self.forfeit(*(reservation for reservations in adoptable.values() for reservation in reservations))

    def _write_off_the_dead(self) -> None:
        """Close the reservations of dead processes in any run; their leases may be long.

        Only the ledger records this: it is not this run's loss.
        """
        entries = self._ledger.reservations(None)
        reservations = [entry for entry in entries if entry.event.run_id != self._run_id and not _is_lasting(entry)]
        dead = {run_id for run_id in {entry.event.run_id for entry in reservations} if not self._alive(run_id)}
        lost = self._lost()
        self._ledger.append([lost(entry) for entry in reservations if entry.event.run_id in dead])

    def _lost(self) -> Lost:
        """Return the rule for reservations that ran out."""
        return Lost(*self._clock.stamp())

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
        """Return the scopes of a call in *session*, each with the reason of its caps and their limits."""
        day, run = f"day:{self._clock.day()}", f"run:{self._run_id}"
        session_scope = [] if session is None else [(f"session:{session}", "session_cap", self._limits.session)]
        share = self._share
        shared_scope = [] if share is None else [(share.scope_on(day), "daily_cap", share.limits)]
        return [*session_scope, (day, "daily_cap", self._limits.day), *shared_scope, (run, "run_cap", self._limits.run)]

    def _record_throttle(self, subject: Subject, refusal: Refusal, cost: Cost) -> None:
        cap = refusal.cap
        whole = next((limit for limit in self._whole.get(cap.reason, ()) if limit.unit == cap.limit.unit), cap.limit)
        payload = {
            "reason": cap.reason,
            "scope": cap.scope,
            "limit": cap.limit.decimal,
            "projected": cost.decimal,
            "unit": cap.limit.unit,
            **({"cap": whole.decimal} if exceeds(whole, cap.limit) else {}),
            **({} if refusal.spent is None else {"spent": refusal.spent.decimal}),
        }
        self._record.emit([self._record.event(BUDGET_THROTTLED, payload, subject)])

    def _emit(self, *events: Event) -> None:
        """Record *events* about reservations, and let refused calls try again."""
        self._record.emit(events)
        self._record.commit_soon()
        self._changed.set_result(None)
        self._changed = asyncio.get_running_loop().create_future()


def _is_lasting(entry: Entry) -> bool:
    """Return whether the reservation made at *entry* stays open when its process ends."""
    return bool(entry.event.payload.get("outlives_run"))


def exceeds(cost: Cost, projected: Cost) -> bool:
    """Return whether *cost* is known to be more than *projected*."""
    if cost.amount is None or projected.amount is None or cost.unit != projected.unit:
        return False
    return cost.amount > projected.amount
