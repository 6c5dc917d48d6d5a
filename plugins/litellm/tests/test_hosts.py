"""litellm asks the host that ``api_base`` names and looks up no other one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from dicast import ConfigError, Secret
from dicast_litellm import Chat

PROVIDERS = (
    "openai/m", "anthropic/claude-haiku-4-5", "azure/deployment", "openrouter/a/b", "ollama/m", "mistral/m", "groq/m",
    "gemini/m", "bedrock/anthropic.claude-3-haiku", "vertex_ai/m", "together_ai/m", "deepseek/m", "xai/m", "fireworks_ai/m",
)  # fmt: skip
PROGRAM = """
import asyncio, json, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

HERE = {"127.0.0.1", "::1", "localhost", None}
hosts = set()


def record(event, arguments):
    if event in ("socket.getaddrinfo", "socket.gethostbyname") and arguments[0] not in HERE:
        hosts.add(str(arguments[0]))
    elif event == "socket.connect" and isinstance(arguments[1], tuple) and arguments[1][0] not in HERE:
        hosts.add(str(arguments[1][0]))


sys.addaudithook(record)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        message = {"role": "assistant", "content": "hi"}
        choices = [{"index": 0, "finish_reason": "stop", "message": message}]
        body = json.dumps({"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": choices}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_GET = do_POST

    def log_message(self, *arguments):
        pass


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
from dicast import ChatRequest, DicastError, Message, RunContext, Secret
from dicast_litellm import Chat


async def ask(model):
    base = f"http://127.0.0.1:{server.server_port}"
    chat = Chat(model, Secret("sk-abcdefgh12345678"), base, price="free", retries=0, timeout=5)
    try:
        async with chat.open(RunContext("r", "test", Path())) as live:
            schema = {"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"]}
            await live.complete(ChatRequest((Message("system", "judge", cache=True), Message("user", "hi")), schema=schema))
    except DicastError:
        pass  # only the hosts that were looked up count


for model in sys.argv[1:]:
    asyncio.run(ask(model))
print(json.dumps(sorted(hosts)))
"""


@pytest.mark.slow
def test_no_provider_looks_up_a_host_that_the_file_does_not_name():
    environment = {"PATH": "/usr/bin:/bin", "HTTPS_PROXY": "http://proxy.invalid:8080"}
    command = [sys.executable, "-c", PROGRAM, *PROVIDERS]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=240, check=False)
    assert done.stdout.strip().splitlines()[-1:] == ["[]"], done.stdout + done.stderr[-2000:]


@pytest.mark.parametrize("model", ["huggingface/together/deepseek", "replicate/meta/llama"])
def test_a_provider_that_asks_other_hosts_too_needs_them_allowed(model):
    options = {"api_key": Secret("sk-abcdefgh12345678"), "api_base": "http://127.0.0.1:9", "price": "free"}
    with pytest.raises(ConfigError, match=r"add allow_hosts: \[.*huggingface\.co\]"):
        Chat(model, **options)
    assert Chat(model, **options, allow_hosts=("huggingface.co", "api.replicate.com"))
    assert Chat(model, price="free")  # without api_base the provider's own hosts are meant
