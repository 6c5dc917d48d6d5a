"""The tables of amounts count the events up to one of the last, and the rest is read from the lines."""

from __future__ import annotations

import asyncio
import random
import shutil
import sqlite3
from contextlib import closing

import pytest

from dicast import Cap, Claim, Cost, LedgerError
from dicast.testing import MemoryLedger

AMOUNT = {"scopes": ["run:R1", "day"], "unit": "usd", "lease_until": "2026-03-01T12:10:00.000Z"}
CAPS = [Cap("day", "day_cap", Cost.parse("0.3 usd"))]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger.db"


@pytest.fixture
def reserve(make_event):
    def reserve(ledger, id_, amount="0.01", **columns):
        payload = {**AMOUNT, "reservation_id": id_, "amount": amount}
        (refusal,) = ledger.reserve([Claim(make_event("spend.reserved", payload, **columns), CAPS)], None)
        return refusal

    return reserve


@pytest.fixture
def close(make_event):
    def close(ledger, id_, kind="settled"):
        payload = {"reservation_id": id_} if kind == "released" else {"reservation_id": id_, "amount": "0.015"}
        ledger.append([make_event(f"spend.{kind}", {**payload, "unit": "usd"})])

    return close


def counted(path):
    """Return the number of the last event that the tables count, and the spent amount."""
    with closing(sqlite3.connect(path)) as connection:
        (seq,) = connection.execute("SELECT seq FROM counted").fetchone()
        (amount,) = connection.execute("SELECT amount FROM spend WHERE scope = 'day'").fetchone() or (None,)
        return seq, amount


def version_of(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("PRAGMA user_version").fetchone()[0]


def has_counted(path):
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT 1 FROM sqlite_master WHERE name = 'counted'").fetchone() is not None


async def memory_ledger():
    async with MemoryLedger().open() as live:
        return live


def ids(ledger):
    return [entry.event.payload["reservation_id"] for entry in ledger.reservations(None)]


def test_the_end_of_a_run_counts_all_events(path, opened, make_event, reserve, close):
    with opened(path) as ledger:
        for number in range(4):
            reserve(ledger, f"r{number}")
        close(ledger, "r0")
        assert counted(path)[1] is None
        assert ids(ledger) == ["r1", "r2", "r3"]
        assert ledger.verify().ok
        ledger.append([make_event("run.completed")])
        assert counted(path) == (6, "0.015")
        assert ledger.verify().ok


def test_a_writer_counts_what_a_killed_process_appended(path, tmp_path, opened, reserve, close):
    killed = tmp_path / "killed.db"
    with opened(path) as ledger:
        for number in range(4):
            reserve(ledger, f"r{number}", "0.07")
        close(ledger, "r0")
        for suffix in ("", "-wal"):
            shutil.copy(f"{path}{suffix}", f"{killed}{suffix}")
    with opened(killed) as ledger:
        assert counted(killed)[1] is None
        assert ids(ledger) == ["r1", "r2", "r3"]
        assert reserve(ledger, "r4", "0.08").wait
        assert reserve(ledger, "r4", "0.074") is None
        assert counted(killed) == (5, "0.015")
        assert ledger.verify().ok


def test_a_reader_counts_all_events_without_a_change(path, opened, reserve, close):
    with opened(path) as ledger:
        reserve(ledger, "r0")
        reserve(ledger, "r1")
        close(ledger, "r0", "lost")
        before = counted(path)
        with opened(path, create=False) as reader:
            assert ids(reader) == ["r1"]
        assert counted(path) == before


def test_a_file_of_an_older_version_counts_all_its_events(opened, first_ledger, reserve, close):
    with opened(first_ledger.path, create=False) as ledger:
        before = ids(ledger)
        assert ledger.verify().ok
    with opened(first_ledger.path) as ledger:
        assert reserve(ledger, "r0") is None
        close(ledger, "r0")
        assert ids(ledger) == before
        assert ledger.verify().ok
    assert counted(first_ledger.path)[0] >= first_ledger.head.seq


def test_older_code_refuses_a_file_whose_later_events_it_would_let_count_twice(opened, first_ledger):
    """It reads the versions 2 to 4, and would keep ``counted`` while it adds to the sums."""
    assert (version_of(first_ledger.path), has_counted(first_ledger.path)) == (4, False)
    with opened(first_ledger.path, create=False):
        assert (version_of(first_ledger.path), has_counted(first_ledger.path)) == (4, False)
    with opened(first_ledger.path):
        assert (version_of(first_ledger.path), has_counted(first_ledger.path)) == (5, True)


def test_a_new_file_is_refused_by_older_code_too(path, opened):
    with opened(path):
        assert (version_of(path), has_counted(path)) == (5, True)


def test_a_changed_number_stops_a_writer(path, opened, reserve):
    with opened(path) as ledger:
        reserve(ledger, "r0")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE counted SET seq = 'x'")
    with opened(path) as ledger, pytest.raises(LedgerError, match="dicast ledger verify"):
        reserve(ledger, "r1")


def test_a_damaged_block_stops_a_writer(path, opened, reserve):
    with opened(path) as ledger:
        reserve(ledger, "r0")
        reserve(ledger, "r1")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE blocks SET body = substr(body, 1, size - 3), size = size - 3 WHERE first = 2")
    with opened(path) as ledger, pytest.raises(LedgerError, match="dicast ledger verify"):
        reserve(ledger, "r2")


@pytest.mark.parametrize("payload", [{"scopes": [None]}, {"scopes": [["a"]]}, {"unit": None}, {"reservation_id": None}])
def test_an_amount_that_no_table_takes_is_refused_at_once(path, opened, make_event, payload):
    event = make_event("spend.reserved", {**AMOUNT, "reservation_id": "r", "amount": "1", **payload})
    with opened(path) as ledger:
        with pytest.raises(LedgerError, match="cannot account for this"):
            ledger.append([event])
        ledger.append([make_event("run.completed")])
        assert ledger.verify().ok


@pytest.mark.parametrize("seed", range(4))
def test_writers_decide_as_a_ledger_in_memory(monkeypatch, path, opened, make_event, seed, reserve, close):
    """Writers stay, come and go; the newest blocks are compressed now and then."""
    monkeypatch.setattr("dicast_ledger.format4.writer.SEALED_APPENDS", 7)
    draw, open_ids, model = random.Random(seed), [], asyncio.run(memory_ledger())
    with opened(path) as first, opened(path) as second:
        for number in range(80):
            with opened(path) as third:
                writer = draw.choices((first, second, third), (8, 2, 1))[0]
                step = draw.random()
                if step < 0.5:
                    refusals = [reserve(ledger, f"r{number}") for ledger in (model, writer)]
                    assert refusals[0] == refusals[1]
                    open_ids += [] if refusals[0] else [f"r{number}"]
                elif step < 0.9 and open_ids:
                    id_, kind = draw.choice(open_ids), draw.choice(("settled", "released", "lost"))
                    for ledger in (model, writer):
                        close(ledger, id_, kind)
                elif step >= 0.9:
                    writer.append([make_event("turn.completed", {"n": number})])
            if draw.random() < 0.1:
                assert ids(second) == ids(model)
                assert first.verify().ok
        assert ids(first) == ids(model)
        assert first.verify().ok
