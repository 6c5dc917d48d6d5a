"""``anthropic/chat`` looks up only the host of the file."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, json, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = {"127.0.0.1", "::1", "localhost", None}
hosts, paths = set(), []


def record(event, arguments):
    if event in ("socket.getaddrinfo", "socket.gethostbyname") and arguments[0] not in HERE:
        hosts.add(str(arguments[0]))
    elif event == "socket.connect" and isinstance(arguments[1], tuple) and arguments[1][0] not in HERE:
        hosts.add(str(arguments[1][0]))


sys.addaudithook(record)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        paths.append(self.path)
        content = [{"type": "text", "text": "hi"}]
        body = json.dumps({"content": content, "usage": {"input_tokens": 9, "output_tokens": 1}}).encode()
        self.send_response(302 if len(paths) == 2 else 200)
        self.send_header("Location", "http://elsewhere.invalid/")
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
from dicast import ChatRequest, DicastError, Media, Message, RunContext, Secret, estimate
from dicast_anthropic import Chat


async def ask(options):
    base = f"http://127.0.0.1:{server.server_port}"
    chat = Chat("claude-opus-5", base, Secret("sk-ant-abcdefgh12345678"), retries=0, timeout=5, **options)
    image = Media("image", "image/png", "[image]", url="https://pictures.invalid/a.png")
    request = ChatRequest((Message("system", "judge", cache=True), Message.of_parts("user", ["hi", image])))
    estimate(chat, request)
    async with chat.open(RunContext("r", "test", Path())) as live:
        return [await live.complete(request), await live.complete(request)]


print(asyncio.run(ask({"price": "free"})), file=sys.stderr)
Chat("claude-opus-5", api_key=Secret("sk-ant-abcdefgh12345678"))  # its listed price is looked up
print(json.dumps([sorted(hosts), paths]))
"""


@pytest.mark.slow
def test_no_host_is_looked_up_that_the_file_does_not_name():
    environment = {
        "PATH": "/usr/bin:/bin",
        "HTTPS_PROXY": "http://proxy.invalid:8080",
        "HTTP_PROXY": "http://proxy.invalid:8080",
        "ANTHROPIC_BASE_URL": "http://other.invalid",
        "ANTHROPIC_API_KEY": "sk-ant-of-the-environment",
    }
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, check=False)
    assert json.loads(done.stdout.strip().splitlines()[-1]) == [[], ["/v1/messages", "/v1/messages"]], done.stderr[
        -2000:
    ]
    assert "redirects are not followed" in done.stderr
    assert "of-the-environment" not in done.stderr
