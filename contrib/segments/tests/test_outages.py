"""A server of S3 that loses connections: requests are repeated, and events are recorded once."""

from __future__ import annotations

import http.client
import http.server
import os
import socket
import struct
import threading
import time
import urllib.parse
import uuid

import pytest

from dicast import LedgerError, LedgerRefused, Query
from dicast_segments import Ledger, log, stores
from dicast_segments.stores import BucketStore

MOMENTS = ("before", "unanswered", "after", "head", "body")
"""The connection ends before the request is read, before or after it is carried out, or within the head or the body of the answer."""

RESET = struct.pack("ii", 1, 0)


class Handler(http.server.BaseHTTPRequestHandler):
    """Passes requests on to the server of S3. The first of the server's *moments* is the point at which the connection of a request ends."""

    protocol_version = "HTTP/1.1"

    def pass_on(self):
        self.server.requests.append((self.command, self.path))
        moment = self.server.moments.pop(0) if self.server.moments else None
        if moment == "before":
            return self.reset()
        if moment == "forbidden":
            return self.send_error(403)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if moment == "unanswered":
            return self.reset()
        connection = http.client.HTTPConnection(*self.server.target)
        connection.request(self.command, self.path, body, dict(self.headers))
        response = connection.getresponse()
        data = response.read()
        connection.close()
        if moment == "after":
            return self.reset()
        lines = [f"{name}: {value}" for name, value in response.getheaders() if name not in ("Server", "Connection")]
        head = "\r\n".join((f"HTTP/1.1 {response.status} {response.reason}", *lines, "", "")).encode()
        size = {"head": 20, "body": len(head) + len(data) // 2}.get(moment)
        self.wfile.write((head + data)[:size])
        if size is not None:
            self.wfile.flush()
            time.sleep(0.02)  # the client reads this part before the reset
            self.reset()
        return None

    do_GET = do_PUT = do_HEAD = do_POST = do_DELETE = pass_on

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.connection.close()
        self.rfile.close()
        self.close_connection = True

    def finish(self):
        if not self.rfile.closed:
            super().finish()

    def log_message(self, *_):
        pass


@pytest.fixture
def front(bucket, monkeypatch):
    """Return a server before the server of S3, with a list of ``moments`` for the next requests."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        target = urllib.parse.urlsplit(os.environ["AWS_ENDPOINT_URL"])
        server.target, server.moments, server.requests = (target.hostname, target.port), [], []
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def store(front, bucket):
    """Return a store with two objects, behind the server that loses connections."""
    store = BucketStore(f"{bucket}/{uuid.uuid4().hex}")
    for name in ("log/a", "log/b"):
        store.put(name, b"first" * 100)
    return store


OPERATIONS = {
    "put": lambda store: store.put("log/c", b"new"),
    "replace": lambda store: store.replace("log/a", b"new"),
    "get": lambda store: store.get("log/a") == b"first" * 100,
    "exists": lambda store: store.exists("log/a"),
    "names": lambda store: store.names("log") == ["a", "b"],
    "delete": lambda store: store.delete(["log/a", "log/b"]),
}
RESULTS = {"put": ["a", "b", "c"], "delete": []}


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_request_whose_connection_is_lost_is_repeated(front, store, operation, moment, count):
    front.moments += [moment] * count
    result = OPERATIONS[operation](store)
    front.moments.clear()
    is_put_twice = operation == "put" and moment in ("after", "head")
    assert result == (False if is_put_twice else None if operation in ("replace", "delete") else True)
    assert store.names("log") == RESULTS.get(operation, ["a", "b"])
    assert store.get("log/c") == (b"new" if operation == "put" else None)


def test_a_request_is_repeated_for_an_outage_and_then_named(front, store, monkeypatch):
    front.moments += ["unanswered"] * 9  # the client repeats no deletion
    store.delete(["log/a"])
    assert (store.names("log"), front.moments) == (["b"], [])
    monkeypatch.setattr(stores, "_OUTAGE_SECONDS", 0.0)
    front.moments += ["unanswered"] * 2
    with pytest.raises(LedgerError, match=r"log/b cannot be read or written: .*Check the bucket"):
        store.delete(["log/b"])


def test_a_server_that_has_not_answered_is_not_waited_for(front, bucket):
    front.moments += ["body"] * 100
    began = time.monotonic()
    with pytest.raises(LedgerError, match="names cannot be read or written"):
        BucketStore(f"{bucket}/never").names("names")
    assert (len(front.moments), time.monotonic() - began < 10) == (98, True)


def test_an_answer_about_the_object_is_not_repeated(front, store):
    front.moments += ["forbidden"]
    front.requests.clear()
    with pytest.raises(LedgerError, match="log/a cannot be read or written"):
        store.delete(["log/a"])
    assert len(front.requests) == 1


@pytest.mark.parametrize("moment", MOMENTS)
def test_events_are_recorded_once_though_every_second_connection_is_lost(
    front, bucket, opened, make_subject, monkeypatch, moment
):
    monkeypatch.setattr(log, "SEALED_COMMITS", 3)
    front.moments += [None, moment] * 1_000
    ledger = Ledger(url=f"{bucket}/{uuid.uuid4().hex}")
    events = [make_subject(number) for number in range(7)]
    with opened(ledger) as live:
        for subject in events:
            live.append(subject)
            assert len(live.reservations(None)) == 0
    assert {"GET", "PUT", "POST"} <= {command for command, _ in front.requests}
    front.moments.clear()
    with opened(ledger, create=False) as live:
        entries = [*live.read(Query())]
        assert [entry.event.id for entry in entries] == [event.id for subject in events for event in subject]
        assert [entry.seq for entry in entries] == [*range(1, 22)]
        assert live.verify().ok
    assert live._log.store.names("log") == []


def test_a_ledger_is_refused_if_the_server_cuts_every_answer(front, bucket, opened, monkeypatch):
    monkeypatch.setattr(stores, "_OUTAGE_SECONDS", 0.1)
    front.moments += ["body"] * 1_000
    with (
        pytest.raises(LedgerRefused, match=r"s3://dicast/cuts: .*Check the bucket"),
        opened(Ledger(url=f"{bucket}/cuts")),
    ):
        pass
