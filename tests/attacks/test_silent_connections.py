"""Clients that connect and say nothing, or say it slowly, do not keep others from an answer within a second."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack, contextmanager

import pytest

FILES = 256
"""Files that each server may open."""
SILENT = 400
TOKEN = "token-of-this-test-0123456789"
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "DICAST_EVALUATOR_TOKEN": TOKEN, "DICAST_WATCH_TOKEN": TOKEN}
SERVERS = {
    "serve": (["serve", "--ledger", "ledger.db", "--port", "0", "--token-file", "token"], "/runs"),
    "evaluator serve": (["evaluator", "serve", "served.yaml", "--port", "0"], "/health"),
    "watch": (["watch", "watch.yaml", "--listen", "0"], "/status"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("silent")
    (folder / "token").write_text(TOKEN)
    (folder / "trace.jsonl").touch()
    (folder / "rows.jsonl").write_text('{"id": "1", "output": "a"}\n')
    (folder / "run.yaml").write_text("source: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [proxy/format]\n")
    (folder / "served.yaml").write_text("metrics: [proxy/format]\n")
    (folder / "watch.yaml").write_text(
        "source: {traces/events: {path: trace.jsonl, subjects: [session]}}\njudges: [heuristic/session]\n"
    )
    run = [sys.executable, "-m", "dicast", "run", "run.yaml", "--ledger", "ledger.db"]
    run = [*run[:-2], "--set", "ledger={ledger/sqlite: {path: ledger.db}}"]
    subprocess.run(run, cwd=folder, check=True, capture_output=True)
    return folder


@contextmanager
def serving(folder, words):
    """Start a server that may open FILES files; yield its port."""
    limited = ["sh", "-c", f'ulimit -n {FILES}; exec "$@"', "sh"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            [*limited, sys.executable, "-m", "dicast", *words], cwd=folder, env=ENVIRONMENT, stdout=log, stderr=log
        )
    try:
        until = time.monotonic() + 100
        while not (match := re.search(r"http://127\.0\.0\.1:(\d+)", (folder / "log").read_text())):
            assert time.monotonic() < until, (folder / "log").read_text()
            time.sleep(0.05)
        yield int(match[1])
        process.send_signal(signal.SIGINT)
        process.wait(200)
        written = (folder / "log").read_text()
        assert "Traceback" not in written, written[:2000]
        assert len(written) < 10_000
    finally:
        process.kill()
        process.wait()


def answer_seconds(port, path):
    """Return how long an honest request waits for its answer."""
    began = time.monotonic()
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={"Authorization": f"Bearer {TOKEN}"})
    with urllib.request.urlopen(request, timeout=100) as answer:
        assert answer.status == 200
    return time.monotonic() - began


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize("sent", [b"", b"GET / HT"], ids=["silent", "half a head"])
def test_an_honest_request_is_answered_beside_silent_connections(folder, name, sent):
    words, path = SERVERS[name]
    with serving(folder, words) as port, ExitStack() as stack:
        answer_seconds(port, path)  # what is imported for the first answer
        for _ in range(SILENT):
            connection = stack.enter_context(socket.socket())
            connection.setblocking(False)
            connection.connect_ex(("127.0.0.1", port))
            connection.setblocking(True)
            connection.settimeout(2)
            if sent:
                try:
                    connection.sendall(sent)
                except OSError:
                    continue  # closed in favor of a newer one
        seconds = sorted(answer_seconds(port, path) for _ in range(5))
        assert seconds[0] < 1, seconds  # the least, since a busy machine may delay an answer
