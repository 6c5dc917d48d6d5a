"""Several writers make one chain: no event is lost, written twice or overwritten, and caps are exact."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from dicast import Cap, Claim, Cost, LedgerError, Lost, Query
from dicast.toolkit.ids import stamp
from dicast_segments import Ledger, log
from dicast_segments.commits import name_of
from dicast_segments.stores import BucketStore, FolderStore


def texts_of(live):
    return [entry.event.payload["n"] for entry in live.read(Query())]


@pytest.fixture
def small_segments(monkeypatch):
    """Seal after three commits."""
    monkeypatch.setattr(log, "SEALED_COMMITS", 3)


def test_a_taken_name_is_refused_and_not_overwritten(ledger, opened):
    with opened(ledger):
        store = FolderStore(ledger.path) if ledger.path else BucketStore(ledger.url)
        assert store.put(name_of(1), b"first")
        assert not store.put(name_of(1), b"second")
        assert store.get(name_of(1)) == b"first"


def test_a_reading_gets_each_event_once_while_commits_are_sealed(ledger, opened, make_event, small_segments):
    with opened(ledger) as writer, opened(ledger) as reader:
        for number in range(10):
            writer.append([make_event(payload={"n": 2 * number + part}) for part in range(2)])
        for newest_first in (False, True):
            reading = reader.read(Query(newest_first=newest_first))
            numbers = [next(reading).event.payload["n"] for _ in range(3)]
            writer._log.seal()
            numbers += [entry.event.payload["n"] for entry in reading]
            assert numbers == sorted(range(20), reverse=newest_first)
            writer.append([])
        assert reader.verify().ok


def test_the_commit_of_a_suspended_writer_counts_once_after_its_position_was_sealed(
    ledger, opened, make_event, small_segments
):
    """The suspended writer finds its position free again, because the commit of the faster writer was sealed and removed."""
    with opened(ledger) as slow, opened(ledger) as fast:
        slow.append([make_event(payload={"n": 0})])
        for number in range(1, 10):
            fast.append([make_event(payload={"n": number})])
        slow.append([make_event(payload={"n": 10})])
        fast.append([make_event(payload={"n": 11})])
        assert texts_of(fast) == texts_of(slow) == [*range(12)]
    with opened(ledger, create=False) as live:
        assert live.verify().ok
        assert texts_of(live) == [*range(12)]


def test_an_append_whose_answer_is_lost_is_written_once(ledger, opened, make_event, monkeypatch):
    with opened(ledger) as live:
        store = live._log.store
        put = store.put

        def lose(name, data):
            put(name, data)
            raise LedgerError("the answer is lost")

        monkeypatch.setattr(store, "put", lose)
        live.append([make_event(payload={"n": 0})])
        monkeypatch.setattr(
            store, "put", lambda name, data: put(name, data) and put(name, data)
        )  # the client repeats it
        live.append([make_event(payload={"n": 1})])
        monkeypatch.setattr(store, "put", put)
        assert texts_of(live) == [0, 1]
        assert live.verify().ok


def test_an_append_that_fails_changes_nothing(ledger, opened, make_event, monkeypatch):
    with opened(ledger) as live:
        reservation = make_event(
            "spend.reserved", {"reservation_id": "R", "scopes": ["run:1"], "amount": "0.02", "unit": "usd"}
        )

        def fail(name, data):
            raise LedgerError("no network")

        with monkeypatch.context() as patch:
            patch.setattr(live._log.store, "put", fail)
            with pytest.raises(LedgerError, match="no network"):
                live.append([reservation])
        assert live.head() is None
        assert not live.reservations(None)
        live.append([reservation])
        assert len(live.reservations(None)) == 1


@pytest.mark.parametrize("ledger", ["folder"], indirect=True)
def test_caps_are_exact_with_eight_writers(ledger, opened, make_event, small_segments):
    cap, granted = Cap("run:1", "run_cap", Cost("0.20")), []

    def work(number):
        with opened(ledger) as live:
            for turn in range(10):
                payload = {"reservation_id": f"{number}-{turn}", "amount": "0.01", "unit": "usd"}
                claim = Claim(make_event("spend.reserved", {**payload, "scopes": ["run:1"]}), [cap])
                if live.reserve([claim], Lost(*stamp())) == [None]:
                    granted.append(claim)
                    live.append([make_event("spend.settled", payload)])

    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(work, number) for number in range(8)]:
            done.result()
    assert len(granted) == 20
    with opened(ledger, create=False) as live:
        assert live.verify().ok
        types = [entry.event.type for entry in live.read(Query())]
        assert (types.count("spend.reserved"), types.count("spend.settled")) == (20, 20)


WRITER = """
import asyncio, sys
from dicast import Event
from dicast_segments import Ledger, log

log.SEALED_COMMITS = 5
place, name = sys.argv[1:]


def events(number, count):
    time = "2026-03-01T12:00:00.000Z"
    for place in range(number, number + count):
        content = {"digest": str(place), "content": {"output": f"{name} text {place}"}}
        yield Event(f"{name}-{place}", "subject.read", time, name, content, None, None, "row", str(place))


async def main():
    component = Ledger(url=place) if "://" in place else Ledger(path=__import__("pathlib").Path(place))
    async with component.open() as ledger:
        number = 0
        while True:
            count = 50 if number % 7 == 0 else 1
            ledger.append(list(events(number, count)))
            number += count
            print(number, flush=True)


asyncio.run(main())
"""


@pytest.mark.slow
def test_each_acknowledged_append_of_killed_writers_is_there(ledger, opened):
    chance, written = random.Random(7), {}
    for round_ in range(4):
        writers = {}
        for place in range(2):
            command = [sys.executable, "-c", WRITER, str(ledger.path or ledger.url), f"R{round_}-{place}"]
            writers[command[-1]] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for process in writers.values():
            process.stdout.readline()
        time.sleep(chance.uniform(0, 0.7))
        for name, process in writers.items():
            process.kill()
            output = process.communicate()[0].split()
            written[name] = int(output[-1]) if output else 0
        with opened(ledger, create=False) as live:
            result = live.verify()
        assert result.ok, result
    with opened(ledger) as live:
        for name, count in written.items():
            events = [entry.event for entry in live.read(Query(run_id=name))]
            assert count <= len(events)
            assert [event.subject_id for event in events] == [str(place) for place in range(len(events))]
            assert all(
                event.payload["content"]["output"] == f"{name} text {place}" for place, event in enumerate(events)
            )


def test_a_commit_that_another_writer_seals_at_once_counts(ledger, opened, make_event, small_segments, monkeypatch):
    with opened(ledger) as live, opened(ledger) as other:
        for number in range(2):
            live.append([make_event(payload={"n": number})])
        store = live._log.store
        put = store.put

        def seal(name, data):
            is_put = put(name, data)
            monkeypatch.setattr(store, "put", put)
            for n in range(3, 8):
                other.append([make_event(payload={"n": n})])
            return is_put

        monkeypatch.setattr(store, "put", seal)
        live.append([make_event(payload={"n": 2})])
        live.append([make_event(payload={"n": 8})])
        assert texts_of(live) == texts_of(other) == [*range(9)]
        assert live.verify().ok


def test_a_lease_is_lost_to_another_process(ledger, opened, make_event):
    with opened(ledger) as first, opened(ledger) as second:
        assert first.take_lease("R", "first", 600, lambda lease: False) is None
        assert second.take_lease("R", "second", 600, lambda lease: True) is None
        with pytest.raises(LedgerError, match="run R has lost its lease"):
            first.renew_lease()
        with pytest.raises(LedgerError, match="run R has lost its lease"):
            first.append([make_event()])
        assert second.head() is None


def test_a_lease_is_renewed_when_it_is_due(folder, opened, make_event, monkeypatch):
    with opened(folder) as live:
        live.take_lease("R", "owner", 600, lambda lease: False)
        before = live.lease_of("R").until
        live.append([make_event()])
        assert live.lease_of("R").until == before
        later = time.time() + 300
        monkeypatch.setattr(time, "time", lambda: later)
        live.append([make_event()])
        assert live.lease_of("R").until > before


def test_the_lease_of_a_run_without_events_is_forgotten(folder, opened, make_event):
    with opened(folder) as live:
        live.take_lease("R", "owner", 600, lambda lease: False)
        live.release_lease()
        assert live.lease_of("R") is None
    assert not [*folder.path.glob("segments/*")]


def test_writers_in_threads_of_one_ledger(ledger, opened, make_event, small_segments):
    with opened(ledger) as live:
        barrier = threading.Barrier(4)

        def work(name):
            barrier.wait(100)
            for number in range(10):
                live.append([make_event(payload={"n": number}, run_id=name)])

        with ThreadPoolExecutor(4) as pool:
            for done in [pool.submit(work, f"R{place}") for place in range(4)]:
                done.result()
        for place in range(4):
            entries = live.read(Query(run_id=f"R{place}"))
            assert [entry.event.payload["n"] for entry in entries] == [*range(10)]
        assert live.verify().ok


def test_a_run_does_not_wait_for_s3(tmp_path):
    assert Ledger(url="s3://bucket/logs").is_async_ledger
    assert not Ledger(path=tmp_path / "logs").is_async_ledger


def test_a_component_needs_one_place(tmp_path):
    for options in ({}, {"path": tmp_path, "url": "s3://b/p"}):
        with pytest.raises(Exception, match="give a path or a url"):
            Ledger(**options)
