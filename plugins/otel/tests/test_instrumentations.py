"""Spans of real instrumentations of OpenAI's client, which asks an endpoint on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from dicast.testing import run_pipeline

pytestmark = pytest.mark.slow  # importing the client takes seconds

PROGRAM = """
import sys
from importlib import import_module

import openai
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

url, package = sys.argv[1:]
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter()))
import_module(package).OpenAIInstrumentor().instrument(tracer_provider=provider)
client = openai.OpenAI(base_url=url, api_key="none", max_retries=0)
messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Weather in Rome?"}]
with provider.get_tracer("shop").start_as_current_span("loop"):
    first = client.chat.completions.create(model="m-1", messages=messages)
    messages.append(first.choices[0].message.model_dump(exclude_none=True))
    messages.append({"role": "tool", "tool_call_id": "c1", "content": "22C"})
    client.chat.completions.create(model="m-1", messages=messages)
    try:
        client.chat.completions.create(model="refused", messages=messages[:2])
    except openai.BadRequestError:
        pass
provider.shutdown()
"""
CALL = {"id": "c1", "type": "function", "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}


class Endpoint(BaseHTTPRequestHandler):
    """A model that calls a tool, then answers; the model ``refused`` fails."""

    def do_POST(self):
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        is_answer = request["messages"][-1]["role"] == "tool"
        message = {"role": "assistant", "content": "It is 22C." if is_answer else None}
        message |= {} if is_answer else {"tool_calls": [CALL]}
        choice = {"index": 0, "message": message, "finish_reason": "stop" if is_answer else "tool_calls"}
        usage = {"prompt_tokens": 5, "completion_tokens": 3, "total_tokens": 8}
        reply = {
            "id": "r",
            "object": "chat.completion",
            "created": 1,
            "model": "m-1-may",
            "choices": [choice],
            "usage": usage,
        }
        status = 400 if request["model"] == "refused" else 200
        data = json.dumps({"error": {"message": "no such model"}} if status == 400 else reply).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_):
        pass


@pytest.fixture
def url():
    """Yield the address of the endpoint."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Endpoint) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()


@pytest.mark.parametrize("package", ["openinference.instrumentation.openai", "opentelemetry.instrumentation.openai"])
def test_the_conversation_of_a_program_is_read_from_its_spans(package, read, tmp_path, url):
    command = [sys.executable, "-c", PROGRAM, url, package]
    environment = os.environ | {"PYTHONWARNINGS": "ignore"}  # a deprecation in a package of others may not be an error
    done = subprocess.run(command, capture_output=True, check=True, timeout=120, env=environment)
    path = tmp_path / "spans.json"
    path.write_bytes(done.stdout)
    reading = read(path)
    assert reading.only == [
        "system: Be brief.",
        "user: Weather in Rome?",
        'call weather {"city": "Rome"}',
        "result 22C",
        "assistant: It is 22C.",
    ]
    calls = reading.payloads("llm.call_completed")
    assert [call["usage"]["input_tokens"] for call in calls if "usage" in call] == [5, 5]
    assert {call["model"] for call in calls if "usage" in call} == {"m-1-may"}
    assert not reading.counts.marked


def test_the_conversation_of_an_agent_of_the_agents_sdk_is_read_from_its_spans_and_its_items(read, run_with, url):
    packages = ("openai-agents==0.24.0", "openinference-instrumentation-openai-agents==2.6.0", "opentelemetry-sdk")
    module = "agents, openinference.instrumentation.openai_agents"
    folder = run_with(Path(__file__).parent / "run_agents.py", url, packages=packages, module=module)
    lines = ["user: Weather in Rome?", 'call weather {"city": "Rome"}', "result 22C", "assistant: It is 22C."]
    reading = read(folder / "spans.json")
    assert reading.only == ["system: Be brief.", *lines]
    assert {payload["model"] for payload in reading.payloads("llm.call_completed")} == {"m-1"}
    source = json.dumps({"traces/messages": {"path": str(folder / "items.json")}})
    run = run_pipeline(f"source: {source}\njudges: [heuristic/turn]\n")
    contents = run.document["read"]["contents"]
    assert [contents[name] for name in ("messages", "calls", "results", "unmatched_results")] == [4, 1, 1, 0]
    assert run.document["coverage"] == 1.0
