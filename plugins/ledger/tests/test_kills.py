"""Writers of format 4 that are killed leave a whole ledger with every acknowledged append."""

from __future__ import annotations

import random
import subprocess
import sys
import time

import pytest

from dicast import Query

pytestmark = pytest.mark.slow

WRITER = """
import asyncio, sys
from dicast import Event
from dicast_ledger import Sqlite

path, name = sys.argv[1:]


def events(number, count):
    time = "2026-03-01T12:00:00.000Z"
    for place in range(number, number + count):
        about = {"eval_id": f"{name}-{place}", "subject_kind": "row", "subject_id": str(place)}
        content = {"digest": str(place), "content": {"output": f"{name} text {place}"}}
        payloads = {"subject.read": content, "eval.started": about, "eval.completed": {**about, "score": 0.5}}
        for type, payload in payloads.items():
            yield Event(f"{name}-{place}-{type}", type, time, name, payload, None, None, "row", str(place))


async def main():
    async with Sqlite(path, busy_timeout=60).open() as ledger:
        number = 0
        while True:
            count = 150 if number % 7 == 0 else 1
            ledger.append(list(events(number, count)))
            number += count
            print(number, flush=True)


asyncio.run(main())
"""


def test_each_acknowledged_append_of_killed_writers_is_there(tmp_path, opened):
    path, chance = tmp_path / "ledger.db", random.Random(7)
    written = {}
    for round_ in range(4):
        writers = {f"R{round_}-{place}": None for place in range(2)}
        for name in writers:
            command = [sys.executable, "-c", WRITER, path, name]
            writers[name] = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for process in writers.values():
            process.stdout.readline()
        time.sleep(chance.uniform(0, 0.7))
        for name, process in writers.items():
            process.kill()
            output = process.communicate()[0].split()
            written[name] = int(output[-1]) if output else 0
        with opened(path) as ledger:
            result = ledger.verify()
        assert result.ok, result
    with opened(path) as ledger:
        for name, count in written.items():
            entries = [entry.event for entry in ledger.read(Query(run_id=name))]
            assert len(entries) >= 3 * count
            assert [event.subject_id for event in entries[::3]] == [str(place) for place in range(len(entries) // 3)]
            assert all(
                event.payload["content"]["output"] == f"{name} text {place}" for place, event in enumerate(entries[::3])
            )


CONVERT = """
import sys
from pathlib import Path
from dicast_ledger.format4.convert import convert
print("started", flush=True)
convert(Path(sys.argv[1]), Path(sys.argv[2]))
"""


def test_a_killed_conversion_leaves_no_file_or_a_whole_one(tmp_path, opened, old_ledger, append_old, make_event):
    append_old(old_ledger.path, [make_event("task.replied", {"text": str(number)}) for number in range(3_000)])
    before, chance, new = old_ledger.path.read_bytes(), random.Random(7), tmp_path / "new.db"
    for _ in range(8):
        process = subprocess.Popen([sys.executable, "-c", CONVERT, old_ledger.path, new], stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(chance.uniform(0, 0.4))
        process.kill()
        process.communicate()
        if new.exists():
            with opened(new, create=False) as ledger:
                assert (ledger.verify().ok, ledger.head().seq) == (True, old_ledger.head.seq + 3_000)
            new.unlink()
    assert old_ledger.path.read_bytes() == before
    subprocess.run([sys.executable, "-c", CONVERT, old_ledger.path, new], check=True, stdout=subprocess.DEVNULL)
    with opened(new, create=False) as ledger:
        assert ledger.verify().ok


def test_a_power_cut_leaves_a_whole_chain_with_an_earlier_head(tmp_path, opened, make_event, make_subject):
    """Pages of the log that were not synchronized are missing, in part or with zeros in their place."""
    path, chance, heads = tmp_path / "ledger.db", random.Random(7), {None}
    with opened(path) as ledger:
        for number in range(300):
            heads.add(ledger.append(make_subject(number) if number % 9 else [make_event("run.paused", {"n": number})]))
        database, log = path.read_bytes(), path.with_name("ledger.db-wal").read_bytes()
    assert len(log) > 100_000
    for place in range(40):
        copy = tmp_path / f"{place}.db"
        end = chance.randrange(len(log))
        rest = bytearray(log[:end])
        for _ in range(place % 3):
            start = chance.randrange(len(rest) + 1)
            rest[start : start + 4096] = bytes(len(rest[start : start + 4096]))
        copy.write_bytes(database)
        copy.with_name(f"{copy.name}-wal").write_bytes(rest)
        with opened(copy) as ledger:
            assert ledger.verify().ok
            assert ledger.head() in heads
            ledger.append([make_event()])
            assert ledger.verify().ok
