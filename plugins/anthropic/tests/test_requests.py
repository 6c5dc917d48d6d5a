"""Requests to the Messages API."""

from __future__ import annotations

import asyncio
import base64
from decimal import Decimal
from pathlib import Path

import pytest

from dicast import AccessRefused, ChatRequest, ConfigError, Failure, Media, Message, Price, Reply, RunContext, Secret
from dicast.testing import run_pipeline
from dicast_anthropic import Batch, Chat

SCHEMA = {
    "type": "object",
    "properties": {"score": {"type": "number", "minimum": 0, "maximum": 1}, "minimum": {"type": "string"}},
    "required": ["score", "minimum"],
    "additionalProperties": False,
}
PLAIN = {**SCHEMA, "properties": {"score": {"type": "number"}, "minimum": {"type": "string"}}}
PRICE = Price(Decimal(1), Decimal(1))
CACHED = {"cache_control": {"type": "ephemeral"}}


def test_sends_the_conversation_with_key_and_version(chat_server, ask, claude):
    assert isinstance(ask(), Reply)
    request = chat_server.requests[0]
    assert request.path == "/v1/messages"
    assert request.headers["x-api-key"] == claude.key
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in request.headers
    assert request.body == {
        "model": "claude-haiku-4-5",
        "max_tokens": 64,
        "system": [{"type": "text", "text": "You judge.", **CACHED}],
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Is it so?"}]}],
        "temperature": 0.0,
    }


def test_an_address_that_ends_in_v1_is_not_given_a_second(chat_server, ask, claude):
    assert isinstance(ask(base_url=f"{claude.url(chat_server)}/v1"), Reply)


def test_marks_nothing_for_the_cache_where_that_is_off(chat_server, ask):
    ask(cache_control=False)
    assert "cache_control" not in chat_server.requests[0].body["system"][0]


def test_neighbors_of_one_role_are_one_message(chat_server, ask):
    messages = [("user", "a"), ("user", "b"), ("assistant", "c"), ("user", "d"), ("user", "")]
    assert isinstance(ask(ChatRequest(tuple(Message(*pair) for pair in messages))), Reply)
    sent = chat_server.requests[0].body["messages"]
    assert [(turn["role"], [block["text"] for block in turn["content"]]) for turn in sent] == [
        ("user", ["a", "b"]),
        ("assistant", ["c"]),
        ("user", ["d"]),
    ]


def test_texts_that_are_not_unicode_are_sent_with_replacements(chat_server, ask, question):
    ask(question("half \ud83d pair"))
    assert chat_server.requests[0].body["messages"][0]["content"][0]["text"] == "half ? pair"


def test_sends_stop_top_p_and_further_fields(chat_server, ask):
    reply = ask(
        temperature=None,
        top_p=0.9,
        stop=("END",),
        extra_body={"metadata": {"user_id": "u"}, "output_config": {"task_budget": {"type": "tokens", "total": 9}}},
        extra_headers={"anthropic-beta": "task-budgets", "X-Secret": Secret("hidden")},
    )
    assert isinstance(reply, Reply)
    sent = chat_server.requests[0]
    assert (sent.body["top_p"], sent.body["stop_sequences"], sent.body["metadata"]) == (0.9, ["END"], {"user_id": "u"})
    assert sent.body["output_config"] == {"task_budget": {"type": "tokens", "total": 9}}
    assert (sent.headers["anthropic-beta"], sent.headers["x-secret"]) == ("task-budgets", "hidden")


# media


def image(media_type="image/png", data=b"\x89PNG", **fields):
    return Media("image", media_type, f"[{media_type}]", base64.b64encode(data).decode(), **fields)


def test_media_are_sent_and_counted(chat_server, ask):
    parts = (
        "Look: ",
        image(),
        Media("image", "image/jpeg", "[jpeg]", url="https://example.com/a.jpg"),
        Media("file", "application/pdf", "[pdf]", base64.b64encode(b"%PDF").decode(), name="a.pdf"),
        Media("file", "text/plain", "[text]", base64.b64encode("grüße".encode()).decode()),
        Media("audio", "audio/wav", "[audio/wav, 4 kB]", base64.b64encode(b"RIFF").decode()),
        image("image/tiff"),
    )
    reply = ask(ChatRequest((Message.of_parts("user", parts, cache=True),)))
    assert reply.media == {"image": 2, "file": 2}
    assert chat_server.requests[0].body["messages"][0]["content"] == [
        {"type": "text", "text": "Look: "},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw=="}},
        {"type": "image", "source": {"type": "url", "url": "https://example.com/a.jpg"}},
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}, "title": "a.pdf"},
        {"type": "document", "source": {"type": "text", "media_type": "text/plain", "data": "grüße"}},
        {"type": "text", "text": "[audio/wav, 4 kB][image/tiff]", **CACHED},
    ]  # fmt: skip


def test_a_model_without_media_gets_the_markers(chat_server, ask, claude):
    blind = "messages.0.content.0: this model does not support image input"
    claude.broken = lambda call: (
        claude.error(blind, 400, "invalid_request_error") if '"image"' in str(call.body).replace("'", '"') else None
    )
    request = ChatRequest((Message.of_parts("user", ["Look: ", image()]),))
    first, second = ask(request, request)
    assert (first.media, first.text, len(chat_server.requests)) == ({}, "Yes.", 3)
    assert second.media == {}
    assert chat_server.requests[1].body["messages"][0]["content"][0]["text"] == "Look: [image/png]"


def test_an_image_that_is_too_large_fails_its_row_alone(chat_server, ask, claude):
    message = "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes"
    chat_server.script(claude.error(message, 400, "invalid_request_error"))
    request = ChatRequest((Message.of_parts("user", ["Look: ", image()]),))
    first, second = ask(request, request)
    assert isinstance(first, Failure)
    assert message in first.message
    assert second.media == {"image": 1}


# forms of a schema


def test_a_schema_is_sent_without_the_keywords_that_the_api_refuses(chat_server, ask, question):
    assert ask(question(schema=SCHEMA)).adapted == ()
    sent = chat_server.requests[0].body["output_config"]["format"]
    assert sent == {"type": "json_schema", "schema": PLAIN}


def test_a_model_without_formats_replies_by_a_tool(chat_server, ask, question, claude):
    claude.texts = ['{"score": 0.5, "minimum": "a"}']
    first, second = ask(question(schema=SCHEMA), question(schema=SCHEMA), model="claude-3-haiku")
    assert (first.text, first.stop_reason, first.finish_reason) == (
        '{"score":0.5,"minimum":"a"}',
        "end_turn",
        "tool_use",
    )
    assert first.adapted == second.adapted == ("response_format",)
    assert [set(request.body) & {"tools", "output_config"} for request in chat_server.requests] == [
        {"output_config"},
        {"tools"},
        {"tools"},
    ]
    assert chat_server.requests[1].body["tool_choice"] == {"type": "tool", "name": "reply"}


def test_a_form_that_the_file_names_is_the_only_one(chat_server, ask, question):
    sealed = question("Is it so?\nseal: 0123456789ab", nonces=("0123456789ab",), schema=SCHEMA)
    failed = ask(sealed, model="claude-3-haiku", response_format="json_schema")
    assert isinstance(failed, Failure)
    assert "does not support output format" in failed.message
    assert len(chat_server.requests) == 1
    assert isinstance(ask(question(schema=SCHEMA), response_format="text"), Reply)
    assert "output_config" not in chat_server.requests[1].body


def test_a_form_that_the_reply_depends_on_is_never_left_out(ask, question):
    with pytest.raises(AccessRefused, match="response_format is refused.*write seal: true"):
        ask(question(schema=SCHEMA), model="claude-opus-5-5", response_format="tool", temperature=None)


def test_log_probabilities_are_refused_at_once(chat_server, ask, question):
    with pytest.raises(AccessRefused, match="no log probabilities"):
        ask(question(logprobs=True))
    assert not chat_server.requests


# thinking and sampling


@pytest.mark.parametrize(
    ("name", "options", "requests", "adapted", "sent"),
    [
        ("claude-opus-5", {}, 2, ("temperature",), {"max_tokens": 64 + 4096}),
        ("claude-opus-4-7", {}, 2, ("temperature",), {"max_tokens": 64}),
        ("claude-haiku-4-5", {"top_p": 0.5}, 2, ("top_p",), {"temperature": 0.0}),
        ("claude-haiku-4-5", {"reasoning_effort": "low"}, 2, ("reasoning_effort",), {"temperature": 0.0}),
        ("claude-opus-4-7", {"thinking": "enabled"}, 2, ("temperature", "thinking"), {"thinking": {"type": "adaptive"}}),
        ("claude-haiku-4-5", {"thinking": "adaptive"}, 2, ("temperature", "thinking"), {"thinking": {"type": "enabled", "budget_tokens": 4096}, "max_tokens": 4160}),
        ("claude-haiku-4-5", {"thinking": "enabled", "temperature": None, "max_reasoning_tokens": 10}, 1, (), {"thinking": {"type": "enabled", "budget_tokens": 1024}, "max_tokens": 1088}),
        ("claude-opus-5-5", {"thinking": "disabled", "temperature": None}, 2, ("thinking",), {"max_tokens": 4160}),
        ("claude-opus-5", {"thinking": "disabled", "temperature": None}, 1, (), {"thinking": {"type": "disabled"}, "max_tokens": 64}),
        ("claude-sonnet-4-6", {"thinking": "adaptive", "reasoning_effort": "low", "temperature": None}, 1, (), {"output_config": {"effort": "low"}, "max_tokens": 4160}),
        ("claude-sonnet-4-6", {"reasoning_effort": "xhigh"}, 2, ("reasoning_effort",), {"temperature": 0.0}),
        ("claude-3-haiku", {"max_reasoning_tokens": 8000, "thinking": "enabled"}, 4, ("thinking",), {"max_tokens": 64, "temperature": 0.0}),
    ],
)  # fmt: skip
def test_parameters_that_a_model_refuses_are_adapted_once(
    chat_server, ask, question, claude, name, options, requests, adapted, sent
):
    first, second = ask(question(), question(), model=name, **options)
    assert (first.text, first.adapted) == ("Yes.", adapted), claude.refusals
    assert (second.text, second.adapted) == ("Yes.", adapted)
    assert len(chat_server.requests) == requests + 1, claude.refusals
    body = chat_server.requests[-1].body
    assert {key: body.get(key) for key in sent} == sent


def test_a_limit_above_that_of_the_model_is_lowered_and_reported(ask, question):
    reply = ask(question(), thinking="enabled", temperature=None, max_reasoning_tokens=100_000)
    assert (reply.text, reply.adapted) == ("Yes.", ("max_tokens",))


def test_thinking_that_used_up_the_limit_gets_twice_the_room_once(chat_server, ask, claude):
    claude.thinking_tokens = 5000
    reply = ask(model="claude-opus-5", temperature=None, price=PRICE)
    assert reply.text == "Yes."
    assert [request.body["max_tokens"] for request in chat_server.requests] == [64 + 4096, 64 + 8192]
    assert reply.cost.amount * 1_000_000 == (100 + 4160) + (100 + 5020)
    assert [entry["error"] for entry in reply.retry["history"]] == ["thinking left no tokens for the answer"]


def test_no_room_for_thinking_is_doubled_to_that_of_the_answer(chat_server, ask, claude):
    claude.thinking_tokens = 64
    assert ask(model="claude-opus-5", temperature=None, max_reasoning_tokens=0).text == "Yes."
    assert [request.body["max_tokens"] for request in chat_server.requests] == [64, 128]


def test_many_calls_at_once_adapt_together(chat_server, claude, model, question):
    chat = model(model="claude-opus-4-7", thinking="enabled", reasoning_effort="low")

    async def work():
        async with chat.open(RunContext("run", "test", Path())) as live:
            return await asyncio.gather(*(live.complete(question(f"{number}?")) for number in range(20)))

    replies = asyncio.run(work())
    assert {(reply.text, reply.adapted) for reply in replies} == {("Yes.", ("temperature", "thinking"))}
    assert chat_server.count == 21


def test_calls_that_start_before_the_first_answer_adapt_together(chat_server, claude, model, question, monkeypatch):
    monkeypatch.setattr("dicast.toolkit.endpoint.first_call.FIRST_SECONDS", 0.1)
    chat_server.gathers = 20
    chat = model(model="claude-opus-4-7", thinking="enabled", reasoning_effort="low")

    async def work():
        async with chat.open(RunContext("run", "test", Path())) as live:
            return await asyncio.gather(*(live.complete(question(f"{number}?")) for number in range(20)))

    replies = asyncio.run(work())
    assert {(reply.text, reply.adapted) for reply in replies} == {("Yes.", ("temperature", "thinking"))}
    assert chat_server.count <= 40


def test_a_block_of_thinking_without_an_answer_shows_that_the_model_reasons(chat_server, model, question):
    """Gateways in the format of the API report no tokens of thinking."""

    def answer(request):
        thinking = {"type": "thinking", "thinking": "Hm.", "signature": "x"}
        is_cut = request.body["max_tokens"] < 1000
        content = [thinking] if is_cut else [thinking, {"type": "text", "text": "Yes."}]
        usage = {"input_tokens": 100, "output_tokens": request.body["max_tokens"] if is_cut else 500}
        stop = "max_tokens" if is_cut else "end_turn"
        return chat_server.Answer(body={"type": "message", "content": content, "stop_reason": stop, "usage": usage})

    chat = model(model="of-a-gateway", price=PRICE)
    chat_server.answer = answer

    async def work():
        async with chat.open(RunContext("run", "test", Path())) as live:
            return await live.complete(question())

    reply = asyncio.run(work())
    assert (reply.text, [request.body["max_tokens"] for request in chat_server.requests]) == ("Yes.", [64, 64 + 8192])
    assert reply.cost.amount * 1_000_000 == (100 + 64) + (100 + 500)


def test_thinking_that_uses_up_both_tries_fails_with_the_option(chat_server, ask, claude):
    claude.thinking_tokens = 50_000
    failed = ask(model="claude-opus-5", temperature=None, price=PRICE)
    assert (failed.kind, len(chat_server.requests)) == ("judge_output_invalid", 2)
    assert "raise max_reasoning_tokens (now 8,192" in failed.message
    assert "(8,256 tokens)" in failed.message
    assert failed.cost.amount * 1_000_000 == (100 + 4160) + (100 + 8256)


def test_a_model_that_thinks_without_a_name_for_it_gets_room(chat_server, ask, question, claude):
    claude.thinking_tokens = 10
    first, second = ask(question(), question(), model="claude-sonnet-4-6", extra_body={"thinking": {"type": "adaptive"}}, temperature=None)  # fmt: skip
    assert first.usage.reasoning_tokens == second.usage.reasoning_tokens == 10
    assert [request.body["max_tokens"] for request in chat_server.requests] == [64, 64 + 4096]


def test_the_estimate_covers_thinking_and_the_writes_to_the_cache(model, question):
    request = question()
    price = Price(Decimal(1), Decimal(10), cache_write_per_mtok=Decimal(2))
    chat = model(model="claude-opus-5", price=price)
    assert chat.estimate(request).amount * 1_000_000 == 2 * request.input_tokens + 10 * (64 + 4096)


def test_check_accepts_a_pipeline_and_a_run_judges(chat_server, claude, tmp_path, monkeypatch):
    claude.texts = ['{"seal": "$SEAL", "score": 0.75, "confidence": 0.9, "rationale": "It is."}']
    chat_server.answer = claude
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "input": "2+2?", "output": "4"}\n')
    (tmp_path / "p.yaml").write_text(
        f"""
source: {{rows/jsonl: {{path: rows.jsonl}}}}
judges: [llm/judge: {{model: {{anthropic/chat: {{model: claude-opus-5, base_url: "{claude.url(chat_server)}", api_key: {claude.key}, price: {{input_per_mtok: 1, output_per_mtok: 1}}}}}}}}]
budget: {{run: 1 usd}}
"""
    )
    monkeypatch.chdir(tmp_path)
    document = run_pipeline(tmp_path / "p.yaml").document
    assert document["score"]["mean"] == 0.75
    assert document["cost"]["usd"] == "0.00072"


def test_options_name_the_file_and_the_environment(monkeypatch):
    with pytest.raises(Exception, match="set ANTHROPIC_API_KEY"):
        Chat("claude-haiku-4-5")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-env")
    assert Chat("claude-haiku-4-5").key == Secret("sk-ant-env")
    assert Chat("claude-haiku-4-5", base_url="http://127.0.0.1:9", price="free").key is None
    assert Chat("claude-haiku-4-5", base_url="https://api.anthropic.com.example.net", price="free").key is None
    assert Chat("claude-haiku-4-5", base_url="https://api.anthropic.com/v1").key == Secret("sk-ant-env")


def test_the_estimate_counts_an_image_by_the_pixels_of_the_family():
    from decimal import Decimal

    from dicast import Price, Secret
    from dicast_anthropic import Chat

    chat = Chat("claude-sonnet-4-5", api_key=Secret("k"), price=Price(Decimal(1), Decimal(0)))
    link = Media("image", "image/png", "[image/png]", url="https://example.org/a.png")
    text, picture = Message("user", "[image/png]"), Message.of_parts("user", [link])
    costs = [chat.estimate(ChatRequest((message,), max_output_tokens=1)).amount for message in (text, picture)]
    assert costs[1] - costs[0] == Decimal(4784) / 10**6


def test_a_failure_has_the_parameters_that_were_adapted(chat_server, ask, question, claude):
    chat_server.script(
        claude.error("top_p: Extra inputs are not permitted", 400, "invalid_request_error"),
        claude.error("messages: too long for this model", 413, "request_too_large"),
    )
    answer = ask(question(), model="claude-haiku-4-5", top_p=0.5)
    assert isinstance(answer, Failure)
    assert answer.adapted == ("top_p",)


def test_a_limit_that_falls_with_every_request_is_asked_for_only_so_often(chat_server, ask, claude):
    def lower(request):
        return claude.error(
            f"max_tokens: {request.body['max_tokens']} > {10**6 - len(chat_server.requests)}, which is the maximum",
            400,
            "invalid_request_error",
        )

    claude.broken = lower
    failed = ask()
    assert failed.kind == "judge_call_failed"
    assert len(chat_server.requests) == 16


@pytest.mark.parametrize("limit", ["0", "9" * 5000])
def test_a_limit_that_no_model_has_changes_nothing(chat_server, ask, claude, limit):
    claude.broken = lambda request: claude.error(
        f"max_tokens: 64 > {limit}, which is the maximum", 400, "invalid_request_error"
    )
    assert "HTTP 400: max_tokens: 64 >" in ask().message
    assert len(chat_server.requests) == 1


@pytest.mark.parametrize("model", [Chat, Batch])
@pytest.mark.parametrize("address", [{}, {"base_url": "https://api.anthropic.com:443/v1"}])
def test_an_empty_key_is_refused_for_the_address_of_anthropic(monkeypatch, model, address):
    with pytest.raises(ConfigError, match="needs a key: set ANTHROPIC_API_KEY"):
        model("m", price="free", api_key=Secret(""), **address)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "")
    with pytest.raises(ConfigError, match="needs a key: set ANTHROPIC_API_KEY"):
        model("m", price="free", **address)
    assert model("m", "http://127.0.0.1:9", price="free", api_key=Secret("")).key is not None
