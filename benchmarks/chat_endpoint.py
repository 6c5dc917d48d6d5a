"""A lean chat endpoint on loopback: ``python chat_endpoint.py --latency 0.1 [--record FILE]`` prints its URL and serves.

It speaks as much HTTP as clients of the OpenAI chat format need and takes some 50 µs CPU a call, so that 500 calls at once
measure who asks. Every answer is a verdict with the seal of the prompt, or a bare score where there is none. ``GET /stats`` gives ``{count, peak, first, last,
cpu}``: calls, the most at once, when the first came in and when the last was answered (seconds since the epoch), and the
endpoint's own CPU seconds in between. With ``--record`` the body of each call is a line in FILE, written as it comes in.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import time
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
SEAL = re.compile(rb"seal: ([0-9a-f]{12})\\n")
NOTE = re.compile(rb"[Nn]ote (\d+)")
MODEL = re.compile(rb'"model": ?"([^"]*)"')
TOKENS_IN, TOKENS_OUT = 500, 50

VERDICT = '{"seal": "SEAL", "score": 0.5, "confidence": 0.9, "rationale": "It does what was asked."}'
RATING = '{"score": 0.5}'


def completion(content: str) -> bytes:
    return json.dumps(
        {
            "id": "chat-1",
            "object": "chat.completion",
            "created": 1,
            "model": "MODEL",
            "choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}],
            "usage": {
                "prompt_tokens": TOKENS_IN,
                "completion_tokens": TOKENS_OUT,
                "total_tokens": TOKENS_IN + TOKENS_OUT,
            },
        }
    ).encode()


SEALED, UNSEALED = completion(VERDICT), completion(RATING)
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"


class Endpoint:
    """State shared by all connections."""

    def __init__(self, latency: float, record: BinaryIO | None, *, vary: bool) -> None:
        self.latency, self.record, self.vary = latency, record, vary
        self.count = self.active = self.peak = 0
        self.first = self.last = self._cpu_first = self._cpu_last = 0.0

    def begin(self, body: bytes) -> None:
        if not self.count:
            self.first, self._cpu_first = time.time(), time.process_time()
        self.count += 1
        self.active += 1
        self.peak = max(self.peak, self.active)
        if self.record is not None:
            self.record.write(body.replace(b"\n", b" ") + b"\n")

    def end(self) -> None:
        self.active -= 1
        self.last, self._cpu_last = time.time(), time.process_time()

    def stats(self) -> bytes:
        told = {name: getattr(self, name) for name in ("count", "peak", "first", "last")}
        return json.dumps({**told, "cpu": self._cpu_last - self._cpu_first}).encode()


class Connection(asyncio.Protocol):
    """One connection, with one request at a time."""

    def __init__(self, endpoint: Endpoint, loop: asyncio.AbstractEventLoop) -> None:
        self._endpoint, self._loop = endpoint, loop
        self._data = bytearray()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self._data += data
        head = self._data.find(b"\r\n\r\n")
        if head < 0:
            return
        length = LENGTH.search(self._data, 0, head)
        end = head + 4 + (int(length[1]) if length else 0)
        if len(self._data) < end:
            return
        begin, body = bytes(self._data[:10]), bytes(self._data[head + 4 : end])
        del self._data[:end]
        if begin.startswith(b"GET"):
            self._transport.write(HEAD % ((stats := self._endpoint.stats()) and len(stats), stats))
            return
        self._endpoint.begin(body)
        self._loop.call_later(self._endpoint.latency, self._answer, body)

    def _answer(self, body: bytes) -> None:
        self._endpoint.end()
        if self._transport.is_closing():
            return
        seal, model = SEAL.search(body), MODEL.search(body)
        told = SEALED.replace(b"SEAL", seal[1]) if seal else UNSEALED
        told = told.replace(b"MODEL", model[1] if model else b"")
        if self._endpoint.vary and (note := NOTE.search(body)):
            told = told.replace(b"0.5", b"0.%d" % (int(note[1]) % 10))
        self._transport.write(HEAD % (len(told), told))


async def serve(latency: float, record: BinaryIO | None, *, vary: bool) -> None:
    loop, endpoint = asyncio.get_running_loop(), Endpoint(latency, record, vary=vary)
    server = await loop.create_server(lambda: Connection(endpoint, loop), "127.0.0.1", 0, backlog=2048)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.1, help="seconds before each answer")
    parser.add_argument("--record", type=Path, metavar="FILE", help="append the bodies of the calls to this file")
    parser.add_argument("--vary", action="store_true", help="score a note by its number's last digit")
    given = parser.parse_args()
    record = given.record.open("ab", buffering=0) if given.record else None
    with suppress(KeyboardInterrupt):
        asyncio.run(serve(given.latency, record, vary=given.vary))


if __name__ == "__main__":
    main()
