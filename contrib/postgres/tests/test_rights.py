"""The rights of the how-to page: a team shares a role, and a reader can only read."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from dicast import LedgerError, LedgerRefused, Query, Secret
from dicast.testing.ledger_events import make_event
from dicast.toolkit.ids import stamp
from dicast_postgres import Ledger

pytestmark = pytest.mark.slow


class Clock:
    def stamp(self):
        return stamp()


def test_a_team_shares_a_role_and_a_reader_only_reads(own_server, open_ledger):
    with psycopg.connect(own_server.url, autocommit=True) as connection:
        for name in ("ann", "bob", "reader"):
            connection.execute(f"CREATE ROLE {name} LOGIN")
        connection.execute(
            "CREATE ROLE evals_team NOLOGIN; GRANT CREATE ON DATABASE postgres TO evals_team; GRANT evals_team TO ann, bob"
        )
        for name in ("ann", "bob"):
            connection.execute(f"ALTER ROLE {name} IN DATABASE postgres SET role = 'evals_team'")
    ledgers = {name: Ledger(Secret(own_server.url.replace("dicast@", f"{name}@"))) for name in ("ann", "bob", "reader")}
    with pytest.raises(LedgerRefused, match="permission denied for database"), open_ledger(ledgers["reader"]):
        pass
    for name in ("ann", "bob"):
        with open_ledger(ledgers[name]) as ledger:
            ledger.append([make_event(Clock(), "run.started", {"by": name}, run_id=name)])
    with psycopg.connect(own_server.url, autocommit=True) as connection:
        connection.execute("GRANT USAGE ON SCHEMA dicast TO reader")
        connection.execute(
            "GRANT SELECT ON ALL TABLES IN SCHEMA dicast TO reader; GRANT SELECT ON ALL SEQUENCES IN SCHEMA dicast TO reader"
        )
    with open_ledger(ledgers["reader"], create=False) as ledger:
        assert [entry.event.payload["by"] for entry in ledger.read(Query())] == ["ann", "bob"]
        assert ledger.verify().ok
        with pytest.raises(LedgerError, match="permission denied"):
            ledger.append([make_event(Clock(), "run.started", {})])


def test_an_old_server_is_refused(component, monkeypatch):
    monkeypatch.setattr("dicast_postgres.versions.LEAST_SERVER", 99)

    async def use():
        async with component.open():
            pass

    with pytest.raises(LedgerRefused, match="use 99 or newer"):
        asyncio.run(use())
