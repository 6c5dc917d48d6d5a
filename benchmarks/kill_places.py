"""Places in which ``kill.py`` has runs record: a file, a folder, a bucket and PostgreSQL. ``kill_ray.py`` has the place of a Ray cluster.

A place names the processes next to the process of the run that may be killed, and starts them again.
"""

from __future__ import annotations

import importlib.util
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import threading
import urllib.request
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from sqlite3 import OperationalError
from typing import IO, Any

from kill_fork import Command
from processes import HERE, Wrong, clear

from dicast import Event, LedgerRefused, Query, read_ledger
from dicast_ledger import connect

CONTRIB = HERE.parent / "contrib"
DRIVER = "driver"
"""The process of the run, which every kind kills."""

MOTO = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print(server.get_host_and_port()[1], flush=True)
sys.stdin.read()
"""
FRONT = """
import asyncio, sys

async def pump(reader, writer):
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()

async def serve(port, target):
    async def accept(reader, writer):
        back, front = await asyncio.open_connection("127.0.0.1", target)
        await asyncio.gather(pump(reader, front), pump(back, writer))

    server = await asyncio.start_server(accept, "127.0.0.1", port)
    print("ready", flush=True)
    await server.serve_forever()

asyncio.run(serve(int(sys.argv[1]), int(sys.argv[2])))
"""
"""A server of S3 that can be killed: it passes bytes on to moto, which keeps the objects in memory, as S3 keeps them when a server dies."""


class Place:
    """A file of ``ledger/sqlite`` in *folder*."""

    victims: Sequence[str] = (DRIVER,)
    """Processes that a moment may kill, as names for :meth:`kill`."""

    points: Sequence[str] = ()
    """Names of groups in ``kill_fork.CALLS``: the calls at which a process may be killed."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self.folder, self.stack = folder, stack

    @property
    def ledger(self) -> str:
        """The ledger as the commands take it: a path, or a component in JSON."""
        return str(self.folder / "ledger.db")

    @property
    def environment(self) -> dict[str, str]:
        """Variables of the processes of the run."""
        return {}

    @property
    def text(self) -> str:
        """Lines of the pipeline file."""
        return "ledger: {ledger/sqlite: {path: ledger.db}}\n"

    def clear(self) -> None:
        """Remove the files of a run."""
        clear(self.folder, "ledger.db*", "*.csv", "*.tmp")

    def newest(self) -> object:
        """Return a value that changes with each append."""
        try:
            with closing(connect(self.folder / "ledger.db")) as database:
                return int(database.execute("SELECT coalesce(max(seq), 0) FROM events").fetchone()[0])
        except OperationalError:  # no file, no table yet, or just being made
            return 0

    def events(self) -> list[Event]:
        """Return the events of the ledger; none if a process was killed before it made the ledger."""
        return events_at(self.ledger)

    def segments(self) -> list[Event]:
        """Return the events that workers have recorded elsewhere, and that the ledger may lack."""
        return []

    def kill(self, victim: str, drawn: random.Random) -> bool:
        """Kill a process that is not the driver; return False if none is there now."""
        raise Wrong(f"{type(self).__name__} has no process {victim!r} to kill")

    def start(self, victim: str) -> None:
        """Start the killed process again."""

    def arm(self, moment: object) -> bool:
        """Have a process next to the driver stop at *moment*; return False if *moment* is no point of such a process."""
        return False

    def arrived(self, command: Command) -> bool:
        """Wait until the process of :meth:`arm` has stopped; return False if *command*, the driver, has ended before."""
        raise Wrong(f"{type(self).__name__} has no process that stops")

    def counts(self) -> Counter[str]:
        """Return the numbers of calls of each point of processes next to the driver, in the last run."""
        return Counter()

    def release(self) -> None:
        """Continue a process that has stopped."""

    def settle(self) -> None:
        """Wait until processes of a killed driver on other nodes have ended."""


class FolderPlace(Place):
    """A folder of ``segments/ledger``."""

    points = ("segments",)

    @property
    def ledger(self) -> str:
        """The component in JSON."""
        return json.dumps({"segments/ledger": {"path": str(self.folder / "logs")}})

    @property
    def text(self) -> str:
        """Lines of the pipeline file."""
        return f"ledger: {self.ledger}\n"

    def clear(self) -> None:
        """Remove the files of a run."""
        shutil.rmtree(self.folder / "logs", ignore_errors=True)
        clear(self.folder, "*.csv", "*.tmp")

    def newest(self) -> object:
        """Return the names of the newest commit and the newest segment."""
        logs = self.folder / "logs"
        return [max((path.name for path in logs.glob(f"{name}/*")), default="") for name in ("log", "segments")]


class BucketPlace(Place):
    """A bucket of ``segments/ledger`` at a local server of S3, which may be killed."""

    victims, points = (DRIVER, "server"), ("segments",)
    _reading = threading.Lock()
    """Held while the environment of this process names the server of a place."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        super().__init__(folder, stack)
        moto = _served(stack, [sys.executable, "-c", MOTO])
        self._moto = f"http://127.0.0.1:{moto}"
        with closing(socket.create_server(("127.0.0.1", 0))) as free:
            self._port = free.getsockname()[1]
        self._command = [sys.executable, "-c", FRONT, str(self._port), moto]
        self._front: subprocess.Popen[str] | None = None
        stack.callback(self._end)
        self.start("server")
        import obstore  # only this place needs it
        from obstore.store import S3Store

        self._list = obstore.list
        self._store = S3Store("dicast", endpoint=self._moto, client_options={"allow_http": True}, **self._credentials())

    def _credentials(self) -> dict[str, Any]:
        return {"access_key_id": "test", "secret_access_key": "test", "region": "us-east-1"}

    @property
    def ledger(self) -> str:
        """The URL."""
        return "s3://dicast/logs"

    @property
    def environment(self) -> dict[str, str]:
        """The address and the credentials of the server."""
        names = {f"AWS_{name.upper()}": value for name, value in self._credentials().items()}
        return {**names, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self._port}"}

    @property
    def text(self) -> str:
        """Lines of the pipeline file."""
        return f"ledger: {{segments/ledger: {{url: {self.ledger}}}}}\n"

    def clear(self) -> None:
        """Remove the files of a run."""
        for method, path in (("POST", "moto-api/reset"), ("PUT", "dicast")):
            urllib.request.urlopen(urllib.request.Request(f"{self._moto}/{path}", method=method)).close()
        clear(self.folder, "*.csv", "*.tmp")

    def newest(self) -> object:
        """Return the newest name of the log and of the segments."""
        metas = self._list(self._store, prefix="logs").collect()
        return sorted(meta["path"] for meta in metas)[-1:]

    def events(self) -> list[Event]:
        """Return the events of the ledger, from the server that is never killed."""
        with self._reading:
            os.environ.update(self.environment | {"AWS_ENDPOINT_URL": self._moto})
            return events_at(self.ledger)

    def kill(self, victim: str, drawn: random.Random) -> bool:
        """Kill the server of S3."""
        self._end()
        return True

    def start(self, victim: str) -> None:
        """Start the server of S3 again, at the same address."""
        self._front = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        assert self._front.stdout is not None
        self._front.stdout.readline()

    def _end(self) -> None:
        if self._front is not None:
            self._front.kill()
            self._front.communicate()
            self._front = None


class PostgresPlace(Place):
    """A schema of a PostgreSQL server of its own, which may be killed."""

    victims, points = (DRIVER, "server"), ("postgres",)
    _schema = "kills"

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        super().__init__(folder, stack)
        module = _module("kill_postgres_server", CONTRIB / "postgres" / "tests" / "server.py")
        programs = module.find_programs()
        if programs is None:
            raise Wrong("PostgreSQL is not installed: apt-get install postgresql")
        self._server = module.Server(programs)
        stack.callback(self._server.remove)
        self._server.start()

    @property
    def ledger(self) -> str:
        """The component in JSON."""
        return json.dumps({"postgres/ledger": {"url": self._server.url, "schema": self._schema}})

    @property
    def text(self) -> str:
        """Lines of the pipeline file."""
        return f"ledger: {self.ledger}\n"

    def clear(self) -> None:
        """Remove the files of a run."""
        self._execute(f"DROP SCHEMA IF EXISTS {self._schema} CASCADE")
        clear(self.folder, "*.csv", "*.tmp")

    def newest(self) -> object:
        """Return the position of the server's log."""
        rows = self._execute(f"SELECT to_regclass('{self._schema}.chains')")
        return rows[0][0] and self._execute(f"SELECT sum(hashtext(chains::text)) FROM {self._schema}.chains chains")

    def kill(self, victim: str, drawn: random.Random) -> bool:
        """Kill all processes of the server."""
        self._server.kill()
        return True

    def start(self, victim: str) -> None:
        """Start the server again, which repairs its files."""
        self._server.start()

    def _execute(self, statement: str) -> Any:
        import psycopg  # only this place needs it

        with psycopg.connect(self._server.url, autocommit=True) as connection:
            cursor = connection.execute(statement.encode())
            return cursor.fetchall() if cursor.description else []


def events_at(place: str) -> list[Event]:
    """Return the events of the ledger at *place*; none if there is no ledger."""
    read: Callable[[Any], list[Event]] = lambda live: [entry.event for entry in live.read(Query())]  # noqa: E731
    try:
        return read_ledger(place, read)
    except LedgerRefused:
        return []


def _served(stack: ExitStack, command: Sequence[str]) -> str:
    """Start a server, which prints a line and ends with its input; return the line."""
    server = stack.enter_context(
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    )
    streams: list[IO[str] | None] = [server.stdout, server.stdin]
    output = streams[0]
    assert output is not None
    line = output.readline().strip()
    if not line:
        raise Wrong("the local server of S3 did not start: pip install 'moto[server]'")
    return line


def _module(name: str, path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(f"{path} cannot be loaded")
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
