"""An OpenAI-compatible chat endpoint on loopback with scripted answers: for tests, and as a script for benchmarks.

    def test_it(chat_server):                                       # the fixture of the conftest.py beside pyproject.toml
        chat_server.script(429, chat_server.error(503, retry_after=1), "hello")    # one answer a request, in order …
        chat_server.answer = lambda asked: chat_server.sealed(score=0.8)           # … then this one, or a fixed answer
        chat_server.latency = 0.1
        ask(chat_server.url)
        assert chat_server.count == 3 and chat_server.requests[0].body["model"] == "m"

An answer is an :class:`Answer`, a text (the message's content), a number (an error with that status), or a function of the
:class:`Asked` that gives one of these. ``$SEAL`` in a text becomes the seal of the prompt. Without a word the server gives
a verdict, ``sealed(score=0.5, confidence=0.9)``.

    python tests/chat_server.py --latency 0.1          # prints its URL; GET /stats gives {count, peak, seconds}
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any, Literal

import attrs
from aiohttp import web

SEAL = re.compile(r"^seal: ([0-9a-f]{12})\s*$", re.MULTILINE)
USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
LIMIT = 64 * 2**20


@attrs.frozen
class Asked:
    """A request as it came in: header names in lower case, *time* by the monotonic clock."""

    number: int
    path: str
    headers: Mapping[str, str]
    body: Any
    time: float

    @property
    def prompt(self) -> str:
        """The last user message."""
        content = [message["content"] for message in self.body["messages"] if message["role"] == "user"][-1]
        return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)

    @property
    def system(self) -> str | None:
        """The system message."""
        found = [message["content"] for message in self.body["messages"] if message["role"] == "system"]
        return None if not found else found[0] if isinstance(found[0], str) else found[0][0]["text"]

    @property
    def seal(self) -> str:
        """The word in the prompt's last line ``seal: WORD``; empty without one."""
        return (SEAL.findall(self.prompt) or [""])[-1]


@attrs.frozen
class Answer:
    """What the server does with one request.

    :param content: the message's content; *message* has further keys of it, *finish_reason*, *usage*, *model* and
        *logprobs* (pairs of token and log probability) are the completion's.
    :param body: in place of a completion: bytes as they are, anything else as JSON.
    :param delay: seconds before the answer, in place of the server's latency.
    :param fault: ``hang`` never answers, ``drop`` ends the connection, ``cut`` ends it in the middle of the body.
    """

    content: Any = ""
    status: int = 200
    headers: Mapping[str, str] = attrs.field(factory=dict)
    message: Mapping[str, Any] = attrs.field(factory=dict)
    finish_reason: str | None = "stop"
    usage: Mapping[str, Any] | None = attrs.field(factory=USAGE.copy)
    model: str | None = None
    logprobs: tuple[tuple[str, float], ...] | None = None
    body: Any = None
    delay: float | None = None
    fault: Literal["hang", "drop", "cut"] | None = None


Scripted = Answer | str | int | Callable[[Asked], Any]


class ChatServer:
    """The server, in a thread of its own. *requests*, *count* and *peak* (most at once) say what came in.

    With *gathers* no request is answered before so many have been there at once.
    """

    Answer = Answer

    def __init__(self, latency: float = 0.0, port: int = 0) -> None:
        self.latency, self.port = latency, port
        self.answer: Scripted = lambda asked: self.sealed(score=0.5, confidence=0.9)
        self.keep, self.gathers = True, 0
        self.requests: list[Asked] = []
        self.count = self.peak = self._active = 0
        self._script: deque[Scripted] = deque()
        self._started = threading.Event()
        self._gathered = asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    @property
    def url(self) -> str:
        """The ``base_url`` to ask."""
        return f"http://127.0.0.1:{self.port}/v1"

    def script(self, *answers: Scripted) -> None:
        """Give these, one a request, before ``answer``."""
        self._script.extend(answers)

    @staticmethod
    def reply(content: Any, **more: Any) -> Answer:
        """A completion with this content."""
        return Answer(content, **more)

    @staticmethod
    def sealed(**fields: Any) -> Answer:
        """A completion whose content is the JSON object *fields* with the prompt's seal and a rationale."""
        return Answer(json.dumps({"seal": "$SEAL", "rationale": "It does what was asked.", **fields}))

    @staticmethod
    def error(status: int, message: str = "set to fail", retry_after: object = None, **headers: str) -> Answer:
        """An error in the shape of the OpenAI API. *retry_after*: seconds, or the header's text."""
        given = {} if retry_after is None else {"Retry-After": str(retry_after)}
        return Answer(
            status=status,
            headers={**given, **{name.replace("_", "-"): value for name, value in headers.items()}},
            body={"error": {"message": message, "type": "scripted", "code": status}},
        )

    @staticmethod
    def raw(body: Any, content_type: str = "application/json", status: int = 200) -> Answer:
        """Bytes, or JSON data, in place of a completion."""
        return Answer(status=status, body=body, headers={"Content-Type": content_type})

    @staticmethod
    def http_date(seconds: float) -> str:
        """The moment in so many seconds, as headers write it."""
        return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)

    def refusing(self, *formats: str) -> Callable[[Asked], Scripted]:
        """An answer that refuses these types of ``response_format`` with a 400, and else gives the present ``answer``."""
        other = self.answer

        def answer(asked: Asked) -> Scripted:
            kind = asked.body.get("response_format", {}).get("type")
            refused = self.error(400, f"'response_format.type' {kind!r} is not supported by this model")
            return refused if kind in formats else other

        return answer

    def start(self) -> ChatServer:
        """Serve; returns once the port is open."""
        self._thread.start()
        if not self._started.wait(100):
            raise RuntimeError("the chat server did not start within 100 s")
        return self

    def stop(self) -> None:
        """Close the port and every connection."""
        self._loop.call_soon_threadsafe(self._stopping.set)
        self._thread.join(10)

    def join(self) -> None:
        """Serve until interrupted."""
        self._thread.join()

    async def _serve(self) -> None:
        self._loop, self._stopping = asyncio.get_running_loop(), asyncio.Event()
        app = web.Application(client_max_size=LIMIT)
        app.router.add_get("/stats", self._stats)
        app.router.add_post("/{path:.*}", self._handle)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        listening = socket.create_server(("127.0.0.1", self.port), backlog=2048)
        await web.SockSite(runner, listening, backlog=2048).start()
        self.port = runner.addresses[0][1]
        self._started.set()
        await self._stopping.wait()
        self._loop.remove_reader(listening)  # a connection that a closing server takes is left open
        await _turns(10)
        server = runner.server
        assert server is not None  # it is set up
        transports = [protocol.transport for protocol in server.connections]
        await runner.cleanup()
        await _turns(10)  # what was closed is let go by the loop, which must not end before
        if any(transport.get_write_buffer_size() for transport in transports if transport is not None):
            await asyncio.sleep(0.05)
        for transport in filter(None, transports):
            transport.abort()  # also one that still has something to write, to a client that reads no more
        await _turns(10)

    async def _stats(self, request: web.Request) -> web.Response:
        seconds = self.requests[-1].time - self.requests[0].time if self.requests else 0.0
        return web.json_response({"count": self.count, "peak": self.peak, "seconds": seconds})

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        self.count += 1
        headers = {name.lower(): value for name, value in request.headers.items()}
        asked = Asked(self.count, request.path, headers, json.loads(await request.read()), time.monotonic())
        if self.keep or not self.requests:
            self.requests.append(asked)
        else:
            self.requests[1:] = [asked]
        self._active += 1
        self.peak = max(self.peak, self._active)
        if self.peak >= self.gathers:
            self._gathered.set()
        try:
            await self._gathered.wait()
            return await self._give(request, asked, self._decide(asked))
        finally:
            self._active -= 1

    def _decide(self, asked: Asked) -> Answer:
        told: Any = self._script.popleft() if self._script else self.answer
        while callable(told):
            told = told(asked)
        if isinstance(told, int):
            return self.error(told)
        return Answer(told) if isinstance(told, str) else told

    async def _give(self, request: web.Request, asked: Asked, answer: Answer) -> web.StreamResponse:
        if answer.fault == "hang":
            await self._stopping.wait()
        await asyncio.sleep(self.latency if answer.delay is None else answer.delay)
        body = answer.body if answer.body is not None else _completion(asked, answer)
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Content-Type": "application/json", **answer.headers}
        if answer.fault == "cut":
            cut = web.StreamResponse(status=answer.status, headers={**headers, "Content-Length": str(len(data))})
            await cut.prepare(request)
            await cut.write(data[: len(data) // 2])
        if answer.fault and request.transport is not None:
            request.transport.close() if answer.fault == "cut" else request.transport.abort()
            return cut if answer.fault == "cut" else web.Response()
        return web.Response(status=answer.status, headers=headers, body=data)


async def _turns(number: int) -> None:
    """Let the loop do what it has begun."""
    for _ in range(number):
        await asyncio.sleep(0)


def _completion(asked: Asked, answer: Answer) -> dict[str, Any]:
    content = answer.content.replace("$SEAL", asked.seal) if isinstance(answer.content, str) else answer.content
    message = {"role": "assistant", "content": content, **answer.message}
    choice: dict[str, Any] = {"index": 0, "message": message, "finish_reason": answer.finish_reason}
    if answer.logprobs is not None:
        choice["logprobs"] = {"content": [{"token": token, "logprob": value} for token, value in answer.logprobs]}
    model = answer.model or asked.body.get("model")
    told = {"id": f"chat-{asked.number}", "object": "chat.completion", "model": model, "choices": [choice]}
    return told if answer.usage is None else {**told, "usage": dict(answer.usage)}


def main() -> None:
    """Serve verdicts until interrupted."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--latency", type=float, default=0.0, help="seconds before each answer")
    parser.add_argument("--score", type=float, default=0.5)
    given = parser.parse_args()
    server = ChatServer(given.latency, given.port)
    server.answer = server.sealed(score=given.score, confidence=0.9)
    server.keep = False
    server.start()
    print(server.url, flush=True)
    server.join()


if __name__ == "__main__":
    main()
