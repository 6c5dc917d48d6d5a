"""A run has one owner at a time: the lease in its ledger names it, for any temporary folder or host of a process."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from .conftest import finish, wait_for

HOLDING = """
import asyncio
from pathlib import Path
from dicast import Score, Subject, hookimpl, metric

@metric(tier="proxy")
async def holds(subject: Subject):
    with open("holding", "a") as file:
        file.write(subject.id + "\\n")
    while Path("hold").exists():
        await asyncio.sleep(0.01)
    return Score(1.0)

@hookimpl
def dicast_metrics():
    return [holds]
"""
PIPELINE = "metrics: [holding/holds]\nsinks: [csv/rows: {path: out.csv}]\nexecutor: {dicast/async: {concurrency: 1}}\n"


@pytest.fixture
def held(shop, plugin):
    """The shop with a run in a process of its own that waits while the file *hold* is there."""
    plugin("holding", HOLDING)
    shop.rows(1, 1, 1)
    shop.pipeline(PIPELINE)
    (shop / "hold").touch()
    (shop / "tmp").mkdir()
    return shop


def begin(shop):
    process = shop.start("run", "p.yaml", "--json", env={**os.environ, "TMPDIR": str(shop / "tmp")})
    wait_for(lambda: (shop / "holding").exists() and shop.events("eval.started"))
    return process


def change_lease(shop, **values):
    """Change the lease as another host would have written it."""
    with closing(sqlite3.connect(shop / ".dicast" / "ledger.db")) as connection:
        for name, value in values.items():
            connection.execute(f"UPDATE leases SET {name} = ?", (value,))
        connection.commit()


def lease_owner(shop):
    """Return the text of the owner of the only lease."""
    with closing(sqlite3.connect(shop / ".dicast" / "ledger.db")) as connection:
        ((owner,),) = connection.execute("SELECT owner FROM leases").fetchall()
    return owner


def test_a_live_run_is_not_resumed_whatever_the_temporary_folder(held):
    process = begin(held)
    (started,) = held.events("run.started")
    done = held.dicast("run", "p.yaml", "--json", "--resume")
    assert done.code == 2
    message = done.json["error"]["message"]
    assert (
        f"run {started['run_id']} is still running on host {os.uname().nodename} (pid {process.pid}, lease until 2"
        in message
    )
    (held / "hold").unlink()
    assert finish(process).json["scored"] == 3
    assert len(held.events("run.completed")) == 1
    assert len(held.events("eval.completed")) == 3
    assert list((held / "tmp").iterdir()) == [], "no lock file is left behind"


FAR = "2999-01-01T00:00:00.000Z"
"""The end of a lease that no test waits for."""


def test_a_killed_run_is_resumed_before_its_lease_ends_while_it_is_a_zombie(held, processes_started):
    process = begin(held)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)  # it has ended, and its parent has not waited for it
    (held / "hold").unlink()
    change_lease(held, until=FAR)
    assert held.dicast("run", "p.yaml", "--json", "--resume").code == 0
    finish(process)
    assert [event["subject_id"] for event in held.events("eval.completed")] == ["r0", "r1", "r2"]


def test_a_killed_run_is_resumed_before_its_lease_ends_if_another_process_has_its_pid(held):
    process = begin(held)
    process.kill()
    finish(process)
    (held / "hold").unlink()
    change_lease(held, owner=re.sub(rf"(?<= ){process.pid}(?= )", str(os.getpid()), lease_owner(held)), until=FAR)
    assert held.dicast("run", "p.yaml", "--json", "--resume").code == 0


def test_a_run_of_a_live_process_is_not_resumed(held):
    process = begin(held)
    process.kill()
    finish(process)
    (held / "hold").unlink()
    pid = os.getppid()
    started = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()[19]
    host, _, machine, _ = lease_owner(held).split(" ")
    change_lease(held, owner=f"{host} {pid} {machine} {started}", until=FAR)
    done = held.dicast("run", "p.yaml", "--json", "--resume")
    assert done.code == 2
    assert f"is still running on host {host} (pid {pid}," in done.json["error"]["message"]


def test_another_hosts_run_is_taken_once_its_lease_is_over(held):
    process = begin(held)
    process.kill()
    finish(process)
    (held / "hold").unlink()
    change_lease(held, owner="elsewhere 12 boot/space 7", until="2999-01-01T00:00:00.000Z")
    done = held.dicast("run", "p.yaml", "--json", "--resume")
    assert done.code == 2
    assert "on host elsewhere (pid 12, lease until 2999-01-01T00:00:00.000Z)" in done.json["error"]["message"]
    change_lease(held, until="2020-01-01T00:00:00.000Z")
    done = held.dicast("run", "p.yaml", "--json", "--resume")
    assert (done.code, done.json["scored"]) == (0, 3)


def test_a_namesake_of_another_machine_is_not_taken_for_this_process(held, monkeypatch):
    process = begin(held)
    process.kill()
    finish(process)
    (held / "hold").unlink()

    def missing(path):
        raise OSError(path)

    monkeypatch.setattr(Path, "readlink", missing)  # a system that does not say which machine it is
    namesake = f"{os.uname().nodename} {os.getpid()}  "
    change_lease(held, owner=namesake, until="2999-01-01T00:00:00.000Z")
    done = held.dicast("run", "p.yaml", "--json", "--resume")
    assert (done.code, "is still running" in done.json["error"]["message"]) == (2, True)


@pytest.mark.slow
def test_an_owner_whose_lease_was_taken_stops_and_records_nothing_more(held):
    process = begin(held)
    process.send_signal(signal.SIGSTOP)  # the machine sleeps
    change_lease(held, until="2020-01-01T00:00:00.000Z")
    (held / "hold").unlink()
    done = held.dicast("run", "p.yaml", "--json", "--resume")
    assert (done.code, done.json["scored"]) == (0, 3)
    after, table = held.events(), (held / "out.csv").read_bytes()
    process.send_signal(signal.SIGCONT)
    late = finish(process)
    assert late.code == 4
    assert (
        f"has lost its lease: host {os.uname().nodename} (pid {os.getpid()}) has taken it over"
        in late.json["error"]["message"]
    )
    assert (held / "out.csv").read_bytes() == table, "the file is the new owner's"
    assert held.events() == after
    assert len(held.events("run.completed")) == 1
    assert held.verified()


def test_an_owner_that_slept_goes_on_where_nobody_took_its_run(held):
    process = begin(held)
    process.send_signal(signal.SIGSTOP)
    change_lease(held, until="2020-01-01T00:00:00.000Z")
    (held / "hold").unlink()
    process.send_signal(signal.SIGCONT)
    assert finish(process).json["scored"] == 3


def test_a_refused_run_leaves_no_lease(shop):
    shop.write("data.jsonl", "no json\n")
    assert shop.run("metrics: [proxy/length]\n").code == 2
    with closing(sqlite3.connect(shop / ".dicast" / "ledger.db")) as connection:
        assert connection.execute("SELECT count(*) FROM leases").fetchone() == (0,)


BARE = """
from contextlib import asynccontextmanager
import attrs
from dicast import hookimpl
from dicast.testing import MemoryLedger

class Live:
    def __init__(self, live):
        for name in ("append", "read", "head", "verify", "reserve", "reservations"):
            setattr(self, name, getattr(live, name))

@attrs.frozen
class Plain:
    \"\"\"A ledger without leases.\"\"\"

    @asynccontextmanager
    async def open(self, run=None, create=True):
        async with MemoryLedger().open(run) as live:
            yield Live(live)

@hookimpl
def dicast_ledgers():
    return [Plain]
"""


def test_a_ledger_without_leases_still_works(shop, plugin):
    plugin("bare", BARE)
    shop.rows(1, 1)
    done = shop.run("metrics: [proxy/length]\nledger: bare/plain\n")
    assert (done.code, done.json["scored"]) == (0, 2)


LATE = """
import subprocess, sys
from contextlib import asynccontextmanager
from pathlib import Path
import attrs
from dicast import hookimpl
from dicast_ledger import Sqlite

class Live:
    def __init__(self, live):
        self.live = live
        for name in dir(live):
            if not name.startswith("_") and name != "take_lease":
                setattr(self, name, getattr(live, name))

    def take_lease(self, *given):
        if Path("ends first").exists():
            Path("ends first").unlink()
            subprocess.run([sys.executable, "-m", "dicast", "run", "p.yaml", "--resume"], check=True, stdout=subprocess.DEVNULL)
        return self.live.take_lease(*given)

@attrs.frozen
class Late(Sqlite):
    \"\"\"A ledger in which another process takes the run up, and ends it, just before its lease is taken.\"\"\"

    @asynccontextmanager
    async def open(self, run=None, create=True):
        async with Sqlite.open(self, run, create) as live:
            yield Live(live)

@hookimpl
def dicast_ledgers():
    return [Late]
"""


@pytest.mark.slow
def test_a_run_that_ended_just_before_its_lease_was_taken_is_not_taken_up(held, plugin):
    plugin("late", LATE)
    held.pipeline(PIPELINE + "ledger: {late/late: {path: .dicast/ledger.db}}\n")
    process = begin(held)
    process.kill()
    finish(process)
    (held / "hold").unlink()
    (held / "ends first").touch()
    done = held.dicast("run", "p.yaml", "--json", "--resume")
    assert (done.code, len(held.events("run.completed")), len(held.events("eval.completed"))) == (2, 1, 3)
    assert "has ended; add --retry-failed" in done.json["error"]["message"]
    assert held.verified()
