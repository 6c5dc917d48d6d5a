"""Clients that leave in the middle of a request: each server goes on, and writes no traceback."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import pytest

TOKEN, LABELING = "t" * 40, "l" * 40
SERVERS = {
    "serve": ("serve --ledger ledger.db --port {port} --token-file token --label-token-file labeling", "/labels"),
    "evaluator": ("evaluator serve served.yaml --port {port}", "/"),
    "watch": ("watch watched.yaml --listen {port}", "/events"),
}
_RESET = struct.pack("ii", 1, 0)
"""SO_LINGER: close with a reset."""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "output": "a"}\n')
    (tmp_path / "trace.jsonl").touch()
    end = "ledger: {ledger/sqlite: {path: ledger.db}}\n"
    (tmp_path / "p.yaml").write_text(f"source: {{rows/jsonl: {{path: rows.jsonl}}}}\nmetrics: [proxy/format]\n{end}")
    (tmp_path / "served.yaml").write_text(f"metrics: [proxy/format]\n{end}")
    (tmp_path / "watched.yaml").write_text(
        f"source: {{traces/events: {{path: trace.jsonl}}}}\njudges: [heuristic/turn]\n{end}"
    )
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "labeling").write_text(LABELING)
    return tmp_path


def _start(folder: Path, words: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "DICAST_EVALUATOR_TOKEN": TOKEN, "DICAST_WATCH_TOKEN": TOKEN}
    command = [sys.executable, "-m", "dicast", *words.split()]
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def _connect(port: int) -> socket.socket:
    for _ in range(1000):
        try:
            return socket.create_connection(("127.0.0.1", port), 100)
        except OSError:
            time.sleep(0.1)
    raise AssertionError("the server does not listen")


def _leave(port: int, path: str, token: str, body: bytes, *, with_reset: bool) -> None:
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAuthorization: Bearer {token}\r\nContent-Length: 1000\r\n\r\n"
    with _connect(port) as client:
        client.sendall(head.encode() + body)
        time.sleep(0.1)
        if with_reset:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")
@pytest.mark.parametrize("name", SERVERS)
def test_a_client_that_leaves_in_a_body_leaves_no_traceback(folder, unused_port, name):
    ran = subprocess.run(
        [sys.executable, "-m", "dicast", "run", "p.yaml", "--json"], cwd=folder, capture_output=True, check=True
    )
    assert json.loads(ran.stdout)["scored"] == 1
    port = unused_port()
    words, path = SERVERS[name]
    server = _start(folder, words.format(port=port))
    try:
        token = LABELING if name == "serve" else TOKEN
        for body in (b"", b'{"a":'):
            for with_reset in (False, True):
                _leave(port, path, token, body, with_reset=with_reset)
        with _connect(port) as client:
            client.sendall(b"GET /nothing HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 4")
    finally:
        server.send_signal(signal.SIGINT)
        output, _ = server.communicate(timeout=200)
    assert "Traceback" not in output
    assert "defect" not in output


@pytest.mark.parametrize("token", ["short", "x" * 7, "with a line\nend in it", "é" * 20])
def test_a_token_that_can_be_guessed_is_refused(folder, monkeypatch, capfd, token):
    from dicast._kernel.cli import main

    monkeypatch.chdir(folder)
    monkeypatch.setenv("DICAST_WATCH_TOKEN", token)
    assert main(["watch", "watched.yaml", "--listen", "0", "--once"]) == 2
    assert "at least 8 printable ASCII characters" in capfd.readouterr().err
