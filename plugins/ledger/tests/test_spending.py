"""Caps, reservations, and the amounts that count as spent."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dicast import Cap, Claim, Cost, LedgerError, Query, Refusal

NOON, LATER = "2026-03-01T12:00:00.000Z", "2026-03-01T12:10:00.000Z"


@pytest.fixture
def ledger(tmp_path, opened):
    with opened(tmp_path / "ledger.db") as live:
        yield live


@pytest.fixture(scope="session")
def reserved(make_event):
    def make(reservation, amount="0.01", scopes=("run:R1",), unit="usd", lease_until=LATER, **columns):
        body = {"reservation_id": reservation, "scopes": list(scopes), "amount": amount, "unit": unit}
        return make_event("spend.reserved", body | {"lease_until": lease_until}, **columns)

    return make


@pytest.fixture(scope="session")
def closed(make_event):
    def make(kind, reservation, amount=None, unit="usd"):
        body = {"reservation_id": reservation}
        return make_event(f"spend.{kind}", body if kind == "released" else body | {"amount": amount, "unit": unit})

    return make


@pytest.fixture(scope="session")
def lost(closed):
    def make(entry):
        body = entry.event.payload
        return closed("lost", body["reservation_id"], body["amount"], body["unit"])

    return make


def cap(limit, scope="run:R1", reason="run_cap"):
    return Cap(scope, reason, Cost.parse(limit))


def reserve(ledger, event, caps, lost):
    (refusal,) = ledger.reserve([Claim(event, caps)], lost)
    return refusal


def test_an_amount_up_to_the_cap_holds_and_one_above_waits_for_open_ones(ledger, reserved, lost):
    caps = [cap("0.02 usd")]
    assert reserve(ledger, reserved("a"), caps, lost) is None
    assert reserve(ledger, reserved("b"), caps, lost) is None
    assert reserve(ledger, reserved("c"), caps, lost) == Refusal(caps[0], wait=True)
    assert [entry.event.payload["reservation_id"] for entry in ledger.reservations("R1")] == ["a", "b"]
    assert ledger.head().seq == 2


def test_what_is_settled_is_gone_and_what_is_released_is_back(ledger, reserved, closed, lost):
    caps = [cap("0.02 usd")]
    for reservation in ("a", "b"):
        reserve(ledger, reserved(reservation), caps, lost)
    ledger.append([closed("settled", "a", "0.015")])
    assert reserve(ledger, reserved("c"), caps, lost) == Refusal(caps[0], wait=False)
    ledger.append([closed("released", "b")])
    assert reserve(ledger, reserved("d", "0.005"), caps, lost) is None


def test_an_unknown_true_cost_counts_as_what_was_reserved(ledger, reserved, closed, lost):
    ledger.append([reserved("a", "0.02"), closed("settled", "a", None)])
    assert reserve(ledger, reserved("b"), [cap("0.02 usd")], lost) == Refusal(cap("0.02 usd"), wait=False)


def test_a_true_cost_above_the_projection_blocks_the_next(ledger, reserved, closed, lost):
    ledger.append([reserved("a", "0.01"), closed("settled", "a", "5")])
    assert not reserve(ledger, reserved("b", "0.000001"), [cap("5 usd")], lost).wait


def test_nothing_is_never_refused_and_needs_no_room(ledger, reserved, lost):
    assert reserve(ledger, reserved("a", "0"), [cap("0 usd")], lost) is None
    assert not reserve(ledger, reserved("b", "0.000001"), [cap("0 usd")], lost).wait


def test_a_cap_counts_its_own_scope_and_unit_alone(ledger, reserved, lost):
    ledger.append([reserved("a", "1", scopes=["run:R1", "session:A"]), reserved("m", "900", unit="msat")])
    assert (
        reserve(ledger, reserved("b", "1", scopes=["run:R1", "session:B"]), [cap("1 usd", "session:B")], lost) is None
    )
    assert reserve(ledger, reserved("c", "1", unit="msat"), [cap("0 usd"), cap("901 msat")], lost) is None
    assert reserve(ledger, reserved("d", "1", unit="msat"), [cap("901 msat")], lost).wait


def test_a_cap_that_can_never_hold_beats_an_earlier_one_to_wait_for(ledger, reserved, closed, lost):
    ledger.append([reserved("a", "1", scopes=["run:R1", "day:D"]), reserved("b", "1", scopes=["session:S"])])
    ledger.append([closed("settled", "a", "1")])
    waiting, done, done_too = cap("1 usd", "session:S"), cap("1 usd", "day:D"), cap("1 usd")
    assert reserve(ledger, reserved("c"), [waiting, done, done_too], lost) == Refusal(done, wait=False)
    assert reserve(ledger, reserved("c"), [waiting, cap("9 usd")], lost) == Refusal(waiting, wait=True)


def test_settling_in_another_unit_frees_the_reserved_one(ledger, reserved, closed, lost):
    ledger.append([reserved("a", "1"), closed("settled", "a", "700", "msat")])
    assert reserve(ledger, reserved("b", "1"), [cap("1 usd")], lost) is None
    assert not reserve(ledger, reserved("c", "1", unit="msat"), [cap("700 msat")], lost).wait


def test_a_lease_that_is_over_ends_as_lost_and_counts(ledger, reserved, lost):
    ledger.append([reserved("a", "0.01", run_id="R0"), reserved("b", "0.01", run_id="R0", lease_until=None)])
    caps = [cap("0.02 usd")]
    assert reserve(ledger, reserved("c", time=LATER), caps, lost).wait
    assert ledger.head().seq == 2
    assert not reserve(ledger, reserved("c", "0.02", time="2026-03-01T14:10:00.001+02:00"), caps, lost).wait
    (entry,) = ledger.read(Query(types=("spend.lost",)))
    assert (entry.seq, entry.event.payload["reservation_id"]) == (3, "a")
    assert [entry.event.payload["reservation_id"] for entry in ledger.reservations("R0")] == ["b"]
    assert ledger.verify().ok


@pytest.mark.parametrize(
    ("late", "spent"),
    [
        ([("lost", "0.01")], "0.01"),
        ([("lost", "0.02")], "0.01"),
        ([("settled", "0.004")], "0.004"),
        ([("settled", None)], "0.01"),
        ([("settled", "0.004"), ("settled", "0.004")], "0.004"),
        ([("released", None)], "0"),
        ([("released", None), ("lost", "0.01")], "0"),
    ],
)
def test_a_late_word_about_a_lost_reservation_replaces_it(ledger, reserved, closed, lost, late, spent):
    ledger.append([reserved("a"), closed("lost", "a", "0.01"), *(closed(kind, "a", amount) for kind, amount in late)])
    assert reserve(ledger, reserved("b", "1"), [cap(f"{Decimal(1) + Decimal(spent)} usd")], lost) is None
    refusal = reserve(ledger, reserved("c", "1"), [cap(f"{Decimal(spent)} usd")], lost)
    assert refusal.wait is False
    assert ledger.verify().ok


def test_closing_what_was_never_reserved_changes_nothing(ledger, reserved, closed, lost):
    ledger.append([closed("settled", "nobody", "5"), closed("lost", "nobody", "5"), closed("released", "nobody")])
    assert reserve(ledger, reserved("a", "1"), [cap("1 usd")], lost) is None
    assert ledger.verify().ok


def test_a_reservation_cannot_be_made_twice(ledger, reserved, lost):
    ledger.append([reserved("a")])
    with pytest.raises(LedgerError, match=r"cannot account for this spend\.reserved"):
        reserve(ledger, reserved("a"), [], lost)
    assert ledger.head().seq == 1


@pytest.mark.parametrize("amount", [0.01, "-1", "NaN", "Infinity", "much", None])
def test_an_amount_that_is_no_money_is_refused(ledger, reserved, closed, lost, amount):
    with pytest.raises(LedgerError):
        reserve(ledger, reserved("a", amount), [cap("1 usd")], lost)
    with pytest.raises(LedgerError):
        ledger.append([reserved("a", amount)])
    assert ledger.head() is None


def test_nothing_is_not_refused_though_the_cap_is_passed_already(ledger, reserved, closed, lost):
    ledger.append([reserved("a", "1"), closed("settled", "a", "5")])
    assert reserve(ledger, reserved("b", "0"), [cap("1 usd")], lost) is None


def test_what_is_settled_stays_as_it_was_settled_first(ledger, reserved, closed, lost):
    ledger.append([reserved("a"), closed("settled", "a", "0.004"), closed("settled", "a", "0.009")])
    assert reserve(ledger, reserved("b", "1"), [cap("1.004 usd")], lost) is None
    assert ledger.verify().ok


def test_of_two_caps_to_wait_for_the_first_is_named(ledger, reserved, lost):
    ledger.append([reserved("a", "1", scopes=["run:R1", "day:D"])])
    first, second = cap("1 usd"), cap("1 usd", "day:D")
    assert reserve(ledger, reserved("b"), [first, second], lost) == Refusal(first, wait=True)
    assert reserve(ledger, reserved("b"), [second, first], lost) == Refusal(second, wait=True)


def test_a_cap_without_an_amount_is_no_limit(ledger, reserved, lost):
    assert reserve(ledger, reserved("a", "1000"), [Cap("run:R1", "run_cap", Cost.unknown())], lost) is None


def test_a_lease_is_compared_as_a_moment_whatever_its_offset(ledger, reserved, lost):
    ledger.append([reserved("east", lease_until="2026-03-01T14:05:00+02:00"), reserved("utc", lease_until=LATER[:-1])])
    assert reserve(ledger, reserved("c", time="2026-03-01T12:05:01Z"), [], lost) is None
    assert [entry.event.payload["reservation_id"] for entry in ledger.reservations("R1")] == ["utc", "c"]
    assert reserve(ledger, reserved("d", time="2026-03-01T12:10:01"), [], lost) is None
    assert [entry.event.payload["reservation_id"] for entry in ledger.reservations("R1")] == ["d"]


def test_a_lease_that_is_no_time_is_refused(ledger, reserved, lost):
    with pytest.raises(LedgerError, match="cannot account for this"):
        ledger.append([reserved("a", lease_until="soon")])
    assert ledger.head() is None


def test_a_spend_event_of_a_type_nobody_knows_moves_nothing(ledger, reserved, make_event, lost):
    ledger.append([reserved("a", "1"), make_event("spend.refunded", {"reservation_id": "a"})])
    assert len(ledger.reservations("R1")) == 1
    assert reserve(ledger, reserved("b", "1"), [cap("1 usd")], lost).wait


def test_a_reservation_of_an_earlier_process_is_still_there(tmp_path, opened, reserved, lost):
    path = tmp_path / "other.db"
    with opened(path) as first:
        first.append([reserved("a", "1")])
    with opened(path) as second:
        assert len(second.reservations("R1")) == 1
        assert reserve(second, reserved("b", "1"), [cap("1 usd")], lost).wait


def test_what_another_writer_reserved_in_between_counts(tmp_path, opened, reserved, closed, lost):
    path, caps = tmp_path / "both.db", [cap("0.03 usd")]
    with opened(path) as first, opened(path) as second:
        assert reserve(first, reserved("a"), caps, lost) is None
        assert reserve(second, reserved("b", "0.02"), caps, lost) is None
        assert reserve(first, reserved("c"), caps, lost).wait
        second.append([closed("released", "b")])
        refusals = first.reserve([Claim(reserved(name), caps) for name in "def"], lost)
        assert refusals == [None, None, Refusal(caps[0], wait=True)]
        assert first.verify().ok


def test_writers_that_take_turns_keep_the_sums_of_the_file(tmp_path, opened, reserved, closed, lost):
    """A writer has the sums in memory, and reads them again after another writer."""
    path, draw = tmp_path / "both.db", random.Random(7)
    with opened(path) as first, opened(path) as second:
        open_ids: list[str] = []
        for number in range(120):
            writer = draw.choice((first, first, second))
            if open_ids and draw.random() < 0.5:
                id_ = open_ids.pop(draw.randrange(len(open_ids)))
                writer.append([closed(draw.choice(("settled", "released", "lost")), id_, "0.004")])
            elif reserve(writer, reserved(str(number)), [cap("0.2 usd")], lost) is None:
                open_ids.append(str(number))
        assert first.verify().ok
        assert {entry.event.payload["reservation_id"] for entry in second.reservations("R1")} == {*open_ids}


def test_a_refused_append_leaves_the_sums_as_they_were(ledger, reserved, closed, lost):
    caps = [cap("0.03 usd")]
    assert reserve(ledger, reserved("a"), caps, lost) is None
    with pytest.raises(LedgerError, match="cannot account"):
        ledger.append([closed("settled", "a", "0.01"), reserved("b"), reserved("b")])
    assert reserve(ledger, reserved("c", "0.021"), caps, lost).wait
    ledger.append([closed("settled", "a", "0.01")])
    assert ledger.verify().ok


def test_a_number_as_the_id_of_a_reservation_is_the_same_as_its_text(ledger, reserved, closed):
    ledger.append([reserved(1)])
    ledger.append([closed("released", "1")])
    ledger.append([closed("settled", 1, "0.01")])
    assert ledger.reservations(None) == []
    assert ledger.verify().ok


def test_one_transaction_may_move_more_sums_than_are_kept_in_memory(monkeypatch, ledger, reserved, closed, lost):
    monkeypatch.setattr("dicast_ledger.spending.SUMS", 3)
    scopes = [["run:R1", f"session:{number % 7}"] for number in range(40)]
    claims = [Claim(reserved(f"{n}", "0.01", s), [cap("0.03 usd", s[1])]) for n, s in enumerate(scopes)]
    refusals = ledger.reserve(claims, lost, [closed("settled", "nobody", "1")])
    assert [refusal is None for refusal in refusals] == [number // 7 < 3 for number in range(40)]
    ledger.append([closed("settled", f"{number}", "0.005") for number in range(21)])
    assert reserve(ledger, reserved("all", "1"), [cap("1.105 usd")], lost) is None
    assert not reserve(ledger, reserved("more", "0.001"), [cap("0.105 usd")], lost).wait
    assert ledger.verify().ok


AMOUNTS = st.decimals("0", "2", places=3).map(str)
STEPS = st.lists(
    st.tuples(st.just("reserved"), st.integers(0, 5), AMOUNTS)
    | st.tuples(st.sampled_from(["settled", "lost"]), st.integers(0, 5), st.none() | AMOUNTS)
    | st.tuples(st.just("released"), st.integers(0, 5), st.none()),
    max_size=25,
)


@pytest.mark.slow
@settings(max_examples=3 * settings.default.max_examples // 5, deadline=None)  # each example waits for the disk
@given(steps=STEPS)
def test_the_sums_are_those_of_a_plain_recount(tmp_path_factory, opened, reserved, closed, lost, steps):
    """The model counts each reservation by its last event."""
    opened_ids, done, spent = {}, {}, {}
    with opened(tmp_path_factory.mktemp("sums") / "ledger.db") as ledger:
        for kind, number, amount in steps:
            if kind == "reserved":
                if number in opened_ids or number in done:
                    continue
                opened_ids[number] = amount
                ledger.append([reserved(str(number), amount)])
                continue
            ledger.append([closed(kind, str(number), amount)])
            if number in opened_ids:
                count = opened_ids.pop(number)
            elif done.get(number, "") == "lost" and kind != "lost":
                count = spent[number]
            else:
                continue
            done[number] = kind
            spent[number] = "0" if kind == "released" else count if amount is None else amount
        settled, open_ = (sum(map(Decimal, sums.values()), Decimal(0)) for sums in (spent, opened_ids))
        tiny = Decimal("0.0001")
        assert not reserve(ledger, reserved("x", str(tiny)), [cap(f"{settled} usd")], lost).wait
        if open_:
            assert reserve(ledger, reserved("y", str(tiny)), [cap(f"{settled + open_} usd")], lost).wait
        assert reserve(ledger, reserved("z", str(tiny)), [cap(f"{settled + open_ + tiny} usd")], lost) is None
        assert ledger.verify().ok
