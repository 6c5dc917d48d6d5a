"""An open ledger file: its transactions, its readers, and the lease of a run."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dicast import Lease, LedgerError

from .file import connect, explain
from .leases import Leases
from .spending import Spending
from .transactions import Transaction, Writing


class Opened:
    """An open ledger of any format. Its methods may be called from any thread; *path* is the file."""

    def __init__(self, path: Path, connection: sqlite3.Connection, *, store_content: bool, timeout: float) -> None:
        self.path = path
        self._connection = connection
        self._leases = Leases(connection)
        self._spending = Spending(connection)
        self._version: int | None = None
        """Number of the state of the file that the memory of this object belongs to; None for no state."""
        self._store_content = store_content
        self._timeout = timeout
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        self._lock = threading.RLock()

    @property
    def keeps_content(self) -> bool:
        """True if the judged texts and the payloads of traces can be read back."""
        return self._store_content

    def close(self) -> None:
        """Release the file. Open readings continue."""
        self._closed = True
        while self._idle:
            self._idle.pop().close()

    def _forget(self) -> None:
        """Forget the state in memory that a failed transaction has changed."""
        self._version = None

    def _refresh(self) -> None:
        """Forget the values of the file in memory, because another connection has written."""
        self._leases.refresh()
        self._spending.refresh()

    def take_lease(self, run_id: str, owner: str, seconds: float, dead: Callable[[Lease], bool]) -> Lease | None:
        """Take the lease of a run for *seconds*, and return None; or return the lease that blocks it, which is neither over nor *dead*."""
        with self._transaction(fenced=False) as spending:
            spending.disturb()  # a lease decides about the reservations of its run
            return self._leases.take(run_id, owner, seconds, dead)

    def renew_lease(self) -> None:
        """Renew the lease that this live object holds, as each append does.

        :raises LedgerError: when another owner has taken it.
        """
        with self._transaction():
            pass

    def release_lease(self) -> None:
        """Give back the lease of this live ledger. A lost lease is ignored."""
        with self._transaction(fenced=False) as spending:
            spending.disturb()
            self._leases.give_back()

    def lease_of(self, run_id: str) -> Lease | None:
        """Return the newest lease of a run; None if it never had a lease."""
        with self._lock, self._errors():
            return self._leases.of(run_id)

    def _transaction(self, *, fenced: bool = True) -> Transaction:
        """Return a transaction. With *fenced* it is refused if this live ledger has lost its lease."""
        begin = self._begin_fenced if fenced else self._begin
        return Transaction(self._connection, begin, self._lock, self._forget, self._explained)

    def _writing(self) -> Writing:
        """Return the context of changes."""
        return Writing(self._lock, self._forget, self._explained)

    def _begin(self) -> Spending:
        """Forget the values of the file in memory if another connection has written since the former transaction, and return the amounts."""
        (version,) = self._connection.execute("PRAGMA data_version").fetchone()
        if version != self._version:
            self._version = version
            self._refresh()
        return self._spending

    def _begin_fenced(self) -> Spending:
        spending = self._begin()
        self._leases.check()
        return spending

    @contextmanager
    def _reader(self) -> Iterator[sqlite3.Connection]:
        """Open a separate connection that sees one state of the ledger; later appends do not change it."""
        with self._errors(), self._connected() as connection:
            connection.execute("BEGIN")
            try:
                yield connection
            finally:
                connection.execute("ROLLBACK")

    @contextmanager
    def _connected(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection that no other reader uses. Opening one takes as long as a small read, so connections are reused."""
        try:
            connection = self._idle.pop()
        except IndexError:
            connection = connect(self.path, self._timeout)
            connection.execute("PRAGMA query_only = 1")
        try:
            yield connection
        except GeneratorExit:  # the reader has enough rows
            self._release(connection)
            raise
        except BaseException:
            connection.close()
            raise
        self._release(connection)

    def _release(self, connection: sqlite3.Connection) -> None:
        if self._closed:
            connection.close()
        else:
            self._idle.append(connection)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def _explained(self, error: sqlite3.Error) -> LedgerError:
        return LedgerError(explain(self.path, error, self._timeout))
