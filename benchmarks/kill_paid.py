"""kill -9 while replies are being paid for, then ``--resume``: nothing in the ledger is bought again, nothing spent is forgotten."""

from __future__ import annotations

import json
import random
import re
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import judges
from chat_endpoint import TOKENS_IN, TOKENS_OUT
from processes import DICAST, Figure, Wrong, clear, environment, run

ROWS = 200
KILLS = 50
AT_ONCE = 8
LATENCY = 0.05
KILLED_AGAIN = 0.3
"""How likely it is that a process which resumes a run is killed, too."""
DRAWS = 3
"""How many processes are begun for each kill, at most."""
QUIET = 0.05
"""Seconds without a new call after which the endpoint has heard all that a killed process said."""

PRICE = "{input_per_mtok: 1, output_per_mtok: 2}"
CALL_USD = Decimal(TOKENS_IN * 1 + TOKENS_OUT * 2) / 1_000_000
SUBJECT = re.compile(rb"Summarise note (\d+)\.")
RUN = [DICAST, "run", "pipeline.yaml", "--json"]
SHOW = [DICAST, "show", "last", "--ledger", "ledger.db", "--json"]
VERIFY = [DICAST, "ledger", "verify", "--ledger", "ledger.db", "--json"]


def measure(folder: Path, count: int | None, kills: int | None, seed: int) -> Iterator[Figure]:
    """Kill *kills* processes at moments drawn uniformly over the calls of an undisturbed run of *count* subjects.

    :raises Wrong: when something is bought again or forgotten, or a run cannot be finished.
    """
    rows, wanted = count or ROWS, kills or KILLS
    judges.write_rows(folder, rows)
    with judges.endpoint(folder, "bodies.jsonl", LATENCY) as url:
        judges.write_pipeline(folder, judges.OPENAI.format(url=url, price=PRICE), AT_ONCE)
        world = World(folder, url, rows, random.Random(seed))
        trials: list[Trial] = []
        while sum(trial.kills for trial in trials) < wanted:
            if world.begun > DRAWS * wanted:
                raise Wrong(f"{world.begun} processes were begun, and fewer than {wanted} could be killed in time")
            trials.append(Trial(world))
            trials[-1].carry_out()
    yield Figure("kill_paid.seed", seed)
    yield from _figures([trial for trial in trials if trial.kills], world)


def _figures(trials: list[Trial], world: World) -> Iterator[Figure]:
    kills = sum(trial.kills for trial in trials)
    yield Figure("kill_paid.calls_begin", world.span[0], "s")
    yield Figure("kill_paid.calls_end", world.span[1], "s")
    yield Figure("kill_paid.kills", kills)
    yield Figure("kill_paid.runs", len(trials))
    yield Figure("kill_paid.runs_killed_again", sum(trial.kills > 1 for trial in trials))
    once = max((trial.calls for trial in trials if trial.kills == 1), default=None)
    yield Figure("kill_paid.calls_of_a_run_killed_once", once, "at most", f"<= {world.rows + AT_ONCE}")
    most = max(trial.repeated / trial.kills for trial in trials)
    yield Figure("kill_paid.calls_repeated", most, "a kill, at most", f"<= {AT_ONCE}")
    yield Figure("kill_paid.calls_repeated_mean", sum(trial.repeated for trial in trials) / kills, "a kill")
    yield Figure("kill_paid.spend_lost_mean", float(sum(trial.lost for trial in trials) / kills), "usd a kill")
    yield Figure("kill_paid.bought_again", sum(trial.bought_again for trial in trials), "", "<= 0")


@dataclass(frozen=True)
class Books:
    """What the ledger says: subjects by reservation, for those whose reply it holds, that are lost, and that are open."""

    settled: dict[str, str]
    lost: dict[str, str]
    open: dict[str, str]
    lost_usd: Decimal
    verdicts: Counter[str]
    begun: bool

    @classmethod
    def read(cls, ledger: Path) -> Books:
        query = (
            "SELECT type, subject_id, payload ->> 'reservation_id', payload ->> 'amount', payload ->> 'reply' "
            "FROM events ORDER BY seq"
        )
        subjects: dict[str, str] = {}
        ended: dict[str, dict[str, str]] = {"spend.settled": {}, "spend.lost": {}}
        amount, verdicts, begun = Decimal(0), Counter[str](), False
        with closing(sqlite3.connect(ledger)) as database:
            tables = database.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
            for type_, subject, reservation, usd, reply in database.execute(query) if tables else ():
                begun = begun or type_ == "run.started"
                verdicts[subject] += type_ == "eval.completed"
                if type_ == "spend.reserved":
                    subjects[reservation] = subject
                elif type_ in ended and (reply or type_ == "spend.lost"):
                    ended[type_][reservation] = subjects[reservation]
                    amount += Decimal(usd) if type_ == "spend.lost" else 0
        settled, lost = ended["spend.settled"], ended["spend.lost"]
        left = {id_: subject for id_, subject in subjects.items() if id_ not in settled.keys() | lost.keys()}
        return cls(settled, lost, left, amount, +verdicts, begun)


class World:
    """A folder with a pipeline, and the endpoint that its judge asks."""

    def __init__(self, folder: Path, url: str, rows: int, moments: random.Random) -> None:
        self.folder, self.url, self.rows, self.moments = folder, url, rows, moments
        self.begun = self._read = 0
        self.span = self._undisturbed()

    def _undisturbed(self) -> tuple[float, float]:
        """Seconds from a process's start to its first call, and to its last answer."""
        began = time.time()
        document = json.loads(run(RUN, self.folder).output)
        found = judges.stats(self.url)
        self.heard()
        if (document["scored"], found["peak"]) != (self.rows, AT_ONCE):
            raise Wrong(f"undisturbed, {document['scored']} of {self.rows} rows were scored, {found['peak']} at once")
        return found["first"] - began, found["last"] - began

    def start(self, moment: float | None, *, resume: bool) -> str | None:
        """Run, or resume, and kill at *moment*; what it printed if it came to its end before."""
        self.begun += 1
        command = [*RUN, "--resume"] if resume else RUN
        with subprocess.Popen(
            command, cwd=self.folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                output, errors = process.communicate(timeout=moment)
            except subprocess.TimeoutExpired:
                process.kill()
                output, errors = process.communicate()
        if process.returncode not in (0, -9):
            raise Wrong(f"{' '.join(command)} ended with {process.returncode}:\n{output[-2000:]}\n{errors[-2000:]}")
        return output if process.returncode == 0 else None

    def heard(self) -> Counter[str]:
        """The subjects of the calls that the endpoint has heard since it was asked last."""
        before = -1
        while (now := judges.stats(self.url)["count"]) != before:
            before = now
            time.sleep(QUIET)
        with (self.folder / "bodies.jsonl").open("rb") as file:
            file.seek(self._read)
            text = file.read()
        self._read += len(text)
        return Counter(f"row-{int(number):07}" for number in SUBJECT.findall(text))


class Trial:
    """One run with its kills."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._ledger = world.folder / "ledger.db"
        self._lost: dict[str, str] = {}
        self.kills = self.calls = self.repeated = self.bought_again = 0
        self.lost = Decimal(0)

    def carry_out(self) -> None:
        """Begin a run, kill it, and resume it until it is done."""
        clear(self._world.folder, "ledger.db*")
        moments = self._world.moments
        output = self._process(moments.uniform(*self._world.span), None)
        while output is None:
            books = Books.read(self._ledger)
            again = not books.begun or moments.random() < KILLED_AGAIN
            output = self._process(moments.uniform(*self._world.span) if again else None, books)
        self._check_end(json.loads(output))

    def _process(self, moment: float | None, before: Books | None) -> str | None:
        """One process of the run; the run's document when it came to its end."""
        resume = before is not None and before.begun
        output = self._world.start(moment, resume=resume)
        asked = self._world.heard()
        self.calls += asked.total()
        if any(times > 1 for times in asked.values()):
            raise Wrong(f"one process asked twice about {asked.most_common(1)}")
        if before is not None:
            self.bought_again += len(asked.keys() & set(before.settled.values()))
        if output is not None:
            return output
        books = Books.read(self._ledger)
        if books.begun:
            self._check_kill(asked, books)
        if len(books.verdicts) == self._world.rows and not books.open:
            return self._ended()
        return None

    def _ended(self) -> str | None:
        """The document, if the run was over before the process was."""
        with closing(sqlite3.connect(self._ledger)) as database:
            over = database.execute("SELECT count(*) FROM events WHERE type = 'run.completed'").fetchone()[0]
        return run(SHOW, self._world.folder).output if over else None

    def _check_kill(self, asked: Counter[str], books: Books) -> None:
        """What was under way is reserved for, and is no more than may be."""
        self.kills += 1
        unheard = asked.keys() - set(books.settled.values())
        if forgotten := unheard - set(books.open.values()):
            raise Wrong(f"{sorted(forgotten)} were asked about, and nothing is reserved for them")
        if len(books.open) > AT_ONCE:
            raise Wrong(f"{len(books.open)} reservations were open, and {AT_ONCE} calls may be made at once")
        self._lost |= books.open

    def _check_end(self, document: dict[str, Any]) -> None:
        """Every verdict is there, every reply was paid for once, and what was lost covers what was under way."""
        rows, books = self._world.rows, Books.read(self._ledger)
        run(VERIFY, self._world.folder)
        self.repeated, self.lost = self.calls - rows, books.lost_usd
        paid, lost = Decimal(document["cost"]["usd"]), Decimal(document["spend_lost"]["usd"])
        held = {
            "every subject has one verdict": books.verdicts == Counter(f"row-{n:07}" for n in range(rows)),
            "the document counts them": (document["scored"], document["failed"]) == (rows, 0),
            "every reply is in the ledger once": Counter(books.settled.values()) == books.verdicts,
            "no reservation is open": not books.open,
            "what was open at a kill is lost": books.lost == self._lost,
            "the document has what was lost": lost == books.lost_usd,
            "the document has what was paid": paid == rows * CALL_USD,
            "what was paid and lost covers every call": paid + lost >= self.calls * CALL_USD,
            "calls are repeated only where they were under way": self.repeated <= len(self._lost),
            "nothing in the ledger was bought again": self.bought_again == 0,
        }
        if wrong := [claim for claim, holds in held.items() if not holds]:
            raise Wrong(f"after {self.kills} kills and {self.calls} calls it does not hold that {'; '.join(wrong)}")
