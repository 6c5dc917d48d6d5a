"""Several processes on one ledger, processes that are killed, and disks that are full."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from decimal import Decimal

import pytest

from dicast import Cap, Claim, Cost, Query, Refusal

LATER, LONG_AFTER = "2026-03-01T12:10:00.000Z", "2026-03-01T13:00:00.000Z"

PRELUDE = """
import asyncio, resource, sys
from itertools import count
from pathlib import Path
from dicast import Cap, Claim, Cost, Event, LedgerError
from dicast_ledger import Sqlite

path, me = Path(sys.argv[1]), sys.argv[2]
numbers = count()

def event(type, payload):
    return Event(f"{me}-{next(numbers)}", type, "2026-03-01T12:00:00.000Z", f"R{me}", payload)

def reserved(id, amount, scopes):
    body = {"reservation_id": id, "scopes": scopes, "amount": amount, "unit": "usd"}
    return event("spend.reserved", body | {"lease_until": "2026-03-01T12:10:00.000Z"})

def lost(entry):
    raise AssertionError("no lease is over")

async def main():
    sys.stdin.readline()
    async with Sqlite(path).open() as ledger:
        work(ledger)

"""
APPEND = """
def work(ledger):
    for batch in range(40):
        read = {"digest": f"{batch:02x}" * 32, "content": {"output": f"text {batch}"}}
        ledger.append([event("subject.read", read), event("eval.started", {}), event("eval.completed", {"score": 1})])

asyncio.run(main())
"""
SPEND = """
def work(ledger):
    scopes = ["day:2026-03-01", f"session:{int(me) % 2}"]
    caps = [Cap(scopes[1], "session_cap", Cost("0.30")), Cap(scopes[0], "daily_cap", Cost("0.50"))]
    held = []
    for number in range(60):
        id = f"{me}:{number}"
        (refusal,) = ledger.reserve([Claim(reserved(id, "0.01", scopes), caps)], lost)
        if refusal is None:
            held.append(id)
        if held and (refusal or number % 3 == 0):
            body = {"reservation_id": held.pop(0), "amount": ["0.01", "0.004", None][number % 3], "unit": "usd"}
            ledger.append([event("spend.released" if number % 7 == 0 else "spend.settled", body)])
        if refusal and not refusal.wait:
            return

asyncio.run(main())
"""
HOLD = """
def work(ledger):
    for number in range(3):
        claim = Claim(reserved(f"{me}:{number}", "0.01", ["day:2026-03-01"]), [])
        assert ledger.reserve([claim], lost) == [None]
    print("holding", flush=True)
    sys.stdin.readline()

asyncio.run(main())
"""
FILL = """
def work(ledger):
    ledger.append([event("run.started", {})])
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, resource.RLIM_INFINITY))
    batches = 0
    try:
        while True:
            ledger.append([event("eval.completed", {"details": "x" * 1000}) for _ in range(20)])
            batches += 1
    except LedgerError as error:
        print(error)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    found = ledger.verify()
    print(found.ok, found.events == 1 + 20 * batches, batches > 2)
    print(ledger.append([event("run.completed", {})]).seq == found.events + 1, ledger.verify().ok)

asyncio.run(main())
"""


@pytest.fixture
def start():
    """Start a process that waits for a line before it opens the ledger; every one is reaped at the end."""
    with ExitStack() as processes:

        def start(script, path, me):
            pipe = subprocess.PIPE
            arguments = [sys.executable, "-c", PRELUDE + script, path, str(me)]
            process = subprocess.Popen(arguments, stdin=pipe, stdout=pipe, stderr=pipe, text=True)
            processes.enter_context(process)
            processes.callback(process.kill)
            return process

        yield start


def go(processes):
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()


def finished(processes):
    go(processes)
    for process in processes:
        out, err = process.communicate(timeout=200)
        assert process.returncode == 0, err
        yield out


def test_processes_that_create_and_append_at_once_keep_one_chain(tmp_path, start, opened):
    path = tmp_path / "ledger.db"
    list(finished([start(APPEND, path, me) for me in range(3)]))
    with opened(path) as ledger:
        assert ledger.verify().ok
        entries = list(ledger.read(Query()))
        assert Counter(entry.event.run_id for entry in entries) == {"R0": 120, "R1": 120, "R2": 120}
        for run_id in ("R0", "R1", "R2"):
            ids = [int(entry.event.id.split("-")[1]) for entry in ledger.read(Query(run_id=run_id))]
            assert ids == list(range(120))
        contents = [e.event.payload["content"]["output"] for e in entries if e.event.type == "subject.read"]
        assert Counter(contents) == {f"text {batch}": 3 for batch in range(40)}


@pytest.mark.slow
def test_four_processes_never_exceed_a_cap_together(tmp_path, start, opened):
    path = tmp_path / "ledger.db"
    list(finished([start(SPEND, path, me) for me in range(4)]))
    limits = {"day:2026-03-01": Decimal("0.50"), "session:0": Decimal("0.30"), "session:1": Decimal("0.30")}
    with opened(path) as ledger:
        assert ledger.verify().ok
        counted, most = {}, dict.fromkeys(limits, Decimal(0))
        for entry in ledger.read(Query()):
            body = entry.event.payload
            if entry.event.type == "spend.reserved":
                counted[body["reservation_id"]] = (Decimal(body["amount"]), body["scopes"])
            elif entry.event.type == "spend.released":
                del counted[body["reservation_id"]]
            elif body["amount"] is not None:
                counted[body["reservation_id"]] = (Decimal(body["amount"]), counted[body["reservation_id"]][1])
            for scope, limit in limits.items():
                total = sum((amount for amount, scopes in counted.values() if scope in scopes), Decimal(0))
                assert total <= limit, f"{scope} holds {total} at row {entry.seq}"
                most[scope] = max(most[scope], total)
    assert most["day:2026-03-01"] > Decimal("0.48")


def test_the_reservations_of_a_killed_process_end_as_lost(tmp_path, start, opened, make_event):
    path = tmp_path / "ledger.db"
    holder = start(HOLD, path, 7)
    go([holder])
    assert holder.stdout.readline() == "holding\n"
    holder.kill()
    holder.wait()
    cap = Cap("day:2026-03-01", "daily_cap", Cost("0.03"))
    body = {"reservation_id": "mine", "scopes": [cap.scope], "amount": "0.01", "unit": "usd", "lease_until": LONG_AFTER}

    def lost(entry):
        return make_event("spend.lost", {k: entry.event.payload[k] for k in ("reservation_id", "amount", "unit")})

    with opened(path) as ledger:
        assert len(ledger.reservations("R7")) == 3
        for now, wait in ((LATER, True), (LONG_AFTER, False)):
            claim = Claim(make_event("spend.reserved", body, time=now), [cap])
            assert ledger.reserve([claim], lost) == [Refusal(cap, wait)]
        assert ledger.reservations("R7") == []
        assert len(list(ledger.read(Query(types=("spend.lost",))))) == 3
        assert ledger.verify().ok


def test_a_full_disk_is_told_and_leaves_a_whole_chain(tmp_path, start):
    pytest.importorskip("resource", reason="file size limits are POSIX")
    (out,) = finished([start(FILL, tmp_path / "ledger.db", 0)])
    error, *checks = out.splitlines()
    assert "ledger.db" in error
    assert checks == ["True True True", "True True"]
