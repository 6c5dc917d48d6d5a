"""Leases of runs: a run belongs to one process at a time, which holds a lease in the run's ledger."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

from ..classes import frozen
from ..contract.implements import implements
from ..contract.protocols import Ledger
from ..values import Lease
from ..values.errors import ConfigError, LedgerError
from .protocol import Leasing

SECONDS = 15.0
"""Seconds that a lease is valid after each renewal; it is renewed every third of this time."""

_ZOMBIE_STATES = ("Z", "X")
"""States in which a process has ended but its parent has not waited for it."""


@frozen
class Owner:
    """A process, with its *machine* (boot id of the system and PID namespace) and the time when it *started* there.

    Both are empty on a system that does not provide them. No other process can then detect that this process has died.
    """

    host: str
    pid: int
    machine: str = ""
    started: str = ""

    @classmethod
    def current(cls) -> Owner:
        """Return the current process."""
        host, pid = socket.gethostname().replace(" ", "-"), os.getpid()
        try:
            boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
            space = Path("/proc/self/ns/pid").readlink()
            number, _, started = _stat("self")
        except (OSError, ValueError):  # these files exist on Linux alone
            return cls(host, pid)
        return cls(host, pid, f"{boot}/{space}", started) if number == pid else cls(host, pid)

    @classmethod
    def of(cls, lease: Lease) -> Owner:
        """Return the owner of *lease*; an owner with pid 0 if :meth:`text` did not write the lease."""
        parts = lease.owner.split(" ")
        if len(parts) != 4 or not parts[1].isdecimal():
            return cls(lease.owner, 0)
        return cls(parts[0], int(parts[1]), *parts[2:])

    def text(self) -> str:
        """Return the owner as text for a lease."""
        return f"{self.host} {self.pid} {self.machine} {self.started}"

    def has_died(self) -> bool:
        """Return True if the process is known to be dead; only a process of this machine can be."""
        if not self.machine or self.machine != Owner.current().machine:
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except PermissionError:  # the process of another user
            pass
        try:
            _, state, started = _stat(str(self.pid))
        except (OSError, ValueError):
            return False
        return state in _ZOMBIE_STATES or started != self.started


def _stat(process: str) -> tuple[int, str, str]:
    """Return the pid, the state and the start time of a process, in ticks since the boot (proc(5))."""
    number, _, rest = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").partition(" (")
    fields = rest.rpartition(") ")[2].split()
    return int(number), fields[0], fields[19]


@contextmanager
def hold_lease(ledger: Ledger, run_id: str) -> Iterator[None]:
    """Hold and renew the lease of the run while the block runs. Without lease support in the ledger, nothing is locked.

    :raises ConfigError: when another process holds the lease.
    """
    if not implements(ledger, Leasing):
        yield
        return
    holder = ledger.take_lease(run_id, Owner.current().text(), SECONDS, partial(_is_dead, run_id))
    if holder is not None:
        owner = Owner.of(holder)
        raise ConfigError(
            f"run {run_id} is still running on host {owner.host} (pid {owner.pid}, lease until {holder.until}); wait for it, "
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
        with suppress(LedgerError):  # the next append fails in the same way, and raises
            ledger.renew_lease()


def live_run_check(ledger: Ledger) -> Callable[[str], bool]:
    """Return a predicate of run ids: True if a process may still carry out the run.

    It is True for a run that never had a lease, because its reservations expire by themselves.
    """

    def alive(run_id: str) -> bool:
        lease = ledger.lease_of(run_id) if implements(ledger, Leasing) else None
        return lease is None or not (lease.over or _is_dead(run_id, lease))

    return alive


def raise_if_lease_lost(ledger: Ledger, run_id: str) -> None:
    """Raise LedgerError if another process has taken over the run that this process carries out."""
    try:
        lease = ledger.lease_of(run_id) if implements(ledger, Leasing) else None
    except LedgerError:  # no other owner is known; the run ends as with any ledger that fails
        return
    if lease is not None and lease.owner != Owner.current().text():
        owner = Owner.of(lease)
        raise LedgerError(
            f"run {run_id} has lost its lease: host {owner.host} (pid {owner.pid}) has taken it over. The events that this process recorded "
            "before remain; it records and writes nothing more"
        )


def _is_dead(run_id: str, lease: Lease) -> bool:
    """Return True if no process renews *lease* any more.

    Either the owner has died, or the owner is this process and its run ended while the ledger could not be written.
    """
    owner = Owner.of(lease)
    if (
        owner.machine and owner == Owner.current()
    ):  # without the machine's id, the same name and pid may be on another machine
        return all(thread.name != _keeper(run_id) for thread in threading.enumerate())
    return owner.has_died()


def _keeper(run_id: str) -> str:
    """Return the name of the thread that renews the lease of a run while the run goes on."""
    return f"dicast-lease {run_id}"
