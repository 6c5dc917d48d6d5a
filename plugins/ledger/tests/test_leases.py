"""Leases of runs: an owner that lost its lease records nothing more, in any order of the actions of several owners."""

from __future__ import annotations

import random
from contextlib import ExitStack
from operator import methodcaller
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from dicast import Claim, Event, LedgerError, Query

OWNERS, RUNS = ("a", "b", "c"), ("R1", "R2")
NAMES = st.sampled_from(OWNERS)


class Owners(RuleBasedStateMachine):
    """Three live ledgers on one file. *rows* has the lease of each run, *leases* the lease of each owner."""

    def __init__(self, opened):
        super().__init__()
        self.stack = ExitStack()
        path = Path(self.stack.enter_context(TemporaryDirectory())) / "ledger.db"
        self.ledgers = {name: self.stack.enter_context(opened(path)) for name in OWNERS}
        self.rows, self.leases, self.recorded, self.number = {}, {}, [], 0

    def teardown(self):
        self.stack.close()

    def loses(self, name, act):
        """Do *act*, which the owner may do where it holds no lease, or one that nobody has taken."""
        if name not in self.leases or self.rows[self.leases[name][0]]["token"] == self.leases[name][1]:
            act()
            return True
        with pytest.raises(LedgerError, match="has lost its lease"):
            act()
        return False

    @rule(name=NAMES, run=st.sampled_from(RUNS), lasts=st.booleans(), dead=st.booleans())
    def take(self, name, run, lasts, dead):
        if name in self.leases:
            return
        row = self.rows.get(run)
        seconds = 3600.0 if lasts else -1.0  # or one that is over at once
        lease_ = self.ledgers[name].take_lease(run, name, seconds, lambda lease: dead)
        if row is not None and row["lasts"] and not dead:
            assert (lease_.owner, lease_.token, lease_.over) == (row["owner"], row["token"], False)
            return
        assert lease_ is None
        token = max((held_token for of, held_token in self.leases.values() if of == run), default=0)
        lease_ = self.ledgers[name].lease_of(run)
        assert (lease_.owner, lease_.over) == (name, not lasts)
        assert lease_.token > token, "no other owner has this token"
        self.rows[run] = {"owner": name, "token": lease_.token, "lasts": lasts}
        self.leases[name] = run, lease_.token

    @rule(name=NAMES, run=st.sampled_from(RUNS))
    def append(self, name, run):
        run = self.leases[name][0] if name in self.leases else run
        self.number += 1
        event = Event(f"E{self.number:08d}", "2026-03-01T12:00:00.000Z", "eval.started", run, {})
        if self.loses(name, lambda: self.ledgers[name].append([event])):
            self.recorded.append(event.id)

    @rule(name=NAMES)
    def renew(self, name):
        self.loses(name, self.ledgers[name].renew_lease)

    @rule(name=NAMES)
    def release(self, name):
        self.ledgers[name].release_lease()
        run, token = self.leases.pop(name, (None, None))
        if run is not None and self.rows[run]["token"] == token:
            self.rows[run]["lasts"] = False

    @invariant()
    def whoever_lost_its_lease_recorded_nothing(self):
        assert [entry.event.id for entry in self.ledgers["a"].read(Query())] == self.recorded


def test_a_token_is_not_given_out_again_where_a_run_that_never_began_was_taken_twice(opened, tmp_path):
    with opened(tmp_path / "l.db") as first, opened(tmp_path / "l.db") as second, opened(tmp_path / "l.db") as third:
        first.take_lease("R1", "first", -1.0, lambda lease: False)
        second.take_lease("R1", "second", 60.0, lambda lease: False)
        second.release_lease()
        third.take_lease("R1", "third", 60.0, lambda lease: False)
        with pytest.raises(LedgerError, match="has lost its lease"):
            first.renew_lease()


@pytest.mark.slow
def test_whoever_lost_its_lease_records_nothing_more_in_any_order(opened):
    run_state_machine_as_test(
        lambda: Owners(opened),
        settings=settings(max_examples=4 * settings.default.max_examples // 5, stateful_step_count=30, deadline=None),
    )


@pytest.mark.parametrize(
    ("until", "is_held", "ends"),
    [("2027", False, False), ("2027", True, False), ("2025", True, False), ("2025", False, True)],
)
def test_a_reservation_that_outlives_its_run_ends_with_both_leases(opened, tmp_path, make_event, until, is_held, ends):
    amount = {"scopes": ["day"], "amount": "0.01", "unit": "usd"}
    lasting = {**amount, "reservation_id": "r1", "lease_until": f"{until}-01-01T00:00:00Z", "outlives_run": True}
    with opened(tmp_path / "l.db") as ledger, opened(tmp_path / "l.db") as other:
        ledger.take_lease("R1", "dead", 3600.0 if is_held else -1.0, lambda lease: False)
        ledger.append([make_event("spend.reserved", lasting)])
        claim = {**amount, "reservation_id": "r2", "lease_until": "2027-01-01T00:00:00Z"}

        def lost(entry):
            return make_event("spend.lost", {**amount, "reservation_id": entry.event.payload["reservation_id"]})

        other.reserve([Claim(make_event("spend.reserved", claim, run_id="R2"), [])], lost)
        assert bool([*ledger.read(Query(types=("spend.lost",)))]) is ends
        assert len(ledger.reservations(None)) == (1 if ends else 2)


@pytest.mark.parametrize("seed", [0, 2])
def test_a_ledger_in_memory_ends_the_same_reservations_as_a_ledger_that_was_just_opened(
    opened, tmp_path, make_event, seed
):
    draw, minutes = random.Random(seed), 0
    path, fresh_path, ends = tmp_path / "l.db", tmp_path / "fresh.db", []

    def moment(minute):
        return f"2026-03-01T{12 + minute // 60:02d}:{minute % 60:02d}:00.000Z"

    def lost(entry):
        ends.append(entry.event.payload["reservation_id"])
        return make_event("spend.lost", {**entry.event.payload})

    with opened(path) as ledger, opened(path) as other, opened(path) as owner:
        for number in range(30):
            step, run_id = draw.random(), draw.choice(["R1", "R2"])
            if step < 0.15:
                seconds = draw.choice([-1.0, 3600.0])
                act = methodcaller("take_lease", run_id, "owner", seconds, lambda lease: True)
            else:
                minutes += draw.randrange(4)
                payload = {"reservation_id": f"r{number}", "scopes": ["day"], "amount": "0.01", "unit": "usd"}
                payload |= {"lease_until": draw.choice([None, moment(minutes + draw.randrange(12))])}
                payload |= {"outlives_run": draw.random() < 0.2}
                columns = {"run_id": run_id, "time": moment(minutes)}
                claim = Claim(make_event("spend.reserved", payload, **columns), [])
                act = methodcaller("reserve", [claim], lost)
            with opened(fresh_path) as fresh:
                act(fresh)
            expected, ends[:] = [*ends], []
            act(owner if step < 0.15 else other if draw.random() < 0.2 else ledger)
            assert ends == expected
            ends.clear()
        assert ledger.verify().ok


def test_the_first_reservation_of_a_run_whose_lease_is_over_ends_at_the_next(opened, tmp_path, make_event):
    amount, ends = {"scopes": ["day"], "amount": "0.01", "unit": "usd"}, []

    def lost(entry):
        ends.append(entry.event.payload["reservation_id"])
        return make_event("spend.lost", {**entry.event.payload})

    with opened(tmp_path / "l.db") as ledger:
        ledger.take_lease("R2", "dead", -1.0, lambda lease: False)
        ledger.take_lease("R1", "owner", 3600.0, lambda lease: False)
        for number, run_id in enumerate(["R1", "R1", "R1", "R2", "R1"]):
            event = make_event("spend.reserved", {**amount, "reservation_id": f"r{number}"}, run_id=run_id)
            ledger.reserve([Claim(event, [])], lost)
    assert ends == ["r3"]
