"""A whole ``dicast run`` with free judges over a folder of recorded sessions: MB/s of CPU, and memory at a tenth of the folder and at all of it."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from processes import DICAST, HERE, Figure, Wrong, clear, run

MEGABYTES = 200
TURNS = 24
"""Turns of a session, some 200 kB."""

GROWTH = 40
"""The most megabytes of memory that the larger folder may add."""

PIPELINE = """\
source: {transcripts/claude_code: {path: files, subjects: [tool_cycle, turn, session]}}
judges: [heuristic/tool_cycle, heuristic/turn, heuristic/session]
ledger: {ledger/sqlite: {path: ledger.db}}
"""


def measure(folder: Path, megabytes: int | None) -> Iterator[Figure]:
    """Measure a run over *megabytes* (:data:`MEGABYTES` by default) of sessions of Claude Code, after a run over a tenth of them."""
    (folder / "run.yaml").write_text(PIPELINE, encoding="utf-8")
    size = megabytes or MEGABYTES
    peaks = []
    for part in (size / 10, float(size)):
        files = _written(folder, part)
        done = run([DICAST, "run", "run.yaml", "--json"], folder, codes=(0, 1, 3))
        document = json.loads(done.output)
        ledger = sum(path.stat().st_size for path in folder.glob("ledger.db*"))
        clear(folder, "ledger.db*")
        if not document["scored"]:
            raise Wrong(f"no subject of {files['path']} has a score")
        peaks.append(done.peak_mb)
        yield Figure(f"folder.{part:g}.memory", done.peak_mb, "MB")
    yield Figure("folder.memory.growth", peaks[1] - peaks[0], "MB", f"<= {GROWTH}")
    yield Figure("folder.subjects", document["subjects"])
    yield Figure("folder.cpu", done.cpu, "s")
    yield Figure("folder.wall", done.wall, "s")
    yield Figure("folder.speed", files["bytes"] / 1e6 / done.cpu, "MB/s of CPU")
    yield Figure("folder.subject", done.cpu / document["subjects"] * 1e6, "us of CPU a subject")
    yield Figure("folder.ledger", ledger / 1e6, "MB")


def _written(folder: Path, megabytes: float) -> dict[str, Any]:
    """Write the folder of sessions in another process, so that this process stays small."""
    files = folder / "files"
    shutil.rmtree(files, ignore_errors=True)
    files.mkdir()
    limits = (str(megabytes), str(sys.maxsize), str(TURNS))
    written: dict[str, Any] = json.loads(
        run([sys.executable, HERE / "reader_files.py", "claude_code", files, *limits], folder).output
    )
    return written
