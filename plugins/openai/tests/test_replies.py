"""Reading of answers: the reply, its cost, and every failure."""

from __future__ import annotations

import asyncio
import gzip
import socket
import time
from decimal import Decimal
from pathlib import Path

import pytest

from dicast import AccessRefused, ChatRequest, Cost, Message, Price, Reply, RunContext, Secret, Token, Usage
from dicast.toolkit.rate_limit import RateLimiter

PRICE = Price(Decimal(10), Decimal(100))
REQUEST = ChatRequest((Message("user", "Is it so?"),), max_output_tokens=64)
MOST = PRICE.cost(Usage(REQUEST.input_tokens, 64))
COUNTED = PRICE.cost(Usage(100, 20))


def test_reads_the_reply(chat_server, ask):
    chat_server.answer = chat_server.reply("yes", model="m-2025")
    reply = Reply("yes", model="m-2025", usage=Usage(100, 20), cost=COUNTED, finish_reason="stop")
    assert ask(price=PRICE) == reply


def test_a_free_model_costs_nothing(ask):
    assert ask().cost == Cost.zero()


@pytest.mark.parametrize(
    ("finish", "expected"),
    [
        ("stop", "end_turn"),
        ("length", "max_tokens"),
        ("content_filter", "refusal"),
        ("tool_calls", "tool_calls"),
        (None, None),
    ],
)
def test_stop_reasons_are_named_alike(chat_server, ask, finish, expected):
    chat_server.answer = chat_server.reply("yes", finish_reason=finish)
    assert ask().stop_reason == expected


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("", ""),
        (None, ""),
        ([{"type": "text", "text": "a"}, {"type": "image"}, {"type": "text", "text": "b"}], "ab"),
        (" \ud83d\ude00 ", " \U0001f600 "),
    ],
)
def test_content_is_text_in_every_shape(chat_server, ask, content, text):
    chat_server.answer = chat_server.reply(content)
    assert ask().text == text


def test_a_refusal_is_one_whatever_the_finish_reason(chat_server, ask):
    chat_server.answer = chat_server.reply(None, message={"refusal": "I cannot."})
    assert (ask().text, ask().stop_reason) == ("I cannot.", "refusal")


def test_reasoning_is_left_out(chat_server, ask):
    chat_server.answer = chat_server.reply("yes", message={"reasoning_content": "hm"})
    assert ask().text == "yes"


def test_logprobs_are_asked_for_and_read(chat_server, ask, question):
    chat_server.answer = chat_server.reply("yes", logprobs=(("y", -0.5), ("es", -1)))
    assert ask(question(logprobs=True)).logprobs == (Token("y", -0.5), Token("es", -1.0))
    assert chat_server.requests[0].body["logprobs"] is True


def test_without_usage_a_reply_costs_the_estimate(chat_server, ask, model):
    chat_server.answer = chat_server.reply("yes", usage=None)
    reply = ask(REQUEST, price=PRICE)
    assert (reply.usage, reply.cost) == (None, MOST)
    assert model(price=PRICE).estimate(REQUEST) == MOST


@pytest.mark.parametrize(
    "usage",
    [
        {"prompt_tokens": 5},
        {"prompt_tokens": -1, "completion_tokens": 1},
        {"prompt_tokens": 10**30, "completion_tokens": 1},
        {"prompt_tokens": 5, "completion_tokens": 10**18},
        {"prompt_tokens": True, "completion_tokens": 1},
        {"prompt_tokens": 5, "completion_tokens": False},
        {},
    ],
)
def test_usage_that_cannot_be_read_is_none(chat_server, ask, usage):
    chat_server.answer = chat_server.reply("yes", usage=usage)
    assert ask(REQUEST, price=PRICE).cost == MOST


@pytest.mark.parametrize("written", [0, 20])
def test_usage_of_no_input_tokens_was_not_counted(chat_server, ask, written):
    chat_server.answer = chat_server.reply("yes", usage={"prompt_tokens": 0, "completion_tokens": written})
    reply = ask(REQUEST, price=PRICE)
    assert (reply.usage, reply.cost) == (None, MOST)


# Tries


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_tries_again_after_what_may_pass(chat_server, ask, status):
    chat_server.script(chat_server.error(status, "busy"), chat_server.error(status, "still"))
    reply = ask(price=PRICE)
    assert (reply.cost, reply.metrics, chat_server.count) == (COUNTED, {}, 3)
    message = f"m at {chat_server.url}/chat/completions: HTTP {status}:"
    history = [{"attempt": 1, "error": f"{message} busy"}, {"attempt": 2, "error": f"{message} still"}]
    assert reply.retry == {"attempts": 3, "max_attempts": 4, "history": history}


def test_a_first_try_that_was_the_answer_tells_of_none(ask):
    assert ask().retry is None


@pytest.mark.usefixtures("no_waits")
def test_a_lasting_fault_is_one_call_and_its_retries(chat_server, ask):
    chat_server.answer = chat_server.error(500, "out of order")
    failure = ask(price=PRICE)
    assert (failure.kind, failure.cost, chat_server.count) == ("judge_call_failed", Cost.zero(), 4)
    message = f"m at {chat_server.url}/chat/completions: HTTP 500: out of order"
    assert (failure.message, failure.retryable) == (f"{message} (4 tries)", True)
    history = [{"attempt": number, "error": message} for number in (1, 2, 3, 4)]
    assert failure.retry == {"attempts": 4, "max_attempts": 4, "history": history}


def test_what_is_not_tried_again_has_tries_left(chat_server, ask):
    chat_server.answer = 400
    assert (ask().retry["attempts"], ask().retry["max_attempts"]) == (1, 4)


@pytest.mark.parametrize("retries", [0, 1])
def test_retries_are_counted(chat_server, ask, no_waits, retries):
    chat_server.answer = 503
    ask(retries=retries)
    assert chat_server.count == retries + 1


def test_waits_between_tries(chat_server, ask):
    chat_server.script(500, 500)
    ask()
    times = [request.time for request in chat_server.requests]
    assert times[1] - times[0] >= 0.25
    assert 0.5 <= times[2] - times[1] < 2


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["seconds", "date", "milliseconds"])
def test_retry_after_is_kept(chat_server, ask, kind):
    headers = {
        "seconds": {"retry_after": 1.2},
        "date": {"retry_after": chat_server.http_date(2)},
        "milliseconds": {"retry_after": 50, "Retry_After_Ms": "1200"},
    }[kind]
    chat_server.script(chat_server.error(429, **headers))
    start = time.monotonic()
    assert isinstance(ask(), Reply)
    first, second = (request.time for request in chat_server.requests)
    # A date has no fractions of a second.
    least, most = (1.0, 40) if kind == "date" else (1.2, 40)
    assert least - (first - start) <= second - first <= most


def test_retry_after_holds_the_other_calls_too(chat_server, model, monkeypatch):
    chat_server.script(chat_server.error(429, retry_after=1.5))

    async def run():
        refused, overloaded = asyncio.Event(), RateLimiter.overloaded

        def note(*arguments):
            overloaded(*arguments)
            refused.set()

        monkeypatch.setattr(RateLimiter, "overloaded", note)
        async with model().open(RunContext("run", "test", Path())) as live:
            first = asyncio.create_task(live.complete(REQUEST))
            await refused.wait()
            return [await live.complete(REQUEST), await first]

    assert [type(answer) for answer in asyncio.run(run())] == [Reply, Reply]
    refused, *later = [request.time for request in chat_server.requests]
    assert min(later) - refused >= 1.5


@pytest.mark.parametrize("wait", [301, "date"])
def test_a_wait_that_is_too_long_fails_at_once(chat_server, ask, wait):
    after = chat_server.http_date(7200) if wait == "date" else wait
    chat_server.answer = chat_server.error(429, "come back later", retry_after=after)
    failure = ask()
    assert (failure.kind, failure.retryable, chat_server.count) == ("judge_call_failed", True, 1)
    assert "come back later; it asks to wait" in failure.message
    assert "300 s at most" in failure.message


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize("after", ["soon", "", "-5", "nan", "1e999", "Fri, 31 Dec 2026 23:59:59 -999999999999999999"])
def test_a_wait_that_cannot_be_read_is_none(chat_server, ask, after):
    chat_server.script(chat_server.error(503, retry_after=after))
    assert isinstance(ask(), Reply)


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize("fault", ["drop", "cut"])
def test_a_broken_connection_is_tried_again_and_may_have_cost(chat_server, ask, fault):
    chat_server.script(chat_server.Answer(fault=fault))
    assert ask(REQUEST, price=PRICE).cost == MOST + COUNTED


@pytest.mark.usefixtures("no_waits")
def test_a_lasting_broken_connection_says_so_and_what_it_may_have_cost(chat_server, ask):
    chat_server.answer = chat_server.Answer(fault="drop")
    failure = ask(REQUEST, price=PRICE, retries=1)
    assert (failure.kind, failure.retryable, failure.cost) == ("judge_call_failed", True, MOST + MOST)
    assert "the connection broke" in failure.message


@pytest.mark.usefixtures("no_waits")
def test_a_refused_connection_costs_nothing(ask):
    failure = ask(base_url="http://127.0.0.1:9/v1", price=PRICE)
    assert (failure.kind, failure.cost, failure.retryable) == ("judge_call_failed", Cost.zero(), True)
    assert failure.message.endswith(
        ": no connection to 127.0.0.1:9 (Connection refused); start the server, or correct base_url (4 tries)"
    )


@pytest.mark.usefixtures("no_waits")
def test_a_host_that_was_never_reached_and_keeps_silent_is_tried_once_and_costs_nothing(ask):
    # It accepts, and never says a word of TLS.
    with socket.create_server(("127.0.0.1", 0)) as silent:
        failure = ask(base_url=f"https://127.0.0.1:{silent.getsockname()[1]}", price=PRICE, timeout=0.4, retries=1)
    assert (failure.kind, failure.cost, failure.retryable) == ("judge_call_failed", Cost.zero(), False)
    assert failure.message.endswith("no connection within 0.2 s")


def test_an_endpoint_without_tls_is_asked_for_it_once(chat_server, ask):
    failure = ask(base_url=chat_server.url.replace("http", "https"), price=PRICE)
    assert (failure.kind, failure.cost, failure.retryable) == ("judge_call_failed", Cost.zero(), False)
    assert "SSL" in failure.message


def test_a_hang_is_a_timeout_that_may_have_cost_and_is_not_tried_again(chat_server, ask):
    chat_server.answer = chat_server.Answer(fault="hang")
    failure = ask(REQUEST, price=PRICE, timeout=0.3)
    assert (failure.kind, failure.cost, chat_server.count) == ("timeout", MOST, 1)
    assert "no reply within 0.3 s" in failure.message


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize("status", [504, 524])
def test_a_gateway_that_gave_up_may_have_cost(chat_server, ask, status):
    chat_server.script(status)
    assert ask(REQUEST, price=PRICE).cost == MOST + COUNTED


BAD = {
    "not JSON": (b"<html>", "application/json", "not valid JSON", MOST),
    "cut off": (b'{"choices": [{"mess', "application/json", "not valid JSON", MOST),
    "no choices": ({"choices": []}, "application/json", "no choices", MOST),
    "no mapping": ([1], "application/json", "no choices", MOST),
    "empty": (b"", "application/json", "not valid JSON", MOST),
    "content is a number": ({"choices": [{"message": {"content": 1}}]}, "application/json", "not text", MOST),
    "an error in a 200": ({"error": {"message": "busy"}}, "application/json", "an error: busy", Cost.zero()),
    "another type": (b'{"choices": [{"message": {"content": "x"}}]}', "text/html", "text/html, not JSON", MOST),
    "an error nested deeply": (
        b'{"error": ' + b"[" * 900 + b"]" * 900 + b"}",
        "application/json",
        "nested",
        Cost.zero(),
    ),
    "a code of many digits": (
        b'{"error": {"message": "busy", "code": "' + b"9" * 5000 + b'"}}',
        "application/json",
        "busy",
        Cost.zero(),
    ),
    "with usage": ({"usage": {"prompt_tokens": 100, "completion_tokens": 20}}, "application/json", "no", COUNTED),
}


@pytest.mark.usefixtures("no_waits")
@pytest.mark.parametrize(("body", "content_type", "message", "cost"), BAD.values(), ids=BAD)
def test_an_answer_that_is_no_reply_is_tried_again_and_paid_for(chat_server, ask, body, content_type, message, cost):
    chat_server.answer = chat_server.raw(body, content_type)
    failure = ask(REQUEST, price=PRICE, retries=1)
    assert (failure.kind, failure.cost, chat_server.count) == ("judge_call_failed", cost + cost, 2)
    assert message in failure.message


@pytest.mark.parametrize("status", [401, 402, 403, 404])
def test_no_access_ends_the_run(chat_server, ask, status):
    chat_server.answer = chat_server.error(status, "no such key or model")
    with pytest.raises(AccessRefused) as refused:
        ask()
    message = f"m at {chat_server.url}/chat/completions: HTTP {status}: no such key or model"
    assert (str(refused.value), chat_server.count) == (message, 1)


@pytest.mark.usefixtures("no_waits")
def test_no_access_says_what_the_tries_before_it_did_cost(chat_server, ask):
    chat_server.script(chat_server.raw({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20}}), 503)
    chat_server.answer = 401
    with pytest.raises(AccessRefused) as refused:
        ask(price=PRICE)
    assert (refused.value.cost, chat_server.count) == (COUNTED, 3)


@pytest.mark.parametrize("status", [413, 418])
def test_another_refusal_fails_the_call_alone(chat_server, ask, status):
    chat_server.answer = status
    failure = ask()
    assert (failure.kind, failure.retryable, chat_server.count) == ("judge_call_failed", False, 1)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "first\n second"}}, "first second"),
        ({"error": "plain"}, "plain"),
        ({"message": "plain"}, "plain"),
        ({"detail": [{"loc": ["body"]}]}, '[{"loc":["body"]}]'),
        ({"odd": 1}, '{"odd":1}'),
        (b"<h1>Bad\nrequest</h1>", "<h1>Bad request</h1>"),
        (b"", ""),
    ],
)
def test_the_endpoints_words_are_passed_on(chat_server, ask, body, message):
    chat_server.answer = chat_server.raw(body, status=413)
    assert ask().message.endswith(f"HTTP 413: {message}".rstrip())


@pytest.mark.parametrize(
    "error", [b"[" * 1000 + b"]" * 1000, b'{"error": {"message": "no", "code": %s}}' % (b"[" * 900 + b"]" * 900)]
)
def test_a_complaint_that_is_nested_deeply_is_one(chat_server, ask, error):
    chat_server.answer = chat_server.raw(error, status=413)
    assert "HTTP 413" in ask().message


def test_long_complaints_are_cut(chat_server, ask):
    chat_server.answer = chat_server.error(413, "x" * 5000)
    assert len(ask().message) < 400


@pytest.mark.usefixtures("no_waits")
def test_no_message_log_or_output_holds_the_key(chat_server, ask, caplog, capfd):
    chat_server.script(chat_server.error(503, "sk-not-to-be-shown is busy"))
    chat_server.answer = chat_server.error(401, f"{'x' * 270}sk-not-to-be-shown is wrong")
    with pytest.raises(AccessRefused) as refused:
        ask()
    assert "x***" in str(refused.value)
    texts = str(refused.value) + caplog.text + "".join(capfd.readouterr())
    assert "sk-not" not in texts


@pytest.mark.parametrize("key", ["no", "x", "m"])
def test_a_key_that_is_only_a_stand_in_garbles_no_message(chat_server, ask, key):
    chat_server.answer = chat_server.error(413, "no room for the maximum of x")
    assert ask(api_key=Secret(key)).message.endswith("HTTP 413: no room for the maximum of x")


def test_a_secret_that_is_a_part_of_another_leaves_none_of_it(chat_server, ask):
    chat_server.answer = chat_server.error(413, "not with w0rd, nor with w0rd-and-more")
    message = ask(api_key=Secret("w0rd"), headers={"X-Key": Secret("w0rd-and-more")}).message
    assert message.endswith("HTTP 413: not with ***, nor with ***")


def test_a_reply_that_repeats_the_key_is_read_without_it(chat_server, ask):
    chat_server.answer = chat_server.reply(
        "so says sk-not-to-be-shown", model="m-sk-not-to-be-shown", finish_reason="sk-not-to-be-shown"
    )
    usage = Usage(100, 20)
    assert ask() == Reply("so says ***", model="m-***", stop_reason="***", finish_reason="***", usage=usage)


def test_a_key_with_two_blanks_is_in_no_message(chat_server, ask):
    chat_server.answer = chat_server.error(413, "not with w0rd  and more, nor w0rd and more")
    assert ask(api_key=Secret("w0rd  and more")).message.endswith("HTTP 413: not with ***, nor ***")


@pytest.mark.parametrize("coding", ["identity", "gzip"])
def test_a_reply_that_is_too_long_fails_the_call_at_once(chat_server, ask, coding):
    body = b"x" * 100_001 if coding == "identity" else gzip.compress(bytes(10_000_000))
    chat_server.answer = chat_server.Answer(body=body, headers={"Content-Encoding": coding})
    failure = ask(REQUEST, max_reply_bytes=100_000, price=PRICE)
    assert (failure.kind, failure.retryable, failure.cost, chat_server.count) == (
        "judge_output_invalid",
        False,
        MOST,
        1,
    )
    assert "the reply has more than 100,000 bytes (max_reply_bytes)" in failure.message
    assert chat_server.requests[0].headers["accept-encoding"] == "identity"


def test_a_complaint_that_is_too_long_is_still_one(chat_server, ask):
    chat_server.answer = chat_server.raw(b"x" * 100_001, status=401)
    with pytest.raises(AccessRefused, match="HTTP 401: xxx"):
        ask(max_reply_bytes=1000)


def test_the_password_of_a_proxy_is_in_no_message(chat_server, ask):
    chat_server.answer = chat_server.error(413, "w0rd is wrong")
    proxy = Secret(f"http://me:w0rd@127.0.0.1:{chat_server.port}")
    assert ask(base_url="http://model.invalid/v1", proxy=proxy).message.endswith("HTTP 413: *** is wrong")


def test_retries_are_not_told_on_stderr_or_in_the_log(chat_server, ask, caplog, capfd):
    chat_server.script(500)
    ask()
    assert (caplog.text, *capfd.readouterr()) == ("", "", "")


@pytest.mark.slow
def test_fewer_calls_at_once_after_the_endpoint_had_too_much(chat_server, model, monkeypatch):
    monkeypatch.setattr("dicast.toolkit.endpoint.first_call.FIRST_SECONDS", 0.1)
    chat_server.latency, chat_server.gathers = 0.1, 40

    async def run():
        async with model().open(RunContext("run", "test", Path())) as live:
            return await asyncio.gather(*(live.complete(REQUEST) for _ in range(40)))

    chat_server.script(*[429] * 40)
    assert all(isinstance(answer, Reply) for answer in asyncio.run(run()))
    first, later = chat_server.requests[:40], chat_server.requests[40:]
    assert chat_server.peak == 40
    crowd = max(sum(0 <= request.time - other.time < 0.1 for other in later) for request in later)
    assert crowd < 40
    assert first[-1].time < later[0].time


@pytest.mark.usefixtures("no_waits")
def test_tries_of_no_use_say_at_once_what_they_did_cost(chat_server, ask, monkeypatch):
    """For the call may be given up while it waits to try again."""
    costs = []
    monkeypatch.setattr(RateLimiter, "spent", lambda self, cost: costs.append(cost))
    chat_server.script(chat_server.raw({"choices": [], "usage": {"prompt_tokens": 100, "completion_tokens": 20}}), 503)
    assert ask(price=PRICE).cost == COUNTED + COUNTED
    assert costs == [COUNTED, Cost.zero()]
