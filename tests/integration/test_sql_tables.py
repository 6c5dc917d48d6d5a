"""The tables of ``dicast sql`` are equal on every ledger that has the same events."""

from __future__ import annotations

import asyncio
import importlib.util
import inspect
import json
import sys
from decimal import Decimal
from pathlib import Path

import attrs
import pytest
from click.testing import CliRunner

import dicast
from dicast import Cost, Event, Judgment, Query, Subject, read_ledger
from dicast.toolkit.ids import stamp
from dicast_ledger import Sqlite
from dicast_postgres import Ledger as Postgres
from dicast_segments import Ledger as Segments
from dicast_sql.command import sql
from dicast_sql.tables import TABLES

SERVER = Path(__file__).parents[2] / "contrib" / "postgres" / "tests" / "server.py"
ROWS = 6


@attrs.frozen
class Paid:
    """Judge with a price; it fails on the last subject."""

    def estimate(self, subject):
        return Cost(Decimal("0.25"))

    def judge(self, subject, children=()):
        if subject.id == f"r{ROWS - 1}":
            raise RuntimeError("on purpose")
        return Judgment(int(subject.id[1:]) / 10, 1.0, "llm", cost=Cost(Decimal("0.125")))


def labels():
    """The events of two labels, one of them retracted."""
    given = {"subject_kind": "row", "score": 0.5, "labeller": "ann", "output_digest": "ab", "drawn": "random"}
    payloads = [{**given, "subject": f"r{number}", "adjudicated": not number} for number in range(2)]
    taken_back = {"subject": "r1", "subject_kind": "row", "label_run": "L", "labeller": "ann"}
    types = [("label.given", payload) for payload in payloads] + [("label.retracted", taken_back)]
    return [Event(stamp()[0], type_, "2026-11-27T16:00:00.000Z", "L", payload) for type_, payload in types]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A ledger of SQLite with free rows, paid verdicts, a failure and labels, and all its events."""
    folder = tmp_path_factory.mktemp("recorded")
    rows = [Subject("row", f"r{number}", "question", f"Größe {number}\n", "Größe 1\n") for number in range(ROWS)]
    ledger = {"ledger/sqlite": {"path": str(folder / "ledger.db")}}
    for judging in ({"judges": [Paid()]}, {"metrics": ["proxy/length", "diff/match"]}):
        dicast.run({"name": "nightly", **judging, "ledger": ledger}, subjects=rows)
    place = folder / "ledger.db"
    asyncio.run(append(Sqlite(place), labels()))
    return str(place), read_ledger(place, lambda live: [entry.event for entry in live.read(Query())])


async def append(component, events):
    """Append *events* to a new ledger."""
    async with component.open() as live:
        if inspect.isawaitable(done := live.append(events)):
            await done


def rows_of(table, place):
    """The rows of a table of the ledger at *place*."""
    query = f"select * from {table} order by seq"  # noqa: S608  # a name of the test
    done = CliRunner().invoke(sql, [query, "--ledger", place, "--json"], catch_exceptions=False)
    return json.loads(done.output)["rows"]


@pytest.fixture(scope="module")
def postgres():
    """A server of PostgreSQL."""
    specification = importlib.util.spec_from_file_location("sql_tables_server", SERVER)
    module = sys.modules[specification.name] = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    if (programs := module.find_programs()) is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    server = module.Server(programs)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(params=["sqlite", "segments", "postgres"])
def place(request, tmp_path, recorded):
    """The place of a ledger with all events of the recorded one, as text of ``--ledger``."""
    path, (_, events) = tmp_path / "ledger", recorded
    if request.param == "sqlite":
        component, place = Sqlite(path), str(path)
    elif request.param == "segments":
        component, place = Segments(path=path), json.dumps({"segments/ledger": {"path": str(path)}})
    else:
        server = request.getfixturevalue("postgres")
        options = {"url": server.url, "schema": server.schema()}
        component = Postgres(url=dicast.Secret(options["url"]), schema=options["schema"])
        place = json.dumps({"postgres/ledger": options})
    asyncio.run(append(component, events))
    return place


@pytest.mark.parametrize("table", TABLES)
def test_a_table_has_the_same_rows_on_every_ledger(recorded, place, table):
    expected = rows_of(table, recorded[0])
    assert expected
    assert rows_of(table, place) == expected


def test_views_agree_with_each_other(place):
    query = """select (select count(*) from verdicts) = count(*) filter (type = 'eval.completed'),
        (select count(*) from spend) = count(*) filter (type in ('spend.settled', 'spend.lost')),
        (select count(*) from labels where retracted) from events"""
    done = CliRunner().invoke(sql, [query, "--ledger", place, "--json"], catch_exceptions=False)
    assert json.loads(done.output)["rows"] == [[True, True, 1]]
