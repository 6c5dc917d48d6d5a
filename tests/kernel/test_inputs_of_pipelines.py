"""Inputs of a pipeline: subjects without its file, amounts, times and names of options."""

from __future__ import annotations

import re

import pytest
from jsonschema import Draft202012Validator

import dicast
from dicast import ConfigError, Cost, InvalidCost, Price, Score, Subject
from dicast._kernel.pipeline.read import read_pipeline
from dicast._kernel.pipeline.schema import options_schema
from dicast._kernel.plan.sections import Budget
from dicast._kernel.values.score import MONEY
from dicast.testing import FakeMetric, run_pipeline

ONE = Subject("row", "a", output="abc")


def test_subjects_from_a_program_need_no_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pipeline = {"source": {"rows/jsonl": {"path": "nowhere.jsonl"}}, "metrics": ["proxy/format"]}
    assert dicast.run(pipeline, subjects=[ONE]).scored == 1
    with pytest.raises(ConfigError, match="does not exist"):
        dicast.run(pipeline)
    with pytest.raises(ConfigError, match="unknown option"):
        dicast.run({**pipeline, "source": {"rows/jsonl": {"path": "nowhere.jsonl", "fild": 1}}}, subjects=[ONE])


@pytest.mark.parametrize(
    ("text", "good"),
    [("1e-3 usd", True), ("5 msat", True), (" .5  usd ", True), ("1. usd", True), ("1.2.3 usd", False), ("1_0 usd", False),
     ("usd", False), ("-1 usd", False), (". usd", False), ("1usd", False), ("nan usd", False)],
)  # fmt: skip
def test_schema_and_parser_agree_on_money(text, good):
    assert bool(re.search(MONEY.pattern, text)) == good
    if good:
        assert Cost.parse(text).amount is not None
    else:
        with pytest.raises(InvalidCost):
            Cost.parse(text)


def refused_price(price):
    """Return the messages of the pipeline's parser and of the JSON Schema for *price*; empty text if it is valid."""
    model = {"openai/chat": {"base_url": "http://127.0.0.1:9/v1", "model": "m"}}
    model["openai/chat"]["price"] = {"input_per_mtok": price, "output_per_mtok": 1}
    pipeline = {"source": {"rows/jsonl": {"path": "nowhere.jsonl"}}, "judges": [{"llm/judge": {"model": model}}]}
    with pytest.raises(ConfigError) as refused:
        dicast.run(pipeline)
    validator = Draft202012Validator(options_schema(Price)["properties"]["input_per_mtok"])
    message = str(refused.value)
    return "input_per_mtok" in message or "expected decimal" in message, not validator.is_valid(price)


@pytest.mark.parametrize("price", ["1e-3", ".5", "1.", "+2", " 1 ", "1e99", 0, 3, 1e99, "0", 1e-300])
def test_schema_and_parser_take_the_same_prices(price):
    assert refused_price(price) == (False, False)


@pytest.mark.parametrize(
    "price",
    ["1.2.3", "1_000", "", "nan", "Infinity", "\uff11", "1e999999", "1e-999999", "1e99999999999999999999", "1e100", "9" * 41,
     "-1", "-.5e-3", -1, -0.5, 1e100, 1e300, 10**120],
)  # fmt: skip
def test_schema_and_parser_refuse_the_same_prices(price):
    assert refused_price(price) == (True, True)


@pytest.mark.parametrize(
    ("amounts", "good"),
    [("1 usd", True), (["1 usd", "2 msat"], True), ([], True), (["1 usd", "2 usd"], False), (["1 msat", "2 usd", "2 msat"], False),
     ("1e999999 usd", False), (["1e100 msat"], False), ("-1 usd", False)],
)  # fmt: skip
def test_schema_and_parser_agree_on_the_amounts_of_a_budget(amounts, good):
    assert Draft202012Validator(options_schema(Budget)).is_valid({"run": amounts}) == good
    pipeline = {
        "source": {"rows/jsonl": {"path": "nowhere.jsonl"}},
        "metrics": ["proxy/format"],
        "budget": {"run": amounts},
    }
    with pytest.raises(ConfigError) as refused:
        dicast.run(pipeline)
    assert ("budget.run" in str(refused.value)) == (not good)


def test_a_timeout_longer_than_clocks_count_is_an_error_of_the_file():
    with pytest.raises(ConfigError, match="less than 1e9 seconds"):
        run_pipeline("metrics: [{m: {timeout: 1.0e+12}}]", subjects=[ONE], components={"m": FakeMetric(Score(1.0))})


def test_a_length_is_also_given_as_document_003_has_it():
    for options, value in (("{min_chars: 6}", 0.5), ("{max_chars: 2}", 0.5), ("{min_chars: 1, max_chars: 3}", 1.0)):
        done = run_pipeline(f"metrics: [proxy/length: {options}]", subjects=[ONE])
        assert done.document["score"]["mean"] == value


def test_a_suite_may_stand_behind_a_variable(tmp_path, monkeypatch):
    (tmp_path / "suite.yaml").write_text("experiments: {one: {}, two: {}}\n")
    (tmp_path / "main.yaml").write_text("include: ${SUITE}\nmetrics: [proxy/format]\n")
    monkeypatch.setenv("SUITE", "suite.yaml")
    assert [*read_pipeline(tmp_path / "main.yaml").experiments] == ["one", "two"]
