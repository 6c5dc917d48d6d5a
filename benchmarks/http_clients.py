"""HTTP clients against one endpoint on loopback that answers after 100 ms: ``uv run python benchmarks/http_clients.py``.

Every candidate runs in a process of its own, with one client, no limit on connections, a prompt of 2 KB and each reply parsed
by orjson. One that is not installed is left out with a word; docs/adr/0102 has the decision.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib.util
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from typing import Any

SERVER = Path(__file__).resolve().parents[1] / "tests" / "chat_server.py"
LATENCY = 0.1
LOADS = ((500, 50), (5_000, 500))
HEADERS = {"Content-Type": "application/json", "Authorization": "Bearer none"}
Post = Callable[[str, bytes], Awaitable[bytes]]


async def httpx2(stack: AsyncExitStack) -> Post:
    import httpx2

    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    client = await stack.enter_async_context(
        httpx2.AsyncClient(headers=HEADERS, limits=limits, timeout=60, trust_env=False)
    )

    async def post(url: str, body: bytes) -> bytes:
        return (await client.post(url, content=body)).content

    return post


async def httpx_aiohttp(stack: AsyncExitStack) -> Post:
    import httpx
    from httpx_aiohttp import AiohttpTransport

    # It takes a limit of None to be the default of 100.
    transport = AiohttpTransport(limits=httpx.Limits(max_connections=10_000))
    client = await stack.enter_async_context(
        httpx.AsyncClient(headers=HEADERS, transport=transport, timeout=60, trust_env=False)
    )

    async def post(url: str, body: bytes) -> bytes:
        return (await client.post(url, content=body)).content

    return post


async def aiohttp(stack: AsyncExitStack) -> Post:
    from aiohttp import ClientSession, ClientTimeout, TCPConnector

    session = await stack.enter_async_context(
        ClientSession(headers=HEADERS, connector=TCPConnector(limit=0), timeout=ClientTimeout(60))
    )

    async def post(url: str, body: bytes) -> bytes:
        async with session.post(url, data=body) as response:
            return await response.read()

    return post


CLIENTS: dict[str, Callable[[AsyncExitStack], Awaitable[Post]]] = {
    "aiohttp": aiohttp,
    "httpx_aiohttp": httpx_aiohttp,
    "httpx2": httpx2,
}


async def ask(client: str, url: str, calls: int, at_once: int) -> None:
    """Print the seconds on the clock, and the CPU milliseconds a call, of the calls alone."""
    import orjson

    async with AsyncExitStack() as stack:
        post = await CLIENTS[client](stack)
        numbers = iter(range(calls))

        async def work() -> None:
            for number in numbers:
                messages = [{"role": "user", "content": f"{number} " + "x" * 2_000}]
                body = orjson.dumps({"model": "m", "temperature": 0, "messages": messages})
                assert orjson.loads(await post(url, body))["choices"][0]["message"]["content"]

        wall, cpu = time.perf_counter(), time.process_time()
        await asyncio.gather(*(work() for _ in range(at_once)))
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    print(wall, cpu / calls * 1e3)


def measure(client: str, calls: int, at_once: int) -> tuple[float, float, int]:
    """Seconds, CPU milliseconds a call, and how many calls the server saw at once."""
    import urllib.request

    serve: list[Any] = [sys.executable, SERVER, "--latency", str(LATENCY)]
    with subprocess.Popen(serve, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        try:
            url = server.stdout.readline().strip()
            given = ["--client", client, "--url", f"{url}/chat/completions", str(calls), str(at_once)]
            done = subprocess.run([sys.executable, __file__, *given], check=True, capture_output=True, text=True)
            with urllib.request.urlopen(url.removesuffix("/v1") + "/stats") as stats:
                peak = int(stats.read().split(b'"peak": ')[1].split(b",")[0])
        finally:
            server.terminate()
    wall, cpu = map(float, done.stdout.split())
    return wall, cpu, peak


def main() -> None:
    """Print a line for each candidate and load, medians of the repeats."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--client", help=argparse.SUPPRESS)
    parser.add_argument("--url", help=argparse.SUPPRESS)
    parser.add_argument("load", nargs="*", type=int, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.client:
        asyncio.run(ask(given.client, given.url, *given.load))
        return
    installed = [client for client in CLIENTS if importlib.util.find_spec(client)]
    for client in CLIENTS.keys() - installed:
        print(f"{client}: not installed, left out")
    for calls, at_once in LOADS:
        found: dict[str, list[tuple[float, float, int]]] = {client: [] for client in installed}
        for _ in range(given.repeats):
            for client in installed:
                found[client].append(measure(client, calls, at_once))
        ideal = calls / at_once * LATENCY
        for client, runs in found.items():
            wall, cpu = median(run[0] for run in runs), median(run[1] for run in runs)
            print(
                f"{calls} calls, {at_once} at once, {client}: {wall:.2f} s ({wall / ideal:.2f} x ideal), "
                f"{cpu:.2f} ms CPU a call, {max(run[2] for run in runs)} seen at once",
                flush=True,
            )


if __name__ == "__main__":
    main()
