"""A preset is the metrics that it stands for."""

from __future__ import annotations

import json
import re

import pytest

from dicast import ConfigError, Cost, PluginError
from dicast.testing import FakeChatModel, PresetConformance, run_pipeline, sample

GOOD = sample("Canberra, of course.", reference="Canberra, of course.")


class TestDefaultProxy(PresetConformance):
    preset = "preset/default_proxy"
    options = {"min": 3, "field": "answer"}


class TestDefaultTruth(PresetConformance):
    preset = "preset/default_truth"
    options = {"model": "grader", "criteria": ["it is short"]}
    components = {"grader": FakeChatModel("x")}


def judged(score):
    """Return a chat model that replies with *score* under any seal."""

    def reply(request):
        (seal,) = re.findall(r"^seal: (\w+)$", request.messages[-1].content, re.MULTILINE)
        return json.dumps({"seal": seal, "rationale": "So.", "score": score, "confidence": 1})

    return FakeChatModel(reply)


def labels(metrics, **components):
    done = run_pipeline(f"metrics: {metrics}", subjects=[GOOD], components=components)
    (verdict,) = done.verdicts
    return [(item["metric"], item["tier"], item["weight"], item["value"]) for item in verdict.scores]


def test_default_proxies_are_format_length_and_syntax():
    assert labels("[preset/default_proxy]") == [
        ("proxy/format", "proxy", 1.0, 1.0),
        ("proxy/length", "proxy", 1.0, 1.0),
        ("proxy/syntax", "proxy", 1.0, 1.0),
    ]


def test_default_length_is_10_characters():
    done = run_pipeline("metrics: [preset/default_proxy]", subjects=[sample("12345")])
    assert done.verdicts[0].signals["metrics"] == {"proxy/format": 1.0, "proxy/length": 0.5, "proxy/syntax": 1.0}


def test_default_truths_are_the_judge_and_the_reference():
    assert labels("[{preset/default_truth: {model: m}}]", m=judged(0.5)) == [
        ("llm/judge", "truth", 1.0, 0.5),
        ("diff/match", "truth", 1.0, 1.0),
    ]


def test_builders_scorer_is_a_preset_for_each_tier_and_three_rollouts():
    text = """
metrics: {proxy: [preset/default_proxy], truth: [{preset/default_truth: {model: m}}]}
scoring: {threshold: 0.5, rollouts: 3, aggregation: median}
"""
    (verdict,) = run_pipeline(text, subjects=[GOOD], components={"m": judged(0.5)}).verdicts
    assert verdict.score == pytest.approx(0.9)
    assert (verdict.tier, len(verdict.scores)) == ("truth", 15)


def test_each_metric_of_a_preset_gates_for_itself():
    model = judged(1)
    text = "metrics: [preset/default_proxy, {preset/default_truth: {model: m}}]"
    (verdict,) = run_pipeline(text, subjects=[sample("1234", reference="1234")], components={"m": model}).verdicts
    assert (verdict.tier, verdict.score) == ("proxy", pytest.approx(0.8))
    assert model.asked == []


def test_slot_keys_hold_for_each_metric_and_as_comes_before_the_labels():
    assert labels("[{preset/default_proxy: {as: base, weight: 2}}, proxy/format]") == [
        ("base/format", "proxy", 2.0, 1.0),
        ("base/length", "proxy", 2.0, 1.0),
        ("base/syntax", "proxy", 2.0, 1.0),
        ("proxy/format", "proxy", 1.0, 1.0),
    ]


def test_on_failure_holds_for_each_metric():
    text = "metrics: [{preset/default_truth: {model: m, on_failure: exclude}}]"
    (verdict,) = run_pipeline(text, subjects=[sample("no reference")], components={"m": judged(0.25)}).verdicts
    assert (verdict.score, verdict.skipped) == (0.25, ({"metric": "diff/match", "reason": "missing_input"},))


def test_field_goes_to_all_proxies():
    done = run_pipeline(
        "metrics: [{preset/default_proxy: {field: answer}}]", subjects=[sample({"answer": "long enough", "x": "("})]
    )
    assert done.verdicts[0].score == 1.0


def test_preset_may_be_defined_under_a_name():
    text = "define: {usual: {preset/default_proxy: {min: 1}}}\nmetrics: [usual]"
    assert run_pipeline(text, subjects=[sample("x")]).verdicts[0].score == 1.0


def refused(text, **components):
    with pytest.raises((ConfigError, PluginError)) as caught:
        run_pipeline(text, subjects=[GOOD], components=components)
    return [str(problem) for problem in caught.value.problems]


def test_label_taken_by_a_preset_is_reported_at_its_line():
    (problem,) = refused("metrics:\n  - proxy/format\n  - preset/default_proxy\n")
    assert problem.startswith("<text>:3:5: the label 'proxy/format' is used already at <text>:2:5 (metrics[0])")


def test_wrong_option_of_a_preset_names_the_nearest():
    assert refused("metrics:\n  - preset/default_truth: {modle: m}\n") == [
        "<text>:2:27: preset/default_truth needs the option 'model' (metrics[0])",
        "<text>:2:28: unknown option 'modle' of preset/default_truth, did you mean 'model'? (metrics[0])",
    ]


def test_misspelt_preset_names_the_nearest():
    (problem,) = refused("metrics: [preset/default_prxy]")
    assert "did you mean 'preset/default_proxy'?" in problem


def test_preset_is_no_judge():
    (problem,) = refused("judges: [preset/default_proxy]")
    assert "preset/default_proxy is a preset, not a judge" in problem


def test_expensive_metric_of_a_preset_is_refused_among_the_proxies():
    model = FakeChatModel("x", cost=Cost("0.01"))
    (problem,) = refused("metrics: {proxy: [{preset/default_truth: {model: m}}]}", m=model)
    assert "llm/judge costs money, but proxies always run" in problem
