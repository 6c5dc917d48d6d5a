"""Contexts for changes of a ledger. They are classes, because the context of a generator takes as long as a small statement."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from typing import Any

from dicast import LedgerError

from .spending import Spending


class Writing:
    """Context that has the lock of a ledger. After an error it calls *forget*, and raises an error of SQLite as *explain* returns it."""

    def __init__(self, lock: Any, forget: Callable[[], None], explain: Callable[[sqlite3.Error], LedgerError]) -> None:
        self._lock, self._forget, self._explain = lock, forget, explain

    def __enter__(self) -> Any:
        self._lock.acquire()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        try:
            if error is not None:
                self._forget()
        finally:
            self._lock.release()
        if isinstance(error, sqlite3.Error):
            raise self._explain(error) from error


class Transaction(Writing):
    """Context that is also a transaction, which is rolled back after an error. *begin* is called at its start."""

    def __init__(self, connection: sqlite3.Connection, begin: Callable[[], Spending], *writing: Any) -> None:
        super().__init__(*writing)
        self._connection, self._begin = connection, begin

    def __enter__(self) -> Spending:
        super().__enter__()
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            spending = self._begin()
        except BaseException as error:
            self._undo(error)
            raise
        return spending

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is not None:
            self._undo(error)
            return
        try:
            self._connection.execute("COMMIT")
        except BaseException as failure:
            self._undo(failure)
            raise
        self._lock.release()

    def _undo(self, error: BaseException) -> None:
        try:
            # SQLite has ended the transaction itself after some errors, such as a full disk.
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        finally:
            super().__exit__(type(error), error, None)
