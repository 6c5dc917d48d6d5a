"""The HTTP client of the toolkit, through its public API."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys

import pytest

from dicast.toolkit.endpoint import Address, Answer, ClientLimits
from dicast.toolkit.endpoint.client import connect
from dicast.toolkit.endpoint.faults import ConnectionFault
from dicast.toolkit.http_reply import ReplyRefused

QUESTION = b'{"messages": [{"role": "user", "content": "q"}]}'


def test_the_options_of_a_client_import_neither_http_libraries_nor_an_event_loop():
    heavy = ("asyncio", "ssl", "httpx", "aiohttp", "stamina")
    code = f"import sys, dicast.toolkit.endpoint; print([name for name in {heavy} if name in sys.modules])"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def opened(url, use, **options):
    """Open a client of *url* and return the result of the coroutine function *use*."""

    async def run():
        limits = options.pop("limits", ClientLimits(timeout=5))
        async with connect(Address(url), limits, 1, **options) as client:
            return await use(client)

    return asyncio.run(run())


def test_a_client_follows_no_redirect_keeps_no_cookie_and_asks_no_proxy(chat_server, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("ALL_PROXY", "http://127.0.0.1:9")
    moved = {"Location": f"{chat_server.url}/other", "Set-Cookie": "a=b"}
    chat_server.script(chat_server.Answer(status=302, headers=moved, body={}))

    async def use(client):
        return [(await client.fetch("POST", "/x", QUESTION)).status for _ in range(2)]

    assert opened(chat_server.url, use) == [302, 200]
    assert [request.path for request in chat_server.requests] == ["/v1/x", "/v1/x"]
    assert "cookie" not in chat_server.requests[1].headers


def test_a_client_sends_the_query_of_its_address_with_each_path(chat_server):
    address = Address(f"{chat_server.url}/deployments/d?api-version=2025-01-01")
    assert address.url("/chat/completions?x=1") == (
        f"{chat_server.url}/deployments/d/chat/completions?api-version=2025-01-01&x=1"
    )
    assert address.display("/chat/completions") == f"{chat_server.url}/deployments/d/chat/completions"


def test_a_client_masks_secrets_in_replies_and_sends_long_bodies_whole(chat_server):
    chat_server.answer = lambda asked: f"{len(asked.body['text'])} hidden-word"
    body = json.dumps({"text": "x" * 3_000_000, **json.loads(QUESTION)}).encode()

    async def use(client):
        return (await client.fetch("POST", "", body)).data

    data = opened(chat_server.url, use, secrets=["hidden-word"])
    assert b"3000000 ***" in data


@pytest.mark.parametrize(("fault", "kind"), [("drop", "broken"), ("cut", "broken")])
def test_a_connection_that_breaks_may_have_reached_the_server(chat_server, fault, kind):
    chat_server.answer = chat_server.Answer("x" * 1000, fault=fault)
    with pytest.raises(ConnectionFault) as caught:
        opened(chat_server.url, lambda client: client.fetch("POST", "", QUESTION))
    assert (caught.value.kind, caught.value.is_connected) == (kind, True)


def test_a_connection_that_was_never_made_is_told_from_one_that_broke(chat_server):
    refused = pytest.raises(ConnectionFault, match="no connection to 127.0.0.1:9 ")
    with refused as caught:
        opened("http://127.0.0.1:9", lambda client: client.fetch("GET"))
    assert (caught.value.kind, caught.value.is_connected) == ("refused", False)
    with pytest.raises(ConnectionFault) as caught:
        opened(chat_server.url.replace("http:", "https:"), lambda client: client.fetch("GET"))
    assert caught.value.kind == "certificate"


def test_a_request_that_takes_too_long_is_given_up(chat_server):
    chat_server.answer = chat_server.Answer("late", fault="hang")
    with pytest.raises(TimeoutError):
        opened(chat_server.url, lambda client: client.fetch("POST", "", QUESTION, seconds=0.2))


def test_a_reply_may_have_a_limit_of_its_own(chat_server):
    chat_server.answer = "x" * 5000
    with pytest.raises(ReplyRefused, match="more than 1,000 bytes"):
        opened(chat_server.url, lambda client: client.fetch("POST", "", QUESTION, max_bytes=1000))


@pytest.mark.parametrize(
    ("body", "message", "codes", "parameter"),
    [
        ({"error": {"message": "a\n b", "code": "C", "param": "seed"}}, "a b", {"c"}, "seed"),
        ([{"error": {"message": "a", "status": "INVALID"}}], "a", {"invalid"}, None),
        ({"code": "invalid", "error": "a"}, "a", {"invalid"}, None),
        ({"detail": [{"loc": ["body", "seed"], "msg": "m"}]}, '[{"loc":["body","seed"],"msg":"m"}]', set(), "seed"),
        ({"error": {"message": "a", "metadata": {"raw": "b"}}}, "a (b)", set(), None),
    ],
)
def test_errors_are_read_in_each_form(body, message, codes, parameter):
    complaint = Answer(400, {}, json.dumps(body).encode()).complaint()
    assert (complaint.message, complaint.codes, complaint.parameter) == (message, codes, parameter)
