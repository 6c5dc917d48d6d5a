"""A file that is no valid ledger is refused when it is opened, and left unchanged."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path

import attrs
import pytest

from dicast import LedgerError, LedgerRefused, Query
from dicast_ledger import Sqlite, dicast_ledgers

AS_SOMEBODY_ELSE = """
import asyncio, importlib, os, pkgutil, sys
from pathlib import Path
import dicast_ledger
from dicast import Event, LedgerError, LedgerRefused, Query
from dicast_ledger import Sqlite
# Everything is imported while this user may still read the folders of the interpreter and of the plugin.
for module in pkgutil.walk_packages(dicast_ledger.__path__, "dicast_ledger."):
    importlib.import_module(module.name)
Path("/").as_uri()
if os.getuid() == 0:
    os.setresuid(65534, 65534, 65534)
there, fresh = map(Path, sys.argv[1:])

async def main():
    for path in (there, fresh):
        try:
            async with Sqlite(path).open():
                print("opened")
        except LedgerRefused as error:
            print(error)
    async with Sqlite(there).open(create=False) as ledger:
        print(len(list(ledger.read(Query()))), ledger.verify().ok)
        try:
            ledger.append([Event("E", "run.started", "2026-03-01T12:00:00.000Z", "R", {})])
        except LedgerError as error:
            print(error)

asyncio.run(main())
"""


def refusal(opened, path, **options):
    with pytest.raises(LedgerRefused) as caught, opened(path, **options):
        pass
    return str(caught.value)


def test_the_plugin_offers_one_frozen_component():
    assert dicast_ledgers() == [Sqlite]
    assert Sqlite(Path("l.db")) == Sqlite(Path("l.db"), content="store", busy_timeout=5.0)
    with pytest.raises(attrs.exceptions.FrozenInstanceError):
        Sqlite(Path("l.db")).path = Path("other")


def test_a_new_ledger_gets_its_folders_and_is_private(tmp_path, opened, make_event):
    path = tmp_path / "a b" / "c?#%" / "ledger.db"
    with opened(path) as ledger:
        ledger.append([make_event()])
        assert {file.stat().st_mode & 0o777 for file in path.parent.iterdir()} == {0o600}
        assert ledger.path == path
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connection.execute("PRAGMA user_version").fetchone() == (5,)


def test_a_missing_ledger_is_not_created_for_a_reader(tmp_path, opened):
    path = tmp_path / "folder" / "ledger.db"
    assert refusal(opened, path, create=False).startswith(f"no ledger at {path}")
    assert not path.parent.exists()


@pytest.mark.parametrize("create", [True, False])
def test_a_folder_is_refused(tmp_path, opened, create):
    assert f"such as {tmp_path / 'ledger.db'}" in refusal(opened, tmp_path, create=create)


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("content", [b"id,score\n1,0.5\n", b"\0" * 5000])
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path, opened, content, create):
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    assert "is not a SQLite file" in refusal(opened, path, create=create)
    assert path.read_bytes() == content


@pytest.mark.parametrize("create", [True, False])
def test_another_programs_database_is_refused_and_left_alone(tmp_path, opened, create):
    path = tmp_path / "app.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE users (name)")
    before = path.read_bytes()
    assert "not a dicast ledger" in refusal(opened, path, create=create)
    assert path.read_bytes() == before


def test_an_empty_file_becomes_a_ledger_but_not_for_a_reader(tmp_path, opened):
    path = tmp_path / "ledger.db"
    path.touch()
    assert "not a dicast ledger" in refusal(opened, path, create=False)
    with opened(path) as ledger:
        assert ledger.head() is None


def test_a_newer_format_is_refused_with_what_reads_it(tmp_path, opened):
    path = tmp_path / "ledger.db"
    with opened(path):
        pass
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA user_version = 6")
    message = refusal(opened, path)
    assert "a ledger of format 6" in message
    assert "reads formats 2, 3, 4 and 5" in message
    assert "pip install --upgrade dicast-ledger" in message


def test_a_locked_ledger_is_refused_to_writers_and_open_to_readers(tmp_path, opened, make_event):
    path = tmp_path / "ledger.db"
    with opened(path) as ledger, closing(sqlite3.connect(path, isolation_level=None)) as other:
        ledger.append([make_event()])
        other.execute("BEGIN IMMEDIATE")
        said = refusal(opened, path, busy_timeout=0.05)
        assert "locked for 0.05 s" in said
        assert f"--ledger '{{ledger/sqlite: {{path: {path}, busy_timeout: 30}}}}'" in said
        with opened(path, create=False, busy_timeout=0) as reader:
            assert len(list(reader.read(Query()))) == 1
            with pytest.raises(LedgerError, match="locked"):
                reader.append([make_event()])
        other.execute("ROLLBACK")
        assert ledger.append([make_event()]).seq == 2


@pytest.fixture
def ticking():
    """A timer that interrupts every nap, as that of a run does."""
    before = signal.signal(signal.SIGALRM, lambda signum, frame: None)
    signal.setitimer(signal.ITIMER_REAL, 0.005, 0.005)
    yield
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.slow
@pytest.mark.usefixtures("ticking")
def test_a_lock_is_waited_for_as_long_as_is_said_by_the_clock(tmp_path, opened, make_event):
    path = tmp_path / "ledger.db"
    with opened(path, busy_timeout=4) as ledger, closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        start = time.monotonic()
        with pytest.raises(LedgerError, match="locked for 4 s"):
            ledger.append([make_event()])
        assert time.monotonic() - start >= 4
        start = time.monotonic()
        with pytest.raises(LedgerError, match="locked for 4 s"):
            ledger.append([make_event()])
        assert time.monotonic() - start < 3.5  # it has been waited for already
        other.execute("ROLLBACK")
        assert ledger.append([make_event()]).seq == 1
        other.execute("BEGIN IMMEDIATE")
        assert "locked for 0.05 s" in refusal(opened, path, busy_timeout=0.05)


@pytest.mark.usefixtures("ticking")
def test_a_lock_that_is_let_go_of_in_time_is_only_waited_for(tmp_path, opened, make_event):
    path = tmp_path / "ledger.db"
    other = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    with opened(path, busy_timeout=60) as ledger, closing(other):
        other.execute("BEGIN IMMEDIATE")
        letting_go = threading.Timer(0.2, other.execute, ["ROLLBACK"])
        letting_go.start()
        start = time.monotonic()
        assert ledger.append([make_event()]).seq == 1
        assert time.monotonic() - start < 30
        letting_go.join()


def test_a_parent_that_is_a_file_is_refused(tmp_path, opened):
    (tmp_path / "file").touch()
    assert "cannot create the ledger" in refusal(opened, tmp_path / "file" / "ledger.db")


def test_without_the_right_to_write_it_can_only_be_read(opened, make_event):
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        with opened(folder / "ledger.db") as ledger:
            ledger.append([make_event()])
        (folder / "ledger.db").chmod(0o444)
        folder.chmod(0o555)
        arguments = [sys.executable, "-c", AS_SOMEBODY_ELSE, folder / "ledger.db", folder / "new" / "ledger.db"]
        environ = {
            name: value for name, value in os.environ.items() if not name.startswith("COV")
        }  # it may not write here
        done = subprocess.run(arguments, env=environ, capture_output=True, text=True, check=False)
        folder.chmod(0o755)
    assert done.stderr == ""
    refused, uncreated, read, unwritten = done.stdout.splitlines()
    assert "check the permissions" in refused
    assert "cannot create the ledger" in uncreated
    assert read == "1 True"
    assert "check the permissions" in unwritten
