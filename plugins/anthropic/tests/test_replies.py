"""Replies of the Messages API, their cost, and the faults without a reply."""

from __future__ import annotations

from decimal import Decimal

import pytest

from dicast import AccessRefused, Cost, Failure, Price, Reply, Usage

PRICE = Price(Decimal(1), Decimal(10), Decimal("0.1"), Decimal("1.25"))


def blocks(*content):
    return {"content": list(content)}


def test_reads_the_reply(ask, claude):
    claude.usage = {"cache_creation_input_tokens": 200, "cache_read_input_tokens": 700}
    reply = ask(price=PRICE)
    assert reply == Reply(
        "Yes.",
        model="claude-haiku-4-5-20260101",
        stop_reason="end_turn",
        finish_reason="end_turn",
        usage=Usage(1000, 20, 700, 200),
        cost=PRICE.cost(Usage(1000, 20, 700, 200)),
    )
    assert reply.cost.amount * 1_000_000 == 100 + Decimal("0.1") * 700 + Decimal("1.25") * 200 + 10 * 20


def test_the_listed_price_covers_the_cache(claude, monkeypatch):
    from dicast import Secret
    from dicast_anthropic import Chat

    chat = Chat("claude-haiku-4-5", api_key=Secret(claude.key))
    cost = chat.cost(Usage(1_000_000, 0, 400_000, 200_000))
    assert cost.amount == Decimal("0.4") * Decimal("0.1") + Decimal("0.2") * Decimal("1.25") + Decimal("0.4")
    assert cost.pricing_version.startswith("genai-prices ")


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("end_turn", "end_turn"),
        ("stop_sequence", "stop_sequence"),
        ("max_tokens", "max_tokens"),
        ("model_context_window_exceeded", "max_tokens"),
        ("refusal", "refusal"),
        ("pause_turn", "pause_turn"),
        (None, None),
    ],
)
def test_stop_reasons(ask, claude, reason, expected):
    claude.reply_members = {"stop_reason": reason}
    reply = ask()
    assert (reply.stop_reason, reply.finish_reason) == (expected, reason)


def test_thinking_is_no_part_of_the_text(ask, claude):
    thinking = {"type": "thinking", "thinking": "No?", "signature": "x"}
    hidden = {"type": "redacted_thinking", "data": "x"}
    claude.reply_members = blocks(thinking, hidden, {"type": "text", "text": "Yes"}, {"type": "text", "text": "."})
    assert ask().text == "Yes."


def test_the_tokens_of_thinking_are_counted_and_billed(ask, claude):
    claude.usage = {"output_tokens": 500, "output_tokens_details": {"thinking_tokens": 450}}
    reply = ask(price=PRICE)
    assert reply.usage == Usage(100, 500, reasoning_tokens=450)
    assert reply.cost == PRICE.cost(Usage(100, 500))


@pytest.mark.parametrize(
    "usage",
    [
        None,
        {},
        {"input_tokens": 0, "output_tokens": 0},
        {"input_tokens": True, "output_tokens": 1},
        {"input_tokens": 1e300, "output_tokens": 1},
    ],
    ids=str,
)
def test_a_reply_without_usage_costs_the_estimate(ask, claude, model, question, usage):
    claude.reply_members = {"usage": usage}
    reply = ask(price=PRICE)
    assert reply.usage is None
    assert reply.cost == model(price=PRICE).estimate(question())


# faults


@pytest.mark.parametrize(
    ("status", "kind", "requests"),
    [(529, "overloaded_error", 4), (500, "api_error", 4), (429, "rate_limit_error", 4), (413, "request_too_large", 1)],
)
def test_faults_are_tried_again_if_they_may_pass(chat_server, ask, claude, no_waits, status, kind, requests):
    claude.broken = lambda request: claude.error("Overloaded", status, kind)
    failed = ask(price=PRICE)
    assert (failed.kind, failed.cost, len(chat_server.requests)) == ("judge_call_failed", Cost.zero(), requests)
    assert f"HTTP {status}: Overloaded" in failed.message
    assert f"claude-haiku-4-5 at {claude.url(chat_server)}/v1/messages" in failed.message


def test_an_overloaded_api_is_asked_again(chat_server, ask, claude, no_waits):
    chat_server.script(claude.error("Overloaded", 529, "overloaded_error"))
    assert ask().text == "Yes."


@pytest.mark.parametrize(
    ("status", "kind", "message", "details"),
    [
        (401, "authentication_error", "invalid x-api-key", {}),
        (402, "billing_error", "Your payment failed.", {}),
        (403, "permission_error", "Your API key does not have permission to use the specified resource.", {}),
        (404, "not_found_error", "model: claude-9", {}),
        (400, "invalid_request_error", "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing.", {}),
        (400, "invalid_request_error", "You have reached your specified API usage limits. You will regain access on 2027-01-01 at 00:00 UTC.", {}),
        (429, "rate_limit_error", "Your organization has reached its monthly limit.", {"error_code": "enforced_spend_limit_reached"}),
    ],
)  # fmt: skip
def test_an_account_without_access_or_credit_ends_the_run(chat_server, ask, claude, status, kind, message, details):
    claude.broken = lambda request: claude.error(message, status, kind, **details)
    with pytest.raises(AccessRefused, match=message[:20]):
        ask()
    assert len(chat_server.requests) == 1


def test_a_refusal_by_policy_is_asked_once(chat_server, ask, claude):
    claude.broken = lambda request: claude.error(
        "Output blocked by content filtering policy", 400, "invalid_request_error"
    )
    failed = ask()
    assert (failed.kind, len(chat_server.requests)) == ("refused", 1)


def test_a_prompt_that_is_too_long_fails_its_row_alone(chat_server, ask, question, claude):
    message = "prompt is too long: 208310 tokens > 200000 maximum"
    chat_server.script(claude.error(message, 400, "invalid_request_error"))
    first, second = ask(question(schema={"type": "object", "additionalProperties": False}), question())
    assert isinstance(first, Failure)
    assert message in first.message
    assert (second.text, second.adapted, len(chat_server.requests)) == ("Yes.", (), 2)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}, "an error: Overloaded"),
        ({"type": "message", "content": None}, "the reply has no content"),
        (b"<html>", "no valid JSON"),
        ({"type": "message", "content": [{"type": "text", "text": None}]}, "has no text"),
    ],
)
def test_a_reply_that_is_no_message(chat_server, ask, claude, no_waits, body, message):
    claude.broken = lambda request: chat_server.raw(body)
    failed = ask(retries=1, price=PRICE)
    assert (failed.kind, len(chat_server.requests)) == ("judge_call_failed", 2)
    assert message in failed.message


def test_an_error_with_status_200_costs_nothing(chat_server, ask, claude, no_waits):
    chat_server.script(chat_server.raw({"type": "error", "error": {"type": "api_error", "message": "Internal"}}))
    reply = ask(price=PRICE)
    assert reply.cost == PRICE.cost(Usage(100, 20))


def test_the_key_is_in_no_message(ask, claude):
    claude.broken = lambda request: claude.error(f"bad key {claude.key}", 400, "invalid_request_error")
    assert claude.key not in ask().message


def test_a_loopback_address_is_free_unless_a_reply_has_a_cost(chat_server, ask, claude):
    unkeyed = {"model": "local-model", "api_key": None, "price": None}
    answer = {"content": [{"type": "text", "text": "Yes."}], "usage": {"input_tokens": 5, "output_tokens": 1}}
    chat_server.script(
        chat_server.raw(answer), chat_server.Answer(body=answer, headers={"x-litellm-response-cost": "0.002"})
    )
    assert ask(**unkeyed).cost == Cost.zero()
    with pytest.raises(AccessRefused, match="reports a cost of 0.002 usd"):
        ask(**unkeyed)
    with pytest.raises(ValueError, match="no price is listed for 'claude-haiku-4-5' at http"):
        ask(**unkeyed | {"model": "claude-haiku-4-5"})
