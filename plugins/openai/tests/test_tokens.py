"""Upper bounds of a request's tokens: by the model's own tokenizer if it is known, else by its bytes."""

from __future__ import annotations

import functools
import json
import re
import secrets
import sys
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ChatRequest, Message, Price
from dicast_openai.chat import Chat
from dicast_openai.tokens import most_input_tokens

splintr = pytest.importorskip("splintr", reason="the extra 'tokens' is not installed")
VOCABULARIES = {
    "gpt-4o-mini": "o200k_base",
    "gpt-4.1-nano": "o200k_base",
    "openai/gpt-5": "o200k_base",
    "o4-mini": "o200k_base",
    "gpt-4-turbo": "cl100k_base",
    "gpt-3.5-turbo-0125": "cl100k_base",
    "openai/gpt-oss-20b": "gpt-oss",
    "google/gemma-3-27b-it": "gemma3",
}
tokenizer = functools.cache(splintr.Tokenizer.from_pretrained)
TEXT = "The quick brown fox jumps over the lazy dog, and then explains at some length why it did. " * 20


def request_of(*texts, **fields):
    return ChatRequest(tuple(Message("user", text) for text in texts), **fields)


@pytest.mark.slow
@pytest.mark.parametrize(("model", "vocabulary"), VOCABULARIES.items())
def test_a_model_s_own_tokenizer_counts(model, vocabulary):
    counted = len(tokenizer(vocabulary).encode_ordinary(TEXT))
    around = 96 if vocabulary == "gpt-oss" else 0  # what its template says before all messages
    assert counted < most_input_tokens(model, request_of(TEXT)) - around < 1.15 * counted
    assert most_input_tokens(model, request_of(TEXT)) < 0.7 * request_of(TEXT).input_tokens


@pytest.mark.parametrize(
    "model", ["gpt-4z", "gpt-6", "o1000", "gemma-3n-e4b", "qwen3-8b", "my-gpt-4o", "text-davinci-003"]
)
def test_another_model_is_estimated_from_the_bytes(model):
    assert most_input_tokens(model, request_of(TEXT)) == request_of(TEXT).input_tokens


def test_without_the_extra_the_bytes_decide(monkeypatch):
    from dicast_openai import tokens

    monkeypatch.setitem(sys.modules, "splintr", None)
    monkeypatch.setattr(tokens, "find_spec", lambda name: None)
    tokens._tokenizer.cache_clear()  # noqa: SLF001  # what was loaded before
    assert most_input_tokens("gpt-4o", request_of(TEXT)) == request_of(TEXT).input_tokens
    monkeypatch.undo()
    tokens._tokenizer.cache_clear()  # noqa: SLF001


@given(st.lists(st.text(), max_size=4), st.sampled_from(sorted(set(VOCABULARIES.values()))))
def test_no_less_than_the_tokens_of_all_messages_together(texts, vocabulary):
    model = next(name for name, name_of in VOCABULARIES.items() if name_of == vocabulary)
    joined = "\n".join(text.encode(errors="replace").decode() for text in texts)
    assert most_input_tokens(model, request_of(*texts)) >= len(tokenizer(vocabulary).encode_ordinary(joined))


@given(st.text(), st.text(), st.integers(1, 3))
def test_no_two_draws_of_a_nonce_differ_and_none_takes_more(before, after, times):
    def request(nonce):
        return request_of((before + nonce + after) * times, nonces=(nonce,))

    draws = [request(secrets.token_hex(8)) for _ in range(5)]
    counts = {most_input_tokens("gpt-4o", draw) for draw in draws}
    assert len(counts) == 1
    assert counts.pop() >= max(len(tokenizer("o200k_base").encode_ordinary(draw.messages[0].content)) for draw in draws)


def test_a_schema_counts():
    schema = {"type": "object", "properties": {"score": {"type": "number", "description": TEXT}}}
    assert most_input_tokens("gpt-4o", request_of("x", schema=schema)) > most_input_tokens(
        "gpt-4o", request_of("x", TEXT)
    )


def test_a_schema_that_is_not_sent_does_not_count(chat_server, ask):
    """The schema is neither in the projection nor in the request."""
    schema = {"type": "object", "properties": {"score": {"type": "number", "description": TEXT}}}
    price = Price(Decimal(1), Decimal(1))
    sent, unsent = (
        Chat("gpt-4o", base_url=chat_server.url, price=price, response_format=form).estimate(
            request_of("x", schema=schema)
        )
        for form in ("json_schema", "json_object")
    )
    assert unsent == Chat("gpt-4o", base_url=chat_server.url, price=price).estimate(request_of("x"))
    assert sent.amount > unsent.amount + Decimal(len(TEXT.split())) / 1_000_000
    ask(request_of("x", schema=schema), response_format="json_object")
    assert TEXT not in str(chat_server.requests[-1].body)


DATE = "2026-11-25"
HARMONY = (
    "<|start|>system<|message|>You are ChatGPT, a large language model trained by OpenAI.\nKnowledge cutoff: 2024-06\n"
    f"Current date: {DATE}\n\nReasoning: medium\n\n# Valid channels: analysis, commentary, final. Channel must be "
    "included for every message.<|end|><|start|>developer<|message|># Instructions\n\n{system}\n\n# Response Formats\n\n"
    "## reply\n\n{schema}<|end|><|start|>user<|message|>{user}<|end|><|start|>assistant"
)
"""The format of gpt-oss, as OpenAI documents it (harmony), with a special token for each text in ``<| |>``."""


@pytest.mark.parametrize("schema", [None, {"type": "object"}])
@pytest.mark.parametrize("extra", [True, False])
def test_what_a_template_says_of_its_own_counts(monkeypatch, schema, extra):
    from dicast_openai import tokens

    rendered = HARMONY.replace("{system}", "Be brief.").replace("{user}", "Yes or no?")
    rendered = rendered.replace("{schema}", json.dumps(schema) if schema else "")
    pieces = re.split(r"<\|\w+\|>", rendered)
    counted = len(pieces) - 1 + sum(len(tokenizer("gpt-oss").encode_ordinary(piece)) for piece in pieces)
    request = ChatRequest((Message("system", "Be brief."), Message("user", "Yes or no?")), schema=schema)
    if not extra:
        monkeypatch.setattr(tokens, "_tokenizer", lambda vocabulary: None)
    assert counted <= most_input_tokens("gpt-oss-20b", request)


def test_half_a_character_is_counted():
    assert most_input_tokens("gpt-4o", request_of("a\ud83d")) > 0


def test_the_projection_takes_the_tokenizer_s_count():
    price = Price(Decimal("0.15"), Decimal("0.60"))
    counted, unknown = (Chat(model, base_url="http://127.0.0.1:9/v1", price=price) for model in ("gpt-4o-mini", "mine"))
    request = request_of(TEXT, max_output_tokens=1)
    assert counted.estimate(request).amount < Decimal("0.6") * unknown.estimate(request).amount
