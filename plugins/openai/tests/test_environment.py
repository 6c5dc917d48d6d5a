"""Values from the environment and the list of prices for options that the pipeline lacks."""

from __future__ import annotations

import asyncio
import pickle
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dicast import ChatRequest, ConfigError, Message, Reply, RunContext, Secret, Usage
from dicast.testing.pipeline import Bench
from dicast.toolkit.endpoint.prices import listed_price
from dicast_openai.batch import Batch
from dicast_openai.chat import OPENAI, Chat

KEY = "sk-of-the-environment"
GEMINI = "https://generativelanguage.googleapis.com/v1beta/openai/"
DEEPSEEK = "https://api.deepseek.com/v1"


@pytest.fixture(autouse=True)
def environment(monkeypatch):
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def answer_of(model, tmp_path):
    async def work():
        async with model.open(RunContext("run", "test", tmp_path)) as live:
            return await live.complete(ChatRequest((Message("user", "Is it so?"),), max_output_tokens=16))

    return asyncio.run(work())


# the endpoint and its key


def test_with_a_key_in_the_environment_the_model_is_enough(environment):
    environment.setenv("OPENAI_API_KEY", KEY)
    model = Chat(model="gpt-5-mini")
    assert (model.address, model.key) == (OPENAI, Secret(KEY))
    assert model.cost(Usage(1_000_000, 0)).amount > 0
    assert KEY not in repr(model) + str(model.identity())
    assert KEY in model.secrets()
    assert pickle.loads(pickle.dumps(model)) == model


def test_the_environments_address_is_asked_with_its_key(environment, chat_server, tmp_path):
    environment.setenv("OPENAI_BASE_URL", chat_server.url)
    environment.setenv("OPENAI_API_KEY", KEY)
    assert isinstance(answer_of(Chat(model="m", price="free"), tmp_path), Reply)
    assert chat_server.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_an_address_of_the_file_is_never_sent_the_environments_key(environment, chat_server, tmp_path):
    environment.setenv("OPENAI_API_KEY", KEY)
    assert isinstance(answer_of(Chat(base_url=chat_server.url, model="m", price="free"), tmp_path), Reply)
    assert "authorization" not in chat_server.requests[0].headers


def test_a_local_address_of_the_environment_needs_no_key(environment):
    environment.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert Chat(model="m", price="free").key is None


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ({}, "https://api.openai.com/v1 needs a key: set OPENAI_API_KEY"),
        ({"OPENAI_API_KEY": ""}, "https://api.openai.com/v1 needs a key: set OPENAI_API_KEY"),
        ({"OPENAI_BASE_URL": "nowhere"}, "OPENAI_BASE_URL is no http:// or https:// address"),
        ({"OPENAI_BASE_URL": "http://user:w0rd@host/v1"}, "OPENAI_BASE_URL holds a user name or a password"),
    ],
)
def test_what_the_environment_lacks_is_named_before_anything_is_asked(environment, tmp_path, names, message):
    for name, value in names.items():
        environment.setenv(name, value)
    with pytest.raises(ConfigError) as refusal:
        Bench(tmp_path).build("model", "openai/chat", {"model": "m", "price": "free"})
    assert message in str(refusal.value)
    assert "w0rd" not in str(refusal.value) + repr(refusal.value.problems)


@pytest.mark.parametrize("model", [Chat, Batch])
@pytest.mark.parametrize("address", [None, "https://api.openai.com/v1", "https://API.openai.com:443/v1/"])
def test_an_empty_key_of_the_file_is_refused_for_the_address_of_openai(environment, model, address):
    with pytest.raises(ConfigError, match="needs a key: set OPENAI_API_KEY"):
        model(base_url=address, model="m", price="free", api_key=Secret(""))
    assert model(base_url="http://127.0.0.1:9/v1", model="m", price="free", api_key=Secret("")).key is not None


def test_another_address_in_the_environment_is_another_model(environment, tmp_path):
    environment.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    first = Chat(model="m", price="free")
    identities = first.reads(tmp_path), first.identity()
    environment.setenv("OPENAI_BASE_URL", "http://127.0.0.1:8/v1")
    assert (first.reads(tmp_path), first.identity()) != identities
    assert Chat(base_url="http://127.0.0.1:9/v1", model="m", price="free").reads(tmp_path) == {}


# prices


def test_a_listed_price_is_used_and_its_list_is_named():
    from genai_prices import __version__

    model = Chat(base_url=OPENAI, model="gpt-4o-mini", api_key=Secret("k"))
    cost = model.cost(Usage(1_000_000, 1_000_000))
    assert cost.amount == Decimal("0.75")  # 0.15 and 0.60 usd, as OpenAI has listed them since July 2024
    assert cost.pricing_version == f"genai-prices {__version__}"
    assert model.estimate(ChatRequest((Message("user", "What?"),), max_output_tokens=100)).amount > Decimal("0.00006")


def test_a_given_price_wins_over_the_list():
    model = Chat(base_url=OPENAI, model="gpt-4o-mini", api_key=Secret("k"), price="free")
    assert model.cost(Usage(1_000_000, 0)).is_zero


@pytest.mark.parametrize(("model", "address"), [("no-such-model", OPENAI), ("gpt-4o-mini", "http://127.0.0.1:9/v1")])
def test_an_unknown_price_is_an_error_that_shows_what_to_write(model, address):
    with pytest.raises(
        ValueError, match=r"no price is listed for .* at http.*; write price: free or price: \{input_per_mtok"
    ):
        Chat(base_url=address, model=model, api_key=Secret("k"))


@given(st.integers(1, 900_000), st.integers(0, 50_000), st.integers(0, 50_000))
def test_a_projection_is_no_less_than_the_cost_of_as_many_tokens_or_fewer(tokens, fewer, output):
    for model, address in (("gemini-2.5-pro", GEMINI), ("deepseek-chat", DEEPSEEK)):  # by tiers, and by the hour
        price = listed_price(model, address)
        most = price.most(Usage(tokens, output)).amount
        assert most >= price.cost(Usage(max(0, tokens - fewer), output)).amount


def test_nothing_is_fetched_for_prices(environment):
    import socket

    def refuse(*_):
        raise AssertionError("a connection was opened")

    environment.setattr(socket.socket, "connect", refuse)
    listed_price.cache_clear()
    assert listed_price("gpt-5-mini", OPENAI).cost(Usage(1000, 1000)).amount > 0
