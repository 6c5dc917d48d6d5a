"""The ledger in PostgreSQL keeps the contract."""

from __future__ import annotations

import pytest

from dicast.testing import LedgerConformance


class TestPostgres(LedgerConformance):
    ledger = "postgres/ledger"

    @pytest.fixture(autouse=True)
    def _schema(self, server):
        self.options = {"url": server.url, "schema": server.schema()}
