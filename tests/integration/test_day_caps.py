"""The cap of a day in each ledger: exact over writers that pass midnight while they spend."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest
from tests.kernel.test_budget import NOW, Book, limits

from dicast import Query, Refusal, read_ledger
from dicast._kernel.pipeline.default_ledger import ledger_component
from dicast._kernel.stream.opening_context import opening

from .test_same_document import postgres

pytestmark = pytest.mark.slow

__all__ = ["postgres"]

WRITERS, CAP = 4, Decimal("0.30")
DAYS = ["day:2026-03-01", "day:2026-03-02"]


@pytest.fixture(params=["sqlite", "segments", "postgres"])
def place(request, tmp_path):
    if request.param == "postgres":
        server = request.getfixturevalue("postgres")
        return json.dumps({"postgres/ledger": {"url": server.url, "schema": server.schema()}})
    if request.param == "segments":
        return json.dumps({"segments/ledger": {"path": str(tmp_path / "logs")}})
    return str(tmp_path / "ledger.db")


def component_of(place):
    return ledger_component(place if place.startswith("{") else Path(place))[1]


async def spend(place, number):
    """Spend until the cap of the day refuses, also on the next day."""
    async with opening(component_of(place), None, create=True) as ledger:
        book = Book(ledger, limits(day=f"{CAP} usd"), f"R{number}")
        for now in (NOW.replace(hour=23, minute=59, second=number), NOW + timedelta(days=1, seconds=number)):
            book.now = now
            while not isinstance(reservation := await book.reserve("0.01"), Refusal):
                book.budget.settle(reservation, reservation.projected, {})


def test_the_cap_of_each_day_is_spent_to_the_cent_by_many_writers(place):
    async def make():
        async with opening(component_of(place), None, create=True):
            pass

    asyncio.run(make())
    with ThreadPoolExecutor(WRITERS) as threads:
        for done in [
            threads.submit(lambda number=number: asyncio.run(spend(place, number))) for number in range(WRITERS)
        ]:
            done.result(timeout=300)
    events = read_ledger(place, lambda live: [entry.event for entry in live.read(Query())])
    scopes = {
        event.payload["reservation_id"]: event.payload["scopes"] for event in events if event.type == "spend.reserved"
    }
    sums = Counter()
    for event in events:
        if event.type == "spend.settled":
            sums.update(dict.fromkeys(scopes[event.payload["reservation_id"]], Decimal(event.payload["amount"])))
    assert {day: sums[day] for day in DAYS} == dict.fromkeys(DAYS, CAP)
    assert read_ledger(place, lambda live: live.verify()).ok
