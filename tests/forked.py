"""Processes of ``dicast`` that tests start, forked from one that has imported dicast: the imports take longer than most commands do.

:class:`Forked` takes the place of ``subprocess.Popen``. A command that the imports may matter to starts as ever: other options of
Python, other variables that Python or a library reads at its start, or modules of the same names in its folder or on its path.
"""

from __future__ import annotations

import asyncio
import gc
import importlib
import io
import json
import os
import pkgutil
import resource
import runpy
import select
import signal
import socket
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

IMPORTED = (
    "dicast",
    "dicast_ledger",
    "dicast_rows",
    "dicast_heuristic",
    "dicast_llm",
    "dicast_openai",
    "dicast_traces",
    "dicast_stats",
)
"""Packages that the first process imports with their modules; it imports no module of :data:`LEFT`."""
LEFT = ("testing", "__main__")
SUFFIXES = (".py", ".pyc", ".so")
DICAST = Path(sys.executable).with_name("dicast")
READ_AT_START = ("PYTHON", "LC_", "LANG", "TZ", "SSL_", "LD_", "MALLOC", "OPENSSL", "COV", "AIOHTTP")
"""How variables begin that are read when Python or a library starts, so that no command with another value is forked."""


class Origin:
    """The process that forks, started for the first command."""

    def __init__(self):
        self.seconds = 0.0  # for which the processes that have ended computed
        self._environment, self._rights = dict(os.environ), rights()
        self._socket = self._process = None
        self._lock = threading.Lock()

    def start(self):
        ours, theirs = socket.socketpair()
        code = f"import runpy; runpy.run_path({__file__!r})['serve']({theirs.fileno()})"
        with theirs:
            command = [sys.executable, "-P", "-c", code]
            options = {"env": self._environment, "stdin": subprocess.DEVNULL}
            self._process = Started(command, pass_fds=[theirs.fileno()], **options)
        self._socket = ours
        self._names = set(json.loads(self._line()))

    def _line(self):
        data = b""
        while not data.endswith(b"\n"):
            part = self._socket.recv(1 << 16)
            if not part:
                raise RuntimeError("the process that forks has ended")
            data += part
        return data

    def takes(self, words, folder, environment):
        """Return whether a fork runs the command *words* like a process of its own."""
        if rights() != self._rights:
            return False
        if self._process is None:
            self.start()
        names = {
            name for name in {*self._environment, *environment} if self._environment.get(name) != environment.get(name)
        }
        if any(name.startswith(READ_AT_START) for name in names - {"PYTHONPATH"}):
            return False
        added = self.added(folder, environment)
        if added is None:
            return False
        return not any(self._shadows(place) for place in ([folder, *added] if words[1] == "-m" else added))

    def added(self, folder, environment):
        """Return the places that the command's ``PYTHONPATH`` has in front; None if it has others behind them."""
        before, after = (_places(folder, variables) for variables in (self._environment, environment))
        count = len(after) - len(before)
        return after[:count] if count >= 0 and after[count:] == before else None

    def _shadows(self, place):
        """Return whether the folder *place* has a module with the name of an imported one, or of one that Python looks for."""
        if not os.path.isdir(place):
            return False
        names = [name for name in os.listdir(place) if name.partition(".")[0] in self._names]
        return any(
            name.endswith(SUFFIXES) or os.path.exists(os.path.join(place, name, "__init__.py")) for name in names
        )

    def fork(self, words, folder, environment, fds, *, leads):
        """Fork, and return the process's id and a descriptor that gives its status when it has ended."""
        ended, end = os.pipe()
        mask = os.umask(0o77)
        os.umask(mask)
        order = json.dumps([words, folder, environment, self.added(folder, environment), mask, leads]).encode()
        with self._lock:
            self._socket.sendall(len(order).to_bytes(8, "big"))
            self._socket.sendall(order)
            socket.send_fds(self._socket, [b"."], [*fds, end])
            os.close(end)
            return int(self._line()), ended

    def stop(self):
        """End it."""
        if self._process is not None:
            self._socket.close()
            self._process.wait()


def rights():
    """Return the user and the resource limits, which a process inherits from this process in addition to its environment."""
    limits = (resource.RLIMIT_FSIZE, resource.RLIMIT_AS, resource.RLIMIT_NOFILE, resource.RLIMIT_CPU)
    return os.geteuid(), os.getegid(), [resource.getrlimit(limit) for limit in limits]


def _places(folder, environment):
    return [os.path.join(folder, place) for place in environment.get("PYTHONPATH", "").split(os.pathsep) if place]


Started = subprocess.Popen


class Forked(Started):
    """A process as ``subprocess.Popen`` starts it, or a fork of :data:`origin`."""

    origin = Origin()
    _status = None

    def _execute_child(self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *rest):
        # rest: startupinfo, creationflags, shell; six descriptors; restore_signals, gid, gids, uid, umask, start_new_session, process_group
        _, _, shell, p2cread, _, _, c2pwrite, _, errwrite, restores, gid, gids, uid, umask, leads, group = rest
        is_plain = not (executable or preexec_fn or pass_fds or shell or gid or gids or uid) and close_fds and restores
        if is_plain and umask == group == -1:
            words, folder = _words(args), os.path.abspath(os.fsdecode(cwd or "."))
            environment = {
                os.fsdecode(name): os.fsdecode(text) for name, text in (os.environ if env is None else env).items()
            }
            if words and os.path.isdir(folder) and self.origin.takes(words, folder, environment):
                fds = [
                    p2cread if p2cread != -1 else 0,
                    c2pwrite if c2pwrite != -1 else 1,
                    errwrite if errwrite != -1 else 2,
                ]
                self.pid, self._status = self.origin.fork(words, folder, environment, fds, leads=leads)
                self._child_created = True
                self._close_pipe_fds(*rest[3:9])
                return
        super()._execute_child(args, executable, preexec_fn, close_fds, pass_fds, cwd, env, *rest)

    def _try_wait(self, wait_flags):
        if self._status is None:
            return super()._try_wait(wait_flags)
        if wait_flags & os.WNOHANG and not select.select([self._status], [], [], 0)[0]:
            return 0, 0
        with open(self._status) as file:
            status, seconds = json.loads(file.read() or f"[{signal.SIGKILL:d}, 0]")
        self._status = None
        self.origin.seconds += seconds
        return self.pid, status

    def _internal_poll(self, *arguments, **options):
        if self._status is None:
            return super()._internal_poll(*arguments, **options)
        if self.returncode is None and self._waitpid_lock.acquire(False):
            try:
                if self.returncode is None:
                    pid, status = self._try_wait(os.WNOHANG)
                    if pid:
                        self._handle_exitstatus(status)
            finally:
                self._waitpid_lock.release()
        return self.returncode


def fork_dicast(patch):
    """Let ``subprocess`` fork the commands of dicast. ``asyncio`` starts its processes normally, because it waits for them itself."""
    if sys.platform == "linux":
        patch.setattr(asyncio.unix_events, "subprocess", SimpleNamespace(**vars(subprocess)))
        patch.setattr(subprocess, "Popen", Forked)
    return Forked.origin


def _words(args):
    """Return the words of a command of dicast; None for another command."""
    if isinstance(args, str | bytes | os.PathLike):
        return None
    words = [os.fsdecode(word) for word in args]
    return words if words[:3] == [sys.executable, "-m", "dicast"] or words[:1] == [str(DICAST)] else None


def serve(connection):
    """Import, and fork for each order until the connection is closed."""
    connection = socket.socket(fileno=connection)
    _import()
    children, (woken, wakes) = {}, socket.socketpair()
    woken.setblocking(False)
    wakes.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes.fileno(), warn_on_full_buffer=False)
    names = sorted({name.partition(".")[0] for name in (*sys.modules, "sitecustomize", "usercustomize")} - {"__main__"})
    connection.sendall(json.dumps(names).encode() + b"\n")
    gc.collect()
    gc.freeze()
    while True:
        ready = select.select([connection, woken], [], [])[0]
        if woken in ready:
            woken.recv(1 << 12)
            _report(children)
        if connection in ready:
            order = _order(connection)
            if order is None:
                os._exit(0)
            pid = os.fork()
            if pid == 0:
                for end in (connection, woken, wakes):
                    end.detach()
                _become(*order)
            for fd in order[1][:3]:
                os.close(fd)
            children[pid] = order[1][3]
            connection.sendall(b"%d\n" % pid)


def _import():
    for package in IMPORTED:
        module = importlib.import_module(package)
        for found in pkgutil.walk_packages(module.__path__, f"{package}."):
            if not set(found.name.split(".")) & set(LEFT):
                with suppress(ImportError):
                    importlib.import_module(found.name)
    assert threading.active_count() == 1


def _report(children):
    """Write the status of each process that has ended to whom it belongs, before the process's id is free."""
    while children:
        ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOWAIT | os.WNOHANG)
        if ended is None:
            return
        end = children.pop(ended.si_pid)
        used = os.times()
        status = os.waitpid(ended.si_pid, 0)[1]
        seconds = sum(os.times()[2:4]) - sum(used[2:4])
        with suppress(BrokenPipeError):
            os.write(end, json.dumps([status, seconds]).encode())
        os.close(end)


def _order(connection):
    size = connection.recv(8, socket.MSG_WAITALL)
    if len(size) < 8:
        return None
    data = json.loads(connection.recv(int.from_bytes(size, "big"), socket.MSG_WAITALL))
    return data, socket.recv_fds(connection, 1, 4)[1]


def _become(order, fds):
    """Run the command in this process, a fork."""
    words, folder, environment, places, mask, leads = order
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if leads:
        os.setsid()
    for number, fd in enumerate(fds[:3]):
        os.dup2(fd, number)
    os.closerange(3, os.sysconf("SC_OPEN_MAX"))
    os.umask(mask)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    _renew_streams()
    sys.path[:0] = places
    gc.unfreeze()
    if words[1] == "-m":
        sys.path.insert(0, folder)
        sys.argv[:] = ["-m", *words[3:]]
        runpy._run_module_as_main("dicast")
    else:
        sys.argv[:] = words
        sys.path.insert(0, str(DICAST.parent))
        main = sys.modules["__main__"]
        main.__file__ = words[0]
        exec(compile(DICAST.read_bytes(), words[0], "exec"), main.__dict__)  # noqa: S102  # as Python runs a script


def _renew_streams():
    """Open the standard streams again, as Python does at its start."""
    for number, name, mode in ((0, "stdin", "rb"), (1, "stdout", "wb"), (2, "stderr", "wb")):
        before = getattr(sys, name)
        binary = open(number, mode, closefd=False)  # noqa: SIM115  # for the rest of the process
        lines = number == 2 or binary.isatty()
        stream = io.TextIOWrapper(
            binary, before.encoding, before.errors, newline=None if number == 0 else "\n", line_buffering=lines
        )
        stream.mode = mode[0]
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
