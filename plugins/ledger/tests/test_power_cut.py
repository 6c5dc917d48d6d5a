"""A ledger after power cuts: writes that no fsync made durable are missing, in part or as a whole."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import attrs
import pytest

pytestmark = pytest.mark.slow

SECTOR = 512
"""Bytes that a disk writes as a whole."""


@attrs.frozen
class Change:
    """A change to a file that a program made, in the order of its calls."""

    operation: str
    inode: int
    offset: int
    name: str
    data: bytes


@pytest.fixture(scope="module")
def preloaded(tmp_path_factory) -> Path:
    """The library that records changes to files."""
    compiler = shutil.which("cc")
    if sys.platform != "linux" or compiler is None:
        pytest.skip("a C compiler on Linux is needed to record the writes of SQLite")
    library = tmp_path_factory.mktemp("library") / "disk_log.so"
    command = [compiler, "-shared", "-fPIC", "-o", library, Path(__file__).with_name("disk_log.c"), "-ldl"]
    subprocess.run(command, check=True)
    return library


def run_recorded(library: Path, folder: Path, script: str, *arguments: Path) -> tuple[list[Change], list[str]]:
    """Run *script* and return its changes to files below *folder* and the lines of its output."""
    log = folder.with_name(folder.name + ".log")
    command = [sys.executable, "-c", script, *arguments]
    variables = os.environ | {"LD_PRELOAD": str(library), "DISK_LOG": str(log), "DISK_LOG_FOLDER": f"{folder}/"}
    done = subprocess.run(command, env=variables, timeout=120, stdout=subprocess.PIPE, text=True, check=True)
    return list(read_changes(log.read_bytes())), done.stdout.splitlines()


def read_changes(log: bytes) -> Iterator[Change]:
    place = 0
    while place < len(log):
        end = log.index(b"\n", place)
        operation, inode, offset, length, name = log[place:end].decode().split(" ", 4)
        place = end + 1 + int(length)
        yield Change(operation, int(inode), int(offset), name, log[end + 1 : place])


def cut_power(changes: list[Change], folder: Path, copy: Path, chance: random.Random) -> None:
    """Write the files of *folder* as a disk holds them after *changes* and a power cut to *copy*.

    An fsync makes earlier changes to its file durable, and earlier names of files. Each sector that was written after it
    is on the disk or not, by chance. Names are on the disk up to a moment drawn by chance.
    """
    durable = {change.inode: place for place, change in enumerate(changes) if change.operation == "sync"}
    last_named = chance.randint(max(durable.values(), default=0), len(changes))
    loss = chance.choice([0, 0.0005, 0.02, 0.5, 1])
    names: dict[str, int] = {}
    contents: dict[int, bytearray] = {}
    for place, change in enumerate(changes):
        is_durable = place <= durable.get(change.inode, -1)
        if change.operation == "create":
            contents[change.inode] = bytearray()
        if change.operation in ("create", "name", "unlink") and place <= last_named:
            names.pop(change.name, None)
            if change.operation != "unlink":
                names[change.name] = change.inode
        elif change.operation == "size" and (is_durable or chance.random() >= loss):
            resize(contents[change.inode], change.offset)
        elif change.operation == "write":
            write(contents[change.inode], change, 0 if is_durable else loss, chance)
    copy.mkdir()
    for name, inode in names.items():
        if not name.endswith("-shm"):  # SQLite rebuilds it from the log
            (copy / Path(name).relative_to(folder)).write_bytes(contents[inode])


def resize(content: bytearray, size: int) -> None:
    del content[size:]
    content.extend(bytes(size - len(content)))


def write(content: bytearray, change: Change, loss: float, chance: random.Random) -> None:
    """Write a change to *content* without a share *loss* of its sectors."""
    end = change.offset + len(change.data)
    content.extend(bytes(max(0, change.offset - len(content))))
    old = content[change.offset : end]
    content[change.offset : end] = change.data
    for start in range(0, len(change.data) if loss else 0, SECTOR):
        if chance.random() < loss:
            lost = old[start : start + SECTOR].ljust(len(change.data[start : start + SECTOR]), b"\0")
            content[change.offset + start : change.offset + start + len(lost)] = lost


WRITER = """
import asyncio, sys
from pathlib import Path
from dicast import Event
from dicast_ledger import Sqlite

time = "2026-03-01T12:00:00.000Z"


async def main():
    for part in range(3):
        async with Sqlite(Path(sys.argv[1])).open() as ledger:
            for number in range(1_400):
                name = f"{part}-{number}"
                count = 300 if number % 450 == 0 else 1
                payloads = [{"text": f"{name} {place} " + "x" * (number % 1_000)} for place in range(count)]
                events = [
                    Event(f"E{name}-{place}", "task.replied", time, "R1", payload, None, None, "row", name)
                    for place, payload in enumerate(payloads)
                ]
                head = ledger.append(events)
                print(head.seq, head.digest, flush=True)


asyncio.run(main())
"""


def test_a_power_cut_leaves_a_whole_chain_that_ends_at_an_appended_head(tmp_path, preloaded, opened, make_event):
    folder, chance = tmp_path / "written", random.Random(20261127)
    folder.mkdir()
    changes, heads = run_recorded(preloaded, folder, WRITER, folder / "ledger.db")
    checkpoints = [place for place, change in enumerate(changes) if change.operation == "sync"]
    assert len(checkpoints) > 8
    lengths = []
    for number in range(50):
        # Half of the cuts are close to a checkpoint, where SQLite moves pages from its log to the database.
        moment = chance.choice(checkpoints) + chance.randint(-30, 30) if number % 2 else chance.randrange(len(changes))
        copy = tmp_path / str(number)
        cut_power(changes[: max(0, moment)], folder, copy, chance)
        with opened(copy / "ledger.db") as ledger:
            result, head = ledger.verify(), ledger.head()
            assert result.ok, (number, moment, result)
            assert head is None or f"{head.seq} {head.digest}" in heads, (number, moment)
            lengths.append(head.seq if head else 0)
            ledger.append([make_event()])
            assert ledger.verify().ok
        shutil.rmtree(copy)
    assert len(set(lengths)) > 10, "the cuts were all at the same state of the ledger"


CONVERT = """
import sys
from pathlib import Path
from dicast_ledger.format4.convert import convert
print(convert(Path(sys.argv[1]), Path(sys.argv[2])).events)
"""


def test_a_power_cut_during_a_conversion_leaves_no_new_ledger_or_a_whole_one(
    tmp_path, preloaded, opened, old_ledger, append_old, make_event
):
    append_old(old_ledger.path, [make_event("task.replied", {"text": str(number)}) for number in range(3_000)])
    folder, chance = tmp_path / "written", random.Random(20261127)
    folder.mkdir()
    changes, output = run_recorded(preloaded, folder, CONVERT, old_ledger.path, folder / "new.db")
    assert changes[-1].operation != "sync"
    states = []
    for number in range(40):
        moment = len(changes) - chance.randrange(5) if number % 2 else chance.randrange(len(changes))
        copy = tmp_path / str(number)
        cut_power(changes[:moment], folder, copy, chance)
        states.append((copy / "new.db").exists())
        if states[-1]:
            with opened(copy / "new.db", create=False) as ledger:
                assert ledger.verify().ok
                assert ledger.head().seq == int(output[0])
        shutil.rmtree(copy)
    assert set(states) == {True, False}
