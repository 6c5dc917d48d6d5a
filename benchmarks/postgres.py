"""The ledger in PostgreSQL: reservations of many writers under one cap, events in blocks, the check, and a floor of each.

    uv run python benchmarks/postgres.py --writers 16 --seconds 10

It starts a server of its own, with fsync, in a temporary folder. PostgreSQL has to be installed.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
SERVER = HERE.parent / "contrib" / "postgres" / "tests" / "server.py"
SCOPE = "day:2026-11-27"
CALLS = 16
"""Paid calls of a writer that are reserved together."""

BLOCK = 999
"""Events of one append: 333 judged subjects."""


def main() -> None:
    """Measure, and print a line for each figure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--writers", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--writer", nargs=4, metavar=("KIND", "URL", "SCHEMA", "NUMBER"))
    arguments = parser.parse_args()
    if arguments.writer:
        kind, url, schema, number = arguments.writer
        print(json.dumps(asyncio.run(write(kind, url, schema, int(number), arguments.seconds))))
        return
    module = load_server()
    programs = module.find_programs()
    if programs is None:
        sys.exit("PostgreSQL is not installed: apt-get install postgresql")
    server = module.Server(programs, fsync="on", shared_buffers="256MB", max_wal_size="4GB")
    try:
        server.start()
        report(server, arguments.writers, arguments.seconds)
    finally:
        server.remove()


def load_server() -> Any:
    """Return the module with the server of the plugin's tests."""
    spec = importlib.util.spec_from_file_location("postgres_server", SERVER)
    if spec is None or spec.loader is None:
        raise ImportError(f"{SERVER} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def report(server: Any, writers: int, seconds: float) -> None:
    """Print the figures."""
    goals = {"reservations": 2_000, "events": 50_000}
    for kind in ("hot_row", "reservation", "reservations", "events"):
        schema = server.schema()
        command = [sys.executable, __file__, "--seconds", str(seconds), "--writer", kind, server.url, schema]
        prepare(server.url, schema)
        processes = [
            subprocess.Popen([*command, str(number)], stdout=subprocess.PIPE, text=True) for number in range(writers)
        ]
        rows = [json.loads(process.communicate()[0]) for process in processes]
        rate = sum(row["count"] / row["seconds"] for row in rows)
        cpu = sum(row["cpu"] for row in rows) / max(1, sum(row["count"] for row in rows)) * 1e6
        goal = f" (>= {goals[kind]:,}) {'ok' if rate >= goals[kind] else 'MISSED'}" if kind in goals else ""
        print(f"postgres.{kind}: {rate:,.0f} a second, {cpu:.0f} µs CPU of the client each{goal}", flush=True)
        if kind != "hot_row":
            print(f"postgres.{kind}.check: {check(server.url, schema)}", flush=True)


def prepare(url: str, schema: str) -> None:
    """Make the tables of the ledger, and the row of the floor."""
    import psycopg

    from dicast import Secret
    from dicast_postgres import Ledger

    async def make() -> None:
        async with Ledger(Secret(url), schema=schema).open():
            pass

    asyncio.run(make())
    with psycopg.connect(url) as connection:
        connection.execute(f"CREATE TABLE {schema}.hot (spent numeric)")
        connection.execute(f"INSERT INTO {schema}.hot VALUES (0)")


def check(url: str, schema: str) -> str:
    """Return the result and the time of the check of all events."""
    from dicast import Secret, read_ledger

    place = json.dumps({"postgres/ledger": {"url": url, "schema": schema}})
    assert Secret
    start = time.process_time()
    verification = read_ledger(place, lambda live: live.verify())
    cost = (time.process_time() - start) / max(1, verification.events) * 1e6
    return f"{'ok' if verification.ok else verification.reason}, {verification.events:,} events, {cost:.1f} µs CPU of the client an event"


async def write(kind: str, url: str, schema: str, number: int, seconds: float) -> dict[str, float]:
    """Write for some seconds, and return the number of answers, the time and the CPU time."""
    from dicast import Secret
    from dicast_postgres import Ledger

    async with Ledger(Secret(url), schema=schema).open() as live:
        await live.take_lease(f"run-{number}", "benchmark", 600, lambda _: False)
        if kind == "hot_row":
            step = await hot_row(url, schema)
        else:
            step = (
                block(live, number)
                if kind == "events"
                else reserve(live, number, 1 if kind == "reservation" else CALLS)
            )
        await asyncio.sleep(max(0.0, 6 - time.monotonic() % 6))  # all writers start together
        start, cpu, count = time.monotonic(), time.process_time(), 0
        while time.monotonic() - start < seconds:
            count += await step()
        return {"count": count, "seconds": time.monotonic() - start, "cpu": time.process_time() - cpu}


async def hot_row(url: str, schema: str) -> Any:
    """Return the floor: one row that each reservation changes."""
    import psycopg

    connection = await psycopg.AsyncConnection.connect(url, autocommit=True)

    async def step() -> int:
        await connection.execute(f"UPDATE {schema}.hot SET spent = spent + 0.01 WHERE spent + 0.01 <= 1e9")
        return 1

    return step


def reserve(live: Any, number: int, calls: int) -> Any:
    """Return reservations of *calls* paid calls at once under the caps of a run and of a day. A run with many calls under way sends them together."""
    from decimal import Decimal

    from dicast import Cap, Claim, Cost, Event, Lost
    from dicast.toolkit.ids import stamp

    run = f"run-{number}"
    caps = [Cap(scope, "cap", Cost(Decimal(1_000_000), "usd")) for scope in (f"run:{run}", SCOPE)]
    settlements: list[Event] = []

    def event(type_: str, id_: str, **fields: object) -> Event:
        payload = {"reservation_id": id_, "amount": "0.01", "unit": "usd", **fields}
        return Event(stamp()[0], type_, stamp()[1], run, payload)

    async def step() -> int:
        ids = [stamp()[0] for _ in range(calls)]
        events = [event("spend.reserved", id_, scopes=[cap.scope for cap in caps]) for id_ in ids]
        # the settlements of the calls before are in the same change
        answers = await live.reserve([Claim(item, caps) for item in events], Lost(*stamp()), settlements)
        if answers != [None] * calls:
            raise RuntimeError("the cap is too small")
        settlements[:] = [event("spend.settled", id_) for id_ in ids]
        return calls

    return step


def block(live: Any, number: int) -> Any:
    """Return an append of many events, of subjects that were judged at once. As in a run, the ids of an append have one time and count up."""
    from dicast import Event
    from dicast.toolkit.ids import stamp

    run, counter = f"run-{number}", [0]

    def subject(start: str, now: str) -> list[Event]:
        counter[0] += 1
        id_ = f"row-{number}-{counter[0]}"
        about: Any = {"run_id": run, "subject_kind": "row", "subject_id": id_}
        content = {"input": f"question {counter[0]}", "output": f"answer {counter[0]} of writer {number}" * 4}
        names = {"eval_id": f"{start}{4 * counter[0]:06}", "subject_kind": "row", "subject_id": id_, "judge": "metrics"}
        verdict = {
            **names,
            "score": counter[0] % 7 / 7,
            "confidence": 1.0,
            "signals": {},
            "scores": [],
            "fingerprint": "f" * 64,
        }
        payloads = {
            "subject.read": {"digest": "0" * 64, "content": content},
            "eval.started": names,
            "eval.completed": verdict,
        }
        return [
            Event(f"{start}{4 * counter[0] + place:06}", type_, now, payload=payload, **about)
            for place, (type_, payload) in enumerate(payloads.items(), 1)
        ]

    async def step() -> int:
        id_, now = stamp()
        events = [event for _ in range(BLOCK // 3) for event in subject(id_[:20], now)]
        await live.append(events)
        return len(events)

    return step


if __name__ == "__main__":
    main()
