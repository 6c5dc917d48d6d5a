"""The floor of ``judges``: ``python bare_loop.py CLIENT URL BODIES AT_ONCE`` posts the lines of the file BODIES.

It needs nothing of dicast's. Every reply is parsed; nothing is checked, retried, counted or stored.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

Ask = Callable[[bytes], Awaitable[str]]


async def httpx_aiohttp(stack: AsyncExitStack, url: str) -> Ask:
    """httpx over the transport of aiohttp."""
    import httpx
    import orjson
    from httpx_aiohttp import AiohttpTransport

    # It takes a limit of None to be the default of 100.
    transport = AiohttpTransport(limits=httpx.Limits(max_connections=10_000))
    client = await stack.enter_async_context(
        httpx.AsyncClient(
            headers={"Content-Type": "application/json"}, transport=transport, timeout=60, trust_env=False
        )
    )

    async def ask(body: bytes) -> str:
        response = await client.post(f"{url}/chat/completions", content=body)
        return str(orjson.loads(response.content)["choices"][0]["message"]["content"])

    return ask


async def litellm(stack: AsyncExitStack, url: str) -> Ask:
    """litellm as its users call it, at its fastest: without retries, callbacks and looking up prices on the network."""
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    from litellm import acompletion

    async def ask(body: bytes) -> str:
        asked: dict[str, Any] = json.loads(body)
        asked["model"] = f"openai/{asked['model']}"
        reply = await acompletion(**asked, api_base=url, api_key="none", num_retries=0, max_retries=0)
        return str(reply.choices[0].message.content)

    return ask


CLIENTS = {"httpx_aiohttp": httpx_aiohttp, "litellm": litellm}


async def ask_all(client: str, url: str, bodies: Iterable[bytes], at_once: int) -> int:
    async with AsyncExitStack() as stack:
        ask = await CLIENTS[client](stack, url)
        left: Iterator[bytes] = iter(bodies)
        done = 0

        async def work() -> None:
            nonlocal done
            for body in left:
                assert json.loads(await ask(body))["score"] == 0.5
                done += 1

        await asyncio.gather(*(work() for _ in range(at_once)))
    return done


def main(client: str, url: str, path: str, at_once: str) -> None:
    """Print how many calls were answered."""
    bodies = Path(path).read_bytes().splitlines()
    print(json.dumps({"calls": asyncio.run(ask_all(client, url, bodies, int(at_once)))}))


if __name__ == "__main__":
    main(*sys.argv[1:])
