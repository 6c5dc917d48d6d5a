"""Any page and any process of this machine may ask ``dicast serve``: without the token it says nothing, and with it nothing is written."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
from contextlib import suppress

import pytest

TOKEN = "the-token-of-this-test"
SECRET = "what no answer may hold"
METHODS = ("POST", "PUT", "PATCH", "DELETE", "OPTIONS")


@pytest.fixture(scope="module")
def port(tmp_path_factory):
    """The port of a server over a ledger of one run; beside it stands a file that nobody may read."""
    folder = tmp_path_factory.mktemp("serve")
    (folder / "rows.jsonl").write_text('{"id": "1", "output": "Canberra."}\n')
    (folder / "p.yaml").write_text(
        "source: {rows/jsonl: {path: rows.jsonl}}\nmetrics: [{check/contains: {value: Canberra}}]\n"
        "ledger: {ledger/sqlite: {path: ledger.db}}\n"
    )
    (folder / "secret.jsonl").write_text(json.dumps({"row": {"id": SECRET}}) + "\n")
    (folder / "token").write_text(TOKEN)
    subprocess.run([sys.executable, "-m", "dicast", "run", "p.yaml"], cwd=folder, check=True, capture_output=True)
    command = [sys.executable, "-m", "dicast", "serve", "--ledger", "ledger.db", "--port", "0", "--token-file", "token"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as process:
        try:
            said = process.stdout.readline()
            yield int(said.rpartition(":")[2].strip(" /\n"))
        finally:
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()


def ask(port, path="/runs", method="GET", **headers):
    """Status, headers and body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    given = {"Authorization": f"Bearer {TOKEN}"} | {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, headers={name: value for name, value in given.items() if value is not None})
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer.status, {name.lower(): value for name, value in answer.getheaders()}, body


def test_the_right_token_opens_it(port):
    status, headers, body = ask(port)
    assert (status, json.loads(body)["data"][0]["name"]) == (200, "p")
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "no-referrer")
    assert "server" not in headers
    assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "given", [None, "", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Basic {TOKEN}", f"Bearer {TOKEN[:-1]}"]
)
def test_without_the_token_nothing_is_said(port, given):
    for path in ("/runs", "/openapi.json", "/", "/nowhere", "/events"):
        status, headers, body = ask(port, path, Authorization=given)
        assert status == 401, path
        assert headers["www-authenticate"] == "Bearer"
        assert "Canberra" not in body


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost.evil.example", "", "[::1"])
def test_a_name_that_leads_here_is_refused(port, host):
    status, _, body = ask(port, Host=host)
    assert status == 400
    assert "Canberra" not in body


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "file://"])
def test_another_origins_page_is_refused(port, origin):
    assert ask(port, Origin=origin)[0] == 403


@pytest.mark.parametrize("method", METHODS)
def test_nothing_is_written_to(port, method):
    for path in ("/runs", "/analytics/quality", "/compare", "/events"):
        status, headers, _ = ask(port, path, method)
        assert status == 405, path
        assert "GET" in headers["allow"]


def test_a_verdict_is_not_taken_where_no_labelling_token_was_given(port):
    assert ask(port, "/labels", "POST")[0] == 403


@pytest.mark.parametrize(
    "path",
    [
        "/compare?a=secret.jsonl&b=last",
        "/compare?a=./secret.jsonl&b=secret.jsonl",
        "/runs/secret.jsonl",
        "/runs/..%2Fsecret.jsonl",
        "/analytics/turns/..%2F..%2Fetc%2Fpasswd",
        "/../../etc/passwd",
        "/runs?ledger=secret.jsonl",
        "/runs?cursor=secret.jsonl",
        "/analytics/agreement?gold=secret.jsonl",
        "/runs/last/rows?subject=%00",
        "/runs/%FF%FE",
        "/analytics/quality?from=99999999999-01-01&to=0",
        "/runs/last/rows?cursor=99999999999999999999999",
        "/runs?limit=%D9%A3",
    ],
)
def test_a_path_leads_to_no_file(port, path):
    status, _, body = ask(port, path)
    assert status in (400, 404), body
    assert SECRET not in body
    assert "root:" not in body
    assert "Traceback" not in body


def test_what_is_no_http_ends_alone(port):
    for sent in (
        b"\x00" * 100,
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"a" * 100_000,
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as raw, suppress(ConnectionError):
            raw.sendall(sent)
            raw.shutdown(socket.SHUT_WR)
            raw.recv(1000)
    assert ask(port)[0] == 200
