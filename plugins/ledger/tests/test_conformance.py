"""The ledger in SQLite keeps the contract."""

from __future__ import annotations

from dicast.testing import LedgerConformance


class TestSqlite(LedgerConformance):
    ledger = "ledger/sqlite"
    options = {"path": "state/ledger.db"}
