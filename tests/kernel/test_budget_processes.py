"""Real processes that share one ledger never spend more than its caps together."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from decimal import Decimal

import pytest

from dicast import Query
from dicast_ledger import Sqlite

PLUGIN = """
import asyncio

@metric(tier="proxy")
def cheap(subject: Subject) -> Score:
    return Score(1.0)

@metric(tier="truth", cost="0.01 usd")
async def costly(subject: Subject, *, price: str = "0.01", seconds: float = 0.01) -> Score:
    await asyncio.sleep(seconds * (1 + int(subject.id) % 3))
    return Score(0.5, cost=Cost(price))

@hookimpl
def dicast_metrics():
    return [cheap, costly]
"""


@pytest.fixture
def start(tmp_path, plugin):
    """Start ``dicast run`` on a pipeline of its own and the ledger that all share."""
    plugin("shop", PLUGIN)
    environ = {**os.environ, "PYTHONPATH": str(tmp_path / "site")}
    started = []

    def starter(name, *, rows=25, budget, price="0.01", metrics=("shop/cheap",)):
        data = [{"id": str(n), "output": "x", "session_id": f"{n % 2}"} for n in range(rows)]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, data)))
        text = {
            "source": {"rows/jsonl": {"path": f"{name}.jsonl"}},
            "metrics": [*metrics, {"shop/costly": {"price": price}}],
            "budget": budget,
            "ledger": {"ledger/sqlite": {"path": "shared.db", "busy_timeout": 60}},
            "executor": {"dicast/async": {"concurrency": 4}},
        }
        (tmp_path / f"{name}.yaml").write_text(json.dumps(text))
        command = [sys.executable, "-m", "dicast", "run", f"{name}.yaml", "--json"]
        process = subprocess.Popen(command, cwd=tmp_path, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        started.append(process)
        return process

    yield starter
    for process in started:
        process.kill()
        process.communicate()


def finished(processes):
    done = []
    for process in processes:
        out, err = process.communicate(timeout=120)
        assert out, err.decode()
        done.append((process.returncode, json.loads(out)))
    return done


def entries(path):
    async def read():
        async with Sqlite(path).open(create=False) as ledger:
            assert ledger.verify().ok
            return list(
                ledger.read(Query(types=tuple(f"spend.{end}" for end in ("reserved", "settled", "released", "lost"))))
            )

    return asyncio.run(read())


def check_caps(path, caps):
    """Recount the settled and open amounts after each row; return the largest amount of each kind of scope, and the sum."""
    counted, most, settled = {}, dict.fromkeys(caps, Decimal(0)), Decimal(0)
    for entry in entries(path):
        body = entry.event.payload
        if entry.event.type == "spend.reserved":
            counted[body["reservation_id"]] = body["scopes"], Decimal(body["amount"])
        else:
            assert entry.event.type == "spend.settled"
            counted[body["reservation_id"]] = counted[body["reservation_id"]][0], Decimal(body["amount"])
            settled += Decimal(body["amount"])
        sums = {}
        for scopes, amount in counted.values():
            for scope in scopes:
                sums[scope] = sums.get(scope, Decimal(0)) + amount
        for scope, amount in sums.items():
            kind = scope.partition(":")[0]
            if kind in caps:
                assert amount <= Decimal(caps[kind]), f"{scope} holds {amount} at row {entry.seq}"
                most[kind] = max(most[kind], amount)
    return most, settled


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 4])
def test_processes_together_keep_the_caps_and_use_them_up(tmp_path, start, count):
    caps = {"day": "0.20", "session": "0.12", "run": "0.15"}
    budget = {scope: f"{amount} usd" for scope, amount in caps.items()}
    done = finished([start(f"p{n}", budget=budget, price="0.007") for n in range(count)])
    most, settled = check_caps(tmp_path / "shared.db", caps)
    assert [code for code, _ in done] == [0] * count
    assert all(document["scored"] == 25 for _, document in done)
    assert sum(Decimal(document["cost"]["usd"]) for _, document in done) == settled
    assert Decimal("0.19") < most["day"] <= Decimal("0.20")
    truths = sum(document["score"]["by_tier"]["truth"] for _, document in done)
    assert truths * Decimal("0.007") == settled
    assert settled + Decimal("0.01") > Decimal("0.20")


def test_who_comes_too_late_is_throttled_and_says_so_with_its_exit_code(tmp_path, start):
    first = finished([start("first", rows=4, budget={"day": "0.03 usd"}, metrics=())])
    assert [(code, document["scored"]) for code, document in first] == [(3, 3)]
    second = finished([start("second", rows=2, budget={"day": "0.03 usd"}, metrics=())])
    ((code, document),) = second
    assert (code, document["failures"]) == (5, {"throttled_no_heuristic": 2})
    assert document["throttled"] == {"daily_cap": 2}
    check_caps(tmp_path / "shared.db", {"day": "0.03"})
