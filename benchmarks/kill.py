"""kill -9 at any moment, then ``--resume``: every figure must be what an undisturbed run gives."""

from __future__ import annotations

import json
import random
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import workload
from processes import DICAST, Figure, Wrong, clear, environment, run

ROWS = 20_000
KILLS = 50
SEED = 20
LIVE_SHARE = 0.8
"""How many of the draws must hit a live process; draws are repeated, up to twice the number, until so."""

RUN = [DICAST, "run", "pipeline.yaml", "--json"]
VERIFY = [DICAST, "ledger", "verify", "--ledger", "ledger.db", "--json"]


@dataclass(frozen=True)
class Result:
    """All that a run leaves, but times and ids."""

    document: dict[str, Any]
    table: bytes
    events: Counter[str]
    scores: Counter[tuple[str, str, float]]

    def differences(self, other: Result) -> list[str]:
        """What is not the same in *other*."""
        keys = {key for key in self.document | other.document if self.document.get(key) != other.document.get(key)}
        names = ("table", "events", "scores")
        return sorted(keys) + [name for name in names if getattr(self, name) != getattr(other, name)]


def measure(folder: Path, count: int | None, kills: int | None, seed: int) -> Iterator[Figure]:
    """Kill at *kills* moments drawn uniformly over the duration of an undisturbed run, as the quickest of them showed it.

    :raises Wrong: when a ledger does not verify, a run cannot be resumed, or a figure differs.
    """
    workload.write(folder, count or ROWS, sessions=(count or ROWS) // 10, sinks=workload.CSV_SINK)
    whole = run(RUN, folder)
    expected = _result(folder, whole.output)
    wanted = kills or KILLS
    moments, latest = random.Random(seed), whole.wall
    states: Counter[str] = Counter()
    while states.total() < wanted or states.total() - states["too_late"] < LIVE_SHARE * wanted:
        if states.total() == 2 * wanted:
            raise Wrong(f"only {states.total() - states['too_late']} of {2 * wanted} kills hit a live process")
        moment = moments.uniform(0, latest)
        state, output = _kill_and_resume(folder, moment)
        states[state] += 1
        latest = moment if state == "too_late" else latest
        if differs := expected.differences(_result(folder, output)):
            raise Wrong(
                f"killed after {moment:.3f} s ({state}), the resumed run differs in {', '.join(differs)} (seed {seed})"
            )
    yield from _figures(states, whole.wall, wanted, seed)


def _figures(states: Counter[str], seconds: float, wanted: int, seed: int) -> Iterator[Figure]:
    yield Figure("kill.seed", seed)
    yield Figure("kill.undisturbed", seconds, "s")
    yield Figure("kill.draws", states.total())
    hits = states.total() - states["too_late"]
    yield Figure("kill.hits", hits, "live processes", f">= {LIVE_SHARE * wanted:.0f}")
    yield Figure("kill.before_run_started", states["before_run_started"], "begun anew")
    yield Figure("kill.after_run_started", hits - states["before_run_started"])
    yield Figure("kill.resumed", states["resumed"])
    yield Figure("kill.after_run_completed", states["after_run_completed"], "nothing left to resume")
    yield Figure("kill.equal_to_undisturbed", states.total(), "", f">= {states.total()}")


def _kill_and_resume(folder: Path, moment: float) -> tuple[str, str]:
    """Say what the kill hit, and give the run's document."""
    clear(folder, "ledger.db*", "rows.csv", "*.tmp")
    with subprocess.Popen(
        RUN, cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            output, _ = process.communicate(timeout=moment)
            return "too_late", output
        except subprocess.TimeoutExpired:
            process.kill()
            # It may have ended between the timeout and the kill.
            output, _ = process.communicate()
    if process.returncode == 0:
        return "too_late", output
    return _resume(folder, _types(folder))


def _types(folder: Path) -> Counter[str]:
    """The events by type in a ledger that verifies; none without a ledger."""
    ledger = folder / "ledger.db"
    if not ledger.exists() or _is_blank(ledger):
        return Counter()
    run(VERIFY, folder)
    return _counted(ledger)


def _resume(folder: Path, types: Counter[str]) -> tuple[str, str]:
    if not types["run.started"]:
        run([*RUN, "--resume"], folder, codes=(2,))
        return "before_run_started", run(RUN, folder).output
    if types["run.completed"]:
        run([*RUN, "--resume"], folder, codes=(2,))
        return "after_run_completed", run([DICAST, "show", "last", "--ledger", "ledger.db", "--json"], folder).output
    return "resumed", run([*RUN, "--resume"], folder).output


def _is_blank(ledger: Path) -> bool:
    """Whether the file was made, and the kill came before its tables were."""
    with closing(sqlite3.connect(ledger)) as database:
        return not database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]


def _counted(ledger: Path) -> Counter[str]:
    with closing(sqlite3.connect(ledger)) as database:
        return Counter(dict(database.execute("SELECT type, count(*) FROM events GROUP BY type").fetchall()))


def _result(folder: Path, output: str) -> Result:
    run(VERIFY, folder)
    document = json.loads(output)
    document["ledger"] = document["ledger"]["head"]["seq"]
    del document["run_id"]
    judged = "SELECT subject_id, payload ->> 'judge', payload ->> 'score' FROM events WHERE type = 'eval.completed'"
    with closing(sqlite3.connect(folder / "ledger.db")) as database:
        scores = Counter(database.execute(judged).fetchall())
    return Result(document, (folder / "rows.csv").read_bytes(), _counted(folder / "ledger.db"), scores)
