"""The readers of other tools' files: MB/s of CPU of a whole read, next to the bare parser, and memory at 1,000 and 10,000 sessions.

``python readers.py`` measures all readers and writes the table of README.md.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
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


_MARKS = "<!-- readers -->\n", "<!-- end of readers -->\n"
"""The lines of README.md around the table."""


def table(figures: Mapping[str, float], megabytes: int, repeats: int) -> str:
    """Return the table of README.md from *figures* by name."""
    load = ", ".join(f"{value:.1f}" for value in os.getloadavg())
    lines = [
        f"Measured on {time.strftime('%Y-%m-%d')} with Python {platform.python_version()} and {os.cpu_count()} processors by",
        f"`python benchmarks/readers.py --megabytes {megabytes} --repeats {repeats}`; the load averages at the end were {load}.",
        "",
        "| reader | MB/s of CPU | times the floor | MB at 1,000 sessions | MB more at 10,000 |",
        "| --- | --: | --: | --: | --: |",
    ]
    for name in FORMATS:
        speed, ratio, few, growth = (
            figures[f"readers.{name}.{key}"] for key in ("speed", "ratio", f"memory.{FEW}", "memory.growth")
        )
        lines.append(f"| `{name}` | {speed:.0f} | {ratio:.1f} | {few:.0f} | {growth:.0f} |")
    clock, cpu, peak = (figures[f"readers.receiver.{key}"] for key in ("spans_per_s", "spans_per_cpu_s", "peak_memory"))
    lines += ["", f"The receiver: {clock:,.0f} spans/s by the clock, {cpu:,.0f} spans a second of CPU, {peak:.0f} MB."]
    return "".join(f"{line}\n" for line in lines)


def main() -> None:
    """Measure all readers, print the figures, and write the table of README.md."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--megabytes", type=int, default=MEGABYTES, help="of each format")
    parser.add_argument(
        "--repeats", type=int, default=3, help="pairs of a read and the floor, of which medians are written"
    )
    given = parser.parse_args()
    figures: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="dicast-benchmark-") as folder:
        for figure in measure(Path(folder), given.megabytes, given.repeats):
            print(figure, flush=True)
            assert figure.value is not None
            figures[figure.name] = figure.value
    readme = HERE / "README.md"
    before, start, rest = readme.read_text(encoding="utf-8").partition(_MARKS[0])
    _, end, after = rest.partition(_MARKS[1])
    readme.write_text(before + start + table(figures, given.megabytes, given.repeats) + end + after, encoding="utf-8")


if __name__ == "__main__":
    main()
