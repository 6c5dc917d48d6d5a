"""kill -9 at random moments over every kind of run: nothing is lost, nothing that the ledger holds is bought again.

    uv run python benchmarks/kill.py --moments 200 --seed 20

Each moment is drawn over the time in which an undisturbed run of its kind judges, one in ten over its start. The process is killed
there and the run is taken up, in three of ten cases to be killed again, until it comes to its end. A chat endpoint on loopback counts what was
bought, and what the run leaves is compared with what an undisturbed one leaves. The exit code is 1 when anything is wrong;
``--only N`` repeats the moment N of a seed alone.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import judges
from chat_endpoint import TOKENS_IN, TOKENS_OUT
from kill_books import Books, left, newest
from kill_kinds import AT_ONCE, KINDS, Kind
from processes import DICAST, Figure, Wrong, clear, environment, run

MOMENTS, SEED, JOBS, MINUTES = 200, 20, 2, 15.0
LATENCY = 0.05
KILLED_AGAIN = 0.3
"""How likely it is that a process which takes a run up is killed, too."""
AT_START = 0.1
"""How likely it is that the moment lies before a process has written anything to the ledger."""
PAST_THE_END = 1.05
DRAWS = 8
"""How often a moment is drawn again because the process came to its end before it."""
QUIET = 0.05
"""Seconds without a new call after which the endpoint has heard all that a killed process said."""
CALL_USD = Decimal(TOKENS_IN * 1 + TOKENS_OUT * 2) / 1_000_000
VERIFY = (DICAST, "ledger", "verify", "--ledger", "ledger.db", "--json")
COLUMNS = ("kills", "again", "unbegun", "ended", "under_way", "repeated", "bought_again")


class World:
    """A folder with a run of one kind and the endpoint that it asks.

    An undisturbed run takes *start* seconds until its first event, and *span* from there to a little after its last one.
    """

    def __init__(self, kind: Kind, folder: Path, stack: ExitStack) -> None:
        self.kind, self.folder = kind, folder
        folder.mkdir()
        self._url = stack.enter_context(judges.endpoint(folder, latency=LATENCY, vary=True))
        kind.write(folder, self._url)
        self._heard = 0
        began = time.time()
        self.process(kind.begin, None)
        if (asked := self.asked()) != kind.replies:
            raise Wrong(f"{kind.name}: undisturbed, {asked} calls were made in place of {kind.replies}")
        books = Books.read(folder / "ledger.db")
        self.start, self.span = books.started - began, PAST_THE_END * (books.last - books.started)
        self.expected = left(folder)

    def process(self, command: Sequence[str], moment: float | None) -> bool:
        """Run *command*, and kill it; whether it came to its end before.

        :param moment: seconds after its first event in the ledger; where it is negative, before that was to be expected.
        :raises Wrong: when it ends with another code than 0, or leaves a process of its own behind.
        """
        with (
            tempfile.TemporaryFile("w+") as output,
            subprocess.Popen(
                command, cwd=self.folder, env=environment(), stdout=output, stderr=output, start_new_session=True
            ) as process,
        ):
            try:
                if moment is not None and moment >= 0:
                    self._await_event(process)
                process.wait(timeout=moment if moment is None or moment >= 0 else max(0.0, self.start + moment))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            _await_end_of_group(process.pid)
            if process.returncode not in (0, -signal.SIGKILL):
                output.seek(0)
                raise Wrong(f"{' '.join(command[1:])} ended with {process.returncode}: {output.read()[-1500:]}")
        return process.returncode == 0

    def _await_event(self, process: subprocess.Popen[Any]) -> None:
        """Wait until there is one more event in the ledger, or the process has ended."""
        ledger = self.folder / "ledger.db"
        before = newest(ledger)
        while newest(ledger) == before and process.poll() is None:
            time.sleep(0.005)

    def asked(self) -> int:
        """How many calls the endpoint has heard since it was asked last."""
        before = -1
        while (now := judges.stats(self._url)["count"]) != before:
            before = now
            time.sleep(QUIET if self.kind.replies else 0)
        new, self._heard = now - self._heard, now
        return int(new)


def _await_end_of_group(leader: int) -> None:
    """Wait until no process of the session that *leader* began is there."""
    until = time.monotonic() + 5
    while time.monotonic() < until:
        try:
            os.killpg(leader, 0)
        except ProcessLookupError:
            return
        time.sleep(0.02)
    os.killpg(leader, signal.SIGKILL)
    raise Wrong("processes that the run had begun were there 5 s after its end")


class Trial:
    """One run that is killed and taken up until it ends."""

    def __init__(self, world: World, drawn: random.Random) -> None:
        self._world, self._drawn, self._latest = world, drawn, world.span
        self._ledger = world.folder / "ledger.db"
        self.calls = 0
        self.row = dict.fromkeys(COLUMNS, 0)

    def carry_out(self) -> None:
        """Kill, take up, and compare.

        :raises Wrong: for the first thing that does not hold.
        """
        kind = self._world.kind
        books = self._killed_once()
        while not books.ended:
            if not books.begun:
                self.row["unbegun"] += 1
            moment = self._moment() if self._drawn.random() < KILLED_AGAIN else None
            done = self._world.process(kind.resume if books.begun else kind.begin, moment)
            asked, before = self._world.asked(), books
            books = Books.read(self._ledger)
            self._count(asked, before, books, killed=not done)
            self.row["again"] += not done
            if done:
                break
        else:
            self.row["ended"] += 1
        self._check_end(books)

    def _moment(self) -> float:
        at_start = self._drawn.random() < AT_START
        return self._drawn.uniform(-self._world.start, 0) if at_start else self._drawn.uniform(0, self._latest)

    def _killed_once(self) -> Books:
        for _ in range(DRAWS):
            clear(self._world.folder, "ledger.db*", "*.csv", "*.tmp")
            moment = self._moment()
            done = self._world.process(self._world.kind.begin, moment)
            asked = self._world.asked()
            if not done:
                self.calls, self.row["kills"] = 0, 1
                self._count(asked, Books(), books := Books.read(self._ledger), killed=True)
                return books
            self._latest = min(self._latest, max(moment, 0.01))
        raise Wrong(f"the process came to its end before each of {DRAWS} moments")

    def _count(self, asked: int, before: Books, books: Books, *, killed: bool) -> None:
        """Hold the calls of one process against what the ledger had before it, and has after it."""
        kind = self._world.kind
        self.calls += asked
        under_way = asked - (books.replies - before.replies)
        self.row["under_way"] = max(self.row["under_way"], under_way)
        self.row["bought_again"] += max(0, asked - (kind.replies - before.replies))
        if not killed and under_way:
            raise Wrong(f"a process that was not killed made {asked} calls and has {under_way} replies fewer")
        if under_way > kind.at_once:
            raise Wrong(f"{under_way} calls were under way at a kill, and {kind.at_once} may be made at once")
        if killed and under_way > books.open:
            raise Wrong(f"{under_way} calls were under way at a kill, and {books.open} reservations were open")

    def _check_end(self, books: Books) -> None:
        kind = self._world.kind
        run(VERIFY, self._world.folder)
        self.row["repeated"] = self.calls - kind.replies
        wrong = [f"{name} differ" for name in self._world.expected.differences(left(self._world.folder))]
        held = {
            f"{self.row['bought_again']} replies that the ledger held were bought again": not self.row["bought_again"],
            f"the ledger has {books.replies} of {kind.replies} replies": books.replies == kind.replies,
            f"{books.open} reservations are open at the end": not books.open,
            f"{books.usd} usd are settled and lost for {self.calls} calls": books.usd >= self.calls * CALL_USD,
        }
        if wrong := wrong + [claim for claim, holds in held.items() if not holds]:
            raise Wrong("; ".join(wrong))


def measure(folder: Path, numbers: Sequence[int], seed: int, jobs: int, minutes: float) -> Iterator[dict[str, Any]]:
    """What became of each moment in *numbers*, as ``{number, kind, wrong, …}``; those past *minutes* are left out."""
    until = time.monotonic() + minutes * 60
    kinds = {KINDS[number % len(KINDS)] for number in numbers}
    with ExitStack() as stack, ThreadPoolExecutor(jobs) as threads:
        free: dict[str, SimpleQueue[World]] = {kind.name: SimpleQueue() for kind in kinds}

        def carry_out(number: int) -> dict[str, Any] | None:
            if time.monotonic() > until:
                return None
            kind = KINDS[number % len(KINDS)]
            queue = free[kind.name]
            place = folder / f"{kind.name}-{number}"
            world = World(kind, place, stack) if queue.empty() else queue.get()
            trial, wrong = Trial(world, random.Random(f"{seed}/{number}")), None
            try:
                trial.carry_out()
            except Wrong as error:
                wrong = f"moment {number} of seed {seed}, {kind.name}: {error}"
            queue.put(world)
            return {"number": number, "kind": kind.name, "wrong": wrong, **trial.row}

        yield from (row for row in threads.map(carry_out, numbers) if row is not None)


def figures(folder: Path, moments: int, seed: int) -> Iterator[Figure]:
    """What ``run.py`` prints.

    :raises Wrong: when something is lost or bought again.
    """
    rows = list(measure(folder, range(moments), seed, JOBS, MINUTES))
    if wrong := [row["wrong"] for row in rows if row["wrong"]]:
        raise Wrong("\n".join(wrong))
    yield Figure("kill.seed", seed)
    yield Figure("kill.moments", len(rows), "", f">= {moments}")
    yield Figure("kill.kills", sum(row["kills"] + row["again"] for row in rows))
    yield Figure("kill.under_way", max(row["under_way"] for row in rows), "calls at one kill, at most", f"<= {AT_ONCE}")
    yield Figure("kill.bought_again", sum(row["bought_again"] for row in rows), "", "<= 0")


def table(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The rows by kind: sums, but of ``under_way`` the most."""
    yield f"{'kind':8} {'moments':>8}" + "".join(f"{name:>13}" for name in COLUMNS) + f"{'wrong':>7}"
    for kind in [kind.name for kind in KINDS] + ["all"]:
        found = [row for row in rows if kind in (row["kind"], "all")]
        if found:
            sums = {name: (max if name == "under_way" else sum)(row[name] for row in found) for name in COLUMNS}
            wrong = sum(row["wrong"] is not None for row in found)
            yield f"{kind:8} {len(found):8}" + "".join(f"{sums[name]:13}" for name in COLUMNS) + f"{wrong:7}"


def main() -> int:
    """Print the seed, the table and what is wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--moments", type=int, default=MOMENTS, help=f"how many, in turn over the kinds ({MOMENTS})")
    parser.add_argument("--seed", type=int, default=SEED, help=f"of the moments ({SEED})")
    parser.add_argument("--jobs", type=int, default=JOBS, help=f"runs at the same time ({JOBS})")
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"begin no moment after them ({MINUTES:g})")
    parser.add_argument("--only", type=int, action="append", help="this moment alone; may be repeated")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    given = parser.parse_args()
    numbers = given.only or range(given.moments)
    with tempfile.TemporaryDirectory(prefix="dicast-kill-", ignore_cleanup_errors=True) as folder:
        rows = list(measure(Path(folder), numbers, given.seed, given.jobs, given.minutes))
    wrong = [row["wrong"] for row in rows if row["wrong"]]
    if len(rows) < len(numbers):
        wrong.append(f"{len(numbers) - len(rows)} moments were not carried out within {given.minutes:g} minutes")
    if given.json:
        print(json.dumps({"seed": given.seed, "moments": rows, "wrong": wrong}, indent=2))
    else:
        print("\n".join([f"seed {given.seed}", *table(rows), *wrong]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
