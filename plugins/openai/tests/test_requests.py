"""Requests, and adaptation to an endpoint's deviations."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

import pytest

from dicast import ChatRequest, ConfigError, Failure, Message, Reply, RunContext, Secret
from dicast.testing import run_pipeline

SCHEMA = {"type": "object", "properties": {"score": {"type": "number"}}}
FORMATS = {
    "json_schema": {
        "type": "json_schema",
        "json_schema": {"name": "reply", "schema": SCHEMA, "strict": True},
    },
    "json_object": {"type": "json_object"},
    "text": None,
}


def sent(server):
    return [request.body.get("response_format", {}).get("type", "text") for request in server.requests]


def test_sends_the_conversation_with_the_key_as_bearer_token(chat_server, ask, question):
    ask(question("Is it so?"))
    request = chat_server.requests[0]
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == "Bearer sk-not-to-be-shown"
    assert request.headers["content-type"] == "application/json"
    assert request.body == {
        "model": "m",
        "messages": [{"role": "system", "content": "You judge."}, {"role": "user", "content": "Is it so?"}],
        "max_tokens": 64,
        "temperature": 0.0,
    }


def test_sends_a_long_request_whole(chat_server, ask, question):
    text = "word " * 400_000
    assert isinstance(ask(question(text)), Reply)
    assert chat_server.requests[0].body["messages"][1]["content"] == text


def test_sends_no_authorization_without_a_key(chat_server, ask):
    ask(api_key=None)
    assert "authorization" not in chat_server.requests[0].headers


def test_sends_further_headers(chat_server, ask):
    ask(api_key=None, headers={"api-key": Secret("azure"), "X-Title": Secret("dicast")})
    headers = chat_server.requests[0].headers
    assert (headers["api-key"], headers["x-title"]) == ("azure", "dicast")


def test_keeps_the_query_of_the_address(chat_server, ask):
    reply = ask(base_url=f"{chat_server.url}/?api-version=2025-01-01")
    assert isinstance(reply, Reply)
    assert chat_server.requests[0].path == "/v1/chat/completions"


@pytest.mark.parametrize(
    ("configured", "requested", "expected"), [(0.0, None, 0.0), (0.3, None, 0.3), (0.3, 0.9, 0.9), (None, None, None)]
)
def test_the_request_decides_on_the_temperature_before_the_option(
    chat_server, ask, question, configured, requested, expected
):
    ask(question(temperature=requested), temperature=configured)
    assert chat_server.requests[0].body.get("temperature") == expected


def test_marks_messages_for_caching_only_when_told_to(chat_server, ask, question):
    ask(question(), cache_control=True)
    system, user = chat_server.requests[0].body["messages"]
    assert system["content"] == [{"type": "text", "text": "You judge.", "cache_control": {"type": "ephemeral"}}]
    assert user["content"] == "Is it so?"


def test_sends_halves_of_surrogate_pairs_as_question_marks(chat_server, ask, question):
    assert isinstance(ask(question("good \ud800 ü")), Reply)
    assert chat_server.requests[0].prompt == "good ? ü"


@pytest.mark.parametrize("form", FORMATS)
def test_response_format_is_sent_as_the_option_says(chat_server, ask, question, form):
    ask(question(schema=SCHEMA), response_format=form)
    assert chat_server.requests[0].body.get("response_format") == FORMATS[form]


def test_no_response_format_without_a_schema(chat_server, ask, question):
    ask(question(), response_format="json_object")
    assert sent(chat_server) == ["text"]


@pytest.mark.parametrize(
    ("refused", "expected"),
    [
        ((), ["json_schema", "json_schema"]),
        (("json_schema",), ["json_schema", "json_object", "json_object"]),
        (("json_schema", "json_object"), ["json_schema", "json_object", "text", "text"]),
    ],
)
def test_auto_finds_the_format_that_the_endpoint_takes_and_keeps_it(chat_server, ask, question, refused, expected):
    chat_server.answer = chat_server.refusing(*refused)
    replies = ask(question(schema=SCHEMA), question(schema=SCHEMA), retries=0)
    assert [type(reply) for reply in replies] == [Reply, Reply]
    assert sent(chat_server) == expected


def test_a_format_that_was_asked_for_is_not_replaced(chat_server, ask, question):
    chat_server.answer = chat_server.refusing("json_schema")
    failure = ask(question(schema=SCHEMA), response_format="json_schema")
    assert (failure.kind, chat_server.count) == ("judge_call_failed", 1)
    assert "'json_schema' is not supported" in failure.message


def test_a_request_that_no_format_cures_fails_and_changes_no_format(chat_server, ask, question):
    chat_server.script(*[chat_server.error(400, "the request is not valid")] * 3)
    failure, reply = ask(question(schema=SCHEMA), question(schema=SCHEMA))
    assert failure.kind == "judge_call_failed"
    assert "HTTP 400: the request is not valid" in failure.message
    assert not failure.retryable
    assert failure.cost.is_zero
    assert isinstance(reply, Reply)
    assert sent(chat_server) == ["json_schema", "json_object", "text", "json_schema"]


def test_the_limit_of_tokens_goes_by_its_newer_name_where_the_endpoint_wants_it(chat_server, ask, question):
    def answer(request):
        if "max_tokens" not in request.body:
            return "yes"
        return chat_server.error(400, "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.")

    chat_server.answer = answer
    replies = ask(question(schema=SCHEMA), question(schema=SCHEMA), retries=0)
    assert [reply.text for reply in replies] == ["yes", "yes"]
    assert [request.body.get("max_completion_tokens") for request in chat_server.requests] == [None, 64, 64]
    assert sent(chat_server) == ["json_schema"] * 3


def test_redirects_are_not_followed(chat_server, ask):
    chat_server.answer = chat_server.Answer(status=307, headers={"Location": "http://127.0.0.1:9/elsewhere"})
    failure = ask()
    assert failure.kind == "judge_call_failed"
    assert "HTTP 307: redirects to http://127.0.0.1:9/elsewhere" in failure.message
    assert chat_server.count == 1


def test_no_proxy_is_taken_from_the_environment(chat_server, ask, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    assert isinstance(ask(), Reply)


def test_the_proxy_of_the_file_is_asked(chat_server, ask):
    reply = ask(base_url="http://model.invalid/v1", proxy=Secret(f"http://127.0.0.1:{chat_server.port}"))
    assert isinstance(reply, Reply)
    assert chat_server.requests[0].headers["host"] == "model.invalid"


@pytest.mark.slow
def test_calls_go_out_at_once_over_one_client(chat_server, model, question, monkeypatch):
    monkeypatch.setattr("dicast.toolkit.endpoint.first_call.FIRST_SECONDS", 0.1)
    chat_server.gathers = 120

    async def run():
        async with model().open(RunContext("run", "test", Path())) as live:
            return await asyncio.gather(*(live.complete(question(str(n))) for n in range(120)))

    assert all(isinstance(reply, Reply) for reply in asyncio.run(run()))
    assert chat_server.peak == 120


def test_requests_a_minute_are_spaced(chat_server, ask, question):
    began = time.monotonic()  # and not when the first one came in, which may be late on a busy machine
    ask(*[question()] * 4, requests_per_minute=1200)
    assert chat_server.requests[-1].time - began >= 3 * 60 / 1200 * 0.9


def test_tokens_a_minute_are_spaced(chat_server, ask):
    messages = (Message("user", "x"),)
    request = ChatRequest(messages, max_output_tokens=100 - ChatRequest(messages).input_tokens)
    began = time.monotonic()
    ask(request, request, request, tokens_per_minute=60_000)
    assert chat_server.requests[-1].time - began >= 2 * 60 * 100 / 60_000 * 0.9


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("timeout", 0.0, "more than 0 seconds"),
        ("requests_per_minute", 0.0, "more than 0"),
        ("tokens_per_minute", -1.0, "more than 0"),
        ("temperature", -0.1, "0 or more"),
        ("retries", -1, "0 or more"),
    ],
)
def test_a_number_out_of_its_bounds_is_refused_with_what_is_expected(model, option, value, words):
    with pytest.raises(ConfigError, match=f"^invalid value for {option}, expected {words}, got {value}$"):
        model(**{option: value})


@pytest.mark.parametrize("url", ["localhost:8080/v1", "ftp://host/v1", "https://", "", "http://host:port/v1"])
def test_refuses_an_address_that_is_none(model, url):
    with pytest.raises(ValueError):
        model(base_url=url)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ("base_url: host/v1, model: m, price: free", "expected an http:// or https:// address, got 'host/v1'"),
        ("base_url: 'http://me:w0rd@host', model: m, price: free", "give them as api_key or in headers"),
        ("base_url: 'ftp://me:w0rd@host', model: m, price: free", "give them as api_key or in headers"),
        ("base_url: 'me:w0rd@host/v1', model: m, price: free", "give them as api_key or in headers"),
        ("base_url: 'http://me:w0rd@[host', model: m, price: free", "give them as api_key or in headers"),
        ("base_url: 'http://me:w0rd/@host', model: m, price: free", "give them as api_key or in headers"),
        ("base_url: 'http://me:w0rd@h\u2100st', model: m, price: free", "give them as api_key or in headers"),
        ("base_url: 'http://[x', model: m, price: free", "expected an http:// or https:// address, got 'http://[x'"),
        ("base_url: 'http://h:port', model: m, price: free", "expected an http:// or https:// address, got"),
        (
            "base_url: 'http://host/v1', model: gpt",
            "no price is listed for 'gpt' at http://host/v1; write price: free or price: {input",
        ),
        ("base_url: 'http://me:w0rd@host/v1?k=w0rd', model: gpt", "no price is listed for 'gpt'; write price"),
        ("base_url: 'http://host/v1', model: m, price: cheap", "price"),
        ('base_url: "http://host/v1", model: m, price: free, api_key: "w0rd\\n"', "api_key holds a line break"),
        ('base_url: "http://host/v1", model: m, price: free, headers: {"a b": c}', "'a b' cannot be the name of a"),
        ("base_url: 'http://host/v1', model: m, price: free, proxy: 'w0rd'", "proxy is no http:// address"),
        ("base_url: 'http://host/v1', model: m, price: free, proxy: 'http://a:w0rd@[h'", "proxy is no http:// address"),
        ("base_url: 'http://host/v1', model: m, price: free, proxy: 'http://w0rd:x'", "proxy is no http:// address"),
        ("base_url: 'http://host/v1', model: m, price: free, timeout: 0", "timeout"),
    ],
)
def test_wrong_options_are_named_before_anything_is_asked(options, message):
    with pytest.raises(ConfigError) as refusal:
        run_pipeline("{define: {grader: {openai/chat: {" + options + "}}}, metrics: [proxy/format]}")
    assert message in str(refusal.value)
    assert "w0rd" not in str(refusal.value) + repr(refusal.value.problems)


def test_an_at_sign_in_the_path_is_no_password(model):
    assert model(base_url="http://host/@me/v1").base_url == "http://host/@me/v1"


def test_importing_the_plugin_imports_no_client():
    source = Path(__file__).parents[1] / "src" / "dicast_openai"
    for module in ("__init__", "chat"):
        assert "import aiohttp" not in (source / f"{module}.py").read_text()


def test_identity_says_what_decides_a_reply(model, chat_server):
    assert model(timeout=3).identity() == {
        "base_url": chat_server.url,
        "model": "m",
        "temperature": 0.0,
        "response_format": "auto",
    }


def test_failures_are_no_exceptions(ask):
    assert isinstance(ask(base_url="http://127.0.0.1:9/v1", retries=0), Failure)
