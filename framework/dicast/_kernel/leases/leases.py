"""A run belongs to one process at a time: the lease that it holds in its ledger, and whose it is."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from ..classes import frozen
from ..contract.protocols import Ledger
from ..values import Lease
from ..values.errors import ConfigError, LedgerError
from .leasing import Leasing

SECONDS = 15.0
"""How long a lease lasts after it was renewed; it is renewed each third of that."""

_ENDED = ("Z", "X")
"""The states of a process that has ended and was not waited for."""


@frozen
class Owner:
    """A process: its *machine* (the boot of the system, and the space that pids count in), and when it was *started* there.

    Both are empty where the system does not say: then nobody can see from outside that it has died.
    """

    host: str
    pid: int
    machine: str = ""
    started: str = ""

    @classmethod
    def here(cls) -> Owner:
        """This process."""
        host, pid = socket.gethostname().replace(" ", "-"), os.getpid()
        try:
            boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
            space = Path("/proc/self/ns/pid").readlink()
            number, _, started = _stat("self")
        except (OSError, ValueError):  # only Linux has them
            return cls(host, pid)
        return cls(host, pid, f"{boot}/{space}", started) if number == pid else cls(host, pid)

    @classmethod
    def of(cls, lease: Lease) -> Owner:
        """The owner of *lease*; a stranger where it was not written by :meth:`text`."""
        parts = lease.owner.split(" ")
        if len(parts) != 4 or not parts[1].isdecimal():
            return cls(lease.owner, 0)
        return cls(parts[0], int(parts[1]), *parts[2:])

    def text(self) -> str:
        """The owner as a lease says it."""
        return f"{self.host} {self.pid} {self.machine} {self.started}"

    def has_died(self) -> bool:
        """Whether the process is known to be dead: only one of this machine can be."""
        if not self.machine or self.machine != Owner.here().machine:
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:  # another user's
            pass
        try:
            _, state, started = _stat(str(self.pid))
        except (OSError, ValueError):
            return False
        return state in _ENDED or started != self.started


def _stat(process: str) -> tuple[int, str, str]:
    """The pid, the state and the start of a process, in ticks since the boot (proc(5))."""
    number, _, rest = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").partition(" (")
    fields = rest.rpartition(") ")[2].split()
    return int(number), fields[0], fields[19]


@contextmanager
def leased(ledger: Ledger, run_id: str) -> Iterator[None]:
    """Hold the lease of the run while the block runs, and renew it; a ledger that keeps no leases keeps nobody out.

    :raises ConfigError: when another process holds it.
    """
    if not isinstance(ledger, Leasing):
        yield
        return
    held = ledger.take_lease(run_id, Owner.here().text(), SECONDS, partial(_is_dead, run_id))
    if held is not None:
        owner = Owner.of(held)
        raise ConfigError(
            f"run {run_id} is still under way on host {owner.host} (pid {owner.pid}, lease until {held.until}); wait for it, "
            "or end it"
        )
    over = threading.Event()
    # A thread, because a component may keep the event loop for longer than a lease lasts.
    thread = threading.Thread(target=_renew, args=(ledger, over), name=_keeper(run_id), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        ledger.release_lease()


def _renew(ledger: Leasing, over: threading.Event) -> None:
    while not over.wait(SECONDS / 3):
        with suppress(LedgerError):  # the next append meets the same, and raises it
            ledger.renew_lease()


def living(ledger: Ledger) -> Callable[[str], bool]:
    """Tells whether a process may hold the run of an id. One that never had a lease may: its reservations end by themselves."""

    def alive(run_id: str) -> bool:
        lease = ledger.lease_of(run_id) if isinstance(ledger, Leasing) else None
        return lease is None or not (lease.over or _is_dead(run_id, lease))

    return alive


def refuse_if_taken(ledger: Ledger, run_id: str) -> None:
    """Raise LedgerError where another process has taken up the run that this one carries out."""
    try:
        lease = ledger.lease_of(run_id) if isinstance(ledger, Leasing) else None
    except LedgerError:  # it cannot be read, so nobody else is known of; the run ends as with any ledger that failed
        return
    if lease is not None and lease.owner != Owner.here().text():
        owner = Owner.of(lease)
        raise LedgerError(
            f"run {run_id} has lost its lease: host {owner.host} (pid {owner.pid}) has taken it up. What this process recorded "
            "before stays; it records and writes nothing more"
        )


def _is_dead(run_id: str, lease: Lease) -> bool:
    """Whether nobody holds *lease*: its process has died, or is this one, whose run ended where the ledger could not be written."""
    owner = Owner.of(lease)
    if owner.machine and owner == Owner.here():  # else another machine may have the same name and pid
        return all(thread.name != _keeper(run_id) for thread in threading.enumerate())
    return owner.has_died()


def _keeper(run_id: str) -> str:
    """The name of the thread that renews a run's lease for as long as the run goes on."""
    return f"dicast-lease {run_id}"
