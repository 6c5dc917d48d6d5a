"""A PostgreSQL server of the tests' own: on a private socket in a temporary folder, as an unprivileged user."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from itertools import count
from pathlib import Path
from urllib.parse import quote

import psycopg

START_SECONDS = 60


def find_programs():
    """Return the folder of the server's programs, or None. Debian does not have them on the PATH."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name), reverse=True)
    folders += [Path(path).parent for path in [shutil.which("initdb")] if path]
    return next((folder for folder in folders if (folder / "initdb").exists() and (folder / "postgres").exists()), None)


class Server:
    """A server with a data folder; it is started, killed and stopped by the tests."""

    def __init__(self, programs, **settings):
        self._programs, self._settings = programs, settings
        self._user = None
        if os.geteuid() == 0:  # the server refuses to run as root
            self._user = next(
                name for name in ("postgres", "nobody") if name in {user.pw_name for user in pwd.getpwall()}
            )
        self.folder = Path(tempfile.mkdtemp(prefix="pg"))
        self._data = self.folder / "data"
        self._process = None
        self._schemas = count()
        if self._user is not None:
            shutil.chown(self.folder, self._user)
        os.chmod(self.folder, 0o711)
        self._run("initdb", "-D", self._data, "-A", "trust", "-U", "dicast", "-E", "UTF8", "--locale=C", "--no-sync")

    @property
    def url(self):
        return f"postgresql://dicast@/postgres?host={quote(str(self.folder), safe='')}"

    @property
    def pid(self):
        return self._process.pid

    def schema(self):
        """Return a name of a schema that no other test has."""
        return f"test{next(self._schemas)}"

    def start(self):
        settings = {"listen_addresses": "", "fsync": "off", "max_connections": "200", **self._settings}
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        command = [self._programs / "postgres", "-D", self._data, "-k", self.folder, *words]
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                command, cwd=self.folder, user=self._user, stdout=log, stderr=log, start_new_session=True
            )
        deadline = time.monotonic() + START_SECONDS
        while not self._is_ready():
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError((self.folder / "log").read_text()[-2000:])
            time.sleep(0.05)

    def kill(self):
        """Kill the whole server at once, as a crash does."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self):
        if self._process is not None and self._process.poll() is None:
            self._process.send_signal(signal.SIGINT)
            self._process.wait(START_SECONDS)

    def remove(self):
        self.stop()
        shutil.rmtree(self.folder)

    def _is_ready(self):
        try:
            psycopg.connect(self.url).close()
        except psycopg.OperationalError:
            return False
        return True

    def _run(self, name, *words):
        done = subprocess.run(
            [self._programs / name, *words],
            cwd=self.folder,
            user=self._user,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)
