"""The JSON Schema of the pipeline file."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator

from dicast._kernel.contract.registry import Registry
from dicast._kernel.pipeline.read import read_document
from dicast._kernel.pipeline.schema import json_schema
from dicast._kernel.plan.sections import SECTIONS

PLUGIN = """
from datetime import date
from decimal import Decimal
from typing import Literal
from attrs import validators as v

@attrs.frozen
class Thing:
    \"\"\"Checks a thing.

    :param words: how many
        words.
    \"\"\"

    tier = "proxy"
    words: int = 120
    colour: Literal["red", "green"] = "red"
    names: tuple[str, ...] = ("a",)
    share: float | None = attrs.field(default=None, validator=v.optional([v.gt(0), v.le(1)]))
    amount: Decimal = attrs.field(default=Decimal(1), validator=v.ge(Decimal("0.5")))
    few: int | None = attrs.field(default=None, validator=Within(2, 5, "2 to 5"))
    far: int = attrs.field(default=0, validator=Within(0, 9, "above 0, below 9", open=True))
    word: str = attrs.field(default="b", validator=v.ge("a"))
    born: object = attrs.field(default=None, validator=v.optional(v.lt(date(2026, 1, 1))))
    huge: int = attrs.field(default=0, validator=[v.ge(-(2**63)), v.le(10**400)])
    odd: int = attrs.field(default=0, validator=v.or_(v.ge(3), v.in_([0])))
    inner: Metric | None = None
    def score(self, subject): ...

@judge()
def stern(subject: Subject, *, limit: int): ...

@hookimpl
def dicast_metrics():
    return [Thing]
@hookimpl
def dicast_judges():
    return [stern]
"""

PIPELINE = """
name: a
define: {strict: {t/stern: {limit: 3}}}
source: {rows/csv: {path: in.csv}}
metrics: [t/thing, {t/thing: {words: 3, as: b, weight: 2, inner: strict}}, {t/stern: {limit: 1, on: [row]}}]
judges: [strict, {t/stern: {limit: 2, as: c}}]
scoring: {rollouts: 3, aggregation: {trimmed_mean: 10}, audit: {rate: 0.05}}
budget: {run: 2.00 usd, session: [0.10 usd, 5 msat]}
gate: {on: metrics, min_score: 0.8}
executor: dicast/async
"""


@pytest.fixture(scope="module")
def made():
    return {}


@pytest.fixture
def schema(plugin, made):
    """The schema with the plugin above; made once, for it takes a second."""
    plugin("t", PLUGIN)
    if not made:
        full, broken = json_schema(Registry(environ={}))
        assert broken == {}
        Draft202012Validator.check_schema(full)
        made.update(full)
    return made


def paths(schema, text):
    data = read_document(PIPELINE + text, environ={}).data
    return [error.json_path for error in Draft202012Validator(schema).iter_errors(data)]


def test_the_schema_has_every_section_and_no_other(schema):
    assert tuple(schema["properties"]) == SECTIONS


def test_a_good_pipeline_is_valid(schema):
    assert paths(schema, "") == []


@pytest.mark.parametrize(
    ("overrides", "path"),
    [
        ({"metrics": ["t/nothing"]}, "$.metrics"),
        ({"metrics": [{"t/thing": {"wrds": 1}}]}, "$.metrics"),
        ({"metrics": [{"t/thing": {"words": "a"}}]}, "$.metrics"),
        ({"judges": ["t/stern"]}, "$.judges[0]"),
        ({"scoring": {"treshold": 1}}, "$.scoring"),
        ({"budget": {"run": 2.0}}, "$.budget.run"),
        ({"executor": "t/thing"}, "$.executor"),
        ({"surce": "a"}, "$"),
        ({"scoring": {"threshold": 1.5}}, "$.scoring.threshold"),
        ({"scoring": {"rollouts": 0}}, "$.scoring.rollouts"),
        ({"gate": {"min_coverage": -0.1}}, "$.gate.min_coverage"),
        ({"gate": [{"min_score": 0.5}, {"min_pass_rate": 2}]}, "$.gate[1].min_pass_rate"),
        ({"gate": {"bound": "both"}}, "$.gate.bound"),
        ({"gate": []}, "$.gate"),
        ({"scoring": {"pass_at": 2}}, "$.scoring.pass_at"),
        ({"metrics": [{"t/thing": {"weight": -1}}]}, "$.metrics"),
        ({"metrics": [{"t/thing": {"timeout": 0}}]}, "$.metrics"),
        ({"metrics": [{"t/thing": {"share": 0}}]}, "$.metrics"),
        ({"executor": {"dicast/async": {"concurrency": 0}}}, "$.executor"),
    ],
)
def test_a_bad_pipeline_is_not(schema, overrides, path):
    data = read_document(PIPELINE, environ={}).data | overrides
    assert [error.json_path for error in Draft202012Validator(schema).iter_errors(data)] == [path]


def test_options_say_what_they_are_and_their_defaults(schema):
    options = schema["$defs"]["metric:t/thing"]
    assert options["description"] == "Checks a thing."
    assert options["properties"]["words"] == {"type": "integer", "default": 120, "description": "how many words."}
    assert options["properties"]["colour"] == {"enum": ["red", "green"], "default": "red"}
    assert options["properties"]["names"]["default"] == ["a"]
    assert "weight" not in options["properties"]
    assert "weight" in schema["$defs"]["metric:t/thing:slot"]["properties"]


def test_bounds_of_numbers_are_those_that_the_validators_hold(schema):
    def bounds(options, name):
        return {key: value for key, value in options["properties"][name].items() if "imum" in key.lower()}

    thing, scoring = schema["$defs"]["metric:t/thing:slot"], schema["properties"]["scoring"]
    assert bounds(thing, "share") == {"exclusiveMinimum": 0, "maximum": 1}
    assert bounds(thing, "amount") == {"minimum": 0.5, "exclusiveMaximum": 1e100}
    assert bounds(thing, "few") == {"minimum": 2, "maximum": 5}
    assert bounds(thing, "far") == {"exclusiveMinimum": 0, "exclusiveMaximum": 9}
    assert bounds(thing, "huge") == {"minimum": -(2**63)}
    for none in ("odd", "word", "born"):
        assert bounds(thing, none) == {}
    assert bounds(thing, "words") == {}
    assert bounds(thing, "weight") == {"minimum": 0, "maximum": 1e9}
    assert bounds(thing, "timeout") == {"exclusiveMinimum": 0, "exclusiveMaximum": 1e9}
    assert bounds(scoring, "num_rollouts") == bounds(scoring, "rollouts") == {"minimum": 1}


def test_a_broken_plugin_is_reported_and_left_out(broken, plugin):
    plugin("t", PLUGIN)
    broken("boom")
    schema, faults = json_schema(Registry(environ={}))
    assert "nope_missing" in faults["boom"]
    assert "metric:t/thing" in schema["$defs"]
    assert "boom" not in repr(schema)
