"""Whoever runs an endpoint, or the way to it, answers as it likes: with gigabytes, bombs, endless headers, redirects, and keys repeated."""

from __future__ import annotations

import base64
import json
import os
import socket
import ssl
import subprocess
import sys
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import attrs
import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="a process's own peak of memory is in /proc"),
]

CLIENTS = ("openai", "litellm", "task", "evaluator", "otel", "azure")
ASKS = Path(__file__).with_name("hostile_clients.py")
KEY = "sk-Not/To+Be-Shown-0123456789"
MIB = 1 << 20
MOST_SENT = 64 * MIB
"""Bytes that a client may have taken from the network before it hangs up: what the sockets hold, too."""
MOST_GROWN = 64
"""MiB of memory that it may take for that."""
GIVEN_UP = 1024 * MIB
"""So much is sent to a client that never hangs up."""
SECONDS = 30.0
"""Longest for one question: clients are given 2 s, and retries none."""


def spelt() -> list[str]:
    """The key as an endpoint may repeat it."""
    data = KEY.encode()
    return [
        KEY,
        KEY.upper(),
        KEY.replace("-", "-  ", 1),
        quote(KEY, safe=""),
        data.hex(),
        base64.b64encode(data).decode(),
        "".join(f"\\u{ord(one):04x}" for one in KEY),
    ]


@attrs.define
class Endpoint:
    """A server whose answer to a request is the first part of the path. *asked* holds what came in, *sent* how much went out."""

    port: int = 0
    scheme: str = "http"
    asked: list[str] = attrs.field(factory=list)
    sent: int = 0

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    def serve(self, connection: socket.socket, elsewhere: str) -> None:
        with connection, suppress(OSError):
            connection.settimeout(10)
            while head := _head(connection):
                path = head.split(" ", 2)[1]
                self.asked.append(head)
                answer = ANSWERS.get(path.strip("/").split("/")[0], fine)
                for piece in answer(elsewhere):
                    connection.sendall(piece)
                    self.sent += len(piece)
                if answer is not fine:
                    return


def _head(connection: socket.socket) -> str:
    """The head of the next request, whose body is read and dropped."""
    found = b""
    while b"\r\n\r\n" not in found:
        if not (piece := connection.recv(65_536)):
            return ""
        found += piece
    head, _, body = found.partition(b"\r\n\r\n")
    lengths = [line for line in head.decode("latin-1").lower().split("\r\n") if line.startswith("content-length:")]
    left = int(lengths[0].partition(":")[2]) - len(body) if lengths else 0
    while left > 0 and (piece := connection.recv(65_536)):
        left -= len(piece)
    return head.decode("latin-1")


def _answer(body: bytes, status: str = "200 OK", *headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status}", "Content-Type: application/json", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join([*lines, "", ""]).encode() + body


def _completion(text: str, **more: object) -> dict[str, object]:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    return {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": usage,
        "score": 0.5,
    } | more


def fine(_elsewhere: str) -> Iterator[bytes]:
    """What all clients take."""
    yield _answer(json.dumps(_completion("Fine.") | {"itemsReceived": 1, "itemsAccepted": 1, "errors": []}).encode())


def _without_end(head: str, piece: bytes) -> Callable[[str], Iterator[bytes]]:
    def answer(_elsewhere: str) -> Iterator[bytes]:
        yield head.encode()
        for _ in range(GIVEN_UP // len(piece)):
            yield piece

    return answer


def _body(status: str) -> str:
    return f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: 3221225472\r\n\r\n"


def bomb(_elsewhere: str) -> Iterator[bytes]:
    """4 MB that become 4 GB: the same compressed piece again and again."""
    packer = zlib.compressobj(9, wbits=31)
    head = packer.compress(b"") + packer.flush(zlib.Z_FULL_FLUSH)
    piece = packer.compress(bytes(MIB)) + packer.flush(zlib.Z_FULL_FLUSH)
    yield _answer(head + piece * 4096, "200 OK", "Content-Encoding: gzip")


def trickle(_elsewhere: str) -> Iterator[bytes]:
    """A byte each fifth of a second, for a minute."""
    yield b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 300\r\n\r\n"
    for _ in range(300):
        threading.Event().wait(0.2)
        yield b" "


def _redirect(status: str, where: Callable[[str], str]) -> Callable[[str], Iterator[bytes]]:
    def answer(elsewhere: str) -> Iterator[bytes]:
        yield _answer(b"{}", status, f"Location: {where(elsewhere)}")

    return answer


def _repeating(form: str, status: str) -> Callable[[str], Iterator[bytes]]:
    def answer(_elsewhere: str) -> Iterator[bytes]:
        said = f"the key {form} is"
        body = _completion(json.dumps({"rationale": said}), model=said, error={"message": said}, message=said)
        body["choices"][0]["finish_reason"] = said
        header = form if "\\" not in form else "none"
        yield _answer(json.dumps(body).encode(), status, f"X-Key: {header}", f"Retry-After: {header}")

    return answer


ANSWERS: dict[str, Callable[[str], Iterator[bytes]]] = {
    "flood": _without_end(_body("200 OK"), bytes(MIB)),
    "flood-of-an-error": _without_end(_body("400 Bad Request"), b"no " * 100_000),
    "bomb": bomb,
    "endless-header": _without_end("HTTP/1.1 200 OK\r\nX-Long: ", b"a" * 65_536),
    "endless-headers": _without_end("HTTP/1.1 200 OK\r\n", b"X-One: of many\r\n" * 4096),
    "trickle": trickle,
    **{
        f"redirect-{status}-{name}": _redirect(f"{status} Moved", where)
        for status in (301, 302, 303, 307, 308)
        for name, where in (
            ("elsewhere", lambda elsewhere: f"{elsewhere}/stolen"),
            ("without-scheme", lambda elsewhere: f"{elsewhere.removeprefix('http:')}/stolen"),
            ("within", lambda _: "/stolen"),
        )
    },
    **{
        f"repeats-{number}-{status[:3]}": _repeating(form, status)
        for number, form in enumerate(spelt())
        for status in ("200 OK", "400 Bad Request", "401 Unauthorized")
    },
}
SIZES = ["flood", "flood-of-an-error", "bomb", "endless-header", "endless-headers"]
REDIRECTS = [name for name in ANSWERS if name.startswith("redirect")]
REPEATS = [name for name in ANSWERS if name.startswith("repeats")]


def _listening(endpoint: Endpoint, elsewhere: str, context: ssl.SSLContext | None = None) -> Iterator[Endpoint]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        endpoint.port = server.getsockname()[1]

        def accept() -> None:
            with suppress(OSError):  # closed
                while True:
                    connection, _ = server.accept()
                    threading.Thread(target=serve, args=(connection,), daemon=True).start()

        def serve(connection: socket.socket) -> None:
            with suppress(OSError):
                connection.settimeout(10)
                wrapped = connection if context is None else context.wrap_socket(connection, server_side=True)
                endpoint.serve(wrapped, elsewhere)

        threading.Thread(target=accept, daemon=True).start()
        try:
            yield endpoint
        finally:
            server.shutdown(socket.SHUT_RDWR)


def ask(client: str, folder: Path, url: str, attacks: list[str], **environment: str) -> dict[str, dict]:
    """Ask by *client*, a question after the other in one process, and return what it printed of each."""
    if client == "azure":
        pytest.importorskip("azure.monitor.opentelemetry.exporter")
    given = {name: value for name, value in os.environ.items() if "PROXY" not in name.upper()}
    ran = subprocess.run(
        [sys.executable, ASKS, client, url, KEY, *attacks],
        env=given | {"PYTHONWARNINGS": "ignore"} | environment,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60 + SECONDS * len(attacks),
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    found = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [one["attack"] for one in found] == attacks
    return {one["attack"]: one | {"errors": ran.stderr} for one in found}


@pytest.fixture
def elsewhere():
    """Another origin, and the proxy that the environment names."""
    yield from _listening(Endpoint(), "")


@pytest.fixture
def endpoint(elsewhere):
    yield from _listening(Endpoint(), elsewhere.url)


@pytest.fixture(params=CLIENTS)
def client(request):
    return request.param


@attrs.frozen
class Attacked:
    """A client that was asked with all attacks, the endpoint that answered, and another one that it was to be led to."""

    client: str
    found: dict[str, dict]
    endpoint: Endpoint
    elsewhere: Endpoint


@pytest.fixture(scope="module", params=CLIENTS)
def attacked(request, tmp_path_factory):
    for elsewhere in _listening(Endpoint(), ""):
        for endpoint in _listening(Endpoint(), elsewhere.url):
            attacks = [*SIZES, "trickle", *REDIRECTS, *REPEATS]
            found = ask(request.param, tmp_path_factory.mktemp("attacked"), endpoint.url, attacks)
            yield Attacked(request.param, found, endpoint, elsewhere)


def test_no_reply_takes_more_memory_or_time_than_it_may(attacked):
    for attack in (*SIZES, "trickle"):
        found = attacked.found[attack]
        assert found["outcome"] != "taken", attack
        assert found["grown"] < MOST_GROWN, (attack, found)
        assert found["seconds"] < SECONDS, (attack, found)
    assert attacked.endpoint.sent < MOST_SENT * len(SIZES)


def test_a_reply_that_is_too_long_is_a_failure_of_its_own_kind(attacked):
    for found in (attacked.found["flood"], attacked.found["bomb"]):
        name = "max_output_bytes" if attacked.client in ("task", "evaluator") else "max_reply_bytes"
        assert name in found["said"], found
        if attacked.client in ("openai", "litellm", "task", "evaluator"):
            assert found["outcome"] == "judge_output_invalid"


def test_no_redirect_is_followed(attacked):
    for attack in REDIRECTS:
        assert attacked.found[attack]["outcome"] != "taken", attack
    assert attacked.elsewhere.asked == []
    assert not [head for head in attacked.endpoint.asked if "/stolen" in head]


def test_a_key_that_is_repeated_is_neither_returned_nor_said(attacked):
    for attack in REPEATS:
        found = attacked.found[attack]
        shown = "".join(json.dumps(found).lower().split()).replace("\\", "")
        for form in spelt():
            assert "".join(form.lower().split()).replace("\\", "") not in shown, (attack, form, found)


@pytest.mark.slow
def test_certificates_are_checked_whatever_the_environment_says(client, tmp_path):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(_certificate(tmp_path))
    off = {"SSL_VERIFY": "False", "PYTHONHTTPSVERIFY": "0", "CURL_CA_BUNDLE": "", "REQUESTS_CA_BUNDLE": ""}
    for secure in _listening(Endpoint(scheme="https"), "", context):
        assert ask(client, tmp_path, secure.url, ["fine"], **off)["fine"]["outcome"] != "taken"
        assert secure.asked == []


@pytest.mark.slow
def test_no_key_goes_to_a_proxy_of_the_environment_in_clear(client, endpoint, elsewhere, tmp_path):
    proxies = dict.fromkeys(("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"), elsewhere.url)
    secure = endpoint.url.replace("http:", "https:")
    ask(client, tmp_path, endpoint.url, ["fine", f"{secure}/fine"], **proxies)
    assert not [head for head in elsewhere.asked if KEY in head or not head.startswith("CONNECT ")]


def _certificate(folder: Path) -> Path:
    """One for 127.0.0.1, signed by nobody else."""
    path = folder / "certificate.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=127.0.0.1"]
        + ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", path, "-out", folder / "public.pem"],
        check=True,
        capture_output=True,
    )
    path.write_bytes(path.read_bytes() + (folder / "public.pem").read_bytes())
    return path
