from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path

import pytest
import stamina

from dicast import (
    AccessRefused,
    ChatRequest,
    ConfigError,
    Cost,
    Failure,
    Message,
    Price,
    RunContext,
    Secret,
    Token,
    Usage,
)
from dicast.toolkit.rate_limit import RateLimiter
from dicast_litellm import Chat

KEY = "sk-very-secret-0123456789"
PRICE = Price(Decimal(1), Decimal(2))
SCHEMA = {"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"]}


@pytest.fixture
def no_waits():
    """Retries follow at once; how often is still the model's own option."""
    with stamina.set_testing(True, attempts=100, cap=True):
        yield


def asking(text="Judge.\nseal: 0123456789ab", **fields):
    return ChatRequest((Message("system", "You judge.", cache=True), Message("user", text)), **fields)


def chat(server, **options):
    defaults = {"model": "openai/some-model", "api_base": server.url, "api_key": Secret(KEY), "price": PRICE}
    return Chat(**{**defaults, **options})


def ask(model, *requests):
    """The answers to *requests*, asked one after the other."""

    async def run():
        async with model.open(RunContext("r1", "test", Path())) as live:
            return [await live.complete(request) for request in requests or (asking(),)]

    return asyncio.run(run())


def together(model, *requests):
    """The answers to *requests*, asked at once."""

    async def run():
        async with model.open(RunContext("r1", "test", Path())) as live:
            return await asyncio.gather(*(live.complete(request) for request in requests))

    return asyncio.run(run())


def failure(answers):
    (answer,) = answers
    assert isinstance(answer, Failure)
    assert KEY not in answer.message
    return answer


@pytest.mark.slow
def test_reply_has_text_model_usage_and_cost(chat_server):
    chat_server.script(chat_server.reply("Fine.", model="some-model-0613"))
    (reply,) = ask(chat(chat_server))
    assert (reply.text, reply.model, reply.stop_reason) == ("Fine.", "some-model-0613", "end_turn")
    assert reply.usage == Usage(100, 20)
    assert reply.cost == Cost("0.00014", "usd", "1/2 usd per Mtok")
    assert reply.logprobs is None


def test_request_is_sent_as_it_is(chat_server):
    ask(chat(chat_server), asking("Größe \ud800", max_output_tokens=77))
    (sent,) = chat_server.requests
    assert sent.body["model"] == "some-model"
    assert sent.body["messages"] == [
        {"role": "system", "content": "You judge."},
        {"role": "user", "content": "Größe ?"},
    ]
    assert sent.body["max_tokens"] == 77
    assert sent.body["temperature"] == 0
    assert sent.headers["authorization"] == f"Bearer {KEY}"
    assert not {"response_format", "logprobs", "num_retries"} & sent.body.keys()


def test_temperature_of_the_request_comes_first_and_null_leaves_it_out(chat_server):
    ask(chat(chat_server), asking(temperature=0.7))
    ask(chat(chat_server, temperature=None))
    assert chat_server.requests[0].body["temperature"] == 0.7
    assert "temperature" not in chat_server.requests[1].body


def test_log_probabilities_arrive(chat_server):
    chat_server.script(chat_server.reply("ab", logprobs=(("a", -0.1), ("b", -0.2))))
    (reply,) = ask(chat(chat_server), asking(logprobs=True))
    assert reply.logprobs == (Token("a", -0.1), Token("b", -0.2))
    assert chat_server.requests[0].body["logprobs"] is True


@pytest.mark.parametrize(
    ("finish_reason", "stop_reason"),
    [
        ("stop", "end_turn"),
        ("length", "max_tokens"),
        ("content_filter", "refusal"),
        ("stop_sequence", "stop_sequence"),
        ("network_error", "network_error"),
        ("weird", "weird"),
    ],
)
def test_stop_reason_is_normalised_and_an_unknown_one_is_kept(chat_server, finish_reason, stop_reason):
    chat_server.script(chat_server.reply("x", finish_reason=finish_reason))
    assert ask(chat(chat_server))[0].stop_reason == stop_reason


def test_refusal_is_a_stop_reason(chat_server):
    chat_server.script(chat_server.reply(None, message={"refusal": "I will not."}))
    (reply,) = ask(chat(chat_server))
    assert (reply.text, reply.stop_reason) == ("I will not.", "refusal")


def test_reply_without_usage_costs_the_estimate(chat_server):
    chat_server.script(chat_server.reply("x", usage=None))
    model = chat(chat_server)
    (reply,) = ask(model)
    assert reply.usage is None
    assert reply.cost == model.estimate(asking())


def test_cached_tokens_are_charged_as_listed(chat_server):
    usage = {"prompt_tokens": 1000, "completion_tokens": 0, "prompt_tokens_details": {"cached_tokens": 600}}
    chat_server.script(chat_server.reply("x", usage=usage))
    (reply,) = ask(chat(chat_server, model="openai/gpt-4o-mini", price=None))
    assert reply.cost.amount == (400 * Decimal("0.15") + 600 * Decimal("0.075")) / 1_000_000


def test_schema_is_sent_as_json_schema(chat_server):
    ask(chat(chat_server), asking(schema=SCHEMA))
    form = chat_server.requests[0].body["response_format"]
    assert (form["type"], form["json_schema"]["schema"]) == ("json_schema", SCHEMA)


def test_format_falls_back_and_stays_there(chat_server):
    chat_server.answer = chat_server.refusing("json_schema", "json_object")
    replies = ask(chat(chat_server), *[asking(schema=SCHEMA, nonces=("0123456789ab",))] * 2)
    kinds = [sent.body.get("response_format", {}).get("type") for sent in chat_server.requests]
    assert kinds == ["json_schema", "json_object", None, None]
    assert {reply.cost.amount for reply in replies} == {Decimal("0.00014")}


def test_bad_request_that_no_format_cures_is_a_failure_and_changes_no_format(chat_server):
    chat_server.script(*[chat_server.error(400, f"too long {KEY}")] * 3)
    answers = ask(chat(chat_server), *[asking(schema=SCHEMA, nonces=("0123456789ab",))] * 2)
    failed = failure(answers[:1])
    assert (failed.kind, failed.retryable) == ("judge_call_failed", False)
    assert "too long ***" in failed.message
    assert failed.cost.is_zero
    assert chat_server.requests[-1].body["response_format"]["type"] == "json_schema"


@pytest.mark.parametrize("status", [401, 403, 404])
def test_no_access_stops_the_run_and_names_model_and_endpoint(chat_server, status):
    chat_server.answer = chat_server.error(status, f"not with {KEY}")
    with pytest.raises(AccessRefused, match=rf"openai/some-model at {chat_server.url}: .*not with \*\*\*"):
        ask(chat(chat_server))
    assert chat_server.count == 1


def test_no_access_says_what_the_tries_before_it_did_cost(chat_server):
    chat_server.script(chat_server.raw({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20}}))
    chat_server.answer = 401
    with pytest.raises(AccessRefused) as refused:
        ask(chat(chat_server))
    assert (refused.value.cost.amount, chat_server.count) == (Decimal("0.00014"), 2)


def test_tries_of_no_use_say_at_once_what_they_did_cost(chat_server, monkeypatch):
    """For the call may be given up while it waits to try again."""
    costs = []
    monkeypatch.setattr(RateLimiter, "spent", lambda self, cost: costs.append(cost.amount))
    chat_server.script(chat_server.raw({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20}}), 503)
    (reply,) = ask(chat(chat_server))
    assert (costs, reply.cost.amount) == ([Decimal("0.00014"), 0], Decimal("0.00028"))


def test_missing_key_stops_the_run(chat_server, monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(AccessRefused, match="OPENAI_API_KEY"):
        ask(chat(chat_server, api_key=None))


def test_key_comes_from_the_environment_and_is_not_told(chat_server, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    chat_server.answer = chat_server.error(400, f"bad {KEY}")
    failed = failure(ask(chat(chat_server, api_key=None)))
    assert "bad ***" in failed.message
    assert chat_server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_provider_that_litellm_does_not_know_stops_the_run():
    with pytest.raises(AccessRefused, match="nowhere/model: .*LLM Provider NOT provided"):
        ask(Chat("nowhere/model", price="free"))


@pytest.mark.parametrize("fault", [429, 500, 503, 408, 409])
def test_passing_fault_is_asked_again_and_costs_nothing(chat_server, no_waits, fault):
    chat_server.script(fault, "Fine.")
    (reply,) = ask(chat(chat_server))
    assert (reply.text, reply.metrics) == ("Fine.", {})
    assert (reply.retry["attempts"], reply.retry["max_attempts"]) == (2, 4)
    assert [tried["attempt"] for tried in reply.retry["history"]] == [1]
    assert reply.cost.amount == Decimal("0.00014")
    assert chat_server.count == 2


@pytest.mark.parametrize("answer", ["drop", "cut", b"<html>", b'{"choi', b"{}"])
def test_try_that_may_have_been_paid_for_counts_with_its_estimate(chat_server, no_waits, answer):
    fault = {"fault": answer} if isinstance(answer, str) else {"body": answer}
    chat_server.script(chat_server.Answer("x", **fault), "Fine.")
    model = chat(chat_server)
    (reply,) = ask(model)
    assert reply.text == "Fine."
    assert reply.cost.amount == Decimal("0.00014") + model.estimate(asking()).amount


def test_retry_after_is_kept(chat_server):
    chat_server.script(chat_server.error(429, retry_after=1), "Fine.")
    assert ask(chat(chat_server))[0].text == "Fine."
    first, second = chat_server.requests
    assert 1.0 <= second.time - first.time < 2.0


def test_retry_after_that_is_too_long_fails_at_once(chat_server):
    chat_server.script(chat_server.error(429, retry_after=3600))
    failed = failure(ask(chat(chat_server)))
    assert "asks to wait 3,600 s" in failed.message
    assert failed.retryable
    assert chat_server.count == 1


def test_lasting_fault_is_a_failure_after_all_retries(chat_server):
    chat_server.answer = 500
    failed = failure(ask(chat(chat_server, retries=1)))
    assert (failed.kind, failed.retryable) == ("judge_call_failed", True)
    assert "(2 tries)" in failed.message
    assert chat_server.count == 2


def test_nobody_there_costs_nothing():
    model = Chat("openai/m", api_base="http://127.0.0.1:9/v1", api_key=Secret(KEY), price=PRICE, retries=0)
    failed = failure(ask(model))
    assert (failed.kind, failed.retryable) == ("judge_call_failed", True)
    assert failed.cost.is_zero


def test_timeout_is_not_asked_again_and_counts_with_its_estimate(chat_server):
    ask(chat(chat_server))  # litellm is imported
    chat_server.answer = chat_server.Answer(fault="hang")
    model = chat(chat_server, timeout=0.5)
    failed = failure(ask(model))
    assert failed.kind == "timeout"
    assert "no reply within 0.5 s" in failed.message
    assert failed.cost == model.estimate(asking())
    assert chat_server.count == 2


def test_content_policy_is_a_refusal(chat_server):
    error = {"message": "blocked: content_policy_violation", "type": "invalid_request_error"}
    chat_server.answer = chat_server.raw({"error": error}, status=400)
    failed = failure(ask(chat(chat_server), asking(schema=SCHEMA)))
    assert failed.kind == "refused"
    assert chat_server.count == 1


@pytest.mark.slow
def test_many_calls_at_once_are_not_held_back(chat_server, monkeypatch):
    monkeypatch.setattr("dicast.toolkit.endpoint.first_call.FIRST_SECONDS", 0.1)
    chat_server.gathers = 120
    replies = together(chat(chat_server), *[asking() for _ in range(120)])
    assert all(reply.usage for reply in replies)
    assert chat_server.peak == 120  # the libraries' own limit is 100


def test_requests_per_minute_are_kept(chat_server):
    ask(chat(chat_server))  # the first call of a process is slow to leave
    del chat_server.requests[:]
    began = time.monotonic()  # and not when the first one came in, which may be late on a busy machine
    together(chat(chat_server, requests_per_minute=300), *[asking() for _ in range(4)])
    assert chat_server.requests[-1].time - began >= 0.55


def test_open_twice_in_one_process(chat_server):
    model = chat(chat_server)
    assert [ask(model)[0].usage for _ in range(2)] == [Usage(100, 20)] * 2


def test_claude_is_asked_in_its_own_protocol(chat_server):
    usage = {"input_tokens": 10, "output_tokens": 2, "cache_creation_input_tokens": 90, "cache_read_input_tokens": 900}
    body = {
        "id": "m1",
        "type": "message",
        "role": "assistant",
        "model": "claude-haiku-4-5-20251001",
        "content": [{"type": "text", "text": "Fine."}],
        "stop_reason": "end_turn",
        "usage": usage,
    }
    chat_server.answer = chat_server.raw(body)
    base = chat_server.url.removesuffix("/v1")
    (reply,) = ask(chat(chat_server, model="anthropic/claude-haiku-4-5", api_base=base, price=None))
    assert (reply.text, reply.stop_reason, reply.model) == ("Fine.", "end_turn", "claude-haiku-4-5-20251001")
    assert reply.usage == Usage(1000, 2, 900, 90)
    expected = 10 * Decimal(1) + 90 * Decimal("1.25") + 900 * Decimal("0.1") + 2 * Decimal(5)
    assert reply.cost.amount == expected / 1_000_000
    (sent,) = chat_server.requests
    assert sent.path == "/v1/messages"
    assert sent.body["system"][0]["cache_control"] == {"type": "ephemeral"}


@pytest.mark.slow
def test_nothing_is_fetched_logged_or_read_on_import(chat_server, tmp_path):
    """A process that can reach nothing but the endpoint, in a folder with a .env file, with every call going wrong."""
    (tmp_path / ".env").write_text("FROM_DOTENV=1\n")
    program = """
import asyncio, os, socket, sys
from pathlib import Path
from dicast import ChatRequest, Message, RunContext, Secret
connect = socket.socket.connect
def only_loopback(self, address):
    if address[0] != "127.0.0.1":
        os.write(2, f"connects to {address}".encode())
        os._exit(9)
    return connect(self, address)
def no_names(*args, **options):
    if args[0] not in ("127.0.0.1", None):
        os.write(2, f"looks up {args}".encode())
        os._exit(9)
    return lookup(*args, **options)
lookup = socket.getaddrinfo
socket.socket.connect, socket.getaddrinfo = only_loopback, no_names
from dicast_litellm import Chat
async def main():
    chat = Chat("openai/m", api_base=sys.argv[1], api_key=Secret(sys.argv[2]), price="free", retries=1)
    async with chat.open(RunContext("r1", "t", Path())) as live:
        assert "litellm" not in sys.modules
        for _ in range(3):
            await live.complete(ChatRequest((Message("user", "the-question"),)))
    assert "FROM_DOTENV" not in os.environ
asyncio.run(main())
"""
    chat_server.script(500, 500, chat_server.reply("x", finish_reason="weird"))
    chat_server.answer = 400
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("LITELLM", "OPENAI"))}
    done = subprocess.run(
        [sys.executable, "-c", program, chat_server.url, KEY],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert chat_server.count == 4


def test_secret_is_in_no_repr(chat_server):
    assert KEY not in repr(chat(chat_server))


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x/v1",
        "localhost:8000",
        "https://me:pass@host/v1",
        "ftp://me:pass@host",
        "http://[x",
        "http://h:port/v1",
        "me:hunter2@host/v1",
    ],
)
def test_api_base_is_checked(url):
    with pytest.raises((ValueError, ConfigError), match="api_base") as refused:
        Chat("openai/m", api_base=url, price="free")
    assert "pass@" not in str(refused.value)


@pytest.mark.slow
def test_real_model_follows_the_schema(model_server):
    model = Chat(f"openai/{model_server.model}", api_base=model_server.base_url, api_key=Secret("none"), price="free")
    began = time.monotonic()
    schema = {
        "type": "object",
        "properties": {"score": {"enum": [0.25, 0.75]}},
        "required": ["score"],
        "additionalProperties": False,
    }
    (reply,) = ask(model, asking(schema=schema, max_output_tokens=60))
    assert json.loads(reply.text)["score"] in (0.25, 0.75)
    assert reply.model == model_server.model
    assert reply.usage.output_tokens > 3
    assert reply.cost.is_zero
    assert time.monotonic() - began < 300
