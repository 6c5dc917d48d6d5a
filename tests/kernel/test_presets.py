"""Presets of any plugin: their metrics are built in their place."""

from __future__ import annotations

import pytest
from jsonschema import Draft202012Validator

from dicast import ConfigError, PluginError, Score
from dicast._kernel.contract.registry import Registry
from dicast._kernel.pipeline.build import load_pipeline
from dicast._kernel.pipeline.schema import json_schema
from dicast.testing import FakeMetric, run_pipeline, sample

PLUGIN = """
from typing import Any
from dicast import Preset

@metric(tier="proxy")
def length(subject: Subject, *, least: int = 1):
    return Score(float(len(subject.text) >= least))

@metric(tier="truth", cost="5 msat")
async def costly(subject: Subject):
    return Score(0.5, cost=Cost("5", "msat"))

@attrs.frozen
class Both:
    \"\"\"Two metrics.

    :param least: the least length.
    :param other: a metric of another's.
    \"\"\"

    least: int = 3
    other: Metric | None = None

    def metrics(self):
        more = [] if self.other is None else [{"t/wrapped": {"inner": self.other}}]
        return [{"t/length": {"least": self.least, "weight": 3}}, "t/costly", *more]

@attrs.frozen
class Wrapped:
    \"\"\"Another metric.

    :param inner: which.
    \"\"\"

    tier = "proxy"
    inner: Metric
    def score(self, subject):
        return self.inner.score(subject)

@attrs.frozen
class Wrong:
    \"\"\"Metrics that cannot be built.\"\"\"

    def metrics(self):
        return [{"t/length": {"leest": 1}}, "t/nothing", "t/length"]

@attrs.frozen
class Broken:
    \"\"\"No metrics.\"\"\"

    def metrics(self):
        return [1 / 0]

@attrs.frozen
class Odd:
    \"\"\"Items of a form that no file has.

    :param index: which.
    \"\"\"

    index: int
    def metrics(self):
        return [[3, {}, {"t/length": None}, {"t/length": {}, "t/costly": {}}, {5: {}}][self.index]]

@attrs.frozen
class Nested:
    \"\"\"A preset of presets.\"\"\"

    def metrics(self):
        return ["t/both"]

@hookimpl
def dicast_metrics():
    return [length, costly, Wrapped]
@hookimpl
def dicast_presets():
    return [Both, Wrong, Broken, Nested, Odd]
"""


@pytest.fixture(autouse=True)
def offered(plugin):
    plugin("t", PLUGIN)


def problems(text):
    with pytest.raises((ConfigError, PluginError)) as caught:
        load_pipeline(text, needs_source=False)
    return [str(problem) for problem in caught.value.problems]


def test_each_metric_has_its_label_its_gate_and_its_cost():
    done = run_pipeline("metrics: [t/both]", subjects=[sample("abc"), sample("ab", id="short")])
    good, short = done.verdicts
    assert (good.score, good.tier, short.score, short.tier) == (0.875, "truth", 0.0, "proxy")
    assert {label: done.document["metrics"][label]["scored"] for label in ("t/length", "t/costly")} == {
        "t/length": 2,
        "t/costly": 1,
    }
    assert done.document["cost"]["msat"] == "5"


def test_a_metrics_own_slot_keys_come_before_those_of_the_preset():
    (first, second) = load_pipeline(
        "metrics: [{t/both: {weight: 2, on: [row, turn], as: b}}]", needs_source=False
    ).metrics
    assert (first.label, first.weight, first.on) == ("b/length", 3.0, ("row", "turn"))
    assert (second.label, second.weight, second.on) == ("b/costly", 2.0, ("row", "turn"))


def test_a_component_given_as_an_option_is_handed_on():
    text = "define: {mine: t/length}\nmetrics: [{t/both: {other: mine}}]"
    pipeline = load_pipeline(text, needs_source=False)
    assert pipeline.metrics[2].options == {"inner": {"t/length": {"least": 1}}}
    inner = FakeMetric(Score(0.25))
    done = run_pipeline("metrics: [{t/both: {other: mine}}]", subjects=[sample("abc")], components={"mine": inner})
    assert [item["value"] for item in done.verdicts[0].scores] == [1.0, 0.25]


def test_fingerprints_are_those_of_the_metrics_written_out():
    short = load_pipeline("metrics: [{t/both: {least: 5}}]", needs_source=False)
    long = load_pipeline("metrics: [{t/length: {least: 5, weight: 3}}, t/costly]", needs_source=False)
    assert short.fingerprints == long.fingerprints


def test_what_is_wrong_inside_is_reported_at_the_presets_line():
    assert problems("metrics:\n  - t/length\n  - t/wrong\n") == [
        "<text>:3:5: unknown option 'leest' of t/length, did you mean 'least'? (metrics[1][0])",
        "<text>:3:5: plugin 't' offers no metric 'nothing' (offers: costly, length, wrapped) (metrics[1][1])",
        "<text>:3:5: the label 't/length' is used already at <text>:2:5 (metrics[0]); rename one of them with 'as' (metrics[1][2].as)",
    ]


def test_a_preset_that_raises_is_its_plugins_fault():
    with pytest.raises(PluginError, match=r"<text>:1:11: t/broken cannot list its metrics: ZeroDivisionError"):
        load_pipeline("metrics: [t/broken]", needs_source=False)


@pytest.mark.parametrize("index", range(5))
def test_items_of_a_form_that_no_file_has_are_the_plugins_fault(index):
    with pytest.raises(PluginError, match=r"t/odd cannot list its metrics: TypeError: an item is NAME or {NAME: "):
        load_pipeline(f"metrics: [t/odd: {{index: {index}}}]", needs_source=False)


def test_presets_hold_no_presets():
    assert "t/both is a preset, not a metric" in problems("metrics: [t/nested]")[0]


def test_a_dear_metric_is_refused_among_the_proxies():
    assert any("t/costly costs money" in problem for problem in problems("metrics: {proxy: [t/both]}"))


def test_a_preset_stands_in_no_option():
    assert "t/both is a preset, not a metric" in problems("metrics: [{t/wrapped: {inner: t/both}}]")[0]


def test_a_preset_may_be_given_from_python():
    import attrs

    @attrs.frozen
    class Given:
        def metrics(self):
            return ["t/length"]

    (verdict,) = run_pipeline("metrics: [mine]", subjects=[sample("x")], components={"mine": Given()}).verdicts
    assert [item["metric"] for item in verdict.scores] == ["t/length"]


@pytest.mark.parametrize(
    ("pipeline", "valid"),
    [
        ({"metrics": ["t/both"]}, True),
        ({"metrics": {"proxy": [{"t/both": {"least": 2, "as": "a", "weight": 2, "other": "t/length"}}]}}, True),
        ({"define": {"b": "t/both"}, "metrics": ["b"]}, True),
        ({"metrics": [{"t/both": {"leest": 2}}]}, False),
        ({"metrics": [{"t/wrapped": {"inner": "t/both"}}]}, False),
        ({"judges": ["t/both"]}, False),
    ],
)
def test_the_schema_knows_presets(pipeline, valid):
    schema, _ = json_schema(Registry(environ={}))
    problems = list(Draft202012Validator(schema).iter_errors({"source": "mine", **pipeline}))
    assert (not problems) == valid
