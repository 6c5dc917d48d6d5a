"""Lines of the spending, and the events that have none."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import Event
from dicast.reading.blocks.spent import AGENT, DIGITS, EXACT, UNCOUNTED, UNPRICED, Payer, spent_of

MOST = 2**62


def settled(type="spend.settled", **changes):
    payload = {
        "reservation_id": "r",
        "amount": "0.25",
        "unit": "usd",
        "calls": 3,
        "tokens": 7,
        "model": "m",
        "judge": "j",
    }
    return Event("id", type, "2026-01-02T00:00:00.000Z", "run", payload | changes, session_id="s")


def spent_of_event(event):
    return spent_of(event.type, event.time, event.run_id, event.session_id, event.turn_id, event.payload)


def figures(event):
    """Return the flags, the amount, the tokens and the calls, and the exact amount."""
    payer, time, flags, amount, tokens, calls, _, session, exact = spent_of_event(event)
    assert payer == Payer("run", event.type, event.payload["unit"], "m", "j")
    assert (time, session) == (1_767_312_000_000, "s")
    return flags, amount, tokens, calls, exact


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, (2 << DIGITS, 250_000_000_000, 7, 3, None)),
        ({"tokens": None}, (UNCOUNTED | 2 << DIGITS, 250_000_000_000, 0, 3, None)),
        ({"tokens": 0, "calls": 0}, (2 << DIGITS, 250_000_000_000, 0, 1, None)),
        ({"amount": "0", "calls": None}, (0, 0, 7, 0, None)),
        ({"amount": None, "calls": None}, (UNPRICED, 0, 7, 1, None)),
        ({"amount": "0.000000000001"}, (12 << DIGITS, 1, 7, 3, None)),
        ({"amount": "0.0000000000001"}, (EXACT, 0, 7, 3, ["0.0000000000001"])),
        ({"amount": "1.0000000000000"}, (EXACT, 0, 7, 3, ["1.0000000000000"])),
        ({"amount": "4611686.018427387904"}, (12 << DIGITS, MOST, 7, 3, None)),
        ({"amount": "4611686.018427387905"}, (EXACT, 0, 7, 3, ["4611686.018427387905"])),
        ({"tokens": MOST - 1, "calls": MOST}, (2 << DIGITS, 250_000_000_000, MOST - 1, MOST, None)),
        ({"tokens": 1 - MOST}, (2 << DIGITS, 250_000_000_000, 1 - MOST, 3, None)),
    ],
)
def test_a_settled_amount_has_a_line(changes, expected):
    assert figures(settled(**changes)) == expected


@given(
    st.decimals("0", "1e7", places=14) | st.decimals("0", "1e7", places=3) | st.integers(0, 10**20),
    st.sampled_from(["usd", "msat"]),
)
def test_the_text_of_an_amount_has_the_line_of_the_amount(amount, unit):
    amount = Decimal(amount)
    assert figures(settled(amount=f"{amount:f}", unit=unit)) == figures(settled(amount=amount, unit=unit))
    call = settled(AGENT, cost_usd=f"{amount:f}"), settled(AGENT, cost_usd=amount)
    lines = [spent_of_event(event) for event in call]
    assert [line[2:4] for line in lines] == [lines[0][2:4]] * 2
    assert lines[0][8] == lines[1][8]


def test_a_released_amount_is_a_line_of_nothing():
    released = settled("spend.released")
    assert figures(released) == (UNCOUNTED, 0, 0, 0, None)


@pytest.mark.parametrize(
    "changes",
    [
        {"tokens": MOST},
        {"tokens": -MOST},
        {"tokens": "7"},
        {"tokens": True},
        {"calls": MOST + 1},
        {"calls": -1},
        {"calls": 1.5},
        {"amount": "much"},
        {"unit": "eur"},
    ],
)
def test_an_event_of_another_form_has_no_line(changes):
    assert spent_of_event(settled(**changes)) is None
