"""``anthropic/batch`` against a server with message batches."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from datetime import UTC, datetime
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import dicast

COST = Decimal("0.0014")
SEAL = re.compile(r"^seal: ([0-9a-f]{12})\s*$", re.MULTILINE)


class MessageBatchServer:
    """Batches that end after *seconds*; *outcome* of an item's params is None for a verdict, or a result."""

    def __init__(self):
        self.batches, self.seconds, self.steps, self.billed = {}, 0.2, [], 0
        self.outcome = lambda params: None
        self.hook = lambda step: None
        handler = type("Bound", (_Handler,), {"owner": self})
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.http.daemon_threads = True
        threading.Thread(target=self.http.serve_forever, args=(0.05,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.http.server_port}"

    def create(self, requests):
        id_ = f"msgbatch_{len(self.batches) + 1}"
        now = datetime.now(UTC).isoformat()
        self.batches[id_] = {"id": id_, "requests": requests, "due": time.monotonic() + self.seconds, "created_at": now}
        return id_

    def batch_json(self, id_):
        batch = self.batches[id_]
        if "results" not in batch and time.monotonic() >= batch["due"]:
            batch["results"] = [self.result(request) for request in reversed(batch["requests"])]
        is_ended = "results" in batch
        counts = {"succeeded" if is_ended else "processing": len(batch["requests"])}
        status = "ended" if is_ended else "in_progress"
        return {"id": id_, "processing_status": status, "request_counts": counts, "created_at": batch["created_at"]}

    def result(self, request):
        outcome = self.outcome(request["params"])
        if outcome is None:
            self.billed += 1
            content = request["params"]["messages"][-1]["content"]
            text = "".join(block["text"] for block in content)
            verdict = {"seal": SEAL.findall(text)[-1], "score": 0.5, "confidence": 0.9, "rationale": "x"}
            usage = {"input_tokens": 1000, "output_tokens": 200}
            blocks = [{"type": "text", "text": json.dumps(verdict)}]
            message = {"model": "m", "content": blocks, "stop_reason": "end_turn", "usage": usage}
            outcome = {"type": "succeeded", "message": message}
        return {"custom_id": request["custom_id"], "result": outcome}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def reply(self, data, status=200):
        data = data if isinstance(data, bytes) else json.dumps(data).encode()
        with suppress(ConnectionError):
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    def route(self):
        server = self.owner
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        parts = self.path.partition("?")[0].strip("/").split("/")[3:]
        match self.command, parts:
            case "POST", []:
                server.steps.append("create")
                id_ = server.create(json.loads(data)["requests"])
                if server.hook("created") == "drop":
                    self.close_connection = True
                    return
                self.reply(server.batch_json(id_))
            case "GET", []:
                server.steps.append("list")
                self.reply({"data": [server.batch_json(id_) for id_ in [*server.batches][::-1]], "has_more": False})
            case "GET", [id_]:
                server.steps.append("poll")
                self.reply(server.batch_json(id_))
            case "GET", [id_, "results"]:
                self.reply(b"".join(json.dumps(item).encode() + b"\n" for item in server.batches[id_]["results"]))
            case "POST", [id_, "cancel"]:
                server.steps.append("cancel")
                server.batches[id_]["due"] = 0
                self.reply(server.batch_json(id_))

    do_GET = do_POST = route  # noqa: N815


@pytest.fixture
def server():
    running = MessageBatchServer()
    yield running
    running.http.shutdown()
    running.http.server_close()


@pytest.fixture
def file(tmp_path, monkeypatch, server):
    monkeypatch.chdir(tmp_path)
    data = ({"id": f"r{number}", "input": f"q{number}", "output": f"a{number}"} for number in range(5))
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in data))
    model = {"model": "m", "base_url": server.url, "poll": 0.05, "price": {"input_per_mtok": 1, "output_per_mtok": 2}}
    pipeline = {
        "source": {"rows/jsonl": {"path": "rows.jsonl"}},
        "judges": [{"llm/judge": {"model": {"anthropic/batch": model}}}],
    }
    (tmp_path / "p.json").write_text(json.dumps(pipeline))
    return tmp_path / "p.json"


def sizes(server):
    return [len(batch["requests"]) for batch in server.batches.values()]


def test_the_calls_of_a_run_are_one_batch(file, server):
    done = dicast.run(file)
    assert (done.scored, sizes(server), Decimal(done.cost["usd"])) == (5, [5], 5 * COST)


def test_items_that_fail_are_sent_again_once(file, server):
    failed = iter([{"type": "expired"}, {"type": "errored", "error": {"error": {"message": "overloaded"}}}])
    server.outcome = lambda params: next(failed, None)
    done = dicast.run(file)
    assert (done.scored, sizes(server), Decimal(done.cost["usd"])) == (5, [5, 2], 5 * COST)


def test_a_refused_parameter_is_left_out_of_the_next_batch(file, server):
    error = {
        "type": "errored",
        "error": {"error": {"type": "invalid_request_error", "message": "temperature: not allowed"}},
    }
    server.outcome = lambda params: error if "temperature" in params else None
    done = dicast.run(file)
    assert (done.scored, sizes(server)) == (5, [5, 5])


def test_a_batch_that_was_not_confirmed_is_known_by_its_items(file, server):
    server.hook = lambda step: "drop"
    done = dicast.run(file)
    assert (done.scored, sizes(server), server.billed) == (5, [5], 5)


@pytest.mark.slow
def test_a_killed_run_is_taken_up(file, server):
    server.seconds = 1e9
    command = [sys.executable, "-m", "dicast", "run", "p.json", "--json"]
    process = subprocess.Popen(command, cwd=file.parent, stdout=subprocess.DEVNULL)
    ends = time.monotonic() + 100
    while "poll" not in server.steps and time.monotonic() < ends:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    server.batches["msgbatch_1"]["due"] = 0
    out = subprocess.run([*command, "--resume"], cwd=file.parent, capture_output=True, check=False).stdout
    done = json.loads(out)
    assert (done["scored"], sizes(server), Decimal(done["cost"]["usd"])) == (5, [5], 5 * COST)


def test_the_listed_price_is_halved(monkeypatch):
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-x")
    from dicast_anthropic.batch import Batch
    from dicast_anthropic.chat import Chat

    usage = dicast.Usage(1_000_000, 1_000_000)
    assert Batch("claude-haiku-4-5").cost(usage).amount == Chat("claude-haiku-4-5").cost(usage).amount / 2
