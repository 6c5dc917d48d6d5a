"""A service on loopback with scripted answers."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


class Service:
    """A service whose answers are set with ``script(...)``, one a request: a body, a status, or (status, headers, body). *bodies* has the requests."""

    def __init__(self):
        self.bodies, self.headers, self.answers = [], [], []
        service = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                service.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
                service.headers.append({name.lower(): value for name, value in self.headers.items()})
                status, headers, body = service.next()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(body)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))
        self._thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_port}/answer"

    def script(self, *answers):
        self.answers = list(answers)

    def next(self):
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, int):
            answer = (answer, {}, b"set to fail")
        if isinstance(answer, str | bytes):
            answer = (200, {}, answer)
        status, headers, body = answer
        return status, headers, body.encode() if isinstance(body, str) else body

    def stop(self):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.fixture
def service():
    service_ = Service()
    yield service_
    service_.stop()
