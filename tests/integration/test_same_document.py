"""Runs of one file that differ in their executor and their ledger alone: the documents and the recorded events are equal."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from .conftest import settled
from .test_shards import CASES

SERVER = Path(__file__).parents[2] / "contrib" / "postgres" / "tests" / "server.py"
CHANGING = ("_id", "_ids", "_ms", "seconds")
"""Ends of the names of members that differ between two runs of one file."""

PROCESSES = "executor: {dicast/processes: {workers: 2}}\n"
FLEET = Path(__file__).with_name("fleet.py")


@pytest.fixture(scope="module")
def postgres():
    psycopg = pytest.importorskip("psycopg")
    assert psycopg
    specification = importlib.util.spec_from_file_location("same_document_server", SERVER)
    module = sys.modules[specification.name] = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    programs = module.find_programs()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: apt-get install postgresql")
    server = module.Server(programs)
    try:
        server.start()
        yield server
    finally:
        server.remove()


@pytest.fixture(
    params=[
        *("segments", "postgres", "processes", "processes and segments", "processes and postgres"),
        *("shards and postgres", "shards of postgres and postgres"),
    ]
)
def place(request, shop, install):
    """The last lines of the pipeline file, and the ledger."""
    executor = PROCESSES if request.param.startswith("processes") else ""
    if request.param.endswith("postgres"):
        server = request.getfixturevalue("postgres")
        places = [{"postgres/ledger": {"url": server.url, "schema": server.schema()}} for _ in range(2)]
        if request.param.startswith("shards"):
            install("dicast-fleet", "1.0", {"dicast": {"fleet": "dicast_fleet"}}, dicast_fleet=FLEET.read_text())
            options = {"shard": 2, "segments": json.dumps(places[1]) if "shards of" in request.param else "parts"}
            executor = f"executor: {json.dumps({'fleet/shards': options})}\n"
        return executor, json.dumps(places[0])
    return executor, json.dumps({"segments/ledger": {"path": "logs"}}) if "segments" in request.param else "other.db"


@pytest.mark.slow
@pytest.mark.parametrize(("text", "data", "sessions"), CASES)
def test_executor_and_ledger_change_no_figure(shop, place, text, data, sessions):
    if isinstance(data[0], str):
        shop.rows(*data, sessions=sessions)
    else:
        shop.write("data.jsonl", data)
    executor, ledger = place
    whole = shop.run(text, "--ledger", "whole.db")
    other = shop.run(text + executor, "--ledger", ledger)
    assert (settled(other.json), other.code) == (settled(whole.json), whole.code)
    assert shop.dicast("ledger", "verify", "--ledger", ledger, "--json").json["ok"]
    assert exported(shop, ledger) == exported(shop, "whole.db")


def exported(shop, ledger):
    """Return the judged contents, scores and failures of the ledger, in the order of their types and subjects."""
    done = shop.dicast("ledger", "export", "--ledger", ledger)
    events = [json.loads(line) for line in done.out.splitlines()]
    return sorted(
        json.dumps([event["type"], event["subject_kind"], event["subject_id"], kept(event["payload"])], sort_keys=True)
        for event in events
        if event["subject_id"] is not None
    )


def kept(value):
    """Return *value* without ids and durations, at any depth."""
    if isinstance(value, dict):
        return {name: kept(part) for name, part in value.items() if not name.endswith(CHANGING)}
    return [kept(part) for part in value] if isinstance(value, list) else value
