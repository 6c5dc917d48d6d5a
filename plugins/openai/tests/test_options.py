"""Options that shape a request, and the form in which a refusing endpoint gets it."""

from __future__ import annotations

from decimal import Decimal

import pytest

from dicast import AccessRefused, ConfigError, Price, Reply, Secret, Token, Usage
from dicast_openai.chat import Chat

PRICE = Price(Decimal(10), Decimal(100))
SCHEMA = {"type": "object", "properties": {"score": {"type": "number"}}}


def test_options_are_sent_under_the_names_of_the_api(chat_server, ask):
    ask(top_p=0.5, seed=7, stop=("END",), reasoning_effort="low", extra_body={"top_k": 1}, temperature=None)
    body = chat_server.requests[0].body
    assert {name: body[name] for name in ("top_p", "seed", "stop", "reasoning_effort", "top_k")} == {
        "top_p": 0.5,
        "seed": 7,
        "stop": ["END"],
        "reasoning_effort": "low",
        "top_k": 1,
    }
    assert "temperature" not in body


def test_extra_headers_are_sent_and_masked(chat_server, ask):
    chat_server.answer = chat_server.error(413, "not with hidden-word")
    failure = ask(extra_headers={"X-Project": Secret("hidden-word")})
    assert chat_server.requests[0].headers["x-project"] == "hidden-word"
    assert failure.message.endswith("not with ***")


@pytest.mark.parametrize("name", ["temperature", "max_tokens", "messages", "stream", "logprobs", "model"])
def test_extra_body_cannot_have_what_has_an_option_of_its_own(name):
    with pytest.raises(ValueError, match=f"extra_body cannot have '{name}'"):
        Chat(model="m", base_url="http://127.0.0.1/v1", price="free", extra_body={name: 1})


@pytest.mark.parametrize(
    ("role", "roles"), [("system", ["system", "user"]), ("developer", ["developer", "user"]), ("user", ["user"])]
)
def test_system_messages_get_the_role_of_the_option(chat_server, ask, role, roles):
    ask(system_role=role)
    messages = chat_server.requests[0].body["messages"]
    assert [message["role"] for message in messages] == roles
    if role == "user":
        assert messages[0]["content"] == "You judge.\n\nIs it so?"


def test_a_role_that_was_asked_for_is_not_replaced(chat_server, endpoint_modes, ask):
    chat_server.answer = endpoint_modes.MODES["vllm_system"]
    failure = ask(system_role="system")
    assert "System role not supported" in failure.message
    assert chat_server.count == 1


def test_what_the_endpoint_refused_is_remembered_for_the_run(chat_server, endpoint_modes, ask, question):
    chat_server.answer = endpoint_modes.refusing(endpoint_modes.pydantic_error("seed"), "seed")
    replies = ask(question(), question(), question(), seed=1)
    assert [reply.adapted for reply in replies] == [("seed",)] * 3
    assert chat_server.count == 4


def test_a_reply_lists_only_adaptations_of_its_own_request(chat_server, endpoint_modes, ask, question):
    chat_server.answer = endpoint_modes.MODES["groq_schema"]
    replies = ask(question(schema=SCHEMA), question())
    assert [reply.adapted for reply in replies] == [("response_format",), ()]


def test_a_refusal_that_stays_is_shown(chat_server, endpoint_modes, ask):
    chat_server.answer = endpoint_modes.plain_error("temperature and other things are wrong")
    failure = ask()
    assert (chat_server.count, failure.kind) == (2, "judge_call_failed")
    assert "temperature and other things are wrong" in failure.message


@pytest.mark.parametrize(
    ("message", "calls"),
    [
        ("Invalid 'max_tokens': integer above maximum value. Expected a value <= 4096.", 1),
        ("max_tokens must be between 1 and 4096", 1),
        ("Range of max_tokens should be [1, 8192]", 1),
        ("max_tokens is too large: 4352. This model supports at most 4096 completion tokens.", 1),
        ("max_tokens and max_completion_tokens are not supported", 2),
    ],
)
def test_a_refused_amount_is_no_reason_for_another_name(chat_server, endpoint_modes, ask, message, calls):
    chat_server.answer = endpoint_modes.openai_error("max_tokens", message)
    assert message in ask().message
    assert chat_server.count == calls


@pytest.mark.parametrize("evidence", ["usage", "text"])
def test_a_model_seen_to_reason_gets_room_from_then_on(chat_server, ask, question, evidence):
    usage = {"prompt_tokens": 100, "completion_tokens": 20, "completion_tokens_details": {"reasoning_tokens": 10}}
    by_text = chat_server.reply("yes", message={"reasoning_content": "hm"})
    chat_server.answer = chat_server.reply("yes", usage=usage) if evidence == "usage" else by_text
    ask(question(), question())
    assert [request.body["max_tokens"] for request in chat_server.requests] == [64, 64 + 4096]


@pytest.mark.parametrize(
    ("options", "limit"),
    [
        ({"model": "gpt-5-mini"}, 64 + 4096),
        ({"model": "openai/o3"}, 64 + 4096),
        ({"model": "deepseek-reasoner"}, 64 + 4096),
        ({"reasoning_effort": "low"}, 64 + 4096),
        ({"reasoning_effort": "none"}, 64),
        ({"model": "gpt-5-mini", "max_reasoning_tokens": 1000}, 64 + 1000),
        ({"model": "gpt-5-mini", "max_reasoning_tokens": 0}, 64),
        ({"model": "gpt-5-chat-latest"}, 64),
        ({"model": "grok-4-fast-non-reasoning"}, 64),
        ({"model": "gpt-4o-mini"}, 64),
        ({"model": "olmo-3"}, 64),
    ],
)
def test_the_limit_has_room_for_reasoning_and_the_projection_covers_it(
    chat_server, ask, model, question, options, limit
):
    ask(**options)
    assert chat_server.requests[0].body["max_tokens"] == limit
    chat = model(**{**options, "price": PRICE})
    request = question()
    assert chat.estimate(request) == PRICE.cost(Usage(chat.most_input_tokens(request), limit))


def test_an_empty_reply_is_asked_for_again_once_with_twice_the_room(chat_server, endpoint_modes, ask, question):
    chat_server.answer = endpoint_modes.MODES["always_reasoning"]
    failure = ask(question(), max_reasoning_tokens=100, price=PRICE, retries=3)
    assert [request.body["max_tokens"] for request in chat_server.requests] == [164, 264]
    assert failure.kind == "judge_output_invalid"
    assert failure.message.endswith(
        "the reply is empty: its limit ended it after 264 reasoning tokens; the limit had 64 tokens for the answer and 200 for "
        "reasoning, twice max_reasoning_tokens; raise max_reasoning_tokens (100) (2 tries)"
    )
    assert failure.cost == PRICE.cost(Usage(200, 164 + 264))


def test_a_blank_with_its_probability_is_no_empty_reply(chat_server, ask, question):
    chat_server.answer = chat_server.reply("\n", finish_reason="length", logprobs=(("\n", -0.1),))
    reply = ask(question(logprobs=True, top_logprobs=2))
    assert (reply.text, reply.logprobs, chat_server.count) == ("\n", (Token("\n", -0.1),), 1)


def test_the_reply_after_an_empty_one_has_the_cost_of_both(chat_server, endpoint_modes, ask, question):
    chat_server.answer = endpoint_modes.MODES["reasoning"]
    reply = ask(question(), price=PRICE)
    assert isinstance(reply, Reply)
    assert reply.cost == PRICE.cost(Usage(200, 64 + 520))
    assert reply.retry["attempts"] == 2


def test_the_most_probable_tokens_are_asked_for_and_read(chat_server, ask, question):
    top = [{"token": "yes", "logprob": -0.1}, {"token": "no", "logprob": -2.5}]
    item = {"token": "yes", "logprob": -0.1, "top_logprobs": top}
    choice = {"message": {"content": "yes"}, "finish_reason": "stop", "logprobs": {"content": [item]}}
    chat_server.answer = chat_server.raw({"choices": [choice]})
    reply = ask(question(logprobs=True, top_logprobs=100))
    assert reply.logprobs == (Token("yes", -0.1, (Token("yes", -0.1), Token("no", -2.5))),)
    assert chat_server.requests[0].body["top_logprobs"] == 20


def test_the_older_form_of_log_probabilities_is_read(chat_server, endpoint_modes, ask, question):
    chat_server.answer = endpoint_modes.MODES["together_logprobs"]
    reply = ask(question(logprobs=True, top_logprobs=2))
    assert reply.logprobs == (Token("yes", -0.25, (Token("yes", -0.25), Token("no", -1.5))),)


def test_fewer_tokens_are_asked_for_where_the_endpoint_has_a_lower_limit(chat_server, endpoint_modes, ask, question):
    chat_server.answer = endpoint_modes.MODES["five_logprobs"]
    reply = ask(question(logprobs=True, top_logprobs=20))
    assert (reply.adapted, chat_server.requests[-1].body["top_logprobs"]) == (("top_logprobs",), 5)


def test_log_probabilities_are_never_left_out(chat_server, endpoint_modes, ask, question):
    chat_server.answer = endpoint_modes.MODES["logprobs"]
    with pytest.raises(AccessRefused, match="logprobs is refused: HTTP 400: Gaudi doesn't support logprobs"):
        ask(question(logprobs=True))


def test_tokens_of_a_listed_model_from_the_cache_have_their_listed_price(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    chat = Chat(model="gpt-4o-mini", base_url="https://api.openai.com/v1", api_key=Secret("x"))
    plain, cached = (chat.cost(Usage(1_000_000, 0, count)).amount for count in (0, 1_000_000))
    assert cached < plain


def test_a_higher_price_of_writing_to_the_cache_is_the_projection(model, question):
    price = Price(Decimal(10), Decimal(100), cache_write_per_mtok=Decimal(12))
    chat, request = model(price=price), question()
    tokens = chat.most_input_tokens(request)
    assert chat.estimate(request).amount == (Decimal(12) * tokens + 100 * 64) / 1_000_000


@pytest.mark.parametrize(
    ("url", "is_free"),
    [
        ("http://127.0.0.1:8000/v1", True),
        ("http://localhost:11434/v1", True),
        ("http://[::1]:8000/v1", True),
        ("http://10.0.0.1/v1", False),
        ("http://localhost.example/v1", False),
    ],
)
def test_a_loopback_address_is_free_by_default(url, is_free):
    if is_free:
        assert Chat(model="m", base_url=url).is_free
    else:
        with pytest.raises((ValueError, ConfigError), match="no price is listed for 'm' at"):
            Chat(model="m", base_url=url)
