"""Evaluators for tests: programs in a folder, and one behind HTTP on loopback."""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import dicast
from dicast.testing import run_pipeline


class Service:
    """HTTP evaluator. *answer* is a JSON value, bytes, (status, body), or a function of the payload; *payloads* and *headers* are the requests'."""

    def __init__(self):
        self.payloads, self.headers, self.answer = [], [], {"score": 0.5}
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                service.payloads.append(payload)
                service.headers.append(dict(self.headers))
                reply = service.answer(payload) if callable(service.answer) else service.answer
                status, body = reply if isinstance(reply, tuple) else (200, reply)
                data = body if isinstance(body, bytes) else json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *args):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_port}/"

    def stop(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def service():
    server = Service()
    yield server
    server.stop()


@pytest.fixture
def program(tmp_path):
    """Return ``program(code)``, which writes Python code and returns the command that runs it."""
    programs = []

    def write(code):
        path = tmp_path / f"program{len(programs)}.py"
        path.write_text("import json, os, sys, time\n" + code)
        programs.append(path)
        return [sys.executable, str(path)]

    return write


class Judged:
    """One run of one metric over rows: its *scores*, its *failures* as (kind, message), and its verdicts' *values*."""

    def __init__(self, finished):
        self.values, self.scores, self.failures = [], [], []
        for event in finished.events:
            if event.type == "eval.completed":
                self.values.append(event.payload["score"])
                self.scores += event.payload["scores"]
            if event.type == "eval.failed":
                self.failures.append((event.payload["failure_mode"], event.payload["error_message"].partition(": ")[2]))


@pytest.fixture
def judged():
    """Return ``judged(metric, *rows)``, which runs one metric over rows."""

    def run(metric, *rows, **sections):
        subjects = [dicast.Subject("row", str(number), **row) for number, row in enumerate(rows, 1)]
        return Judged(run_pipeline(json.dumps({"metrics": [metric], **sections}), subjects=subjects))

    return run
