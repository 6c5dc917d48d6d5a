"""Ask a hostile endpoint by one of dicast's clients, a question for each attack, and print what became of it.

    python hostile_clients.py CLIENT URL KEY ATTACK...

An attack is the first part of a path at URL, or an address of its own.

A line of JSON for each: the outcome (``taken``, or the failure's kind), all that was said, the seconds, and the MiB by which the
process's peak of memory grew.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from dicast import ChatRequest, Event, Failure, Message, RunContext, Secret, Subject

SECONDS = 2.0
RUN = RunContext("r1", "test", Path())
STARTED = Event(
    "0" * 26, "run.started", "2026-01-02T03:04:05.678Z", "r1", {"task": "t", "fingerprints": {}}, None, None, None, None
)
ENDED = Event(
    "1" * 26, "run.completed", "2026-01-02T03:04:06.678Z", "r1", {"subjects": 0, "failed": 0}, None, None, None, None
)


async def openai(url: str, key: str) -> object:
    from dicast_openai.chat import Chat

    return await _complete(
        Chat(base_url=f"{url}/v1", model="m", api_key=Secret(key), price="free", retries=0, timeout=SECONDS)
    )


async def litellm(url: str, key: str) -> object:
    from dicast_litellm import Chat

    given: dict[str, Any] = {"price": "free", "retries": 0, "timeout": SECONDS}
    return await _complete(Chat("openai/m", Secret(key), f"{url}/v1", **given))


async def _complete(chat: Any) -> object:
    async with chat.open(RUN) as live:
        return await live.complete(ChatRequest((Message("user", "the judged text"),)))


async def task(url: str, key: str) -> object:
    from dicast_task.http import Http

    async with Http(url, {"Authorization": Secret(f"Bearer {key}")}, retries=0).open(RUN) as live:
        async with asyncio.timeout(SECONDS):  # the slot's
            return await live.produce(Subject("row", "1", input="the judged text"))


async def evaluator(url: str, key: str) -> object:
    from dicast_evaluator.http import Http

    given: dict[str, Any] = {"timeout": SECONDS, "preflight": False}
    async with Http(url, headers={"Authorization": Secret(f"Bearer {key}")}, **given).open(RUN) as live:
        return await live.score(Subject("row", "1", output="the judged text"))


async def otel(url: str, key: str) -> object:
    from dicast_telemetry.otel import Otel

    sink = Otel(f"{url}/v1/traces", {"Authorization": Secret(f"Bearer {key}")}, timeout=SECONDS)
    async with sink.open(RUN) as live:
        return await live.write([STARTED, ENDED]), await live.close()


async def azure(url: str, key: str) -> object:
    from dicast_azure import Monitor

    parts = f"InstrumentationKey=7c1f4f5e-3f0a-4d59-9d4a-0123456789ab;IngestionEndpoint={url};Key={key}"
    async with Monitor(Secret(parts), timeout=SECONDS).open(RUN) as live:
        return await live.write([STARTED, ENDED]), live.close()


async def main(client: Callable[[str, str], Awaitable[object]], url: str, key: str, attacks: list[str]) -> None:
    await _asked(client, f"{url}/fine", key)  # all is imported now
    for attack in attacks:
        Path("/proc/self/clear_refs").write_text("5")  # noqa: ASYNC240 - the peak is what is there now
        before, began = _peak(), time.monotonic()
        outcome, said = await _asked(client, attack if "://" in attack else f"{url}/{attack}", key)
        seconds, grown = time.monotonic() - began, _peak() - before
        print(json.dumps({"attack": attack, "outcome": outcome, "said": said, "seconds": seconds, "grown": grown}))


async def _asked(client: Callable[[str, str], Awaitable[object]], url: str, key: str) -> tuple[str, str]:
    try:
        found = await client(url, key)
    except Exception as error:  # whatever it is, it is printed
        return type(error).__name__, f"{error!r} {error}"
    return found.kind if isinstance(found, Failure) else "taken", repr(found)


def _peak() -> float:
    found = re.search(r"VmHWM:\s+(\d+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) / 1024


if __name__ == "__main__":
    asyncio.run(main(globals()[sys.argv[1]], sys.argv[2], sys.argv[3], sys.argv[4:]))
