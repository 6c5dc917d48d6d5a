"""The readers of other tools' files: MB/s of CPU of a whole read, next to the bare parser, and memory at 1,000 and 10,000 sessions."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from processes import HERE, Figure, Wrong, run
from reader_files import FORMATS

MEGABYTES = 50
TURNS = 24
"""Turns of a session in the measurement of speed, some 200 kB; the memory is measured with sessions of one turn."""

FEW, MANY = 1_000, 10_000
GROWTH = 15
"""The most megabytes that nine thousand more sessions may add."""

LEAST = 20
"""Megabytes a second of CPU."""


def measure(folder: Path, megabytes: int | None, repeats: int, names: Sequence[str] = ()) -> Iterator[Figure]:
    """Each format in turn: *megabytes* (:data:`MEGABYTES` by default) of long sessions, then short sessions."""
    for name in names or FORMATS:
        yield from _speed(folder, name, megabytes or MEGABYTES, repeats)
        yield from _memory(folder, name)


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
