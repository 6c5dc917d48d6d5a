"""Any page and any process of this machine may ask ``dicast serve``: without the token it says nothing, and with it nothing is written."""

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

TOKEN, LABEL_TOKEN = "the-token-of-this-test", "the-label-token-of-this-test"
MEMORY_MB = 250
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
    (folder / "label").write_text(LABEL_TOKEN)
    subprocess.run([sys.executable, "-m", "dicast", "run", "p.yaml"], cwd=folder, check=True, capture_output=True)
    command = [sys.executable, "-m", "dicast", "serve", "--ledger", "ledger.db", "--port", "0", "--token-file", "token"]
    command += ["--label-token-file", "label"]
    with (
        (folder / "log").open("w+") as log,
        subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        try:
            said = process.stdout.readline()
            yield int(said.rpartition(":")[2].strip(" /\n"))
            status = Path(f"/proc/{process.pid}/status")
            if status.exists():
                assert int(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1]) < MEMORY_MB * 1024
            log.seek(0)
            said = log.read()
            assert "Traceback" not in said, said
        finally:
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(200)
            process.kill()


def ask(port, path="/runs", method="GET", **headers):
    """Status, headers and body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=100)
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


def test_a_verdict_is_not_taken_with_the_token_that_may_read(port):
    assert ask(port, "/labels", "POST")[0] == 403


def raw(port, *sent, seconds=100):
    """All that is answered to these bytes, sent one after the other."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as connection:
        with suppress(OSError):  # it may listen no more by then; its answer is what counts
            for each in sent:
                connection.sendall(each)
        found = b""
        with suppress(OSError):
            while more := connection.recv(65536):
                found += more
                if b"\r\n\r\n" in found and b"Connection: keep-alive" not in found:
                    break
    return found


def head(port, path="/runs", method="GET", *more):
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", *more]
    return "\r\n".join([*lines, "", ""]).encode()


@pytest.mark.parametrize("tokens", [(TOKEN, "x"), ("x", TOKEN), (TOKEN, TOKEN), (TOKEN, "")])
def test_two_tokens_are_none(port, tokens):
    answer = raw(port, head(port, "/runs", "GET", *(f"Authorization: Bearer {one}" for one in tokens)))
    assert answer.startswith(b"HTTP/1.1 401 ")
    answer = raw(port, head(port, f"/?token={tokens[0]}&token={tokens[1]}"))
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b"set-cookie" not in answer.lower()


def test_cookies_of_other_servers_of_this_machine_do_not_hide_the_own_one(port):
    own = f"dicast_{port}={TOKEN}"
    for cookies, status in (
        (f'a={{"b": 1}}; {own}; c="', 200),
        (f"bad cookie,=; ;; {own}", 200),
        (f"dicast_{port}=x", 401),
        ("dicast_1=" + TOKEN, 401),
    ):
        assert ask(port, Authorization=None, Cookie=cookies)[0] == status, cookies


@pytest.mark.parametrize(
    "path",
    ["/runs?name=" + "x" * 200_000, "/runs?" + "&".join(f"a{n}=1" for n in range(1500)), "/" + "a/" * 7_000]
    + ["/analytics/agreement?" + "judge=a&" * 1500, "/runs?limit=" + "9" * 10_000, "//runs", "/runs/", "/%2e%2e/runs"]
    + ["/runs;x=1", "/runs%00", "/RUNS", "/runs/last/../../secret.jsonl", "http://evil.example/secret.jsonl"],
    ids=lambda path: path[:25],
)
def test_addresses_that_are_too_long_or_none_are_answered_with_few_words(port, path):
    answer = raw(port, head(port, path, "GET", f"Authorization: Bearer {TOKEN}"))
    assert answer[9:12] in (b"400", b"404", b"409", b"431"), answer[:200]
    assert len(answer) < 1_000_000
    assert SECRET.encode() not in answer
    assert ask(port)[0] == 200


@pytest.mark.parametrize(
    ("more", "status"),
    [
        (["Content-Length: 10000000000"], b"401"),
        (["Transfer-Encoding: chunked"], b"401"),
        ([f"Authorization: Bearer {TOKEN}", "Content-Length: 10000000000"], b"403"),
        ([f"Authorization: Bearer {LABEL_TOKEN}", "Content-Length: 10000000000"], b"400"),
        ([f"Authorization: Bearer {LABEL_TOKEN}", "Content-Length: -1"], b"400"),
        ([f"Authorization: Bearer {LABEL_TOKEN}", "Content-Length: 5", "Content-Length: 6"], b"400"),
        ([f"Authorization: Bearer {LABEL_TOKEN}", "Origin: http://evil.example", "Content-Length: 5"], b"403"),
    ],
)
def test_a_body_without_end_is_answered_and_not_kept(port, more, status):
    answer = raw(port, head(port, "/labels", "POST", *more), *[b"10000\r\n" + b"z" * 65536 + b"\r\n"] * 64)
    assert answer[9:12] == status, answer[:200]
    assert ask(port)[0] == 200


@pytest.mark.parametrize(
    "body",
    [b"[" * 100_000, b'{"subject_id":' * 10_000, b'{"subject_id": "1", "score": ' + b"9" * 100_000 + b"}", b"\xff\xfe"]
    + [b"", b"null", b'{"subject_id": "1", "score": NaN}', b'{"subject_id": "1", "score": 1e999}', b'{"score": true}']
    + [b'{"subject_id": "\\ud800", "score": 1}', b'{"subject_id": "1", "score": 1, "judge": "../x"}'],
    ids=lambda body: repr(body[:20]),
)
def test_a_verdict_that_is_none_is_not_recorded(port, body):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=100)
    connection.request("POST", "/labels", body, {"Authorization": f"Bearer {LABEL_TOKEN}"})
    answer = connection.getresponse()
    assert answer.status == 400
    assert len(answer.read()) < 2_000
    connection.close()
    assert json.loads(ask(port)[2])["data"][0]["name"] == "p"


def test_silent_connections_keep_nobody_waiting(port):
    with ExitStack() as stack:
        for number in range(300):
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), timeout=100))
            if number % 2:
                connection.sendall(b"GET /runs HTTP/1.1\r\nHost: 127.0.0.1")
        assert ask(port)[0] == 200


@pytest.mark.slow
def test_a_request_that_does_not_come_is_waited_for_some_seconds_alone(port):
    with ExitStack() as stack:
        connect = socket.create_connection
        silent, begun, trickling = (stack.enter_context(connect(("127.0.0.1", port), timeout=100)) for _ in range(3))
        begun.sendall(b"GET /runs HTTP/1.1\r\nHost: a")
        for _ in range(8):
            trickling.sendall(b"G")
            trickling.settimeout(1)
            with suppress(TimeoutError):
                trickling.recv(1)
        trickling.settimeout(100)
        for connection in (silent, begun, trickling):
            with suppress(ConnectionError):
                while connection.recv(1000):
                    pass
    assert ask(port)[0] == 200


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
        with socket.create_connection(("127.0.0.1", port), timeout=100) as raw, suppress(ConnectionError):
            raw.sendall(sent)
            raw.shutdown(socket.SHUT_WR)
            raw.recv(1000)
    assert ask(port)[0] == 200
