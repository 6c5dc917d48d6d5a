"""Endpoints as they are, asked through litellm: refused parameters, reasoning, usage, errors and refusals."""

from __future__ import annotations

import asyncio
import sys
from decimal import Decimal
from pathlib import Path

import pytest
import stamina

from dicast import AccessRefused, ChatRequest, ConfigError, Cost, Failure, Message, Price, RunContext, Secret, Usage
from dicast_litellm import Chat

KEY = "sk-very-secret-0123456789"
PRICE = Price(Decimal(1), Decimal(2), Decimal("0.1"))
SCHEMA = {"type": "object", "properties": {"score": {"type": "number"}}, "required": ["score"]}
SEAL = "0123456789ab"
SEALED = ChatRequest(
    (Message("system", "You judge.", cache=True), Message("user", f"Judge.\nseal: {SEAL}")),
    schema=SCHEMA,
    nonces=(SEAL,),
    max_output_tokens=64,
)
LENGTH = {"prompt_tokens": 100, "completion_tokens": 64, "completion_tokens_details": {"reasoning_tokens": 64}}


@pytest.fixture(autouse=True)
def no_waits():
    with stamina.set_testing(True, attempts=100, cap=True):
        yield


@pytest.fixture
def ask(chat_server):
    """Ask the requests one after the other, by default one, and return the answers."""

    async def run(chat, requests):
        async with chat.open(RunContext("r1", "test", Path())) as live:
            return [await live.complete(request) for request in requests]

    def asking(*requests, model="openai/some-model", **options):
        defaults = {"api_base": chat_server.url, "api_key": Secret(KEY), "price": PRICE, **options}
        answers = asyncio.run(run(Chat(model, **defaults), requests or (SEALED,)))
        return answers if requests[1:] else answers[0]

    return asking


def refusing(server, fields, message, **fields_of_error):
    """An answer that refuses requests with one of *fields*."""
    error = {"message": message, "type": "invalid_request_error", **fields_of_error}

    def answer(request):
        return server.raw({"error": error}, status=400) if set(fields) & set(request.body) else "Fine."

    return answer


@pytest.mark.parametrize(
    ("fields", "message", "options"),
    [
        (["temperature"], "Unsupported value: 'temperature' does not support 0 with this model.", {}),
        (["seed"], "Unrecognized request argument supplied: seed", {"seed": 1}),
        (["top_p"], "top_p is not supported", {"top_p": 0.5}),
        (["stop"], "'stop' is not supported with this model", {"stop": ("END",)}),
        (["response_format"], "response_format is not supported", {}),
    ],
)
def test_a_refused_parameter_is_left_out_once(chat_server, ask, fields, message, options):
    chat_server.answer = refusing(chat_server, fields, message)
    first, second = ask(SEALED, SEALED, **options)
    assert first.adapted == second.adapted == tuple(fields)
    tries = 3 if fields == ["response_format"] else 2  # json_schema and json_object, then text
    assert chat_server.count == tries + 1


def test_a_limit_of_another_name_is_translated(chat_server, ask):
    message = (
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    )
    chat_server.answer = refusing(chat_server, ["max_tokens"], message, param="max_tokens")
    assert ask().adapted == ("max_tokens",)
    assert chat_server.requests[-1].body["max_completion_tokens"] == 64


def test_a_system_message_moves_to_the_front_of_the_user_message(chat_server, ask):
    def answer(request):
        roles = [message["role"] for message in request.body["messages"]]
        return chat_server.error(400, "System role not supported") if "system" in roles else "Fine."

    chat_server.answer = answer
    assert ask().adapted == ("system_role",)
    assert chat_server.requests[-1].body["messages"][0]["content"].startswith("You judge.\n\nJudge.")


def test_a_parameter_that_litellm_refuses_itself_costs_no_request(chat_server, ask):
    reply = ask(model="openai/o3-mini", max_reasoning_tokens=0)
    assert reply.adapted == ("temperature",)
    assert chat_server.count == 1


def test_log_probabilities_are_never_left_out(chat_server, ask):
    chat_server.answer = refusing(chat_server, ["logprobs"], "logprobs are not supported")
    request = ChatRequest((Message("user", "Judge."),), logprobs=True)
    with pytest.raises(AccessRefused, match="logprobs is refused.*another option of the judge"):
        ask(request)


def test_the_form_of_a_reply_without_a_seal_is_never_left_out(chat_server, ask):
    chat_server.answer = refusing(chat_server, ["response_format"], "response_format is not supported")
    request = ChatRequest((Message("user", "Judge."),), schema=SCHEMA)
    with pytest.raises(AccessRefused, match="response_format is refused.*write seal: true"):
        ask(request)


def test_reasoning_has_its_own_room(chat_server, ask):
    ask(model="openai/gpt-5-mini", temperature=None, reasoning_effort="low")
    body = chat_server.requests[0].body
    assert body["max_completion_tokens"] == 64 + 4096
    assert body["reasoning_effort"] == "low"


def test_an_empty_reply_by_its_limit_is_asked_again_once(chat_server, ask):
    empty = chat_server.reply("", finish_reason="length", usage=LENGTH)
    chat_server.script(empty)
    reply = ask(max_reasoning_tokens=100)
    assert (reply.text != "", chat_server.count) == (True, 2)
    assert [request.body["max_tokens"] for request in chat_server.requests] == [164, 264]
    assert reply.cost.amount * 1_000_000 == (100 + 2 * 64) + (100 + 2 * 20)
    chat_server.answer = empty
    failed = ask(max_reasoning_tokens=100)
    assert "raise max_reasoning_tokens" in failed.message


def test_reasoning_outside_of_the_completion_is_billed(chat_server, ask):
    usage = {"prompt_tokens": 1000, "completion_tokens": 20, "total_tokens": 4020}
    chat_server.answer = chat_server.reply("Fine.", usage=usage)
    assert ask().usage == Usage(1000, 3020)
    assert ask().cost.amount * 1_000_000 == 1000 + 2 * 3020


def test_cached_input_has_its_price(chat_server, ask):
    usage = {"prompt_tokens": 1000, "completion_tokens": 20, "prompt_tokens_details": {"cached_tokens": 900}}
    chat_server.answer = chat_server.reply("Fine.", usage=usage)
    assert ask().cost.amount * 1_000_000 == 100 + Decimal("0.1") * 900 + 40


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (429, {"message": "You exceeded your current quota.", "code": "insufficient_quota"}),
        (402, {"message": "Insufficient credits"}),
        (400, {"message": "billing hard limit has been reached", "code": "billing_hard_limit_reached"}),
    ],
)
def test_an_account_without_quota_ends_the_run(chat_server, ask, status, error):
    chat_server.answer = chat_server.raw({"error": error}, status=status)
    with pytest.raises(AccessRefused, match=error["message"][:20]):
        ask()
    assert chat_server.count == 1


def test_a_refusal_by_policy_is_asked_once(chat_server, ask):
    error = {"message": "The response was filtered due to the prompt.", "code": "content_filter"}
    chat_server.answer = chat_server.raw({"error": error}, status=400)
    assert (ask().kind, chat_server.count) == ("refused", 1)


def test_an_error_with_status_200_is_a_failed_call_that_costs_nothing(chat_server, ask):
    chat_server.answer = chat_server.raw({"error": {"message": "rate-limited upstream", "code": 429}})
    failed = ask(retries=1)
    assert isinstance(failed, Failure)
    assert "rate-limited upstream" in failed.message
    assert (failed.kind, failed.cost, chat_server.count) == ("judge_call_failed", Cost.zero(), 2)


@pytest.mark.parametrize("reason", ["eos", "eos_token", "STOP", "end_turn", "stop_sequence", "completed"])
def test_words_for_the_end_of_a_whole_reply(chat_server, ask, reason):
    chat_server.answer = chat_server.reply("Fine.", finish_reason=reason)
    assert ask().stop_reason in ("end_turn", "stop_sequence")


def test_extra_fields_and_headers_are_sent(chat_server, ask):
    ask(extra_body={"top_k": 3}, extra_headers={"X-Title": "dicast", "X-Key": Secret("hidden-value")})
    request = chat_server.requests[0]
    assert request.body["top_k"] == 3
    assert (request.headers["x-title"], request.headers["x-key"]) == ("dicast", "hidden-value")


def test_extra_body_has_no_field_of_the_judge():
    with pytest.raises((ValueError, ConfigError), match="extra_body cannot have 'max_tokens'"):
        Chat("openai/m", price="free", extra_body={"max_tokens": 1})


def test_images_are_sent_and_markers_where_they_are_refused(chat_server, ask):
    from dicast import Media

    picture = Media("image", "image/png", "[image/png, 4 B]", "iVBORw==")
    request = ChatRequest((Message.of_parts("user", ["Look: ", picture]),))
    assert ask(request).media == {"image": 1}
    assert chat_server.requests[0].body["messages"][0]["content"][1]["type"] == "image_url"

    def blind(request):
        text = isinstance(request.body["messages"][0]["content"], str)
        return "Fine." if text else chat_server.error(400, "This model does not support image input")

    chat_server.answer = blind
    assert ask(request).media == {}
    assert chat_server.requests[-1].body["messages"][0]["content"] == "Look: [image/png, 4 B]"


def test_a_loopback_address_without_a_key_is_free(chat_server):
    chat = Chat("openai/some-model", api_base=chat_server.url)
    assert chat.is_assumed_free
    assert "loopback" in chat.assumptions()[0]
    with pytest.raises(ConfigError, match="price of 'openai/some-model' is not known"):
        Chat("openai/some-model", api_base=chat_server.url, api_key=Secret(KEY))
    assert not Chat("openai/gpt-4o-mini", api_base=chat_server.url).is_assumed_free


def test_a_module_that_a_provider_needs_ends_the_run_with_its_name(chat_server, ask, monkeypatch):
    monkeypatch.setitem(sys.modules, "google.auth", None)
    with pytest.raises(AccessRefused, match="needs the module google.auth.*pip install google-auth") as refused:
        ask(model="vertex_ai/gemini-2.5-flash", extra_body={"vertex_project": "p", "vertex_location": "europe-west1"})
    assert (refused.value.cost, chat_server.count) == (Cost.zero(), 0)


def test_content_in_parts_is_read(chat_server, ask):
    thought = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    chat_server.answer = chat_server.reply([thought, {"type": "text", "text": "Fi"}, {"type": "text", "text": "ne."}])
    reply = ask()
    assert (reply.text, reply.usage, reply.stop_reason) == ("Fine.", Usage(100, 20), "end_turn")


def test_a_page_in_place_of_a_reply_is_named(chat_server, ask):
    chat_server.answer = chat_server.raw(b"<html>Gateway login</html>", content_type="text/html")
    assert "the reply is text/html, not JSON" in ask(retries=0).message


def test_a_failure_has_the_parameters_that_were_adapted(chat_server, ask):
    error = {"message": "Unrecognized request argument supplied: seed", "type": "invalid_request_error"}
    too_long = {"message": "This model's maximum context length is 10 tokens.", "type": "invalid_request_error"}
    chat_server.answer = lambda request: chat_server.raw(
        {"error": error if "seed" in request.body else too_long}, status=400
    )
    answer = ask(seed=1)
    assert isinstance(answer, Failure)
    assert answer.adapted == ("seed",)
