"""Runs of one file that differ in their executor and their ledger alone: the documents and the recorded events are equal."""

from __future__ import annotations

import importlib.util
import json
import re
import sys
from pathlib import Path

import pytest

from .conftest import settled
from .test_shards import CASES

SERVER = Path(__file__).parents[2] / "contrib" / "postgres" / "tests" / "server.py"
CHANGING = ("_id", "_ids", "_ms", "seconds", "lease_until")
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
        *("shards and postgres", "shards of postgres and postgres", "shards of segments and segments"),
    ]
)
def place(request, shop, install):
    """The last lines of the pipeline file, and the ledger."""
    executor = PROCESSES if request.param.startswith("processes") else ""
    if request.param.startswith("shards"):
        install("dicast-fleet", "1.0", {"dicast": {"fleet": "dicast_fleet"}}, dicast_fleet=FLEET.read_text())
    if request.param.endswith("postgres"):
        server = request.getfixturevalue("postgres")
        places = [{"postgres/ledger": {"url": server.url, "schema": server.schema()}} for _ in range(2)]
        if request.param.startswith("shards"):
            options = {"shard": 2, "segments": json.dumps(places[1]) if "shards of" in request.param else "parts"}
            executor = f"executor: {json.dumps({'fleet/shards': options})}\n"
        return executor, json.dumps(places[0])
    if request.param.startswith("shards"):
        parts = json.dumps({"segments/ledger": {"path": str(shop / "parts")}})
        executor = f"executor: {json.dumps({'fleet/shards': {'shard': 2, 'segments': parts}})}\n"
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
    assert whole.code in (0, 1, 3), whole.out
    assert not differences(kept(settled(other.json)), kept(settled(whole.json)))
    assert other.code == whole.code
    assert shop.dicast("ledger", "verify", "--ledger", ledger, "--json").json["ok"]
    assert not differences(exported(shop, ledger), exported(shop, "whole.db"))


COMPARED = """name: nightly
metrics: [fake/act: {}, proxy/length: {max: 4}]
aggregates: [stats/score_stats]
baseline: {run: last, compare: [stats/paired, stats/flips, stats/score_delta]}
gate: [{on: metrics, baseline: last, max_drop: 0.01}, {on: metrics, min_pass_rate: 0.1, bound: interval}]
"""


@pytest.mark.slow
@pytest.mark.parametrize("lower", [False, True])
def test_executor_and_ledger_change_no_comparison(shop, place, lower):
    executor, ledger = place
    documents = []
    for text, where in ((COMPARED, "whole.db"), (COMPARED + executor, ledger)):
        shop.rows(*(f"0.{number % 8 + 2}" for number in range(24)), sessions=12)
        first = shop.run(text, "--ledger", where)
        rows = [f"0.{max(1, number % 8 + 2 - number % 3 * lower)}" for number in range(24)]
        shop.rows(*rows[:-1], "raise", sessions=12)
        second = shop.run(text, "--ledger", where)
        documents.append([[kept(settled(done.json)), done.code] for done in (first, second)])
    assert not differences(*documents)
    assert documents[0][1][1] == lower
    assert documents[0][1][0]["comparison"] is not None


LIMITS = [
    pytest.param("metrics: [fake/paid]\nbudget: {run: 0.055 usd}\ngate: {min_coverage: 0.1}\n", id="cap"),
    pytest.param("metrics: [fake/paid]\nbudget: {day: 0.04 usd}\n", id="day"),
    pytest.param(
        "metrics: [fake/act: {as: mark}]\nearly_stop: [stats/threshold: {metric: scores.mark, threshold: 0.6, min_rows: 3}]\n",
        id="stop",
    ),
    pytest.param("judges: [fake/paid_judge: {as: dear}]\nbudget: {session: 0.02 usd}\n", id="session"),
]


@pytest.mark.slow
@pytest.mark.parametrize("text", LIMITS)
def test_executor_and_ledger_change_no_limit(shop, place, text):
    executor, ledger = place
    if "shards" in executor:
        pytest.skip("shards have shares of the caps, and no early stops")
    shop.rows(*(f"0.{number}" for number in range(10)), sessions=3)
    executor = executor.replace("workers: 2", "workers: 2, concurrency: 1")
    whole = shop.run(text + "executor: {dicast/async: {concurrency: 1}}\n", "--ledger", "whole.db")
    other = shop.run(text + (executor or "executor: {dicast/async: {concurrency: 1}}\n"), "--ledger", ledger)
    assert whole.code in (0, 3), whole.out
    assert whole.json["throttled"] or whole.json["stopped"]
    assert not differences(kept(settled(other.json)), kept(settled(whole.json)))
    assert other.code == whole.code
    assert not differences(exported(shop, ledger), exported(shop, "whole.db"))


def exported(shop, ledger):
    """Return the judged contents, scores and failures of the ledger, in the order of their types and subjects."""
    done = shop.dicast("ledger", "export", "--ledger", ledger)
    events = [json.loads(line) for line in done.out.splitlines()]
    return sorted(
        json.dumps([event["type"], event["subject_kind"], event["subject_id"], kept(event["payload"])], sort_keys=True)
        for event in events
        if event["subject_id"] is not None
    )


def differences(one, other, path=""):
    """Return the members of two documents that differ, as texts."""
    if isinstance(one, dict) and isinstance(other, dict):
        names = dict.fromkeys([*one, *other])
        return [text for name in names for text in differences(one.get(name), other.get(name), f"{path}.{name}")]
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = enumerate(zip(one, other, strict=True))
        return [text for at, pair in pairs for text in differences(*pair, f"{path}[{at}]")]
    return [] if one == other else [f"{path}: {one!r:.200} and {other!r:.200}"]


def kept(value):
    """Return *value* without ids and durations, at any depth, also in texts, which have the end of a run's id in parentheses."""
    if isinstance(value, dict):
        return {name: kept(part) for name, part in value.items() if not name.endswith(CHANGING)}
    if isinstance(value, str):
        return re.sub(r"01[0-9A-Z]{24}|\([0-9A-Z]{6}\)", "ID", value)
    return [kept(part) for part in value] if isinstance(value, list) else value
