"""``dicast agreement``: the statistics of a million pairs, the whole command on a ledger, and its figures compared with other packages'."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from processes import DICAST, HERE, Figure, Wrong, environment, run

PAIRS = 1_000_000
SECONDS = "<= 5"
TABLES = 200
OWN = [sys.executable, str(HERE / "own_agreement.py")]
Table = list[list[float | None]]


def measure(folder: Path, count: int | None, seed: int, peers: Path | None) -> Iterator[Figure]:
    """All of it, over *count* pairs."""
    yield from _exact(seed, peers)
    pairs = count or PAIRS
    taken = json.loads(run([*OWN, "time", str(pairs)], folder).output)
    yield Figure(f"agreement.{pairs}.statistics_cpu", taken["cpu"], "s", SECONDS)
    yield Figure(f"agreement.{pairs}.statistics_memory", taken["grown"], "MB", "<= 40")
    run([*OWN, "write", str(folder), str(pairs)], folder)
    for name, *options in (("two_judges",), ("labels", "--judge", "a", "--gold", "gold.jsonl")):
        done = run([DICAST, "agreement", "--json", "--ledger", "ledger.db", *options], folder)
        if (n := json.loads(done.output)["n"]) != pairs:
            raise Wrong(f"dicast compared {n} of {pairs} subjects")
        yield Figure(f"agreement.{pairs}.{name}_cpu", done.cpu, "s")
        yield Figure(f"agreement.{pairs}.{name}_wall", done.wall, "s")
        yield Figure(f"agreement.{pairs}.{name}_peak", done.peak_mb, "MB")


def _exact(seed: int, peers: Path | None) -> Iterator[Figure]:
    """The largest differences from other packages' figures, over random tables with missing values."""
    python = peers and peers / "agreement" / "bin" / "python"
    if not python or not python.exists():
        yield from (Figure(f"agreement.{name}_error", None, "", "<= 1e-9") for name in ("alpha", "kappa"))
        return
    tables = list(_tables(seed))
    ours, theirs = (
        _values(command, tables) for command in ([*OWN, "values"], [str(python), str(HERE / "peer_agreement.py")])
    )
    yield Figure(
        "agreement.alpha_error", _error([one["alpha"] for one in ours], [one["alpha"] for one in theirs]), "", "<= 1e-9"
    )
    kappas = ([kappa for one in side for *_, kappa in one["kappa"]] for side in (ours, theirs))
    yield Figure("agreement.kappa_error", _error(*kappas), "", "<= 1e-9")


def _tables(seed: int) -> Iterator[Table]:
    draw = random.Random(seed)
    for _ in range(TABLES):
        raters, levels, missing = draw.choice((2, 2, 3, 4, 7)), draw.choice((2, 3, 5, 11, 0)), draw.random() * 0.6
        # krippendorff takes memory for each unit times the square of the number of different scores
        units = draw.choice((2, 3, 10, 50, 300, 3000) if levels else (2, 3, 10, 50))
        yield [_row(draw, raters, levels, missing) for _ in range(units)]


def _row(draw: random.Random, raters: int, levels: int, missing: float) -> list[float | None]:
    truth = draw.random()
    scores = (min(1.0, max(0.0, truth + draw.gauss(0, 0.3))) for _ in range(raters))
    scores = (round(score * (levels - 1)) / (levels - 1) if levels else score for score in scores)
    return [None if draw.random() < missing else score for score in scores]


def _values(command: list[str], tables: list[Table]) -> list[dict[str, Any]]:
    done = subprocess.run(
        command, input=json.dumps(tables), env=environment(), capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise Wrong(f"{' '.join(command)} ended with {done.returncode}:\n{done.stderr[-2000:]}")
    return list(json.loads(done.stdout))


def _error(ours: list[float | None], theirs: list[float | None]) -> float:
    """Return the largest difference; a value undefined on one side must be undefined on the other."""
    if [one is None for one in ours] != [one is None for one in theirs]:
        raise Wrong("what one side has no figure for, the other has")
    return max(
        abs(one - other) for one, other in zip(ours, theirs, strict=True) if one is not None and other is not None
    )
