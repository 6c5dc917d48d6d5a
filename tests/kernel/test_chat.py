"""Requests to a chat model, and their cost."""

from __future__ import annotations

from decimal import Decimal

import attrs
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dicast import ChatRequest, Cost, KeptReply, Message, Price, Reply, Token, Usage

TEXTS = st.text(st.characters(codec="utf-8"), max_size=200)


def asked(*texts, **options):
    return ChatRequest(tuple(Message("user", text) for text in texts), **options)


def test_tokens_are_estimated_above_what_tokenizers_find_for_prose_and_code():
    prose = "The quick brown fox jumps over the lazy dog near the river bank today."  # 15 to 16 tokens
    code = "def add(a, b):\n    return a + b  # both are numbers\n"  # 18 to 21 tokens
    assert 16 < asked(prose).input_tokens < 60
    assert 21 < asked(code).input_tokens < 70


@given(TEXTS, TEXTS)
def test_more_text_never_takes_fewer_tokens(text, extra):
    assert asked(text + extra).input_tokens >= asked(text).input_tokens


@pytest.mark.parametrize("text", ["7" * 1000, "{" * 1000, "汉" * 400, "\x00" * 1000, "🙂" * 300])
def test_text_of_which_every_letter_may_be_a_token_is_counted_so(text):
    assert asked(text).input_tokens >= len(text)


def test_a_schema_takes_tokens_too():
    assert asked("a", schema={"type": "object"}).input_tokens > asked("a").input_tokens


@given(st.integers(0, 10**9), st.integers(0, 10**9), st.decimals(0, 1000, places=4), st.decimals(0, 1000, places=4))
def test_a_price_is_exact_and_names_its_list(tokens_in, tokens_out, price_in, price_out):
    cost = Price(price_in, price_out).cost(Usage(tokens_in, tokens_out))
    assert cost.amount == (price_in * tokens_in + price_out * tokens_out) / 1_000_000
    assert (cost.pricing_version is None) == cost.is_zero


def test_a_price_below_zero_is_refused():
    with pytest.raises(ValueError, match="input_per_mtok"):
        Price(Decimal(-1), Decimal(1))


def test_words_drawn_for_one_call_do_not_change_the_digest():
    first, second = (
        asked(f"seal: {word}\n<<<{word[:4]}", nonces=(word, word[:4])) for word in ("abcd1234", "0f0f9876")
    )
    assert first.digest({}) == second.digest({})


@pytest.mark.parametrize(
    "change",
    [
        {"rollout": 1},
        {"attempt": 1},
        {"temperature": 0.5},
        {"max_output_tokens": 9},
        {"logprobs": True},
        {"schema": {"type": "object"}},
        {"messages": (Message("system", "a"),)},
        {"messages": (Message("user", "b"),)},
    ],
)
def test_whatever_decides_the_reply_changes_the_digest(change):
    request = asked("a")
    assert attrs.evolve(request, **change).digest({}) != request.digest({})
    assert request.digest({"model": "x"}) != request.digest({"model": "y"})


def test_where_a_drawn_word_stands_counts():
    assert asked("a w b", nonces=("w",)).digest({}) != asked("a b w", nonces=("w",)).digest({})
    assert asked("a w b", nonces=("w",)).digest({}) != asked("a w b").digest({})


@given(TEXTS, st.lists(st.text("abcdef", min_size=4, max_size=4), min_size=1, max_size=2, unique=True))
def test_a_kept_reply_shows_the_words_of_the_new_call(text, words):
    old, new = tuple(words), tuple(f"!{number}!" for number in range(len(words)))
    assume(f"{text}{old[0]}".find(old[0]) == len(text))  # not where the text ends as the word begins
    assume(
        not any(other in f"{text[-3:]}{old[0]}" for other in old[1:])
    )  # nor where another word lies across its begin
    reply = Reply(f"{text}{old[0]}", logprobs=(Token(f"{text}{old[0][:2]}", -0.5), Token(old[0][2:], -0.25)))
    new_reply = KeptReply.of(**KeptReply(reply, old).plain())
    told = new_reply.renew(new)
    assert old[0] not in told.text.removeprefix(text)
    assert told.text.endswith(new[0])
    assert "".join(token.text for token in told.logprobs) == told.text
    assert told.cost == Cost.zero()
