"""A batch API in the OpenAI format on loopback: files, batches and their listing. For tests, and as a script for the docs.

A batch that is created twice is billed twice: nothing here is idempotent. ``billed`` counts each item that was processed.

    server = BatchServer(seconds=0.2).start()      # a batch is ended after so many seconds
    server.outcome = lambda asked: 500             # the status of an item, "missing", or None for a verdict
    server.hook = lambda step, detail: None        # called before each step, and again with "after STEP"
"""

from __future__ import annotations

import argparse
import itertools
import json
import random
import re
import threading
import time
from collections import Counter
from contextlib import suppress
from email.parser import BytesParser
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

SEAL = re.compile(r"^seal: ([0-9a-f]{12})\s*$", re.MULTILINE)


class BatchServer:
    """The server, in a thread of its own."""

    def __init__(self, seconds: float = 0.2, port: int = 0, prefix: str = "/v1") -> None:
        self.seconds, self.prefix = seconds, prefix
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, dict[str, Any]] = {}
        self.billed: Counter[str] = Counter()
        self.outcome = lambda asked: None
        self.reply = lambda asked: verdict(asked, 0.5)
        self.hook = lambda step, detail: None
        self.steps: list[str] = []
        self.expires = False
        self.refuses: str | None = None
        self.chats = 0
        self._numbers = itertools.count(1)
        self._lock = threading.RLock()
        server = self
        self._http = ThreadingHTTPServer(("127.0.0.1", port), type("Bound", (_Handler,), {"server_": server}))
        self._http.daemon_threads = True

    @property
    def url(self) -> str:
        """The ``base_url`` to ask."""
        return f"http://127.0.0.1:{self._http.server_port}{self.prefix}"

    def start(self) -> BatchServer:
        """Serve from now on."""
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def stop(self) -> None:
        """Serve no more."""
        self._http.shutdown()
        self._http.server_close()

    def note(self, step: str, detail: Any = None) -> Any:
        """Note a step, and return what the hook returns."""
        self.steps.append(step)
        return self.hook(step, detail)

    def add_file(self, data: bytes) -> str:
        """Keep *data* as a file."""
        with self._lock:
            id_ = f"file-{next(self._numbers)}"
            self.files[id_] = data
            return id_

    def create(self, body: dict[str, Any]) -> dict[str, Any]:
        """Create a batch; its items are processed when it is looked at after its time."""
        with self._lock:
            id_ = f"batch_{next(self._numbers)}"
            batch = self.batches[id_] = {
                "id": id_,
                "object": "batch",
                "endpoint": body["endpoint"],
                "input_file_id": body["input_file_id"],
                "completion_window": body["completion_window"],
                "status": "in_progress",
                "created_at": int(time.time()),
                "metadata": body.get("metadata"),
                "output_file_id": None,
                "error_file_id": None,
                "errors": None,
                "_due": time.monotonic() + self.seconds,
            }
            return batch

    def shown(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Return *batch* as it is now."""
        with self._lock:
            if batch["status"] in ("in_progress", "cancelling") and time.monotonic() >= batch["_due"]:
                self._end(batch)
            return {name: value for name, value in batch.items() if not name.startswith("_")}

    def cancel(self, batch: dict[str, Any]) -> None:
        """Cancel *batch*: half of its items are processed by then."""
        with self._lock:
            if batch["status"] == "in_progress":
                batch |= {"status": "cancelling", "_due": time.monotonic() + 0.1, "_cancelled": True}

    def _end(self, batch: dict[str, Any]) -> None:
        lines = [json.loads(line) for line in self.files[batch["input_file_id"]].splitlines() if line]
        ids = [line["custom_id"] for line in lines]
        if self.refuses is not None:
            batch |= {"status": "failed", "errors": {"data": [{"message": self.refuses, "line": None}]}}
            return
        if len(set(ids)) < len(ids):
            batch |= {"status": "failed", "errors": {"data": [{"message": "custom_id is not unique", "line": 1}]}}
            return
        outputs, errors = [], []
        done = len(lines) // 2 if self.expires or batch.get("_cancelled") else len(lines)
        for number, line in enumerate(lines):
            outcome = self.outcome(line) if number < done else "batch_expired"
            if outcome is None:
                self.billed[_text(line["body"])] += 1
                response = {"status_code": 200, "request_id": "r", "body": self.reply(line["body"])}
                outputs.append({"id": "o", "custom_id": line["custom_id"], "response": response, "error": None})
            elif isinstance(outcome, int | tuple):
                status, message = outcome if isinstance(outcome, tuple) else (outcome, "set to fail")
                body = {"error": {"message": message, "code": status}}
                response = {"status_code": status, "request_id": "r", "body": body}
                errors.append({"id": "o", "custom_id": line["custom_id"], "response": response, "error": None})
            elif outcome != "missing":
                error = {"code": outcome, "message": "This request was not executed."}
                errors.append({"id": "o", "custom_id": line["custom_id"], "response": None, "error": error})
        random.shuffle(outputs)
        batch["status"] = "cancelled" if batch.get("_cancelled") else "expired" if self.expires else "completed"
        for name, found in (("output_file_id", outputs), ("error_file_id", errors)):
            if found:
                batch[name] = self.add_file("".join(json.dumps(one) + "\n" for one in found).encode())


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_: BatchServer

    def log_message(self, *args: object) -> None:
        pass

    def _send(self, body: Any, status: int = 200) -> None:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        with suppress(ConnectionError):  # the process that asked was killed
            self.end_headers()
            self.wfile.write(data)

    def _route(self) -> None:
        server = self.server_
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        path, _, query = self.path.removeprefix(server.prefix).partition("?")
        parts = path.strip("/").split("/")
        match self.command, parts:
            case "POST", ["files"]:
                server.note("upload")
                head = f"Content-Type: {self.headers['Content-Type']}\r\n\r\n".encode()
                form = BytesParser(policy=default).parsebytes(head + data)
                (file,) = [
                    part for part in form.iter_parts() if part.get_param("name", header="content-disposition") == "file"
                ]
                id_ = server.add_file(file.get_payload(decode=True))
                server.note("after upload")
                self._send({"id": id_, "object": "file", "purpose": "batch"})
            case "GET", ["files", id_, "content"]:
                server.note("download")
                self._send(server.files[id_])
                server.note("after download")
            case "POST", ["batches"]:
                if server.note("create") == "drop":
                    self.close_connection = True
                    return
                batch = server.create(json.loads(data))
                told = server.hook("created", batch)
                if told in ("break", "drop"):
                    self.close_connection = True
                    return
                if told is not None:
                    self._send({"error": {"message": "set to fail"}}, told)
                    return
                server.note("after create")
                self._send(server.shown(batch))
            case "GET", ["batches"]:
                server.note("list")
                given = dict(pair.split("=") for pair in query.split("&") if pair)
                newest = [*server.batches.values()][::-1]
                ids = [one["id"] for one in newest]
                first = ids.index(given["after"]) + 1 if "after" in given else 0
                page = newest[first : first + int(given.get("limit", 20))]
                more = first + len(page) < len(newest)
                self._send({"object": "list", "data": [server.shown(one) for one in page], "has_more": more})
            case "GET", ["batches", id_]:
                if (told := server.note("poll")) is not None and told != "drop":
                    self._send({"error": {"message": "set to fail"}}, told)
                    return
                self._send(server.shown(server.batches[id_]))
            case "POST", ["batches", id_, "cancel"]:
                server.note("cancel")
                server.cancel(server.batches[id_])
                self._send(server.shown(server.batches[id_]))
            case "POST", ["chat", "completions"]:
                server.chats += 1
                self._send(server.reply(json.loads(data)))
            case _:
                self._send({"error": {"message": "no such path"}}, 404)

    do_GET = do_POST = _route  # noqa: N815


def _text(body: Any) -> str:
    """Return the text of the last message, without its media."""
    content = body["messages"][-1]["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def verdict(body: dict[str, Any], score: float) -> dict[str, Any]:
    """Return the completion that judges with *score*."""
    seal = (SEAL.findall(_text(body)) or [""])[-1]
    text = json.dumps({"seal": seal, "score": score, "confidence": 0.9, "rationale": "As asked."})
    return {
        "id": "c",
        "object": "chat.completion",
        "model": body["model"],
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 1000, "completion_tokens": 200, "total_tokens": 1200},
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=1.0)
    given = parser.parse_args()
    running = BatchServer(given.seconds, given.port).start()
    print(running.url, flush=True)
    threading.Event().wait()
