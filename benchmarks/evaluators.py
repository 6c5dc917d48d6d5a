"""Cost of evaluators: a worker, a command and a bare subprocess loop, the METRIC reader and the server.

``python benchmarks/evaluators.py`` prints a line for each figure.
"""

from __future__ import annotations

import asyncio
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import aiohttp

import dicast
from dicast.toolkit.metric_lines import MetricLines
from dicast_evaluator.command import Command
from dicast_evaluator.worker import Worker

WORKER = """
import sys
from json import loads
for line in sys.stdin:
    print('{"id": %d, "score": 0.5}' % loads(line)["id"], flush=True)
"""
SCRIPT = "import json, sys\nprint(json.dumps({'score': float(len(json.load(sys.stdin)['candidate']) > 1)}))\n"
AT_ONCE = 50
COMMANDS = 200
EVALUATIONS = 20_000
REQUESTS, CLIENTS = 10_000, 200
MEGABYTES = 400


async def timed(count: int, at_once: int, ask: Callable[[int], Awaitable[object]]) -> float:
    """Seconds that *count* calls of *ask* take, *at_once* of them under way."""
    turns = asyncio.Semaphore(at_once)

    async def one(number: int) -> None:
        async with turns:
            await ask(number)

    began = time.perf_counter()
    await asyncio.gather(*map(one, range(count)))
    return time.perf_counter() - began


async def scored(live: Worker | Command, number: int) -> None:
    """Ask about one subject; raise if the answer is no score."""
    answer = await live.score(subject(number))
    if isinstance(answer, dicast.Failure):
        raise SystemExit(f"it failed: {answer.message}")


def subject(number: int) -> dicast.Subject:
    return dicast.Subject("row", str(number), output=f"candidate {number}")


async def worker(folder: Path) -> float:
    """Evaluations a second of one trivial worker."""
    (folder / "worker.py").write_text(WORKER)
    options = Worker([sys.executable, str(folder / "worker.py")])
    async with options.open(dicast.RunContext("r", "r", folder, concurrency=AT_ONCE)) as live:
        await timed(1000, AT_ONCE, lambda number: scored(live, number))
        return EVALUATIONS / await timed(EVALUATIONS, AT_ONCE, lambda number: scored(live, number))


def run(folder: Path) -> float:
    """Rows a second that a whole ``dicast run`` judges by the same worker, start and ledger included."""
    (folder / "worker.py").write_text(WORKER)
    (folder / "rows.jsonl").write_text(
        "".join(f'{{"id": "{n}", "output": "candidate {n}"}}\n' for n in range(EVALUATIONS))
    )
    (folder / "run.yaml").write_text(
        "source: {rows/jsonl: {path: rows.jsonl}}\n"
        f"executor: {{dicast/async: {{concurrency: {AT_ONCE}}}}}\n"
        f"metrics: [{{evaluator/worker: {{command: {json.dumps([sys.executable, 'worker.py'])}}}}}]\n"
    )
    began = time.perf_counter()
    subprocess.run([sys.executable, "-m", "dicast", "run", "run.yaml"], cwd=folder, check=True, capture_output=True)
    return EVALUATIONS / (time.perf_counter() - began)


def command(folder: Path) -> tuple[float, float]:
    """Seconds of *COMMANDS* evaluations by a command, by dicast's metric and by a bare loop of ``subprocess.run``, two at once."""
    (folder / "evaluate.py").write_text(SCRIPT)
    words = [sys.executable, str(folder / "evaluate.py")]

    async def ours() -> float:
        async with Command(words, preflight=False).open(dicast.RunContext("r", "r", folder)) as live:
            return await timed(COMMANDS, 2, lambda number: scored(live, number))

    def bare() -> float:
        def one(number: int) -> None:
            sent = json.dumps({"_protocol_version": 2, "candidate": f"candidate {number}"})
            json.loads(subprocess.run(words, input=sent, capture_output=True, text=True, check=True).stdout)

        began = time.perf_counter()
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(one, range(COMMANDS)))
        return time.perf_counter() - began

    pairs = [(asyncio.run(ours()), bare()) for _ in range(3)]
    return statistics.median(one for one, _ in pairs), statistics.median(ours / other for ours, other in pairs)


def metric_lines() -> float:
    """Megabytes a second of a stream in which one line in a hundred is a METRIC."""
    piece = (
        b"epoch 12: loss 0.1234, still training the model on the data that was given\n" * 99 + b"METRIC loss=0.1234\n"
    ) * 100
    lines, count = MetricLines(), MEGABYTES * 1_000_000 // len(piece)
    began = time.perf_counter()
    for _ in range(count):
        lines.feed(piece)
    assert lines.result().metrics == {"loss": 0.1234}
    return count * len(piece) / 1e6 / (time.perf_counter() - began)


async def requests(url: str) -> tuple[int, list[float]]:
    """How many of the requests were answered with a score, and how long each took."""
    seconds: list[float] = []
    right = 0
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as session:

        async def one(number: int) -> None:
            nonlocal right
            began = time.perf_counter()
            async with session.post(url, json={"candidate": f"yes {number}"}) as response:
                right += (await response.json())["score"] == 1.0
            seconds.append(time.perf_counter() - began)

        await timed(REQUESTS, CLIENTS, one)
    return right, sorted(seconds)


def serve(folder: Path) -> tuple[int, float, float]:
    """Requests with a score, the median in ms, and the 99th percentile in medians."""
    (folder / "served.yaml").write_text(
        "metrics: [{proxy/keywords: {required: ['yes']}}]\nledger: {ledger/sqlite: {path: l.db}}\n"
    )
    words = [sys.executable, "-m", "dicast", "evaluator", "serve", "served.yaml", "--port", "0"]
    server = subprocess.Popen(words, cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        assert server.stderr is not None
        url = re.search(r"http://\S+", server.stderr.readline())[0]
        scored, seconds = asyncio.run(requests(url))
    finally:
        server.terminate()
        server.wait()
    middle = statistics.median(seconds)
    return scored, middle * 1000, seconds[int(0.99 * len(seconds))] / middle


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"evaluators.worker: {asyncio.run(worker(folder)):,.0f} evaluations/s (target >= 5,000)")
        print(f"evaluators.run: {run(folder):,.0f} rows/s of a whole run with that worker")
        seconds, ratio = command(folder)
        print(
            f"evaluators.command: {seconds / COMMANDS * 1000:.1f} ms each, {ratio:.3f} x a bare loop (target <= 1.15)"
        )
        print(f"evaluators.metric_lines: {metric_lines():,.0f} MB/s (target >= 100)")
        scored, middle, tail = serve(folder)
        print(
            f"evaluators.serve: {scored:,} of {REQUESTS:,}, median {middle:.1f} ms, p99 {tail:.2f} x the median (target <= 5)"
        )


if __name__ == "__main__":
    main()
