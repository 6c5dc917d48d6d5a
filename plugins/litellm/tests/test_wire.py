"""Requests of litellm follow dicast's rules: the size of replies, redirects, returned keys, certificates and proxies."""

from __future__ import annotations

import asyncio
import gzip
from pathlib import Path

import aiohttp
import pytest

from dicast import AccessRefused, ChatRequest, Failure, Message, Price, RunContext, Secret
from dicast_litellm import Chat

KEY = "sk-very-secret-0123456789"
MOST = 100_000


def ask(server, model="openai/m", **options):
    base = server.url.removesuffix("/v1") if model.startswith("anthropic") else server.url
    defaults = {"api_base": base, "api_key": Secret(KEY), "price": Price(1, 2), "retries": 0, **options}

    async def run():
        async with Chat(model, **defaults).open(RunContext("r1", "test", Path())) as live:
            return await live.complete(ChatRequest((Message("user", "Judge."),)))

    return asyncio.run(run())


@pytest.mark.parametrize("model", ["openai/m", "anthropic/m"])
@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_a_reply_that_is_too_long_fails_the_call_at_once(chat_server, model, coding):
    body = b"x" * (MOST + 1) if coding == "identity" else gzip.compress(bytes(4_000_000))
    chat_server.answer = chat_server.Answer(body=body, headers={"Content-Encoding": coding})
    failure = ask(chat_server, model, max_reply_bytes=MOST, retries=2)
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.retryable, chat_server.count) == ("judge_output_invalid", False, 1)
    assert "more than 100,000 bytes (max_reply_bytes)" in failure.message
    assert chat_server.requests[0].headers["accept-encoding"] == "identity"


@pytest.mark.parametrize("model", ["openai/m", "anthropic/m"])
@pytest.mark.parametrize("status", [302, 307, 308])
def test_a_redirect_is_not_followed(chat_server, model, status):
    elsewhere = f"{chat_server.url}/elsewhere".replace("127.0.0.1", "localhost")
    chat_server.answer = chat_server.Answer(status=status, headers={"Location": elsewhere}, body=b"")
    failure = ask(chat_server, model)
    assert isinstance(failure, Failure)
    assert "redirects are not followed" in failure.message
    assert chat_server.count == 1


def test_a_reply_that_repeats_the_key_is_read_without_it(chat_server):
    chat_server.answer = chat_server.reply(f"so says {KEY}", model=f"m-{KEY.upper()}", finish_reason=KEY)
    reply = ask(chat_server)
    assert (reply.text, reply.model) == ("so says ***", "m-***")
    assert KEY not in repr(reply)


def test_a_refusal_that_repeats_the_key_is_said_without_it(chat_server):
    chat_server.answer = chat_server.error(401, f"not with {KEY[:9]}  {KEY[9:]}")
    with pytest.raises(AccessRefused, match=r"not with \*\*\*"):
        ask(chat_server)


@pytest.mark.parametrize(("tls", "checked"), [("verified", True), ("environment", False)])
def test_the_environment_switches_no_check_of_certificates_off_unless_the_file_says_so(
    chat_server, monkeypatch, tls, checked
):
    monkeypatch.setenv("SSL_VERIFY", "False")
    seen = []
    request = aiohttp.ClientSession._request

    async def noted(self, *args, **options):
        seen.append(options.get("ssl", True))
        return await request(self, *args, **options)

    monkeypatch.setattr(aiohttp.ClientSession, "_request", noted)
    ask(chat_server, tls=tls)
    assert (seen[0] is not False) is checked


def test_an_endpoint_with_http_is_asked_without_the_environments_proxy(chat_server, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    assert not isinstance(ask(chat_server), Failure)
