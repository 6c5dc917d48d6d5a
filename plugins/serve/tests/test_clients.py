"""Five hundred clients at once, while another process writes."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections import Counter

import aiohttp
import pytest

from . import oracle
from .serving import DICAST, READING, Server

pytestmark = pytest.mark.slow

CLIENTS, VIEWERS, ROWS = 500, 50, 2000
PATHS = (
    *("/runs", "/judges", "/analytics/backlog", "/runs/last/rows?limit=5", "/analytics/cost?include_eval=true"),
    *("/analytics/quality?subject_kind=row&group_by=none", "/session", "/ledgers", "/runs/last"),
)


@pytest.fixture
def place(tmp_path):
    """A folder with a small run behind it, and one of many rows before it, whose gate fails."""
    for name, count in (("small", 5), ("large", ROWS)):
        rows = [
            {"id": f"{name}-{number}", "output": "Canberra." if number % 2 else "Sydney."} for number in range(count)
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        pipeline = {
            "source": {"rows/jsonl": {"path": f"{name}.jsonl"}},
            "metrics": [{"check/contains": {"value": "Canberra"}}],
            "gate": {"min_score": 0.9},
            "ledger": {"ledger/sqlite": {"path": "ledger.db"}},
        }
        (tmp_path / f"{name}.yaml").write_text(json.dumps(pipeline))
    subprocess.run([DICAST, "run", "small.yaml"], cwd=tmp_path, check=False, capture_output=True)
    return tmp_path


async def ask(session, number, until):
    """The statuses of answers, asked for one after the other until the run has ended; three at the least."""
    statuses = []
    while len(statuses) < 3 or not until.is_set():
        async with session.get(PATHS[(number + len(statuses)) % len(PATHS)]) as answer:
            json.loads(await answer.read())
            statuses.append(answer.status)
    return statuses


async def look_on(session, count, ready):
    """The ids of all verdicts of the run as they come. Who is let go for being slow comes back where it was, as a browser does."""
    seen, last = [], {}
    while len(seen) < count:
        async with session.get("/events", headers=last) as stream:
            async for line in stream.content:
                name, _, value = line.rstrip().decode().partition(": ")
                if name == "id":
                    last = {"Last-Event-ID": value}
                    ready.release()
                elif name == "data" and '"subject_id":"large-' in value:
                    seen.append(json.loads(value)["subject_id"])
                    if len(seen) == count:
                        break
    return seen


async def crowd(server, folder):
    headers = {"authorization": f"Bearer {READING}"}
    connector, timeout = aiohttp.TCPConnector(limit=0, force_close=True), aiohttp.ClientTimeout(total=300)
    end, ready = asyncio.Event(), asyncio.Semaphore(0)
    async with aiohttp.ClientSession(server.address, headers=headers, connector=connector, timeout=timeout) as session:
        viewers = [asyncio.create_task(look_on(session, ROWS, ready)) for _ in range(VIEWERS)]
        for _ in range(VIEWERS):
            await ready.acquire()
        clients = [asyncio.create_task(ask(session, number, end)) for number in range(CLIENTS)]
        run = await asyncio.create_subprocess_exec(
            DICAST, "run", "large.yaml", "--json", cwd=folder, stdout=-1, stderr=-1
        )
        printed, errors = await run.communicate()
        end.set()
        return run.returncode, printed, errors, await asyncio.gather(*clients), await asyncio.gather(*viewers)


def test_five_hundred_clients_ask_while_a_run_writes(place):
    server = Server(place)
    try:
        code, printed, errors, statuses, seen = asyncio.run(crowd(server, place))
        last = server.get("/runs/last/rows?limit=1")
    finally:
        server.end()
    assert code == 1, errors
    document = json.loads(printed)
    assert (document["subjects"], document["scored"], document["gate"]["passed"]) == (ROWS, ROWS, False)
    assert Counter(status for client_statuses in statuses for status in client_statuses).keys() == {200}
    assert all(len(client_statuses) >= 3 for client_statuses in statuses)
    long_ids = [row["subject_id"] for row in oracle.of(oracle.rows_of(place / "ledger.db"), "eval.completed")]
    long_ids = [id for id in long_ids if id.startswith("large-")]
    assert (len(set(long_ids)), last["total"]) == (ROWS, str(ROWS))
    assert seen == [long_ids] * VIEWERS
    assert "Traceback" not in server.log.read_text()
