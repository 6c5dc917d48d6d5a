"""Any process of this machine may connect to ``dicast watch --listen``: what it sends without the token costs nothing, and with it little."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

TOKEN = "the-token"
GOOD = {
    "type": "session.ended",
    "time": "2026-03-02T09:00:00Z",
    "session_id": "s1",
    "payload": {"disposition": "completed"},
}
MEMORY_MB = 250


@pytest.fixture(scope="module")
def watch(tmp_path_factory):
    """A watch over HTTP alone, as (process, port)."""
    folder = tmp_path_factory.mktemp("watch")
    (folder / "trace.jsonl").touch()
    (folder / "watch.yaml").write_text(
        "source: {traces/events: {path: trace.jsonl, subjects: [session]}}\njudges: [heuristic/session]\n"
        "ledger: {ledger/sqlite: {path: ledger.db}}\n"
    )
    with subprocess.Popen(
        [sys.executable, "-m", "dicast", "watch", "watch.yaml", "--listen", "0"],
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", "DICAST_WATCH_TOKEN": TOKEN},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        for line in process.stderr:
            if found := re.search(r"http://127\.0\.0\.1:(\d+)", line):
                yield process, int(found[1])
                break
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=200)
        assert "Traceback" not in errors
        assert len(errors) < 10_000


def post(port: int, body: bytes, token: str = TOKEN) -> tuple[int, dict]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=100)
    try:
        connection.request("POST", "/events", body, {"Authorization": f"Bearer {token}"})
        answer = connection.getresponse()
        return answer.status, json.loads(answer.read())
    finally:
        connection.close()


def still_serves(process, port: int) -> None:
    """The next client's events are taken, and the process has stayed small."""
    code, found = post(port, json.dumps(GOOD).encode())
    assert (code, found["errors"]) == (200, [])
    assert process.poll() is None
    status = Path(f"/proc/{process.pid}/status")
    if status.exists():
        assert int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1]) < MEMORY_MB * 1024


def connect(port: int, said: bytes) -> socket.socket:
    connection = socket.create_connection(("127.0.0.1", port), timeout=100)
    connection.sendall(said)
    return connection


def test_silent_connections_keep_nobody_waiting(watch):
    process, port = watch
    with ExitStack() as stack:
        for number in range(100):
            stack.enter_context(connect(port, b"POST /events HTTP/1.1\r\nHost: localhost\r\n" if number % 2 else b""))
        still_serves(process, port)


@pytest.mark.slow
def test_connections_beyond_a_number_close_the_oldest_and_have_no_thread(watch):
    process, port = watch
    with ExitStack() as stack:
        held = [stack.enter_context(connect(port, b"")) for _ in range(400)]
        assert held[0].recv(100) == b""  # closed in favor of a newer one
        status = Path(f"/proc/{process.pid}/status")
        if status.exists():
            assert int(re.search(r"Threads:\s+(\d+)", status.read_text())[1]) < 300
    still_serves(process, port)


@pytest.mark.parametrize(
    ("head", "code"),
    [
        (b"Content-Length: 10000000000\r\n", b"401"),
        (b"Transfer-Encoding: chunked\r\n", b"401"),
        (b"Authorization: Bearer the-token\r\nContent-Length: 10000000000\r\n", b"413"),
        (b"Authorization: Bearer the-token\r\nContent-Length: -1\r\n", b"400"),
        (b"Authorization: Bearer the-token\r\nTransfer-Encoding: chunked\r\n", b"411"),
        (b"".join(b"X-%d: y\r\n" % number for number in range(500)), b"431"),
        (b"X: " + b"y" * 100_000 + b"\r\n", b"431"),
    ],
    ids=["no token", "no token, chunked", "too much", "negative", "chunked", "many headers", "a long header"],
)
def test_a_body_without_end_is_answered_and_not_kept(watch, head, code):
    process, port = watch
    with connect(port, b"POST /events HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n") as connection:
        with suppress(OSError):  # it may listen no more by then; its answer is what counts
            for _ in range(64):
                connection.sendall(b"z" * 2**16)
        assert connection.recv(12).split(b" ")[1:] == [code]
    still_serves(process, port)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 1_000_000,
        b'{"type": "x", "session_id": "s", "payload": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
        b'{"type": "x", "session_id": "s", "payload": {"n": ' + b"9" * 1_000_000 + b"}}",
        b'{"type": "' + b"t" * 1_000_000 + b'", "session_id": {"s": []}}',
        b"\xff\xfe\x00" * 100_000,
        b"{}\n" * 30_000,
        b"x\n" * 30_000,
    ],
    ids=["brackets", "deep", "a long number", "an id of no kind", "bytes", "empty objects", "rubbish"],
)
def test_events_that_are_none_are_answered_with_few_words(watch, body):
    process, port = watch
    code, found = post(port, body)
    assert code == 400
    assert len(json.dumps(found)) < 40_000
    still_serves(process, port)
