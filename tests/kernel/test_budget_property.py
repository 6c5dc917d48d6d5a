"""No sequence of actions and deaths of processes on one ledger exceeds a cap; and 500 judges at once."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections import Counter, defaultdict
from contextlib import closing
from decimal import Decimal
from itertools import count

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from dicast import Cost
from dicast.testing import FakeChatModel, run_pipeline, sample
from dicast_ledger import connect

# What a process does that is told to, line by line: it has a budget on the shared ledger, as a run has.
PROCESS = """
import asyncio, json, sys
from contextlib import AsyncExitStack
from pathlib import Path
from dicast import Cost, Event, Refusal, Subject
from dicast._kernel.asking.budget import BudgetGate
from dicast._kernel.values.clock import Clock
from dicast._kernel.leases.hold_lease import hold_lease, live_run_check
from dicast._kernel.plan.sections import Budget
from dicast_ledger import Sqlite, connect

class Run:
    def __init__(self, ledger, run_id, caps, resume):
        self.ledger, self.run_id, self.clock, self.held = ledger, run_id, Clock(), {}
        budget = Budget(**{scope: tuple(map(Cost.parse, texts)) for scope, texts in caps.items()})
        self.budget = BudgetGate(budget, ledger, self, self.clock, run_id, live_run_check(ledger))
        if resume:
            self.budget.write_off()

    def event(self, type_, payload, subject=None, sensitivity="pseudonymous"):
        session = None if subject is None else subject.session_id
        return Event(*self.clock.stamp()[:1], type_, self.clock.time(), self.run_id, payload, session_id=session)

    def emit(self, events):
        self.ledger.append(events)

    def commit(self):
        pass

    def commit_soon(self):
        pass

    def claim(self, claim, lost):
        answer = asyncio.get_running_loop().create_future()
        answer.set_result(self.ledger.reserve([claim], lost)[0])
        return answer

    async def reserve(self, amount, unit, session, seconds):
        subject = Subject("row", "x", output="x", session_id=session)
        try:
            async with asyncio.timeout(0.05):
                found = await self.budget.reserve(subject, "E", Cost(amount, unit), seconds)
        except TimeoutError:
            return {"waits": True}
        if isinstance(found, Refusal):
            return {"refused": found.cap.scope}
        self.held[found.id] = found
        return {"held": found.id}

    async def settle(self, id, amount, unit):
        cost = Cost.unknown() if amount is None else Cost(amount, unit)
        self.budget.settle(self.held.pop(id), cost, {})
        return {}

    async def release(self, id):
        self.budget.release(self.held.pop(id))
        return {}

    async def forfeit(self, id):
        self.budget.forfeit(self.held.pop(id))
        return {}

async def main():
    async with AsyncExitStack() as stack:
        run = None
        while line := sys.stdin.readline():
            verb, told = json.loads(line)
            if verb == "open":
                await stack.aclose()
                ledger = await stack.enter_async_context(Sqlite(Path(told.pop("path")), busy_timeout=60).open())
                stack.enter_context(hold_lease(ledger, told["run_id"]))
                run, answer = Run(ledger, **told), {}
            else:
                answer = await getattr(run, verb)(**told)
            print(json.dumps(answer), flush=True)

asyncio.run(main())
"""
PROCESSES = 4
CAPS = {"run": ("0.06 usd", "60 msat"), "session": ("0.03 usd", "30 msat"), "day": ("0.10 usd", "100 msat")}
MOST = {(scope, text.split()[1]): Decimal(text.split()[0]) for scope, texts in CAPS.items() for text in texts}
IN_MILLS = {"usd": Decimal("0.001"), "msat": Decimal(1)}


class Worker:
    """A process that waits for its orders."""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, "-c", PROCESS], text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def tell(self, verb, **values):
        self._process.stdin.write(json.dumps([verb, values]) + "\n")
        self._process.stdin.flush()

    def hear(self):
        answer = self._process.stdout.readline()
        assert answer, "the process has ended by itself"
        return json.loads(answer)

    def ask(self, verb, **values):
        self.tell(verb, **values)
        return self.hear()

    def kill(self):
        """Kill the process like ``kill -9``; do nothing if it is dead."""
        self._process.kill()
        self._process.wait()
        self._process.stdin.close()
        self._process.stdout.close()


class Pool:
    """Processes that are ready; there is always one more than is wanted, because each takes a while to start."""

    def __init__(self):
        self._ready, self._all = [], []
        self._start()

    def _start(self):
        self._all.append(Worker())
        self._ready.append(self._all[-1])

    def take(self):
        taken = self._ready.pop(0)
        if not self._ready:
            self._start()
        return taken

    def give(self, worker):
        self._ready.append(worker)

    def close(self):
        for worker in self._all:
            worker.kill()


class Books:
    """Sums of the money events of a ledger, computed independently."""

    def __init__(self, path):
        self.path, self.seq = path, 0
        self.made, self.state, self.without_cap = {}, {}, set()

    def read(self):
        """Read the appended rows; every cap has to hold after each row."""
        with closing(connect(self.path)) as database:
            query = "SELECT seq, type, payload FROM events WHERE seq > ? AND type LIKE 'spend.%' ORDER BY seq"
            rows = database.execute(query, (self.seq,)).fetchall()
        for self.seq, type_, payload in rows:
            self._take(type_.removeprefix("spend."), json.loads(payload))
            for (scope, unit), amount in self.sums().items():
                cap = MOST[scope.partition(":")[0], unit]
                reservation = f"{scope} holds {amount} {unit} at row {self.seq}, and {cap} is its cap"
                assert amount <= cap or scope in self.without_cap, reservation

    def _take(self, type_, body):
        id_ = body["reservation_id"]
        if type_ == "reserved":
            assert id_ not in self.made
            self.made[id_] = body["scopes"], body["unit"], Decimal(body["amount"])
            self.state[id_] = "open", self.made[id_][2]
        elif type_ != "lost" and self.state[id_][0] in ("open", "lost"):
            true = Decimal(0) if type_ == "released" else body["amount"]
            self.state[id_] = "closed", self.made[id_][2] if true is None else Decimal(true)
        elif self.state[id_][0] == "open":
            self.state[id_] = "lost", self.made[id_][2]

    def sums(self, *states):
        """Return the amounts in each scope and unit, of reservations in these states or of all."""
        counts = defaultdict(Decimal)
        for id_, (state, amount) in self.state.items():
            for scope in self.made[id_][0]:
                counts[scope, self.made[id_][1]] += amount if not states or state in states else 0
        return counts

    def of(self, state):
        return {id_ for id_, (now, _) in self.state.items() if now == state}


class Shoppers(RuleBasedStateMachine):
    """Four processes on one ledger that reserve, settle, release, forfeit and die on command."""

    def __init__(self, folder, pool, totals):
        super().__init__()
        self.pool, self.totals = pool, totals
        path = folder / f"ledger-{next(totals['numbers'])}.db"
        self.path, self.books, self.numbers = path, Books(path), count()
        self.workers = [pool.take() for _ in range(PROCESSES)]
        self.runs = [self.new_run() for _ in self.workers]
        self.held = [{} for _ in self.workers]
        self.orphans = set()
        for which in range(PROCESSES):
            self.open(which)

    def new_run(self):
        return f"{self.path.stem}-R{next(self.numbers)}"

    def open(self, which, resume=False):
        told = {"path": str(self.path), "run_id": self.runs[which], "caps": CAPS, "resume": resume}
        self.workers[which].ask("open", **told)

    @invariant()
    def no_cap_is_passed(self):
        self.books.read()

    WHO = st.integers(0, PROCESSES - 1)
    WHAT = st.fixed_dictionaries(
        {
            "mills": st.integers(1, 25),
            "unit": st.sampled_from(["usd", "usd", "msat"]),
            "session": st.sampled_from([None, "a", "b", "c"]),
            "seconds": st.sampled_from([30, 30, 30, -61]),  # the last one's lease is over when it begins
        }
    )

    def reserve_told(self, what):
        amount = str(what["mills"] * IN_MILLS[what["unit"]])
        return {"amount": amount, "unit": what["unit"], "session": what["session"], "seconds": what["seconds"]}

    def note(self, which, what, answer):
        self.totals["answers"][next(iter(answer))] += 1
        if "held" in answer:
            self.held[which][answer["held"]] = what["mills"], what["unit"]

    @rule(which=WHO, what=WHAT)
    def reserve(self, which, what):
        answer = self.workers[which].ask("reserve", **self.reserve_told(what))
        self.note(which, what, answer)
        self.books.read()
        if scope := answer.get("refused"):
            spent = self.books.sums("closed", "lost")[scope, what["unit"]]
            room = MOST[scope.partition(":")[0], what["unit"]] - spent
            assert what["mills"] * IN_MILLS[what["unit"]] > room, "there was room for it"

    @rule(whats=st.lists(WHAT, min_size=PROCESSES, max_size=PROCESSES))
    def reserve_all_at_once(self, whats):
        for worker, what in zip(self.workers, whats, strict=True):
            worker.tell("reserve", **self.reserve_told(what))
        for which, what in enumerate(whats):
            self.note(which, what, self.workers[which].hear())

    def some_held(self, data):
        which, id_ = data.draw(
            st.sampled_from([(n, id_) for n, reservation in enumerate(self.held) for id_ in reservation])
        )
        return self.workers[which], id_, *self.held[which].pop(id_)

    @precondition(lambda self: any(self.held))
    @rule(data=st.data(), share=st.sampled_from([0, 1, 3, 10, None]))
    def settle(self, data, share):
        worker, id_, mills, unit = self.some_held(data)
        true = None if share is None else str(mills * IN_MILLS[unit] * share / 10)
        worker.ask("settle", id=id_, amount=true, unit=unit)

    @precondition(lambda self: any(self.held))
    @rule(data=st.data(), verb=st.sampled_from(["release", "forfeit"]))
    def give_up(self, data, verb):
        worker, id_, *_ = self.some_held(data)
        worker.ask(verb, id=id_)

    @precondition(lambda self: any(self.held))
    @rule(data=st.data(), resume=st.booleans())
    def crash(self, data, resume):
        which = data.draw(st.sampled_from([n for n, reservation in enumerate(self.held) if reservation]))
        left = self.abandon(which)
        self.workers[which] = self.pool.take()
        if not resume:
            self.runs[which] = self.new_run()
        self.open(which, resume=resume)
        if resume:
            self.books.read()
            assert left <= self.books.of("lost")

    def abandon(self, which):
        """Kill a process; another process writes off its reservations."""
        self.workers[which].kill()
        left, self.held[which] = set(self.held[which]), {}
        self.orphans |= left
        self.totals["crashes"] += 1
        return left

    def teardown(self):
        """A request for the whole remaining budget finds the reservations of dead processes, and writes them off."""
        for worker in self.workers:
            self.pool.give(worker)
        auditor, run_id = self.pool.take(), self.new_run()
        self.books.without_cap.add(f"run:{run_id}")
        auditor.ask("open", path=str(self.path), run_id=run_id, caps={**CAPS, "run": ()}, resume=False)
        for unit in [*IN_MILLS] * 2:  # the first time it ends what has a lease that is over, the second time the rest
            self.books.read()
            spent = self.books.sums("closed", "lost")
            days = [amount for (scope, its), amount in spent.items() if scope.startswith("day:") and its == unit]
            if left := MOST["day", unit] - max(days, default=0):
                auditor.ask("reserve", amount=str(left), unit=unit, session=None, seconds=30)
        self.books.read()
        self.pool.give(auditor)
        assert not self.orphans & self.books.of("open")
        self.totals["orphans"] += len(self.orphans)


@pytest.mark.slow
@pytest.mark.skipif(
    sys.platform != "linux", reason="elsewhere nobody sees that a process has died before its lease is over"
)
def test_no_order_of_reserving_settling_and_dying_passes_a_cap(tmp_path):
    pool = Pool()
    totals = {"numbers": count(), "answers": Counter(), "crashes": 0, "orphans": 0}
    try:
        run_state_machine_as_test(
            lambda: Shoppers(tmp_path, pool, totals),
            settings=settings(
                max_examples=8,
                stateful_step_count=30,
                deadline=None,
                phases=[Phase.generate],  # to shrink what real processes did would take minutes
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        pool.close()
    assert min(totals["answers"][answer] for answer in ("held", "waits", "refused")) > 0
    assert min(totals["crashes"], totals["orphans"]) > 0


# In one process


def judges(count, budget, path, concurrency=500):
    """Run *count* paid ``llm/judge``, at most *concurrency* at a time; a verdict costs a mill, and a mill is reserved."""

    def reply(request):
        seal = re.search(r"^seal: (\w+)$", request.messages[-1].content, re.MULTILINE)[1]
        return json.dumps({"seal": seal, "rationale": "", "score": 0.5, "confidence": 0.9})

    text = {
        "judges": [{"llm/judge": {"model": "scripted"}}],
        "budget": budget,
        "executor": {"dicast/async": {"concurrency": concurrency}},
        "ledger": {"ledger/sqlite": {"path": str(path)}},
    }
    model = FakeChatModel(reply, seconds=0.02, cost=Cost("0.001"))
    subjects = [sample("x", id=f"{n}", session_id=f"s{n % 7}") for n in range(count)]
    return run_pipeline(json.dumps(text), subjects=subjects, components={"scripted": model}), model


@pytest.mark.slow
@pytest.mark.parametrize(("scope", "verdicts"), [("run", 200), ("day", 200), ("session", 7 * 30)])
def test_500_judges_at_once_never_pass_a_cap_and_all_come_to_an_end(tmp_path, scope, verdicts, monkeypatch):
    caps = {"run": "10", "day": "10", "session": "10", scope: {"session": "0.030"}.get(scope, "0.200")}
    monkeypatch.setattr(sys.modules[__name__], "MOST", {(name, "usd"): Decimal(cap) for name, cap in caps.items()})
    began = time.monotonic()
    done, model = judges(500, {name: f"{cap} usd" for name, cap in caps.items()}, tmp_path / "ledger.db")
    assert time.monotonic() - began < 30

    books = Books(tmp_path / "ledger.db")
    books.read()
    assert books.of("open") == books.of("lost") == set()
    ends = Counter(event.subject_id for event in done.events if event.type in ("eval.completed", "eval.failed"))
    assert ends == Counter(f"{n}" for n in range(500))
    assert done.document["scored"] == len(model.asked)
    assert done.document["scored"] == verdicts
    assert done.document["failures"] == {"throttled_no_heuristic": 500 - done.document["scored"]}
    assert Decimal(done.document["cost"]["usd"]) == done.document["scored"] * Decimal("0.001")
