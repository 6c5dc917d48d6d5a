from __future__ import annotations

import subprocess
import sys
from decimal import Decimal
from importlib.metadata import version

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ChatRequest, ConfigError, Cost, Message, Price, Usage, estimate
from dicast_litellm import Chat
from dicast_litellm.prices import Tariff

LIST = f"litellm {version('litellm')}"
REQUEST = ChatRequest((Message("system", "s" * 2984, cache=True), Message("user", "")), max_output_tokens=500)
"""1,011 input tokens by the estimate."""


@pytest.mark.parametrize(
    ("model", "read", "written"),
    [
        ("gpt-4o-mini", "0.15", "0.6"),
        ("openai/gpt-4o-mini", "0.15", "0.6"),
        ("azure/gpt-4o", "2.5", "10"),
        ("anthropic/claude-haiku-4-5", "1", "5"),
        ("gemini/gemini-2.5-flash", "0.3", "2.5"),
        ("vertex_ai/gemini-2.5-flash", "0.3", "2.5"),
        ("ollama/llama3", "0", "0"),
    ],
)
def test_price_is_that_of_the_list_inside_litellm(model, read, written):
    price = Chat(model).tariff.price
    assert (price.input_per_mtok, price.output_per_mtok) == (Decimal(read), Decimal(written))


def test_price_of_the_file_comes_before_the_list():
    chat = Chat("gpt-4o-mini", price=Price(Decimal(7), Decimal(9)))
    assert chat.tariff.cost(Usage(1_000_000, 1_000_000)) == Cost(16, "usd", "7/9 usd per Mtok")
    assert estimate(Chat("gpt-4o-mini", price="free"), REQUEST).is_zero


def test_pricing_version_is_that_of_litellm():
    cost = Chat("gpt-4o-mini").tariff.cost(Usage(1000, 100))
    assert cost == Cost("0.00021", "usd", LIST)


@pytest.mark.parametrize(
    "model",
    ["openai/my-own-model", "anthropic/gpt-4o-mini", "text-embedding-3-small", "dall-e-3", "sample_spec", "foo/"],
)
def test_unknown_price_is_an_error_that_says_what_to_write(model):
    with pytest.raises(ConfigError, match=f"price of '{model}' is not known.*price: free or price: {{input_per_mtok"):
        Chat(model)


def test_estimate_covers_the_whole_request():
    cost = estimate(Chat("gpt-4o-mini"), REQUEST)
    assert cost.amount == (REQUEST.input_tokens * Decimal("0.15") + 500 * Decimal("0.6")) / 1_000_000


def test_estimate_covers_the_writing_of_the_prompt_cache():
    cost = estimate(Chat("anthropic/claude-haiku-4-5"), REQUEST)
    assert cost.amount == (REQUEST.input_tokens * Decimal("1.25") + 500 * Decimal(5)) / 1_000_000


def test_cached_tokens_have_their_own_prices():
    cost = Chat("anthropic/claude-haiku-4-5").tariff.cost(Usage(1000, 0, 600, 300))
    assert cost.amount == (100 * Decimal(1) + 600 * Decimal("0.1") + 300 * Decimal("1.25")) / 1_000_000


@given(st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_no_split_of_the_input_costs_more_than_the_estimate(plain, read, written, output):
    tariff = Tariff(Price(Decimal(3), Decimal(15), Decimal("0.3"), Decimal("3.75")), "v")
    tokens = plain + read + written
    cost = tariff.cost(Usage(tokens, output, read, written))
    assert 0 <= cost.amount <= tariff.most(Usage(tokens, output), marked=True).amount
    assert cost.amount == (3 * plain + Decimal("0.3") * read + Decimal("3.75") * written + 15 * output) / 1_000_000


def test_check_of_a_price_imports_no_litellm():
    program = "import sys; from dicast_litellm import Chat; Chat('gpt-4o-mini'); print('litellm' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
