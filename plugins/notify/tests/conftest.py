"""A receiver of messages on loopback."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import attrs
import pytest

PATH = "/services/T0SECRET/B1SECRET/verysecretword"


@attrs.define
class Receiver:
    """Receiver of messages. *answers* are statuses for the next requests, then 200; each answer has the *headers* and the text *complaint*."""

    origin: str = ""
    messages: list[dict[str, object]] = attrs.field(factory=list)
    requests: list[dict[str, str]] = attrs.field(factory=list)
    answers: list[int] = attrs.field(factory=list)
    headers: dict[str, str] = attrs.field(factory=dict)
    complaint: str = "ok"
    released: threading.Event = attrs.field(factory=threading.Event)
    """A request that is answered by status 0 waits for it, and gets no answer."""

    @property
    def url(self) -> str:
        return self.origin + PATH

    def take(self, handler: BaseHTTPRequestHandler) -> None:
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        status = self.answers.pop(0) if self.answers else 200
        self.requests.append({name.lower(): value for name, value in handler.headers.items()} | {"path": handler.path})
        if status == 0:
            self.released.wait(200)
            return
        if 200 <= status < 300:
            self.messages.append(json.loads(body))
        handler.send_response(status)
        for name, value in self.headers.items():
            handler.send_header(name, value)
        text = self.complaint.encode()
        handler.send_header("Content-Length", str(len(text)))
        handler.end_headers()
        handler.wfile.write(text)


@pytest.fixture
def receiver(loopback) -> Iterator[Receiver]:
    receiver = Receiver()
    with loopback(receiver.take) as receiver.origin:
        yield receiver
        receiver.released.set()
