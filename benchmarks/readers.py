"""The readers of other tools' files: MB/s of CPU of a whole read, next to the bare parser, and memory at 1,000 and 10,000 sessions."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from processes import HERE, Figure, Wrong, environment, run
from reader_files import FORMATS

MEGABYTES = 50
TURNS = 24
"""Turns of a session in the measurement of speed, some 200 kB; the memory is measured with sessions of one turn."""

FEW, MANY = 1_000, 10_000
GROWTH = 15
"""The most megabytes that nine thousand more sessions may add."""

LEAST = 20
"""Megabytes a second of CPU."""

TRACES, SPANS = 3_000, 5_000
"""Traces that the receiver receives, and the fewest spans a second."""


def measure(folder: Path, megabytes: int | None, repeats: int, names: Sequence[str] = ()) -> Iterator[Figure]:
    """Each format in turn: *megabytes* (:data:`MEGABYTES` by default) of long sessions, then short sessions."""
    for name in names or FORMATS:
        yield from _speed(folder, name, megabytes or MEGABYTES, repeats)
        yield from _memory(folder, name)
    if not names:
        yield from _receiver(folder)


def _receiver(folder: Path, traces: int = TRACES) -> Iterator[Figure]:
    """Measure a receiver with 32 clients, from the first conversation to the last."""
    command = [sys.executable, str(HERE / "own_receiver.py")]
    arguments = [*command, str(folder / "spool.db"), str(traces)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, env=environment(), text=True) as receiver:
        assert receiver.stdout is not None
        address = receiver.stdout.readline().strip()
        spans = json.loads(run([*command, address, str(traces)], folder).output.splitlines()[-1])["spans"]
        figures = json.loads(receiver.stdout.read().splitlines()[-1])
    counted = spans * figures["share"]
    yield Figure("readers.receiver.spans_per_s", counted / figures["seconds"], "", f">= {SPANS}")
    yield Figure("readers.receiver.spans_per_cpu_s", counted / figures["cpu"], "", f">= {SPANS}")
    yield Figure("readers.receiver.peak_memory", figures["peak_mb"], "MB")


def _speed(folder: Path, name: str, megabytes: int, repeats: int) -> Iterator[Figure]:
    files = _written(folder, name, megabytes, sys.maxsize, TURNS)
    floors, reads = [], []
    for _ in range(repeats):
        floors.append(_figures(folder, "floor", files)["cpu"])
        reads.append(_figures(folder, FORMATS[name][0], files)["cpu"])
    size = files["bytes"] / 1e6
    yield Figure(f"readers.{name}.floor", size / median(floors), "MB/s")
    yield Figure(f"readers.{name}.speed", size / median(reads), "MB/s", f">= {LEAST}")
    ratios = [read / floor for read, floor in zip(reads, floors, strict=True)]
    yield Figure(f"readers.{name}.ratio", median(ratios), "x the floor")


def _memory(folder: Path, name: str) -> Iterator[Figure]:
    peaks = []
    for sessions in (FEW, MANY):
        files = _written(folder, name, sys.maxsize, sessions, 1)
        peaks.append(_figures(folder, FORMATS[name][0], files)["peak_mb"])
        yield Figure(f"readers.{name}.memory.{sessions}", peaks[-1], "MB")
    yield Figure(f"readers.{name}.memory.growth", peaks[1] - peaks[0], "MB", f"<= {GROWTH}")


def _written(folder: Path, name: str, megabytes: float, sessions: int, turns: int) -> dict[str, Any]:
    """Write the files of a format in another process, so that this process stays small."""
    inner = folder / "files"
    shutil.rmtree(inner, ignore_errors=True)
    inner.mkdir()
    sizes = (str(megabytes), str(sessions), str(turns))
    written = run([sys.executable, HERE / "reader_files.py", name, inner, *sizes], folder)
    files: dict[str, Any] = json.loads(written.output)
    return files


def _figures(folder: Path, what: str, files: dict[str, Any]) -> dict[str, Any]:
    done = run([sys.executable, HERE / "own_reader.py", what, files["path"]], folder)
    figures: dict[str, Any] = json.loads(done.output)
    if not figures["subjects"]:
        raise Wrong(f"{what} has no subjects in {files['path']}")
    return figures
