"""kill -9 at random moments over every kind of run: nothing is lost, nothing that the ledger holds is bought again.

    uv run python benchmarks/kill.py --moments 200 --seed 20

Each moment is drawn over the time in which an undisturbed run of its kind judges, one in ten over its start. The process is killed
there and the run is taken up, in three of ten cases to be killed again, until it comes to its end. A chat endpoint on loopback counts what was
bought, and what the run leaves is compared with what an undisturbed one leaves. The exit code is 1 when anything is wrong;
``--only N`` repeats the moment N of a seed alone.

``--kinds`` takes the kinds of runs past one machine, too: ``segments,s3,postgres,ray``, each also with a tight budget (``s3-cap``). There
a moment may kill another process: the server of S3 or PostgreSQL, a task of Ray or one of its nodes. It is started again within a second.
``merge``, ``merge-segments`` and ``merge-postgres`` kill merges of three shards.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import judges
from chat_endpoint import TOKENS_IN, TOKENS_OUT
from kill_books import Books, Left, left
from kill_fork import Command, Forks, Point
from kill_kinds import ALL, AT_ONCE, KINDS, Kind
from kill_places import DRIVER
from kill_ray import RayPlace, enter_namespace
from kill_tasks import TASK
from processes import DICAST, Figure, Wrong, environment

from dicast import Event

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
LOOK = 0.02
"""Seconds between two looks for the first event of a process."""
CALL_USD = Decimal(TOKENS_IN * 1 + TOKENS_OUT * 2) / 1_000_000
VICTIMS = sorted({victim for kind in ALL.values() for victim in kind.place.victims})
COLUMNS = ("kills", "again", "others", "stopped", "unbegun", "ended", "under_way", "repeated", "bought_again")
PAUSE = 1.0
"""Most seconds until a killed server or node is started again."""
AT_POINT = 0.4
"""Probability that the moment is before or after a call of the ledger, for places with such calls."""
MOST_SECONDS = 240.0
"""Seconds after which a process has to have ended."""


@dataclass(frozen=True)
class Strike:
    """The kill of a process that is not the process of the run."""

    victim: str
    drawn: random.Random


class World:
    """A folder with a run of one kind and the endpoint that it asks.

    An undisturbed run takes *start* seconds until its first event, and *span* from there to a little after its last one."""

    def __init__(self, kind: Kind, folder: Path, stack: ExitStack) -> None:
        self.kind, self.folder = kind, folder
        folder.mkdir()
        self.place = kind.place(folder, stack)
        self._url = stack.enter_context(judges.endpoint(folder, latency=LATENCY, vary=True))
        kind.write(self.place, self._url)
        self._heard = 0
        self._first = 0.0
        """The time of the first change of the ledger by the last process."""
        self._forks = Forks(folder, environment() | self.place.environment, self.place.points, stack)
        self.place.clear()
        for shard in kind.shards:
            self.process(shard)
        self.place.arm(None)
        self.counts = self._forks.warm(kind.begin) + self.place.counts()
        self.asked()
        self.place.clear()
        began = time.time()
        self.process(kind.begin, MOST_SECONDS)
        replies = 0 if kind.shards else kind.replies
        if (asked := self.asked()) != replies and kind.cap is None:
            raise Wrong(f"{kind.name}: undisturbed, {asked} calls were made in place of {replies}")
        self.start, self.span = self._first - began, PAST_THE_END * (self.books().last - self._first)
        self.expected = self.left(self.place.events())

    def left(self, events: Sequence[Event]) -> Left:
        """Return the lasting part of *events* and of the files; of a merge also the number of events about each subject."""
        return left(self.folder, events, counts_all=bool(self.kind.shards))

    def books(self) -> Books:
        """Return the sums of the run."""
        return Books.read(self.place.events(), self.place.segments())

    def process(self, argv: Sequence[str], moment: float | Point | None = None, strike: Strike | None = None) -> str:
        """Run the command *argv*, and kill it or the process of *strike*; return ``done``, ``killed``, ``struck`` or ``stopped``.

        A struck process came to its end without the killed one, and a stopped process ended with an error.

        :param moment: a call, or seconds after its first event in the ledger; where it is negative, before that was to be expected.
        :raises Wrong: when it ends with another code than 0, or leaves a process of its own behind.
        """
        is_armed = self.place.arm(moment)
        command = self._forks.start(argv, moment if isinstance(moment, Point) and not is_armed else None)
        is_there, has_struck = self._is_there(command, moment), False
        if is_there:
            has_struck = strike is not None and self._strike(strike, command)
            if not has_struck:
                command.send(signal.SIGKILL)
            self.place.release()
        if command.returncode is None and not command.wait(MOST_SECONDS):
            command.send(signal.SIGKILL)
            command.wait()
            self._forks.end_last()
            raise Wrong(f"{' '.join(argv[1:])} was there {MOST_SECONDS:g} s after a kill")
        self._forks.end_last()
        _await_end_of_group(command.pid)
        self.place.settle()
        if command.returncode not in ((0, 2, 3, 4) if has_struck else (0, -signal.SIGKILL)):
            output = self._forks.output.read_text(encoding="utf-8")
            raise Wrong(f"{' '.join(argv[1:])} ended with {command.returncode}: {output[-1500:]}")
        if command.returncode == 0:
            return "struck" if has_struck else "done"
        return "stopped" if has_struck else "killed"

    def _is_there(self, command: Command, moment: float | Point | None) -> bool:
        """Wait until *moment*; return False if the process has ended before it, or there is none."""
        if moment is None:
            return False
        if isinstance(moment, Point) and moment.name.startswith(TASK):
            return self.place.arrived(command)
        if isinstance(moment, Point):
            return command.wait(MOST_SECONDS) and command.is_stopped
        before = self.place.newest() if moment >= 0 else None
        while moment >= 0 and self.place.newest() == before and command.poll() is None:
            time.sleep(LOOK)
        self._first = time.time()
        return command.returncode is None and not command.wait(moment if moment >= 0 else max(0.0, self.start + moment))

    def _strike(self, strike: Strike, command: Command) -> bool:
        is_killed = self.place.kill(strike.victim, strike.drawn)
        if command.is_stopped and is_killed:
            command.send(signal.SIGCONT)
        if is_killed:
            time.sleep(strike.drawn.uniform(0, PAUSE))
            self.place.start(strike.victim)
        return is_killed

    def verify(self) -> None:
        """Check the ledger with the command.

        :raises Wrong: if it does not verify.
        """
        command = self._forks.start((DICAST, "ledger", "verify", "--ledger", self.place.ledger, "--json"))
        command.wait()
        self._forks.end_last()
        if command.returncode:
            output = self._forks.output.read_text(encoding="utf-8")
            raise Wrong(f"the ledger does not verify: {output[-1500:]}")

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
    """One run that is killed and resumed until it ends. *victim* is killed first, or the driver if no such process runs then.

    *moment* is the first one, as text.
    """

    def __init__(self, world: World, drawn: random.Random, victim: str) -> None:
        self._world, self._drawn, self._latest, self.victim = world, drawn, world.span, victim
        self.calls, self.moment = 0, ""
        self.row = dict.fromkeys(COLUMNS, 0)

    def carry_out(self) -> None:
        """Kill, take up, and compare.

        :raises Wrong: for the first thing that does not hold.
        """
        kind = self._world.kind
        end, books = self._killed_once()
        while not books.ended:
            if not books.begun:
                self.row["unbegun"] += 1
            moment = self._moment() if self._drawn.random() < KILLED_AGAIN else None
            strike = self._strike(self._drawn.choice(self._world.place.victims))
            end = self._world.process(kind.resume if books.begun else kind.begin, moment, strike)
            asked, before = self._world.asked(), books
            books = self._world.books()
            self._count(asked, before, books, end)
            self.row["again"] += end != "done"
            if end in ("done", "struck"):
                break
        else:
            self.row["ended"] += end == "killed"
        self._check_end(books)

    def _moment(self) -> float | Point:
        counts = self._world.counts
        if counts and self._drawn.random() < AT_POINT:
            name = self._drawn.choice(sorted(counts))
            return Point(name, self._drawn.randint(1, counts[name]), is_after=self._drawn.random() < 0.5)
        at_start = self._drawn.random() < AT_START
        return self._drawn.uniform(-self._world.start, 0) if at_start else self._drawn.uniform(0, self._latest)

    def _strike(self, victim: str) -> Strike | None:
        return None if victim == DRIVER else Strike(victim, self._drawn)

    def _killed_once(self) -> tuple[str, Books]:
        for _ in range(DRAWS):
            self._world.place.clear()
            moment = self._moment()
            end = self._world.process(self._world.kind.begin, moment, self._strike(self.victim))
            asked = self._world.asked()
            if end != "done":
                self.calls, self.row["kills"], self.moment = 0, 1, str(moment)
                self.victim = DRIVER if end == "killed" else self.victim
                self._count(asked, Books(), books := self._world.books(), end)
                return end, books
            if not isinstance(moment, Point):
                self._latest = min(self._latest, max(moment, 0.01))
        raise Wrong(f"the process came to its end before each of {DRAWS} moments")

    def _count(self, asked: int, before: Books, books: Books, end: str) -> None:
        """Compare the calls of one process with the ledger before and after it."""
        kind = self._world.kind
        self.calls += asked
        self.row["others"] += end in ("struck", "stopped")
        self.row["stopped"] += end == "stopped"
        missing = 0 if kind.shards else kind.replies - before.replies
        under_way = asked - (0 if kind.shards else books.replies - before.replies)
        self.row["under_way"] = max(self.row["under_way"], under_way)
        self.row["bought_again"] += max(0, asked - missing - (under_way if end == "struck" else 0))
        if under_way and (end == "done" or (end == "struck" and "server" in self._world.place.victims)):
            raise Wrong(f"a process that was not killed made {asked} calls and has {under_way} replies fewer")
        if under_way > kind.at_once:
            raise Wrong(f"{under_way} calls were under way at a kill, and {kind.at_once} may be made at once")
        unanswered = (
            books.unanswered - before.unanswered
        )  # a process that stops by itself closes its reservations as lost
        if end in ("killed", "stopped") and under_way > unanswered:
            raise Wrong(f"{under_way} calls were under way at a kill, and {unanswered} reservations were open or lost")
        if books.doubled:
            raise Wrong(f"the ledger holds {books.doubled} events twice after a process that was {end}")
        if kind.cap is not None and max(books.usd, self.calls * CALL_USD) > kind.cap:
            raise Wrong(f"{books.usd} usd are settled and lost for {self.calls} calls, under a cap of {kind.cap} usd")

    def _check_end(self, books: Books) -> None:
        kind, world = self._world.kind, self._world
        world.verify()
        events = world.place.events()
        books = Books.read(events)  # all that segments have is in the ledger
        self.row["repeated"] = self.calls - (0 if kind.shards else books.replies)
        held = {
            f"{self.row['bought_again']} replies that the ledger held were bought again": not self.row["bought_again"],
            f"{books.open} reservations are open at the end": not books.open,
            f"{books.usd} usd are settled and lost for {self.calls} calls": books.usd >= self.calls * CALL_USD,
        }
        wrong = list[str]()
        if kind.cap is None:
            wrong += [f"{name} differ" for name in world.expected.differences(world.left(events))]
            held[f"the ledger has {books.replies} of {kind.replies} replies"] = books.replies == kind.replies
        else:
            unspent = kind.cap - books.usd
            claim = f"{unspent} usd of {kind.cap} usd are not spent, and a call reserves {books.reserved} usd"
            held[claim] = 0 <= unspent < books.reserved * kind.parts
        if wrong := wrong + [claim for claim, holds in held.items() if not holds]:
            raise Wrong("; ".join(wrong))


def measure(
    folder: Path, numbers: Sequence[int], seed: int, jobs: int, minutes: float, kinds: Sequence[Kind] = KINDS
) -> Iterator[dict[str, Any]]:
    """Yield the result of each moment in *numbers*, as ``{number, kind, wrong, …}``; moments past *minutes* are left out."""
    until = time.monotonic() + minutes * 60
    with ExitStack() as stack, ThreadPoolExecutor(jobs) as threads:
        free: dict[str, SimpleQueue[World]] = {kind.name: SimpleQueue() for kind in kinds}

        def carry_out(number: int) -> dict[str, Any] | None:
            if time.monotonic() > until:
                return None
            kind = kinds[number % len(kinds)]
            queue = free[kind.name]
            place = folder / f"{kind.name}-{number}"
            world = World(kind, place, stack) if queue.empty() else queue.get()
            victims = world.place.victims
            trial = Trial(world, random.Random(f"{seed}/{number}"), victims[number // len(kinds) % len(victims)])
            wrong, began = None, time.monotonic()
            try:
                trial.carry_out()
            except Wrong as error:
                wrong = f"moment {number} of seed {seed}, {kind.name}: {error}"
            queue.put(world)
            row = {"number": number, "kind": kind.name, "victim": trial.victim, "moment": trial.moment, "wrong": wrong}
            return row | trial.row | {"seconds": round(time.monotonic() - began, 2)}

        yield from (row for row in threads.map(carry_out, numbers) if row is not None)


def figures(folder: Path, moments: int, seed: int) -> Iterator[Figure]:
    """Yield the figures that ``run.py`` prints.

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
    """Sums of the rows by kind and first victim; of ``under_way`` the largest value."""
    yield f"{'kind':12} {'killed':8} {'moments':>8}" + "".join(f"{name:>13}" for name in COLUMNS) + f"{'wrong':>7}"
    groups = {(kind, victim): list[dict[str, Any]]() for kind in ALL for victim in VICTIMS}
    for row in rows:
        groups[row["kind"], row["victim"]].append(row)
    for (kind, victim), found in [*groups.items(), (("all", ""), rows)]:
        if found:
            sums = {name: (max if name == "under_way" else sum)(row[name] for row in found) for name in COLUMNS}
            wrong = sum(row["wrong"] is not None for row in found)
            figures = "".join(f"{sums[name]:13}" for name in COLUMNS)
            yield f"{kind:12} {victim:8} {len(found):8}{figures}{wrong:7}"


def main() -> int:
    """Print the seed, the table and each fault."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--moments", type=int, default=MOMENTS, help=f"how many, in turn over the kinds ({MOMENTS})")
    parser.add_argument("--seed", type=int, default=SEED, help=f"of the moments ({SEED})")
    parser.add_argument("--jobs", type=int, default=JOBS, help=f"runs at the same time ({JOBS})")
    parser.add_argument("--minutes", type=float, default=MINUTES, help=f"begin no moment after them ({MINUTES:g})")
    parser.add_argument("--only", type=int, action="append", help="this moment alone; may be repeated")
    parser.add_argument("--kinds", default=",".join(kind.name for kind in KINDS), help=f"of {', '.join(ALL)}")
    parser.add_argument("--rows", type=Path, help="file to which each moment is appended at its end, as a line of JSON")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    given = parser.parse_args()
    if unknown := [name for name in given.kinds.split(",") if name not in ALL]:
        parser.error(f"--kinds: no kind is named {unknown[0]}; the kinds are {', '.join(ALL)}")
    kinds = [ALL[name] for name in given.kinds.split(",")]
    if any(kind.place is RayPlace for kind in kinds):
        enter_namespace()
    numbers = given.only or range(given.moments)
    with tempfile.TemporaryDirectory(prefix="dicast-kill-", ignore_cleanup_errors=True) as folder:
        rows = list[dict[str, Any]]()
        for row in measure(Path(folder), numbers, given.seed, given.jobs, given.minutes, kinds):
            rows.append(row)
            if given.rows is not None:
                with given.rows.open("a", encoding="utf-8") as file:
                    print(json.dumps({"seed": given.seed, **row}), file=file)
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
